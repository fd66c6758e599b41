# SPDX-License-Identifier: Apache-2.0
"""Softmaxes of short rows divide by a function of few messages."""

import pytest
import torch
from torch import nn

import privml

pytest.importorskip("privml._core", reason="the C++ core is not built; run `make build`")

from privml.engines.plain.engine import PlainEngine
from privml.engines.twopc.engine import TwoPartyEngine


class Softmax(nn.Module):
    def forward(self, x):
        return torch.softmax(x, -1)


@pytest.fixture
def called(monkeypatch):
    """Names of the functions that engines compute."""
    names = []
    for engine in (PlainEngine, TwoPartyEngine):
        function = engine.function

        def recorded(self, name, *arguments, _function=function):
            names.append(name)
            return _function(self, name, *arguments)

        monkeypatch.setattr(engine, "function", recorded)
    return names


# One place that leads, equal ones, and places at both ends of the range.
def rows(columns):
    generator = torch.Generator().manual_seed(columns)
    x = torch.randn(6, columns, generator=generator) * 3
    x[0] = -7.9
    x[0, columns // 2] = 7.9
    x[1] = 1.25
    x[2, ::2], x[2, 1::2] = 7.9, -7.9
    return x


@pytest.mark.parametrize(("columns", "name"), [(5, "reciprocal1p"), (32, "reciprocal1p"), (300, "reciprocal")])
def test_rows_of_every_length(columns, name, called):
    x = rows(columns)
    program = privml.convert(Softmax().eval(), calibration=x, numerics={"scale": 8, "weight_bits": 8})
    called.clear()
    results = []
    for engine in ("plain", "twopc"):
        with privml.local(engine) as session:
            results.append(privml.reveal(program.run(session, x)))
    assert name in called and not ({"reciprocal", "reciprocal1p"} - {name}) & set(called)
    assert torch.equal(*results)
    assert (results[0] - torch.softmax(x, -1)).abs().max() <= 2.0**-8
