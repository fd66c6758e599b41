# SPDX-License-Identifier: Apache-2.0
"""What formats know of sign and size: it travels, it is true, and it makes protocols cheaper."""

import pytest
import torch

import privml
from privml.context import Session
from privml.formats import FixedPoint, Integer

pytest.importorskip("privml._core", reason="the C++ core is not built; run `make build`")

from privml.engines.twopc.backend import meter


def shared(value):
    return privml.share(value, owner=0) + privml.share(torch.zeros_like(value), owner=1)


def forget(x):
    """The same value without what is known of it."""
    fmt = x.format
    return privml.SecretTensor(x.share, FixedPoint(fmt.bits, fmt.scale), x.placement, x.session, x.dtype)


def small(x):
    """The same value, known to lie in [0, 16)."""
    fmt = FixedPoint(x.format.bits, x.format.scale, True, 16 << x.format.scale)
    return privml.SecretTensor(x.share, fmt, x.placement, x.session, x.dtype)


def sent(function, *shapes, prepared=small):
    """Bytes that party 0 sends for ``function`` of shared tensors after ReLU, with and without the knowledge."""
    results = []
    for prepare in (prepared, forget):
        with Session(meter(), privml.Numerics()) as session, torch.no_grad():
            inputs = [prepare(torch.relu(shared(torch.zeros(s)))) for s in shapes]
            before = session.engine.counters()
            function(*inputs)
            after = session.engine.counters()
            results.append(sum(after[p]["sent"] - before[p]["sent"] for p in ("preprocess", "online")))
    return results


@pytest.mark.parametrize(
    ("name", "function", "inputs"),
    [
        ("truncation", lambda x: x / 4, 1),
        ("product", lambda x, y: x * y, 2),
        ("matrix product", lambda x, y: x @ y.t(), 2),
        ("sum of products", lambda x, y: (x * y).sum(1) / 8, 2),
        ("mean of four", lambda x: x[:, 2:].mean(1), 1),
        ("through views", lambda x: x.t().reshape(2, -1)[0].unsqueeze(0) / 4, 1),
        ("joined", lambda x, y: torch.cat([x, y]) / 4, 2),
        ("maximum", lambda x: x.amax(1) / 4, 1),
        ("secret choice", lambda x, y: torch.where(x > y, x, y) / 4, 2),
        ("second relu", lambda x: torch.relu(x / 4), 1),
    ],
)
def test_known_signs_cost_less(name, function, inputs):
    known, unknown = sent(function, *[(4, 6)] * inputs)
    assert known < unknown


@pytest.mark.parametrize(
    ("function", "inputs"), [(lambda x, y: x * y, 2), (lambda x, y: x @ y.t(), 2), (lambda x: x[:, 2:].mean(1), 1)]
)
def test_signs_are_not_known_of_what_may_have_wrapped(function, inputs):
    """What a ReLU gives may be anything up to half its ring."""
    known, unknown = sent(function, *[(4, 6)] * inputs, prepared=lambda x: x)
    assert known == unknown


def test_maxima_of_small_numbers_are_sought_in_a_small_ring():
    """What a sigmoid gives has 17 bits of 64."""
    for function in (lambda x: x.amax(1), lambda x: x.argmax(1)):
        known, unknown = sent(lambda x, f=function: f(torch.sigmoid(x)), (4, 6)), sent(torch.sigmoid, (4, 6))
        wide = sent(function, (4, 6))
        assert known[0] - unknown[0] < 0.6 * wide[1]


def test_bounds_cost_less():
    def bytes_of(prepare):
        with Session(meter(), privml.Numerics()) as session, torch.no_grad():
            x, y = prepare(torch.exp2(shared(torch.zeros(50)))), shared(torch.zeros(50))
            counted = []
            for function in (lambda: x * y, lambda: x > 0.5, lambda: torch.relu(x - 0.5)):
                before = session.engine.counters()
                function()
                after = session.engine.counters()
                counted.append(sum(after[p]["sent"] - before[p]["sent"] for p in ("preprocess", "online")))
            return counted

    def bounded(x):
        fmt = FixedPoint(x.format.bits, x.format.scale, True, 1 << 18)
        return privml.SecretTensor(x.share, fmt, x.placement, x.session, x.dtype)

    for less, more in zip(bytes_of(bounded), bytes_of(forget), strict=True):
        assert 3 * less < 2 * more


