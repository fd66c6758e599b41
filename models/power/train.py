# SPDX-License-Identifier: Apache-2.0
"""The recipe of the shipped weights: ``python -m models.power.train`` (CPU, one thread, under a minute).

Writes weights.safetensors (with the test accuracy in its metadata) and samples.safetensors beside this file,
or into ``--out``. Needs sktime, which ships the data.
"""

from __future__ import annotations

from pathlib import Path

from .. import training
from ..series import read
from .model import Power, preprocess

RECIPE = training.Recipe(epochs=150, batch=8, rate=1e-2, noise=0.03, stretch=0.05, seed=2)


def split() -> tuple[training.Series, training.Series]:
    """The 67 training and 1,029 test days of ItalyPowerDemand, as its authors divided them."""
    return tuple(training.Series(*read("ItalyPowerDemand", part, 24)) for part in ("TRAIN", "TEST"))


if __name__ == "__main__":
    training.main(Power, preprocess, split, RECIPE, Path(__file__).parent, shipped=200, calibration=67)
