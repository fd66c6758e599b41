# SPDX-License-Identifier: Apache-2.0
"""Functions of values that calibration did not see, but its margin covers; the plain engine tells of larger ones, and
conversion of infinity."""

import pytest
import torch
from torch import nn

import privml
from privml.errors import InvalidInput, OverflowDetected, UnsupportedOperator

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


INFINITY = float("inf")
LIMITS = torch.tensor([0.0, 0.5, -INFINITY, -0.25])


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize(
    "function",
    [
        lambda x: torch.maximum(x, LIMITS),
        lambda x: torch.minimum(x, -LIMITS),
        lambda x: torch.maximum(torch.tensor(torch.finfo(torch.float32).min), x),
        lambda x: torch.clamp(x, -INFINITY, 0.5),
    ],
)
def test_infinite_limits_limit_nothing(function, engine):
    x = torch.linspace(-2.0, 2.0, 12).reshape(3, 4)
    with privml.local(engine, **ENGINES[engine]):
        assert (privml.reveal(function(privml.share(x))) - function(x)).abs().max() < 1e-3


def test_maxima_with_infinity_are_refused():
    with privml.local("plain"), pytest.raises(InvalidInput, match="leave it out"):
        torch.maximum(privml.share(torch.zeros(4)), -LIMITS)


@pytest.mark.parametrize(
    "function",
    [
        lambda x: x + LIMITS,
        lambda x: x + INFINITY,
        lambda x: x.masked_fill(LIMITS < 0, -INFINITY),
        lambda x: torch.log_softmax(x + LIMITS, -1),
        lambda x: (x + LIMITS).sum(-1),
    ],
)
def test_answers_that_hold_infinity_are_refused(function):
    """A ring kept some number in its place."""
    with pytest.raises(UnsupportedOperator, match="an output holds infinity"):
        converted(function, 3.0)


def test_infinity_that_hides_no_element_from_others_is_refused():
    with pytest.raises(UnsupportedOperator, match="'add' adds infinity"):
        converted(lambda x: torch.sigmoid(x + INFINITY), 3.0)


@pytest.mark.parametrize("engine", ENGINES)
def test_masks_stay(engine):
    program, x = converted(lambda x: torch.softmax(x + LIMITS, -1), 3.0), torch.tensor([[1.0, 0.0, 3.0, 2.0]])
    with privml.local(program, engine=engine, **ENGINES[engine]):
        assert (program(x) - torch.softmax(x + LIMITS, -1)).abs().max() < TOLERANCE
