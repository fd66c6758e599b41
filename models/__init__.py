# SPDX-License-Identifier: Apache-2.0
"""The zoo: a folder per model with its definition, trained weights, training recipe and card.

``load(name)`` gives what is needed to convert and query a model, without privml. A folder is a model when it has a
card, ``README.md``, and an ``__init__.py`` whose ``load()`` returns its ``Model``; nothing else has to be told about
it. The recipe is ``python -m models.<name>.train``; a model whose weights an installed package brings has none.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import load_file

from .packages import NotInstalled

__all__ = ["Model", "NotInstalled", "card_of", "load", "names", "trained"]
_HERE = Path(__file__).parent


@dataclass(frozen=True)
class Model:
    """A trained model and how to feed it.

    ``module``: in evaluation mode, or the path of an ONNX file. ``example``: one batch of inputs as it takes them.
    ``preprocess``: raw samples (uint8 images for image models) to such a batch. ``samples``, ``labels``: real
    raw samples the model was not trained on. ``calibration``: raw training samples to measure ranges on. ``numerics``:
    settings of the numbers that conversion needs for it, beyond the usual ones. ``learned``: False where the weights
    are random and the labels its own answers. ``rows``: the dimension of outputs along which samples lie. ``answer``:
    labels [n], or [n, k] that must all be right, from the first output with samples first; None: the largest score.
    """

    name: str
    module: torch.nn.Module | str
    example: torch.Tensor
    preprocess: Callable[[torch.Tensor], torch.Tensor]
    samples: torch.Tensor
    labels: torch.Tensor
    calibration: torch.Tensor
    numerics: Mapping[str, Any] = field(default_factory=dict)
    learned: bool = True
    rows: int = 0
    answer: Callable[[torch.Tensor], torch.Tensor] | None = None


def names() -> list[str]:
    """The models there are: every folder with a card."""
    return sorted(card.parent.name for card in _HERE.glob("*/README.md") if (card.parent / "__init__.py").exists())


def card_of(name: str) -> Path:
    """The card of a model."""
    return _HERE / name / "README.md"


def load(name: str) -> Model:
    """The model of this name with its trained weights; KeyError, naming the known ones, for any other. NotInstalled
    where a package brings the weights and is missing."""
    if name not in names():
        raise KeyError(f"no model {name!r} in the zoo; there are: {', '.join(names())}")
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
