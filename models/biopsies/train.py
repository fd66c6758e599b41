# SPDX-License-Identifier: Apache-2.0
"""The recipe of the shipped regression: ``python -m models.biopsies.train`` (seconds). Needs scikit-learn and
skl2onnx."""

from __future__ import annotations

from typing import Any

import torch

from .. import estimators

SOURCE = "sklearn.datasets.load_breast_cancer"


def split() -> tuple[estimators.Samples, estimators.Samples]:
    """400 biopsies to train on and 169 to test with; labels 0 malignant, 1 benign."""
    from sklearn.datasets import load_breast_cancer

    values, labels = load_breast_cancer(return_X_y=True)
    return estimators.split(values.astype("float32"), labels, 400, 13)


def train(samples: estimators.Samples) -> tuple[Any, tuple[torch.Tensor, torch.Tensor]]:
    """(regression, (mean, deviation) that its inputs are standardized with)."""
    from sklearn.linear_model import LogisticRegression

    scaling = samples.values.mean(0), samples.values.std(0)
    return LogisticRegression(C=0.5).fit(estimators.features(samples.values, *scaling), samples.labels), scaling


def main() -> None:
    out = estimators.folder_of(__doc__, __file__)
    parts = split()
    regression, scaling = train(parts[0])
    print(f"test accuracy: {estimators.write(out, regression, parts, scaling, SOURCE):.4f}")


if __name__ == "__main__":
    main()