KNOWN = FixedPoint(64, 16, True, 3 << 16)


@pytest.mark.parametrize(
    ("name", "function", "expected"),
    [
        ("view", lambda x: x.view(-1)[2:], (True, 3 << 16)),
        ("sum of two", lambda x: x + x, (True, 6 << 16)),
        ("sum", lambda x: x.sum(1), (True, (12 << 16) - 3)),
        ("difference", lambda x: x - 2 * x, (False, 6 << 16)),
        ("negative", lambda x: -x, (False, 3 << 16)),
        ("plus a constant", lambda x: x + 1, (True, 4 << 16)),
        ("minus a constant", lambda x: x - 1, (False, 2 << 16)),
        ("times a whole number", lambda x: x * 5, (True, 5 * ((3 << 16) - 1) + 1)),
        ("product", lambda x: x * x, (True, ((3 << 16) - 1) ** 2 + 2**16 >> 16)),
        ("joined with zeros", lambda x: torch.cat([x, torch.zeros(1, 4)]), (True, 3 << 16)),
        ("joined with constants", lambda x: torch.cat([x, torch.full((1, 4), -4.0)]), (False, (4 << 16) + 2)),
        ("maximum with a number", lambda x: torch.clamp(x, min=1), (True, None)),
        ("bits", lambda x: (x > 1).float(), (True, (1 << 16) + 1)),
        ("class", lambda x: x.argmax(1), (True, 5)),
        ("secret choice", lambda x: torch.where(x > 1, x, x * 2), (True, 6 << 16)),
        ("secret choice of a constant", lambda x: x.masked_fill(x > 1, -4.0), (False, (4 << 16) + 2)),
        ("secret choice of bits", lambda x: torch.where(x > 1, x > 0, x), (True, 3 << 16)),
    ],
)
def test_knowledge_travels(name, function, expected):
    with privml.local("plain"):
        x = shared(torch.rand(3, 4) * 2)
        x = privml.SecretTensor(x.share, KNOWN, x.placement, x.session, x.dtype)
        fmt = function(x).format
    assert fmt.nonnegative == expected[0]
    assert expected[1] is None or abs(fmt.bound - expected[1]) <= 2


def test_writes_forget_what_is_no_longer_true():
    with privml.local("plain"):
        x = torch.relu(shared(torch.rand(3, 4)))
        assert x.format.nonnegative
        x[0] = torch.full((4,), 2.0)
        assert x.format.nonnegative
        x[1] = shared(torch.full((4,), -2.0))
        assert not x.format.nonnegative
        y = (shared(torch.rand(4)) > 0.5).float()
        y[0] = 5.0
        assert y.format.bound > 5 << 16


def test_integers_wrap_in_narrow_types(open_session):
    values = torch.tensor([0, 1, -1, 127, 128, 200, -129, 300, -70000, 2**40 + 3])
    with open_session():
        x = shared(values)
        for dtype in (torch.int8, torch.int16, torch.int32, torch.uint8):
            assert torch.equal(privml.reveal(x.to(dtype)), values.to(dtype))
        assert torch.equal(privml.reveal(x.to(torch.int8).to(torch.int64) + 1), values.to(torch.int8).long() + 1)
        assert isinstance(x.to(torch.int32).format, Integer)


def test_equality_with_large_integers(open_session):
    values = torch.tensor([0, 2**62, 2**62 - 1, 2**61])
    with open_session():
        x = shared(values)
        for constant in (2**62, 2**62 + 1, 2**63 - 1, 2**61, 0):
            assert torch.equal(privml.reveal(x == constant), values == constant)
            other = torch.tensor([constant])
            assert torch.equal(privml.reveal(x == other), values == other)
