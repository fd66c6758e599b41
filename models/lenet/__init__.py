# SPDX-License-Identifier: Apache-2.0
"""LeNet-5 with the weights of ``weights.safetensors`` and the digits of ``digits.safetensors``."""

from __future__ import annotations

from pathlib import Path

from .. import Model, trained
from .model import LeNet, preprocess

FOLDER = Path(__file__).parent


def load() -> Model:
    return trained(FOLDER, LeNet(), preprocess, "digits.safetensors", "images")
