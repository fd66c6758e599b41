# SPDX-License-Identifier: Apache-2.0
"""The compiled core is built by CMake through scikit-build-core; metadata stands in pyproject.toml.

``configs`` and ``models``, at the top of a checkout, become ``privml.configs`` and ``privml.models`` in a wheel.
"""

from pathlib import Path

from setuptools import find_packages, setup

INSIDE = {"configs": "privml.configs", "models": "privml.models"}


def folders(top: str) -> dict[str, str]:
    """Package name -> folder, for ``top`` and every folder below it that holds files."""
    found = [path for path in (Path(top), *Path(top).rglob("*")) if path.is_dir() and path.name != "__pycache__"]
    return {".".join((INSIDE[top], *path.relative_to(top).parts)): path.as_posix() for path in found}


moved = {name: folder for top in INSIDE for name, folder in folders(top).items()}

setup(
    cmake_source_dir="csrc",
    packages=[*find_packages(include=["privml", "privml.*"]), *moved],
    package_dir=moved,
    package_data={"": ["*.yaml", "*.json", "*.safetensors", "*.onnx", "*.md", "*.j2", "*.css", "*.pyi", "py.typed"]},
)
