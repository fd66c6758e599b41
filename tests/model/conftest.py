# SPDX-License-Identifier: Apache-2.0
"""The engines that run the operator cases; a new engine is one more entry of ENGINES."""

import pytest
import torch
from additive_engine import AdditiveEngine

import privml
from privml.context import Session

ENGINES = {
    "plain": lambda **numerics: privml.local("plain", **numerics),
    "additive": lambda **numerics: Session(AdditiveEngine(), privml.Numerics(**numerics)),
}


@pytest.fixture(autouse=True)
def one_thread():
    torch.set_num_threads(1)


@pytest.fixture(scope="session", params=list(ENGINES))
def open_session(request):
    """A function that opens a session of one engine with the given numerics."""
    return ENGINES[request.param]
