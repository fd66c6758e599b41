# SPDX-License-Identifier: Apache-2.0
"""Where the configuration and the shipped models lie: in a checkout beside the package, in a wheel inside it."""

from __future__ import annotations

import importlib
import sys
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING

from privml.errors import ConfigError

if TYPE_CHECKING:
    from privml.program import Program

PACKAGE = Path(__file__).resolve().parent.parent


def config_directory() -> Path:
    inside, beside = PACKAGE / "configs", PACKAGE.parent / "configs"
    return inside if inside.is_dir() else beside


def in_checkout() -> bool:
    """Whether the shipped models are a checkout's, to be worked on."""
    return not (PACKAGE / "models").is_dir() and (PACKAGE.parent / "models").is_dir()


def results_path(folder: str | None, file: str) -> Path:
    """A file of records in ``folder``; None: in the user's cache folder, so that runs change no tracked file."""
    if folder is not None:
        return Path(folder, file)
    from privml.measure.machine import cache_folder

    return cache_folder() / "results" / file


def load_program(program: str, weights: str | None = None) -> Program:
    """The converted model of a file, with the server's weights. ConfigError for a file that is missing; else as
    ``Program.load``."""
    from privml.program import Program

    for key, path in (("program", program), ("weights", weights)):
        if path is not None and not Path(path).is_file():
            what = (
                "a folder; its file is called" if Path(path).is_dir() else "no such file; `privml convert` writes it as"
            )
            name = {"program": "program", "weights": "weights.safetensors"}[key]
            raise ConfigError(f"{key}={path}: {what} {name}")
    return Program.load(program, weights)


def models_folder() -> Path:
    inside = PACKAGE / "models"
    return inside if inside.is_dir() else PACKAGE.parent / "models"


def model_names() -> list[str]:
    """Of the shipped models, without loading any; none where they are not installed."""
    folder = models_folder()
    return sorted(card.parent.name for card in folder.glob("*/README.md") if (card.parent / "__init__.py").exists())


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
