# SPDX-License-Identifier: Apache-2.0
"""What the recipes of classical models share: splits, ONNX files by way of skl2onnx, and the folders they fill."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch
from safetensors.torch import load_file, save_file

from . import Model

SHIPPED = 100  # test samples in samples.safetensors
CALIBRATION = 256  # training samples there, at most


class Samples(NamedTuple):
    values: torch.Tensor  # [n, features], as they were measured
    labels: torch.Tensor  # int64 [n]


def split(values: Any, labels: Any, training: int, seed: int) -> tuple[Samples, Samples]:
    """``training`` samples and the others, by a permutation of fixed seed."""
    order = torch.randperm(len(labels), generator=torch.Generator().manual_seed(seed))
    values, labels = torch.as_tensor(np.asarray(values))[order], torch.as_tensor(np.asarray(labels)).long()[order]
    return Samples(values[:training], labels[:training]), Samples(values[training:], labels[training:])


def features(values: torch.Tensor, mean: torch.Tensor, deviation: torch.Tensor) -> torch.Tensor:
    """float32, minus a public mean, divided by a public deviation."""
    return (values.to(torch.float32) - mean) / deviation


def as_measured(columns: int) -> tuple[torch.Tensor, torch.Tensor]:
    """Mean and deviation that change nothing."""
    return torch.zeros(columns), torch.ones(columns)


def load(folder: Path) -> Model:
    """The model of a folder that ``write`` has filled."""
    data = load_file(folder / "samples.safetensors")
    mean, deviation = data["mean"], data["deviation"]

    def preprocess(values: torch.Tensor) -> torch.Tensor:
        """[n, features] as the model takes them."""
        return features(values, mean, deviation)

    samples = data["values"]
    example, calibration = preprocess(samples[:1]), data["calibration"]
    return Model(folder.name, str(folder / "model.onnx"), example, preprocess, samples, data["labels"], calibration)


def to_onnx(estimator: Any, columns: int) -> bytes:
    """The estimator's labels as an ONNX model; its scores are left out."""
    from skl2onnx import convert_sklearn
    from skl2onnx.common.data_types import FloatTensorType

    model = convert_sklearn(
        estimator,
        initial_types=[("x", FloatTensorType([None, columns]))],
        options={id(estimator): {"zipmap": False}},
        target_opset={"": 17, "ai.onnx.ml": 3},
    )
    del model.graph.output[1:]
    return model.SerializeToString()


def write(
    out: Path, estimator: Any, parts: tuple[Samples, Samples], scaling: tuple[torch.Tensor, torch.Tensor], source: str
) -> float:
    """Fills ``out`` with model.onnx and samples.safetensors of a fitted estimator; returns its accuracy on the test
    samples."""
    training, test = parts
    reached = float(estimator.score(features(test.values, *scaling).numpy(), test.labels.numpy()))
    out.mkdir(parents=True, exist_ok=True)
    (out / "model.onnx").write_bytes(to_onnx(estimator, training.values.shape[1]))
    samples = {
        "values": test.values[:SHIPPED].contiguous(),
        "labels": test.labels[:SHIPPED].contiguous(),
        "calibration": training.values[:CALIBRATION].contiguous(),
        "mean": scaling[0],
        "deviation": scaling[1],
    }
    notes = {"test_accuracy": f"{reached:.4f}", "test_samples": str(len(test.labels)), "source": source}
    save_file(samples, out / "samples.safetensors", metadata=notes)
    return reached


def folder_of(description: str, here: str) -> Path:
    """Where the recipe's command line says that the files go: beside it, unless told otherwise."""
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("--out", type=Path, default=Path(here).parent, help="folder to write into")
    return parser.parse_args().out
