# SPDX-License-Identifier: Apache-2.0
"""The recipe of the shipped forest: ``python -m models.cultivars.train`` (seconds). Needs scikit-learn and skl2onnx."""

from __future__ import annotations

from typing import Any

import torch

from .. import estimators

SOURCE = "sklearn.datasets.load_wine"


def split() -> tuple[estimators.Samples, estimators.Samples]:
    """100 wines to train on and 78 to test with; the labels are three cultivars."""
    from sklearn.datasets import load_wine

    values, labels = load_wine(return_X_y=True)
    return estimators.split(values.astype("float32"), labels, 100, 3)


def train(samples: estimators.Samples) -> tuple[Any, tuple[torch.Tensor, torch.Tensor]]:
    """(forest, a scaling that changes nothing: trees do without)."""
    from sklearn.ensemble import RandomForestClassifier

    forest = RandomForestClassifier(20, max_depth=4, random_state=0)
    return forest.fit(samples.values.numpy(), samples.labels.numpy()), estimators.as_measured(samples.values.shape[1])


def main() -> None:
    out = estimators.folder_of(__doc__, __file__)
    parts = split()
    forest, scaling = train(parts[0])
    leaves = sum(tree.get_n_leaves() for tree in forest.estimators_)
    print(f"test accuracy: {estimators.write(out, forest, parts, scaling, SOURCE):.4f}, {leaves} leaves")


if __name__ == "__main__":
    main()
