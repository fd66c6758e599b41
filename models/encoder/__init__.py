# SPDX-License-Identifier: Apache-2.0
"""The transformer encoder of ``weights.safetensors`` and the digits of ``samples.safetensors``."""

from __future__ import annotations

from pathlib import Path

from .. import Model, trained
from .model import Encoder, preprocess

FOLDER = Path(__file__).parent


def load() -> Model:
    return trained(FOLDER, Encoder(), preprocess)
