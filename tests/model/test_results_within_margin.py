# SPDX-License-Identifier: Apache-2.0
"""Functions of values that calibration did not see, but its margin covers; the plain engine tells of larger ones."""

import pytest
import torch
from torch import nn

import privml
from privml.errors import OverflowDetected

pytest.importorskip("privml._core", reason="the C++ core is not built; run `make build`")

ENGINES = {"plain": {}, "twopc": {"ot": "ideal"}, "threepc": {"truncation": "exact"}}
TOLERANCE = 1 / 64  # of the largest result


class Function(nn.Module):
    def __init__(self, function):
        super().__init__()
        self.function = function

    def forward(self, x):
        return self.function(x)


def squared_distances(x):
    a, b = x.chunk(2, -1)
    return (a**2).sum(-1) + (b**2).sum(-1) - 2 * (a * b).sum(-1)


def converted(function, reach):
    return privml.convert(Function(function), calibration=torch.linspace(-reach, reach, 64).reshape(16, 4))


# Each with what calibration reaches, and arguments of results below twice the largest one of that.
@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize(
    "function, reach, query",
    [
        (torch.cosh, 3.0, [3.6, -3.65, 0.5, 0.0]),
        (torch.sinh, 3.0, [3.6, -3.65, 0.5, 0.0]),
        (torch.expm1, 0.65, [1.05, 0.9, -0.5, 0.0]),
        (torch.exp, 3.0, [3.6, 3.65, -0.5, 0.0]),
    ],
)
def test_results_up_to_the_margin_are_right(function, reach, query, engine):
    program, x = converted(function, reach), torch.tensor([query])
    with privml.local(program, engine=engine, **ENGINES[engine]):
        error = (program(x) - function(x)).abs().max()
    assert error <= TOLERANCE * function(x).abs().max()


@pytest.mark.parametrize("function", [torch.exp, torch.exp2, torch.expm1, torch.sinh, torch.cosh])
def test_the_plain_engine_tells_of_exponentials_that_do_not_fit(function):
    program = converted(function, 3.0)
    with privml.local(program, engine="plain"), pytest.raises(OverflowDetected, match=function.__name__):
        program(torch.full((1, 4), 5.5))


@pytest.mark.parametrize("engine", ENGINES)
def test_the_root_of_a_difference_that_rounds_below_zero_is_small(engine):
    data = torch.rand(64, 8, generator=torch.Generator().manual_seed(0)) * 2
    module = Function(lambda x: squared_distances(x).sqrt())
    program = privml.convert(module, calibration=data)
    same = torch.linspace(0.05, 1.95, 128)[:, None].expand(128, 8)
    with privml.local(program, engine=engine, **ENGINES[engine]):
        assert program(same).abs().max() < 0.5  # of distances up to 3
