# SPDX-License-Identifier: Apache-2.0
"""Rescaling rounds to the nearest: a floor's drift of half a unit would move every weight the same way."""

import pytest
import torch

import privml
from privml.formats import FixedPoint
from privml.ops.fixed import cast


def test_products_are_rounded_to_the_nearest(open_session):
    x = torch.arange(-300, 300, dtype=torch.float64) / 256
    with open_session(bits=32, scale=8) as session:
        exact = session.engine.floors
        y = privml.reveal(privml.share(x) * privml.share(torch.full_like(x, 3 / 256), owner=1))
    assert torch.equal(y, torch.floor(x * 3 + 0.5) / 256) if exact else (y - x * 3 / 256).abs().max() < 1 / 256


def test_errors_of_products_have_no_drift(open_session):
    generator = torch.Generator().manual_seed(3)
    x, w = (torch.randn(4000, generator=generator, dtype=torch.float64) for _ in range(2))
    with open_session(bits=64, scale=16) as session:
        half = 0.5 if session.engine.floors else 1
        a, b = privml.share(x), privml.share(w, owner=1)
        exact = privml.reveal(a) * privml.reveal(b)
        errors = (privml.reveal(a * b) - exact) * 2**16
    assert errors.abs().max() <= half
    assert errors.mean().abs() < 0.03  # the mean of 4,000 uniform errors has a deviation below 0.01


def test_values_at_the_edge_of_their_bound(open_session):
    values = torch.tensor([-128, -127, -1, 0, 1, 126, 127])
    fmt = FixedPoint(16, 4, bound=129)
    with open_session() as session:
        x = privml.share(values.double() / 16, format=fmt)
        y = cast(x, 8, 2)
        assert y.format.bound is not None and y.format.bound <= 34
        result, exact = privml.reveal(y) * 4, values / 4
        rounded = torch.floor(exact + 0.5).double()
        assert torch.equal(result, rounded) if session.engine.floors else (result - exact).abs().max() < 1


def test_relu_and_its_rounding_cost_less_than_one_after_the_other(monkeypatch):
    torch.manual_seed(0)
    network = torch.nn.Sequential(torch.nn.Linear(6, 40), torch.nn.ReLU(), torch.nn.Linear(40, 3)).eval()
    x = torch.randn(64, 6)
    program = privml.convert(network, calibration=x)

    def measured():
        with privml.local(program, engine="twopc", ot="ideal"):
            scores = program(x)
        return scores, program.cost([(64, 6)]).snapshot().online

    together, cost = measured()
    with privml.local(program, engine="plain"):
        assert torch.equal(together, program(x))
    monkeypatch.setattr("privml.ops.activation.rectified_in", lambda *given: None)
    apart, more = measured()
    assert torch.equal(together, apart)
    assert cost.depth <= more.depth - 3 and cost.sent < more.sent


@pytest.mark.parametrize("window", [2, 3])
def test_pooling_with_relu_takes_fewer_messages_over_slow_links(window):
    torch.manual_seed(0)
    network = torch.nn.Sequential(
        torch.nn.Conv2d(1, 2, 3), torch.nn.ReLU(), torch.nn.MaxPool2d(window, padding=1), torch.nn.Flatten(),
        torch.nn.LazyLinear(3),
    ).eval()  # fmt: skip
    images = torch.randn(64, 1, 8, 8)
    network(images)
    program = privml.convert(network, calibration=images)
    costs = {}
    for name, link in (("fast", privml.LinkProfile()), ("slow", privml.LinkProfile(40.0, 100.0))):
        spec = privml.SessionSpec("twopc", ot="ideal", link=link)
        costs[name] = program.cost([(2, 1, 8, 8)], spec).snapshot().online
        with privml.local(program, engine="twopc", ot="ideal", link=link):
            scores = program(images[:2])
        with privml.local(program, engine="plain"):
            assert torch.equal(scores, program(images[:2]))
    with_relu = 5 if window == 2 else 0  # windows of nine are not compared at once
    assert costs["slow"].depth <= costs["fast"].depth - with_relu
    layers = program.cost([(2, 1, 8, 8)], spec).records
    relu = next(record for record in layers.values() if record.operator == "aten.relu.default")
    assert relu.cost.online.depth == 0
