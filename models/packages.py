# SPDX-License-Identifier: Apache-2.0
"""Files that installed packages bring, found without importing these."""

from __future__ import annotations

import importlib.util
from pathlib import Path


class NotInstalled(ImportError):
    """The package that brings a model or its data is not installed; says how to install it."""


def file_of(package: str, module: str, path: str) -> Path:
    """The file at ``path`` within the folder of ``module``, which the distribution ``package`` installs."""
    spec = importlib.util.find_spec(module)
    for folder in spec.submodule_search_locations or () if spec is not None else ():
        if (found := Path(folder, path)).is_file():
            return found
    raise NotInstalled(f"{Path(path).name} is part of the package {package}: pip install {package}")
