# SPDX-License-Identifier: Apache-2.0
"""The recipe of the shipped weights: ``python -m models.encoder.train`` (CPU, one thread, about two minutes).

Writes weights.safetensors (with the test accuracy in its metadata) and samples.safetensors beside this file,
or into ``--out``. Needs scikit-learn, which ships the data.
"""

from __future__ import annotations

from pathlib import Path

import torch

from .. import training
from .model import Encoder, preprocess

RECIPE = training.Recipe(epochs=60, batch=32, rate=3e-3, noise=0.05, stretch=0.05, seed=0)


def split() -> tuple[training.Series, training.Series]:
    """Four of five of the 1,797 images for training, every fifth for testing."""
    from sklearn.datasets import load_digits

    data = load_digits()
    images, labels = torch.from_numpy(data.images).to(torch.float32), torch.from_numpy(data.target).long()
    held_out = torch.arange(len(labels)) % 5 == 4
    return training.Series(images[~held_out], labels[~held_out]), training.Series(images[held_out], labels[held_out])


if __name__ == "__main__":
    source = "handwritten digits of the package scikit-learn"
    training.main(
        Encoder, preprocess, split, RECIPE, Path(__file__).parent, shipped=120, calibration=100, source=source
    )
