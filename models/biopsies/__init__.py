# SPDX-License-Identifier: Apache-2.0
"""The logistic regression of ``model.onnx`` and the biopsies of ``samples.safetensors``."""

from __future__ import annotations

from pathlib import Path

from .. import Model, estimators

FOLDER = Path(__file__).parent


def load() -> Model:
    return estimators.load(FOLDER)
