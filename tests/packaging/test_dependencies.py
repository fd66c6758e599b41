# SPDX-License-Identifier: Apache-2.0
"""What privml imports is what it declares; what an extra brings is imported where it is needed, and named there."""

from __future__ import annotations

import ast
import functools
import re
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

if sys.version_info >= (3, 11):
    import tomllib
else:
    tomllib = pytest.importorskip("tomli")

ROOT = Path(__file__).parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
EXTRAS = PROJECT["optional-dependencies"]
# Import name -> package, where they differ; packages that come with another one.
PACKAGES = {"hydra": "hydra-core", "omegaconf": "hydra-core", "sklearn": "scikit-learn", "cupy": "cupy-cuda13x"}
PACKAGES |= {"google": "onnx", "yaml": "pyyaml", "IPython": "ipykernel", "PIL": "pillow"}  # google: its protobuf
SOURCES = sorted(path for top in ("privml", "models") for path in (ROOT / top).rglob("*.py"))


def name_of(requirement: str) -> str:
    return re.split(r"[<>=!~;\[ ]", requirement)[0].lower()


CORE = {name_of(each) for each in PROJECT["dependencies"]}
OPTIONAL = {name_of(each) for extra in EXTRAS.values() for each in extra}


@functools.cache
def parsed(path: Path) -> ast.Module:
    return ast.parse(path.read_text())


def imports(tree: ast.AST, inside: bool = False) -> Iterator[tuple[str, bool]]:
    """(package, whether only when a function runs) of what is imported at run time."""
    for node in ast.iter_child_nodes(tree):
        if isinstance(node, ast.Import):
            yield from ((alias.name.split(".")[0], inside) for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.level == 0:
            yield str(node.module).split(".")[0], inside
        elif isinstance(node, ast.If) and ast.unparse(node.test) in ("TYPE_CHECKING", "typing.TYPE_CHECKING"):
            continue
        else:
            yield from imports(node, inside or isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef))


def third_party(path: Path) -> Iterator[tuple[str, bool]]:
    for name, inside in imports(parsed(path)):
        ours = name in ("privml", "models") or path.with_name(f"{name}.py").exists()
        if not ours and name not in sys.stdlib_module_names:
            yield PACKAGES.get(name, name.replace("_", "-")), inside


@pytest.mark.parametrize("top", ["privml", "models"])
def test_what_is_imported_is_declared(top: str) -> None:
    for path in SOURCES:
        if path.relative_to(ROOT).parts[0] != top:
            continue
        for package, inside in third_party(path):
            assert package in CORE or (inside and package in OPTIONAL), (path.relative_to(ROOT).as_posix(), package)


def test_what_is_declared_is_imported() -> None:
    used = {package for path in SOURCES for package, _ in third_party(path)}
    assert used >= CORE


def test_the_extras_of_the_guide_exist() -> None:
    assert set(EXTRAS) >= {"gpu", "onnx", "sklearn", "dev", "experiments"}
    named = re.findall(r"privml\[([a-z,]+)\]", "\n".join(path.read_text() for path in SOURCES))
    assert named and {extra for each in named for extra in each.split(",")} <= set(EXTRAS)
