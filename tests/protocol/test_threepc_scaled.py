# SPDX-License-Identifier: Apache-2.0
"""Products divided by a power of two in one protocol, against integers: all values of small rings, random ones of large
rings, and how often results are one above, or wrong."""

from dataclasses import replace

import pytest
import torch

from privml.engines import ring
from privml.engines.base import Operand
from privml.engines.failures import TruncationsMayFail
from privml.engines.shares import Promise, Shift, Window
from privml.engines.threepc import backend as threepc
from privml.engines.threepc.links import DEALER

MODES = ("exact", "faithful", "auto", "probabilistic")


@pytest.fixture(scope="module", params=MODES)
def engine(request):
    made = threepc.create(threepc.Config(request.param), deadline=20.0)
    yield made
    made.close()


def mode(engine):
    return engine.engines[0].truncation


def operand(engine, value, bits, owner):
    return Operand(engine.input(value, value.shape, owner, bits), bits)


def pairs(bits):
    """All pairs of values of a small ring."""
    values = torch.arange(-(1 << (bits - 1)), 1 << (bits - 1))
    return values.repeat_interleave(len(values)), values.repeat(len(values))


def check(engine, found, product, shift, bits, left=None):
    """Floors in "exact" mode, and else floors or one above, in a ring of which ``left`` bits are left."""
    off = ring.wrap(found - (ring.wrap(product, bits) >> shift), left or bits)
    above = ring.wrap(torch.tensor(1), left or bits)
    assert not off.any() if mode(engine) == "exact" else not ((off != 0) & (off != above)).any()


@pytest.mark.parametrize("bits", [3, 5, 6, 7])
def test_all_values_of_small_rings(engine, bits):
    x, y = pairs(bits)
    x, y = x.repeat(4), y.repeat(4)
    addend = torch.randint(-(1 << (bits - 1)), 1 << (bits - 1), x.shape)
    total = ring.wrap(x * y + addend, bits)
    a, b = operand(engine, x, bits, 0), operand(engine, y, bits, 1)
    c = engine.input(addend, addend.shape, DEALER, bits)
    for shift in range(1, bits):
        found = engine.shifted_product("multiply", a, b, bits, Shift(shift, reduces=True), c)
        check(engine, engine.reveal(found, bits - shift), total, shift, bits, bits - shift)
        if mode(engine) == "probabilistic":
            continue
        found = engine.reveal(engine.shifted_product("multiply", a, b, bits, Shift(shift), c), bits)
        check(engine, found, total, shift, bits)


@pytest.mark.parametrize("bits", [4, 6, 8])
def test_promised_values_of_small_rings(engine, bits):
    if mode(engine) == "probabilistic":
        pytest.skip("fails with a small ring's probability")
    x, y = pairs(bits)
    for promise, low, high in (
        (Promise(bound=1 << (bits - 2)), -(1 << (bits - 2)), 1 << (bits - 2)),
        (Promise(nonnegative=True), 0, 1 << (bits - 1)),
    ):
        kept = (x * y >= low) & (x * y < high)
        a, b = (operand(engine, each[kept].repeat(3), bits, owner) for owner, each in enumerate((x, y)))
        for shift in range(1, bits):
            found = engine.reveal(engine.shifted_product("multiply", a, b, bits, Shift(shift, promise)), bits)
            check(engine, found, (x * y)[kept].repeat(3), shift, bits)


