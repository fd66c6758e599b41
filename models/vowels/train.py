# SPDX-License-Identifier: Apache-2.0
"""The recipe of the shipped weights: ``python -m models.vowels.train`` (CPU, one thread, under a minute).

Writes weights.safetensors (with the test accuracy in its metadata) and samples.safetensors beside this file,
or into ``--out``. Needs sktime, which ships the data.
"""

from __future__ import annotations

from pathlib import Path

from .. import training
from ..series import read
from .model import Vowels, preprocess

RECIPE = training.Recipe(epochs=80, batch=16, rate=1e-2, noise=0.1, stretch=0.08, seed=0)


def split() -> tuple[training.Series, training.Series]:
    """The 270 training and 370 test utterances of JapaneseVowels, interpolated to 16 steps."""
    return training.Series(*read("JapaneseVowels", "TRAIN", 16)), training.Series(*read("JapaneseVowels", "TEST", 16))


if __name__ == "__main__":
    training.main(Vowels, preprocess, split, RECIPE, Path(__file__).parent, shipped=120, calibration=90)
