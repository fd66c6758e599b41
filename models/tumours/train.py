# SPDX-License-Identifier: Apache-2.0
"""The recipe of the shipped machine: ``python -m models.tumours.train`` (seconds).

Writes model.onnx and samples.safetensors beside this file, or into ``--out``. Needs scikit-learn and skl2onnx.
"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any, NamedTuple

import torch
from safetensors.torch import save_file

TRAINING = 400
SHIPPED = 100  # test cases in samples.safetensors
CALIBRATION = 128  # training cases there
GAMMA, PENALTY = 0.02, 4.0


class Cases(NamedTuple):
    values: torch.Tensor  # float32 [n, 30]
    labels: torch.Tensor  # int64 [n]: 0 malignant, 1 benign


def split() -> tuple[Cases, Cases]:
    """400 training and 169 test cases of Breast Cancer Wisconsin, chosen by a permutation of fixed seed."""
    from sklearn.datasets import load_breast_cancer

    values, labels = load_breast_cancer(return_X_y=True)
    order = torch.randperm(len(labels), generator=torch.Generator().manual_seed(11))
    values = torch.as_tensor(values, dtype=torch.float32)[order]
    labels = torch.as_tensor(labels, dtype=torch.int64)[order]
    return Cases(values[:TRAINING], labels[:TRAINING]), Cases(values[TRAINING:], labels[TRAINING:])


def train(cases: Cases) -> tuple[Any, torch.Tensor, torch.Tensor]:
    """(machine, mean, deviation): the machine takes (values - mean) / deviation."""
    from sklearn.svm import SVC

    mean, deviation = cases.values.mean(0), cases.values.std(0)
    machine = SVC(kernel="rbf", gamma=GAMMA, C=PENALTY)
    machine.fit(((cases.values - mean) / deviation).numpy(), cases.labels.numpy())
    return machine, mean, deviation


def to_onnx(machine: Any) -> bytes:
    from skl2onnx import convert_sklearn
    from skl2onnx.common.data_types import FloatTensorType

    model = convert_sklearn(
        machine,
        initial_types=[("x", FloatTensorType([None, 30]))],
        options={id(machine): {"zipmap": False}},
        target_opset={"": 17, "ai.onnx.ml": 3},
    )
    return model.SerializeToString()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, default=Path(__file__).parent, help="folder to write into")
    out = parser.parse_args().out
    training, test = split()
    machine, mean, deviation = train(training)
    reached = machine.score(((test.values - mean) / deviation).numpy(), test.labels.numpy())
    print(f"test accuracy: {reached:.4f} ({len(test.labels)} cases), {len(machine.support_)} support vectors")
    out.mkdir(parents=True, exist_ok=True)
    (out / "model.onnx").write_bytes(to_onnx(machine))
    samples = {
        "cases": test.values[:SHIPPED].contiguous(),
        "labels": test.labels[:SHIPPED].contiguous(),
        "calibration": training.values[:CALIBRATION].contiguous(),
        "mean": mean,
        "deviation": deviation,
    }
    notes = {"test_accuracy": f"{reached:.4f}", "source": "sklearn.datasets.load_breast_cancer"}
    save_file(samples, out / "samples.safetensors", metadata=notes)


if __name__ == "__main__":
    main()
