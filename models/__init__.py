# SPDX-License-Identifier: Apache-2.0
"""The zoo: a folder per model with its definition, trained weights, training recipe and card.

``load(name)`` gives what is needed to convert and query a model, without privml.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import torch
from safetensors.torch import load_file

_FOLDERS = ("encoder", "lenet", "motions", "resnet18", "tumours", "vgg16", "vowels")


@dataclass(frozen=True)
class Model:
    """A trained model and how to feed it.

    ``module``: in evaluation mode, or the path of an ONNX file. ``example``: one batch of inputs as it takes them.
    ``preprocess``: raw samples (uint8 images for image models) to such a batch. ``samples``, ``labels``: real
    raw samples the model was not trained on. ``calibration``: raw training samples to measure ranges on.
    """

    name: str
    module: torch.nn.Module | str
    example: torch.Tensor
    preprocess: Callable[[torch.Tensor], torch.Tensor]
    samples: torch.Tensor
    labels: torch.Tensor
    calibration: torch.Tensor


def names() -> list[str]:
    """The models there are."""
    return list(_FOLDERS)


def load(name: str) -> Model:
    """The model of this name with its trained weights; KeyError, naming the known ones, for any other."""
    if name not in _FOLDERS:
        raise KeyError(f"no model {name!r} in the zoo; there are: {', '.join(_FOLDERS)}")
    return importlib.import_module(f"{__name__}.{name}").load()


def trained(
    folder: Path,
    module: torch.nn.Module,
    preprocess: Callable[[torch.Tensor], torch.Tensor],
    file: str = "samples.safetensors",
    key: str = "series",
) -> Model:
    """The model of a folder: ``module`` with its ``weights.safetensors``, and the samples ``key`` of ``file``."""
    module.load_state_dict(load_file(folder / "weights.safetensors"))
    module.eval().requires_grad_(False)
    data = load_file(folder / file)
    samples = data[key]
    example = preprocess(samples[:1])
    return Model(folder.name, module, example, preprocess, samples, data["labels"], data["calibration"])
