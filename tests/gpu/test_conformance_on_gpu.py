# SPDX-License-Identifier: Apache-2.0
"""The operator table and whole networks with all three parties on a CUDA device."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path

import pytest
import torch

import models
import privml

MODEL_TESTS = Path(__file__).resolve().parents[1] / "model"
sys.path.insert(0, str(MODEL_TESTS))

from function_cases import CASES  # noqa: E402
from test_ops import PLACEMENTS, ring_of, run  # noqa: E402

pytestmark = [
    pytest.mark.gpu,
    pytest.mark.skipif(not torch.cuda.is_available(), reason="torch sees no CUDA device"),
    pytest.mark.skipif(importlib.util.find_spec("cupy") is None, reason="CuPy is not installed"),
]


def open_session(device, **numerics):
    return privml.local("threepc", truncation="exact", device=device, test_seed=1, **numerics)


@pytest.mark.parametrize("placement", PLACEMENTS)
@pytest.mark.parametrize("case", CASES, ids=lambda c: c.name)
def test_operator(case, placement):
    found = []
    for device in ("cpu", "cuda"):
        torch.manual_seed(0)
        with open_session(device):
            result = run(case, placement)
            assert all(c.device.type == device for c in result.share)
            found.append(ring_of(result))
    assert torch.equal(*found)


@pytest.mark.parametrize("name", ["lenet", "resnet18", "vgg16"])
def test_networks(name):
    model = models.load(name)
    numerics = {"bits": 64, "narrow": False}
    program = privml.convert(model.module, calibration=model.preprocess(model.calibration), numerics=numerics)
    x = model.preprocess(model.samples[:1])
    found = []
    for device in ("cpu", "cuda"):
        with open_session(device, bits=64, scale=program.numerics.scale) as session:
            found.append(privml.reveal(program.run(session, x)))
    assert torch.equal(*found)
