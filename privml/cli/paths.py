# SPDX-License-Identifier: Apache-2.0
"""Where the configuration and the shipped models lie: in a checkout beside the package, in a wheel inside it."""

from __future__ import annotations

import importlib
import sys
from pathlib import Path
from types import ModuleType

from privml.errors import ConfigError

PACKAGE = Path(__file__).resolve().parent.parent


def config_directory() -> Path:
    inside, beside = PACKAGE / "configs", PACKAGE.parent / "configs"
    return inside if inside.is_dir() else beside


def in_checkout() -> bool:
    """Whether the shipped models are a checkout's, to be worked on."""
    return not (PACKAGE / "models").is_dir() and (PACKAGE.parent / "models").is_dir()


def shipped_models() -> ModuleType:
    """The registry of shipped models (``load(name)``)."""
    if (PACKAGE / "models").is_dir():
        return importlib.import_module("privml.models")
    root = str(PACKAGE.parent)
    if not (PACKAGE.parent / "models" / "__init__.py").exists():
        raise ConfigError("the shipped models are not installed; give model.onnx=FILE or model.torch=MODULE:FUNCTION")
    if root not in sys.path:
        sys.path.insert(0, root)
    return importlib.import_module("models")
