# SPDX-License-Identifier: Apache-2.0
"""LeNet-5 with the weights of ``weights.safetensors`` and the digits of ``digits.safetensors``."""

from __future__ import annotations

from pathlib import Path

from safetensors.torch import load_file

from .. import Model
from .model import LeNet, preprocess

FOLDER = Path(__file__).parent


def load() -> Model:
    module = LeNet()
    module.load_state_dict(load_file(FOLDER / "weights.safetensors"))
    module.eval().requires_grad_(False)
    digits = load_file(FOLDER / "digits.safetensors")
    samples = digits["images"]
    return Model("lenet", module, preprocess(samples[:1]), preprocess, samples, digits["labels"], digits["calibration"])
