# SPDX-License-Identifier: Apache-2.0
"""A network that scores how relevant an advertisement is, on features in the units in which they were counted."""

from pathlib import Path

from safetensors.torch import load_file

from .. import Model
from .data import Cases, cases
from .model import Relevance
from .train import train

__all__ = ["Cases", "Relevance", "cases", "load", "train"]

FOLDER = Path(__file__).parent
SAMPLES = 200
CALIBRATION = 128


def load() -> Model:
    module = Relevance()
    module.load_state_dict(load_file(FOLDER / "weights.safetensors"))
    module.eval().requires_grad_(False)
    test, ranges = cases(SAMPLES, seed=-1), cases(CALIBRATION, seed=1)
    floats = {"floating": "float32"}
    return Model(
        "relevance", module, test.values[:1], lambda x: x, test.values, test.labels, ranges.values, numerics=floats
    )
