# SPDX-License-Identifier: Apache-2.0
"""The GRU of ``weights.safetensors`` and the recordings of ``samples.safetensors``."""

from __future__ import annotations

from pathlib import Path

from .. import Model, trained
from .model import Motions, preprocess

FOLDER = Path(__file__).parent


def load() -> Model:
    return trained(FOLDER, Motions(), preprocess)
