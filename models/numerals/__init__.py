# SPDX-License-Identifier: Apache-2.0
"""The support vector machine of ``model.onnx`` and the digits of ``samples.safetensors``."""

from __future__ import annotations

from pathlib import Path

from .. import Model, estimators

FOLDER = Path(__file__).parent


def load() -> Model:
    return estimators.load(FOLDER)
