# SPDX-License-Identifier: Apache-2.0
"""The LSTM of ``weights.safetensors`` and the days of ``samples.safetensors``."""

from __future__ import annotations

from pathlib import Path

from .. import Model, trained
from .model import Power, preprocess

FOLDER = Path(__file__).parent


def load() -> Model:
    return trained(FOLDER, Power(), preprocess)
