# SPDX-License-Identifier: Apache-2.0
"""The support vector machine of ``model.onnx`` and the cases of ``samples.safetensors``."""

from __future__ import annotations

from pathlib import Path

import torch
from safetensors.torch import load_file

from .. import Model

FOLDER = Path(__file__).parent


def load() -> Model:
    data = load_file(FOLDER / "samples.safetensors")
    mean, deviation = data["mean"], data["deviation"]

    def preprocess(cases: torch.Tensor) -> torch.Tensor:
        """[n, 30] measurements, in units of their deviation from the training set's mean."""
        return ((cases - mean) / deviation).to(cases.dtype)

    samples = data["cases"]
    return Model(
        "tumours", str(FOLDER / "model.onnx"), preprocess(samples[:1]), preprocess, samples, data["labels"],
        data["calibration"],
    )  # fmt: skip
