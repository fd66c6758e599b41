# SPDX-License-Identifier: Apache-2.0
"""The recipe of the shipped machine: ``python -m models.numerals.train`` (seconds). Needs scikit-learn and skl2onnx."""

from __future__ import annotations

from typing import Any

import torch

from .. import estimators

SOURCE = "sklearn.datasets.load_digits"
LARGEST = 16.0  # of a pixel


def split() -> tuple[estimators.Samples, estimators.Samples]:
    """800 digits of 8 x 8 pixels (uint8, 0 to 16) to train on and 997 to test with."""
    from sklearn.datasets import load_digits

    values, labels = load_digits(return_X_y=True)
    return estimators.split(values.astype("uint8"), labels, 800, 17)


def train(samples: estimators.Samples) -> tuple[Any, tuple[torch.Tensor, torch.Tensor]]:
    """(machine, scaling of pixels to 0 .. 1)."""
    from sklearn.svm import SVC

    columns = samples.values.shape[1]
    scaling = torch.zeros(columns), torch.full((columns,), LARGEST)
    machine = SVC(kernel="rbf", gamma=0.3, C=5.0)
    return machine.fit(estimators.features(samples.values, *scaling).numpy(), samples.labels.numpy()), scaling


def main() -> None:
    out = estimators.folder_of(__doc__, __file__)
    parts = split()
    machine, scaling = train(parts[0])
    reached = estimators.write(out, machine, parts, scaling, SOURCE)
    print(f"test accuracy: {reached:.4f}, {len(machine.support_)} support vectors")


if __name__ == "__main__":
    main()
