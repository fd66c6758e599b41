# SPDX-License-Identifier: Apache-2.0
"""The multilayer perceptron of ``weights.safetensors``; its digits are those of ``models/lenet``."""

from __future__ import annotations

from pathlib import Path

from .. import Model, trained
from .model import Mlp, preprocess

FOLDER = Path(__file__).parent


def load() -> Model:
    return trained(FOLDER, Mlp(), preprocess, "../lenet/digits.safetensors", "images")
