# SPDX-License-Identifier: Apache-2.0
"""The engines that run the operator cases; a new engine is one more entry of ENGINES."""

import importlib.util

import numpy as np
import pytest
import torch
from additive_engine import AdditiveEngine

import models
import privml
from privml.context import Session

ENGINES = {
    "plain": lambda **numerics: privml.local("plain", **numerics),
    "additive": lambda **numerics: Session(AdditiveEngine(), privml.Numerics(**numerics)),
    "twopc": lambda **numerics: privml.local("twopc", ot="ideal", **numerics),
    "threepc": lambda **numerics: privml.local("threepc", truncation="exact", **numerics),
    "active": lambda **numerics: privml.local("active", ot="ideal", truncation="exact", **numerics),
}
# What an engine must agree with bit for bit, where that is not the plain engine as it is.
ORACLES = {
    "threepc": lambda **numerics: privml.local("plain", like="threepc", **numerics),
    "active": lambda **numerics: privml.local("plain", like="active", **numerics),
}


@pytest.fixture(autouse=True)
def one_thread():
    torch.set_num_threads(1)


UNBUILT = ["twopc", "threepc", "active"] if importlib.util.find_spec("privml._core") is None else []
SKIP = pytest.mark.skip(reason="the C++ core is not built; run `make build`")


@pytest.fixture(scope="session", params=[pytest.param(n, marks=SKIP if n in UNBUILT else ()) for n in ENGINES])
def open_session(request):
    """A function that opens a session of one engine with the given numerics."""
    return ENGINES[request.param]


@pytest.fixture
def open_oracle(open_session):
    """A function that opens the plain session to compare with."""
    name = next(name for name, function in ENGINES.items() if function is open_session)
    return ORACLES.get(name, ENGINES["plain"])


# ---- LeNet
@pytest.fixture(scope="session")
def lenet():
    return models.load("lenet")


@pytest.fixture(scope="session")
def program(lenet):
    return privml.convert(lenet.module, lenet.example, calibration=lenet.preprocess(lenet.calibration))


@pytest.fixture
def saved(program, tmp_path):
    """The folder in which program and weights lie."""
    program.save(tmp_path)
    return tmp_path


# ---- of random models of ai.onnx.ml
@pytest.fixture
def rng():
    return np.random.default_rng(5)


@pytest.fixture
def x(rng):
    """Rounded, so that thresholds are met exactly too."""
    return rng.normal(size=(30, 5)).round(1).astype(np.float32)