@pytest.mark.parametrize(
    ("bits", "shift"), [(32, 13), (33, 1), (61, 30), (63, 1), (63, 20), (64, 1), (64, 26), (64, 62)]
)
def test_products_of_every_kind(engine, bits, shift):
    most = 1 << (bits - 5) // 2
    promise = Promise(bound=1 << (bits - 2))
    if mode(engine) == "probabilistic":
        most = 1 << min((bits - 5) // 2, 12)
    x, y = torch.randint(-most, most, (2, 3, 6)), torch.randint(-most, most, (2, 6, 2))
    image, kernel = torch.randint(-most, most, (2, 4, 3, 3)) >> 2, torch.randint(-most, most, (4, 2, 2, 2)) >> 2
    window = Window((1, 2), (1, 0), groups=2)
    results = {
        "multiply": (x, x.flip(0), x * x.flip(0), None),
        "matmul": (x >> 3, y, (x >> 3) @ y, None),
        "conv2d": (image >> 1, kernel, ring.conv2d(image >> 1, kernel, window), window),
    }
    if mode(engine) == "probabilistic" and bits < 60:
        pytest.skip("fails with a noticeable probability")
    for name, (left, right, product, of) in results.items():
        a, b = operand(engine, left, bits, 0), operand(engine, right, bits, DEALER)
        addend = torch.randint(-most, most, product.shape[-1:])
        c = engine.input(addend, addend.shape, 1, bits)
        found = engine.shifted_product(name, a, b, bits, Shift(shift, promise), c, of)
        check(engine, engine.reveal(found, bits), product + addend, shift, bits)
        found = engine.shifted_product(name, a, b, bits, Shift(shift, reduces=True), c, of)
        check(engine, engine.reveal(found, bits - shift), product + addend, shift, bits, bits - shift)


def test_operands_of_other_rings(engine):
    if mode(engine) == "probabilistic":
        pytest.skip("fails with a noticeable probability")
    x, y = pairs(5)
    a, b = operand(engine, x, 5, 0), operand(engine, y, 5, 1)
    found = engine.reveal(engine.shifted_product("multiply", a, b, 24, Shift(4, Promise(bound=1 << 9))), 24)
    check(engine, found, x * y, 4, 24)


def test_nothing_at_all(engine):
    a = operand(engine, torch.zeros(0, 3, dtype=torch.int64), 64, 0)
    for shift in (Shift(5), Shift(5, reduces=True)):
        assert engine.shifted_product("multiply", a, a, 64, shift)[0].shape == (0, 3)


@pytest.mark.parametrize("bounds", [(16, 16), (16, 9), (16, None), (None, None)])
def test_factors_of_a_narrower_ring(engine, bounds):
    """All pairs of values below their bounds in a ring of 6 bits, multiplied in one of 12; and one factor per row."""
    x, y = (torch.arange(-(bound or 32), bound or 32) for bound in bounds)
    columns, rows = x.expand(len(y), -1).contiguous(), y.unsqueeze(-1)
    a, c = (replace(operand(engine, v, 6, 0), bound=bounds[0]) for v in (columns, columns * 0 + x))
    b, d = (replace(operand(engine, v, 6, 1), bound=bounds[1]) for v in (rows.expand(columns.shape).contiguous(), rows))
    assert torch.equal(engine.reveal(engine.multiply(a, b, 12), 12), columns * rows)
    assert torch.equal(engine.reveal(engine.multiply_rows(c, d, 12), 12), columns * rows)
    squares = ring.wrap(columns * columns, 12)
    assert torch.equal(engine.reveal(engine.multiply(a, replace(a), 12), 12), squares)


@pytest.mark.parametrize("shift", [Shift(4, Promise(bound=1 << 20)), Shift(4, reduces=True)], ids=["wide", "reduced"])
def test_results_are_one_above_as_often_as_the_fraction_says(shift):
    made = threepc.create(threepc.Config("faithful"), deadline=20.0)
    x = torch.arange(16).repeat(4000)
    a, b = operand(made, x, 32, 0), operand(made, torch.ones_like(x), 32, 1)
    found = made.reveal(made.shifted_product("multiply", a, b, 32, shift), 32 - 4 * shift.reduces)
    often = found.view(4000, 16).double().mean(0)
    assert (often - torch.arange(16) / 16).abs().max() < 0.04  # five standard deviations
    made.close()


def test_probabilistic_quotients_fail_as_often_as_said():
    made = threepc.create(threepc.Config("probabilistic"), deadline=20.0)
    for value in (1 << 12, -(1 << 12)):
        x = torch.full((20_000,), value)
        a, b = operand(made, x, 16, 0), operand(made, torch.ones_like(x), 16, 1)
        with pytest.warns(TruncationsMayFail, match="below 1"):
            made.engines[0].failure = made.engines[1].failure = made.engines[2].failure = 0.0
            found = made.reveal(made.shifted_product("multiply", a, b, 16, Shift(4, Promise(bound=(1 << 12) + 1))), 16)
        wrong = ((found - (x >> 4)).abs() > 1).double().mean()
        assert abs(float(wrong) - 2.0**-4) < 0.01  # |x| / 2^16
        assert made.engines[0].failure == 1.0
    made.close()


def test_several_are_opened_in_the_rounds_of_one():
    made = threepc.create(threepc.Config("faithful"), deadline=20.0)
    x = torch.arange(-20, 20)
    a = operand(made, x, 40, 0)
    shifts = [Shift(3, Promise(bound=1 << 20)), Shift(7, Promise(bound=1 << 20)), Shift(2, reduces=True)]
    calls = [("shifted_product", ("multiply", a, a, 40, shift)) for shift in shifts]
    calls.append(("multiply", (a, a, 40)))
    before = made.counters()["online"]["depth"]
    results = made.together(calls)
    assert made.counters()["online"]["depth"] - before == 2
    for shift, found in zip(shifts, results, strict=False):
        bits = 40 - shift.count * shift.reduces
        check(made, made.reveal(found, bits), x * x, shift.count, 40, bits)
    assert torch.equal(made.reveal(results[-1], 40), x * x)
    made.close()
