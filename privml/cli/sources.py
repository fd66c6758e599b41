# SPDX-License-Identifier: Apache-2.0
"""From the ``model`` group of the configuration to a model, its calibration data and example inputs."""

from __future__ import annotations

import importlib
import os
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from omegaconf import DictConfig

from privml.cli import console
from privml.cli.paths import shipped_models
from privml.conversion import convert
from privml.errors import ConfigError, InvalidInput
from privml.program import Program


@dataclass(frozen=True)
class Source:
    """A model to convert: a module or an ONNX path, data to calibrate on, and samples to try it with."""

    model: torch.nn.Module | str
    calibration: torch.Tensor
    samples: torch.Tensor | None = None  # as the model takes them
    labels: torch.Tensor | None = None


def read_array(path: str | os.PathLike) -> torch.Tensor:
    """A .npy file as a tensor; raises InvalidInput naming the file when it is missing or not an array."""
    try:
        array = np.load(path, allow_pickle=False)
    except FileNotFoundError:
        raise InvalidInput(f"{path}: no such file") from None
    except Exception as error:  # of files, zip archives, Python's tokenizer and memory, which NumPy lets through
        raise InvalidInput(f"{path}: not a .npy array ({error})") from None
    if not isinstance(array, np.ndarray):
        raise InvalidInput(f"{path}: an archive of several arrays (.npz); save one of them as .npy")
    if array.dtype.kind not in "fiub":
        raise InvalidInput(f"{path}: dtype {array.dtype} is not a number type; save float32 or integers")
    try:
        return torch.from_numpy(np.ascontiguousarray(array, dtype=array.dtype.newbyteorder("=")))
    except TypeError:
        raise InvalidInput(f"{path}: dtype {array.dtype} is not known to torch; save float32 or integers") from None


def source_of(config: DictConfig) -> Source:
    """Exactly one of model.name (shipped), model.onnx (file), model.torch (module:function) must be given."""
    model = config.model
    given = [key for key in ("name", "onnx", "torch") if model[key] is not None]
    if len(given) != 1:
        raise ConfigError("say which model: model=lenet, model.onnx=FILE.onnx, or model.torch=PACKAGE.MODULE:FUNCTION")
    if given[0] == "name":
        return shipped(model.name, config.calibration)
    return Source(str(model.onnx), own_calibration(config)) if given[0] == "onnx" else from_function(config)


def shipped(name: str, calibration: str | None) -> Source:
    try:
        model = shipped_models().load(name)
    except KeyError as error:
        raise ConfigError(str(error.args[0])) from None
    data = model.preprocess(model.calibration) if calibration is None else read_array(calibration)
    return Source(model.module, data, model.preprocess(model.samples), model.labels)


def from_function(config: DictConfig) -> Source:
    module_name, _, function = str(config.model.torch).partition(":")
    if not function:
        raise ConfigError(f"model.torch={config.model.torch}: write PACKAGE.MODULE:FUNCTION")
    sys.path.insert(0, str(Path.cwd()))
    try:
        model = getattr(importlib.import_module(module_name), function)()
    except (ImportError, AttributeError) as error:
        raise ConfigError(f"model.torch={config.model.torch}: {error}") from None
    if not isinstance(model, torch.nn.Module):
        raise ConfigError(f"model.torch={config.model.torch}: returned {type(model).__name__}, not a torch.nn.Module")
    return Source(model.eval(), own_calibration(config))


def own_calibration(config: DictConfig) -> torch.Tensor:
    """The user's example inputs, or standard normal ones of model.input_shape (with a warning)."""
    if config.calibration is not None:
        return read_array(config.calibration).to(torch.float32)
    if config.model.input_shape is None:
        raise ConfigError(
            "pass example inputs as calibration=FILE.npy (or model.input_shape=[1,3,32,32] to try without)"
        )
    console.err.print("calibrating on random inputs: pass calibration=FILE.npy with real ones before you rely on it")
    return torch.randn(*config.model.input_shape, generator=torch.Generator().manual_seed(0))


def program_of(config: DictConfig) -> tuple[Program, Source]:
    """The converted model, with a progress display."""
    source = source_of(config)
    numerics: dict[str, Any] = dict(config.numerics)
    with console.progress("convert", config.quiet) as step:
        program = convert(
            source.model,
            calibration=source.calibration,
            numerics=numerics,
            tree_structure=config.get("tree_structure", "public"),
            progress=step,
        )
    return program, source
