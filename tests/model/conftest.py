# SPDX-License-Identifier: Apache-2.0
"""The engines that run the operator cases; a new engine is one more entry of ENGINES."""

import importlib.util

import pytest
import torch
from additive_engine import AdditiveEngine

import privml
from privml.context import Session

ENGINES = {
    "plain": lambda **numerics: privml.local("plain", **numerics),
    "additive": lambda **numerics: Session(AdditiveEngine(), privml.Numerics(**numerics)),
    "twopc": lambda **numerics: privml.local("twopc", ot="ideal", **numerics),
}


@pytest.fixture(autouse=True)
def one_thread():
    torch.set_num_threads(1)


UNBUILT = ["twopc"] if importlib.util.find_spec("privml._core") is None else []
SKIP = pytest.mark.skip(reason="the C++ core is not built; run `make build`")


@pytest.fixture(scope="session", params=[pytest.param(n, marks=SKIP if n in UNBUILT else ()) for n in ENGINES])
def open_session(request):
    """A function that opens a session of one engine with the given numerics."""
    return ENGINES[request.param]
