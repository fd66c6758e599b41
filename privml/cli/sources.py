# SPDX-License-Identifier: Apache-2.0
"""From the ``model`` group of the configuration to a model, its calibration data and example inputs."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import Any

import torch
from omegaconf import DictConfig, OmegaConf

from privml.cli import console
from privml.cli.arrays import FORMS, read_array
from privml.cli.fields import WrongCall
from privml.cli.inputs import read_inputs, real_as
from privml.cli.kept import kept
from privml.cli.own_models import own_module
from privml.cli.paths import shipped_models
from privml.errors import ConfigError
from privml.measure.answers import Reader, reader
from privml.measure.answers import labels as labels_of
from privml.program import Program


@dataclass(frozen=True)
class Source:
    """A model to convert: a module or an ONNX path, data to calibrate on, and samples to try it with."""

    model: torch.nn.Module | str
    calibration: torch.Tensor | dict[str, torch.Tensor]
    samples: torch.Tensor | None = None  # as the model takes them
    labels: torch.Tensor | None = None
    read: Reader = labels_of  # of outputs, to compare with ``labels``


def source_of(config: DictConfig) -> Source:
    """Exactly one of model.name (shipped), model.onnx (file), model.torch (function or weights) must be given."""
    model = config.model
    given = [key for key in ("name", "onnx", "torch") if model[key] is not None]
    if len(given) != 1:
        raise WrongCall("say which model: model=lenet, model.onnx=FILE.onnx, or model.torch=FILE.py:FUNCTION")
    if given[0] == "name":
        return shipped(model.name, config.calibration)
    if given[0] == "onnx":
        return Source(str(model.onnx), own_calibration(config))
    return Source(own_module(str(model.torch), model.factory), own_calibration(config))


def shipped(name: str, calibration: str | None) -> Source:
    zoo = shipped_models()
    try:
        model = zoo.load(name)
    except KeyError as error:
        raise ConfigError(str(error.args[0])) from None
    except zoo.NotInstalled as missing:
        raise ConfigError(f"model={name}: {missing}") from None
    data = model.preprocess(model.calibration) if calibration is None else read_array(calibration)
    read = reader(model.rows, model.answer)
    return Source(model.module, data, model.preprocess(model.samples), model.labels, read)


def own_calibration(config: DictConfig) -> torch.Tensor:
    """The user's example inputs, or standard normal ones of model.input_shape (with a warning)."""
    if config.calibration is not None:
        return real_as(read_inputs(config.calibration), torch.float32)
    if config.model.input_shape is None:
        raise ConfigError(
            f"give example inputs as calibration=FILE ({FORMS}), or model.input_shape=[1,3,32,32] to try without"
        )
    console.err.print("calibrating on random inputs: give real ones as calibration=FILE before you rely on it")
    return torch.randn(*config.model.input_shape, generator=torch.Generator().manual_seed(0))


def converted(config: DictConfig, source: Source) -> Program:
    """The converted model, with a progress display; of a shipped model the program of an earlier run, if nothing has
    changed since."""
    settings: dict[str, Any] = {
        "numerics": _plain(config.numerics),
        "tree_structure": config.get("tree_structure", "public"),
        "token_ids": _plain(config.get("token_ids", "secret")),
        "outputs": _plain(config.get("outputs")),
        "state": _plain(config.get("state")),
        "generate": config.get("generate"),
        "steps": config.get("steps", 64),
    }
    with warnings.catch_warnings(), console.progress("convert", config.quiet, "reading the model") as step:
        warnings.filterwarnings("ignore", "the batch is fixed")  # one of the notes below

        def convert() -> Program:
            from privml.conversion import convert  # loads the half of torch that traces

            debug = bool(config.get("debug", False))
            return convert(source.model, calibration=source.calibration, progress=step, debug=debug, **settings)

        shipped = config.model.name is not None
        program = kept(source.model, source.calibration, settings, convert) if shipped else convert()
    for note in program.notes if not config.quiet else ():
        console.err.print(note, markup=False)
    return program


def _plain(value: Any) -> Any:
    """A setting as plain lists and mappings."""
    return OmegaConf.to_container(value) if OmegaConf.is_config(value) else value
