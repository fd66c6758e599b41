# SPDX-License-Identifier: Apache-2.0
"""The recipe of the shipped weights: ``python -m models.motions.train`` (CPU, one thread, under a minute).

Writes weights.safetensors (with the test accuracy in its metadata) and samples.safetensors beside this file,
or into ``--out``. Needs sktime, which ships the data.
"""

from __future__ import annotations

from pathlib import Path

from .. import training
from ..series import read
from .model import Motions, preprocess

RECIPE = training.Recipe(epochs=150, batch=10, rate=1e-2, noise=0.05, stretch=0.2, seed=1)


def split() -> tuple[training.Series, training.Series]:
    """The 40 training and 40 test recordings of BasicMotions, as its authors divided them."""
    return training.Series(*read("BasicMotions", "TRAIN", 100)), training.Series(*read("BasicMotions", "TEST", 100))


if __name__ == "__main__":
    training.main(Motions, preprocess, split, RECIPE, Path(__file__).parent, shipped=40, calibration=40)
