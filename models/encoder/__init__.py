# SPDX-License-Identifier: Apache-2.0
"""The transformer encoder of ``weights.safetensors`` and the digits of ``samples.safetensors``."""

from __future__ import annotations

from pathlib import Path

from safetensors.torch import load_file

from .. import Model
from .model import Encoder, preprocess

FOLDER = Path(__file__).parent


def load() -> Model:
    module = Encoder()
    module.load_state_dict(load_file(FOLDER / "weights.safetensors"))
    module.eval().requires_grad_(False)
    data = load_file(FOLDER / "samples.safetensors")
    samples = data["series"]
    return Model("encoder", module, preprocess(samples[:1]), preprocess, samples, data["labels"], data["calibration"])
