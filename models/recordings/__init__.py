# SPDX-License-Identifier: Apache-2.0
"""The seizure network that the package brainmaze-eeg-models brings, and windows of two recordings of sleep that
openspindlenet brings, some with discharges added."""

from __future__ import annotations

from pathlib import Path

import torch

from .. import Model
from ..packages import NotInstalled, file_of
from .signals import CALIBRATION, RATE, SAMPLES, windows

PACKAGE, MODULE, FILE = "brainmaze-eeg-models", "brainmaze_eeg_models", "seizure/_models/modelA_paper.onnx"
SEIZURE = 3  # of four classes


def preprocess(values: torch.Tensor) -> torch.Tensor:
    """Windows [n, samples] to spectrograms [n, 100, columns], a column for each half second, by the package."""
    try:
        from brainmaze_eeg_models.seizure import preprocess_input
    except ImportError:
        raise NotInstalled(f"spectrograms are made by the package {PACKAGE}: pip install {PACKAGE}") from None
    return torch.from_numpy(preprocess_input(values.numpy(), RATE)).to(torch.float32)


def seizure(scores: torch.Tensor) -> torch.Tensor:
    """int64 [n]: whether one of the columns of scores [n, columns, 4] is a seizure."""
    return (scores.argmax(2) == SEIZURE).any(1).to(torch.int64)


def load() -> Model:
    path = str(file_of(PACKAGE, MODULE, FILE))
    samples, labels = windows(SAMPLES)
    return Model(
        Path(__file__).parent.name, path, preprocess(samples[:1]), preprocess, samples, labels,
        windows(CALIBRATION)[0], rows=1, answer=seizure,
    )  # fmt: skip
