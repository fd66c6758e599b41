# SPDX-License-Identifier: Apache-2.0
"""``model.torch=``: a function of the user's that returns the trained module, or a file of weights with a function that
makes the module. No pickled code is loaded."""

from __future__ import annotations

import importlib
import importlib.util
import pickle
import sys
import traceback
from collections.abc import Callable, Mapping
from pathlib import Path
from types import ModuleType
from typing import Any

import torch

from privml.errors import ConfigError

_WEIGHTS = (".safetensors", ".pt", ".pth", ".bin", ".ckpt")
# Where training scripts keep the weights among other things.
_WITHIN = ("state_dict", "model_state_dict")
_FUNCTION = "MODULE:FUNCTION or FILE.py:FUNCTION, as in hospital.py:trained"


def own_module(torch_: str, factory: str | None) -> torch.nn.Module:
    """The module of ``model.torch`` and ``model.factory``. ConfigError, which names the setting, for what it cannot be
    made of, with the line of the user's own code that failed."""
    if Path(torch_).suffix.lower() not in _WEIGHTS:
        if factory is not None:
            raise ConfigError(f"model.factory={factory} is for a file of weights; model.torch={torch_} is not one")
        return _module("model.torch", torch_)
    if not Path(torch_).is_file():
        raise ConfigError(f"model.torch={torch_}: no such file")
    weights = _weights(torch_)
    if factory is None:
        raise ConfigError(
            f"model.torch={torch_} holds weights alone: add model.factory={_FUNCTION}, which makes the module"
        )
    module = _module("model.factory", factory)
    try:
        module.load_state_dict(weights)
    except RuntimeError as error:
        lines = [line.strip() for line in str(error).splitlines()[1:]]
        raise ConfigError(
            f"model.torch={torch_}: the weights do not fit the module of {factory}: {' '.join(lines)[:400]}"
        ) from None
    return module


# ---- weights
def _weights(path: str) -> Mapping[str, torch.Tensor]:
    if Path(path).suffix.lower() == ".safetensors":
        from safetensors import SafetensorError
        from safetensors.torch import load_file

        try:
            return load_file(path)
        except SafetensorError as error:
            raise ConfigError(f"model.torch={path}: not a safetensors file ({error})") from None
    try:
        loaded = torch.load(path, map_location="cpu", weights_only=True)
    except Exception as error:  # of pickle, zip archives, files and memory
        if isinstance(error, pickle.UnpicklingError) and "GLOBAL" in str(error):
            raise ConfigError(
                f"model.torch={path} holds pickled objects of Python, a whole module perhaps, and loading them would "
                "run code of the file; save the weights alone, torch.save(module.state_dict(), FILE), and add "
                f"model.factory={_FUNCTION}"
            ) from None
        raise ConfigError(
            f"model.torch={path}: not a file of weights that torch.save wrote, or a damaged one"
        ) from None
    for name in _WITHIN:
        loaded = loaded[name] if isinstance(loaded, Mapping) and isinstance(loaded.get(name), Mapping) else loaded
    if not isinstance(loaded, Mapping) or not all(isinstance(value, torch.Tensor) for value in loaded.values()):
        raise ConfigError(f"model.torch={path} holds no weights by name; save module.state_dict()")
    return loaded


# ---- functions
def _module(key: str, written: str) -> torch.nn.Module:
    made = user_object(key, written)
    if callable(made) and not isinstance(made, torch.nn.Module):
        made = _called(key, written, made)
    if not isinstance(made, torch.nn.Module):
        raise ConfigError(f"{key}={written}: {type(made).__name__} is not a torch.nn.Module; return the module itself")
    return made.eval()


def user_object(key: str, written: str) -> Any:
    """What ``written``, MODULE:NAME or FILE.py:NAME, names."""
    place, colon, name = written.rpartition(":")
    if not colon or not place or not name:
        raise ConfigError(f"{key}={written}: write {_FUNCTION}")
    if place.endswith(".py") and not Path(place).is_file():
        raise ConfigError(f"{key}={written}: no file {place}")
    found: Any = _called(key, written, lambda: _imported(place))
    for part in name.split("."):
        if not hasattr(found, part):
            near = [each for each in vars(found) if not each.startswith("_")]
            from privml.cli.fields import did_you_mean

            raise ConfigError(f"{key}={written}: {place} has no {part}{did_you_mean(part, near)}")
        found = getattr(found, part)
    return found


def _imported(place: str) -> ModuleType:
    """A module by its name or file; its neighbours, and those of the working directory, can be imported by it."""
    folder = Path(place).resolve().parent if place.endswith(".py") else Path.cwd()
    if str(folder) not in sys.path:
        sys.path.insert(0, str(folder))
    if not place.endswith(".py"):
        return importlib.import_module(place)
    spec = importlib.util.spec_from_file_location(Path(place).stem, place)
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


def _called(key: str, written: str, function: Callable[[], Any]) -> Any:
    """What the user's code returns; ConfigError with its error and the line of that code."""
    try:
        return function()
    except Exception as error:
        raise ConfigError(f"{key}={written}: {type(error).__name__}: {error}{_line_of(error)}") from error


def _line_of(error: BaseException) -> str:
    """The innermost line outside privml, installed packages and Python itself that led to an error."""
    if isinstance(error, SyntaxError) and error.filename:
        return f" ({error.filename}, line {error.lineno})"
    ours = str(Path(__file__).resolve().parents[1])
    for frame in reversed(traceback.extract_tb(error.__traceback__)):
        foreign = "site-packages" in frame.filename or frame.filename.startswith((ours, sys.base_prefix, "<"))
        if not foreign:
            return f" ({frame.filename}, line {frame.lineno}: {frame.line})"
    return ""
