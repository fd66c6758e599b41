# SPDX-License-Identifier: Apache-2.0
"""Products of rows with a number each: the same on all engines and in every form, at least cost."""

import pytest
import torch

from privml.engines.base import Engine, Operand
from privml.engines.correlations import OtChoice
from privml.engines.ring import wrap
from privml.engines.shares import Shift
from privml.engines.twopc import backend as twopc
from privml.engines.twopc.linear import WIDE, Linear
from privml.session import local as local_session

ROWS, LENGTH = 5, 40


def operands(engine, a_bits: int, signed: bool, b_bits: int):
    random = torch.Generator().manual_seed(a_bits + b_bits)
    a = torch.randint(-(2 ** (a_bits - 1)) if signed else 0, 2 ** (a_bits - 1), (ROWS, LENGTH), generator=random)
    b = torch.randint(0, 2 ** (b_bits - 1), (ROWS, 1), generator=random)
    return (
        Operand(engine.input(a, a.shape, 0, a_bits), a_bits, nonnegative=not signed),
        Operand(engine.input(b, b.shape, 1, b_bits), b_bits, nonnegative=True),
        a * b,
    )


@pytest.mark.parametrize("signed", [False, True])
@pytest.mark.parametrize(("a_bits", "b_bits"), [(22, 16), (16, 22), (20, 20)])
def test_rows_times_numbers(a_bits, b_bits, signed):
    with local_session.local("twopc") as session:
        engine = session.engine
        a, b, expected = operands(engine, a_bits, signed, b_bits)
        bits = a_bits + b_bits
        assert torch.equal(engine.reveal(engine.multiply_rows(a, b, bits), bits), expected)
        assert torch.equal(engine.reveal(Engine.multiply_rows(engine, a, b, bits), bits), expected)


def test_rows_are_cheaper():
    def sent(multiply) -> int:
        engine = twopc.meter()
        multiply(engine, Operand((torch.zeros(64, 500, dtype=torch.int64),), 22, nonnegative=True))
        return sum(engine.counters()[phase]["sent"] for phase in ("preprocess", "online"))

    numbers = Operand((torch.zeros(64, 1, dtype=torch.int64),), 16, nonnegative=True)
    rows = sent(lambda engine, a: engine.multiply_rows(a, numbers, 38))
    elements = sent(lambda engine, a: Engine.multiply_rows(engine, a, numbers, 38))
    assert 1.5 * rows < elements


# ---- by ciphertexts
SILENT = OtChoice("silent")
BY_LINK = Linear("auto"), Linear("auto", delay=0.04, seconds_per_byte=8e-8)


def words(engine, value, bits, **promise) -> Operand:
    """Shared by masks that fill the whole word."""
    mask = torch.randint(-(2**63), 2**63 - 1, tuple(value.shape), generator=torch.Generator().manual_seed(7))
    share = (torch.zeros_like(value),) if engine.components == 1 else (value - mask, mask)
    return Operand(share, bits, **promise)


def factors(engine, rows, length, a_bits, b_bits, bounded):
    """Values in the whole of their range, both ends of it among them."""
    end = 1 << (a_bits - (2 if bounded else 1))
    random = torch.Generator().manual_seed(rows + length + a_bits)
    a = torch.randint(-end, end, (rows, length), generator=random)
    b = torch.randint(0, 1 << (b_bits - 1), (rows, 1), generator=random)
    a[0, 0], a[0, -1], b[0, 0], b[-1, 0] = -end, end - 1, (1 << (b_bits - 1)) - 1, 0
    promise = {"bound": end} if bounded else {}
    return words(engine, a, a_bits, **promise), words(engine, b, b_bits, nonnegative=True), a * b


CASES = [(33, 768, 21, 32, 40, True), (40, 700, 16, 31, 36, False), (24, 512, 30, 33, 64, True)]


def same_at_the_cost_of_a_meter(compute, *sizes_and_bound):
    """compute(engine, a, b) for factors of these sizes: what it gives, and what it should be made of."""
    linear = Linear("auto", seconds_per_byte=1e-6)
    engine = twopc.create(OtChoice("ideal"), deadline=60.0, linear=linear)
    meter = twopc.meter(0, OtChoice("ideal"), 1, True, linear)
    try:
        a, b, product = factors(engine, *sizes_and_bound)
        found = compute(engine, a, b)
        compute(meter, *factors(meter, *sizes_and_bound)[:2])
        got, want = engine.counters(), meter.counters()
        assert got["products"] == want["products"] == {WIDE: 1}
        assert all(got["online"][name] == want["online"][name] for name in ("sent", "received", "depth"))
        assert all(got[name] == want[name] for name in ("cots_as_sender", "cots_as_receiver"))
        return found, product, got["online"]["sent"]
    finally:
        engine.close()


@pytest.mark.parametrize("case", CASES)
def test_ciphertexts_make_the_same_at_the_cost_that_a_meter_counts(case):
    *sizes, bits, bounded = case
    found, expected, _ = same_at_the_cost_of_a_meter(
        lambda engine, a, b: engine.reveal(engine.multiply_rows(a, b, bits), bits), *sizes, bounded
    )
    assert torch.equal(found, wrap(expected, bits))


@pytest.mark.parametrize("reduces", [True, False])
@pytest.mark.parametrize("nearest", [True, False])
@pytest.mark.parametrize("case", CASES)
def test_a_truncation_drops_the_noise_of_ciphertexts(case, nearest, reduces):
    *sizes, bits, bounded = case
    count, left = 9, bits - 9 if reduces else bits

    def quotient(engine, a, b):
        shift = Shift(count, reduces=reduces, nearest=nearest)
        return engine.reveal(engine.shifted_product("multiply_rows", a, b, bits, shift), left)

    def in_steps(engine, a, b):
        product = engine.multiply_rows(a, b, bits)
        return engine.reveal(engine.shifted(product, bits, Shift(count, reduces=reduces, nearest=nearest)), left)

    found, product, sent = same_at_the_cost_of_a_meter(quotient, *sizes, bounded)
    expected, _, more = same_at_the_cost_of_a_meter(in_steps, *sizes, bounded)
    half = 1 << (count - 1) if nearest else 0
    assert torch.equal(found, expected) and (sent < more or bits == 64)
    assert torch.equal(found, wrap((wrap(product, bits) + half) >> count, left))


def test_ciphertexts_take_the_place_of_transfers_where_these_cost_more():
    """Rows of a layer norm, and a few short ones, on loopback and on a slow link."""

    def counted(linear, *sizes):
        meter = twopc.meter(0, SILENT, 1, True, linear)
        meter.multiply_rows(*factors(meter, *sizes, True)[:2], 40)
        return meter.counters()

    for link in (*BY_LINK, Linear("lattice")):
        long, transfers = counted(link, 128, 768, 21, 32), counted(Linear("ot"), 128, 768, 21, 32)
        assert long["products"] == {WIDE: 1} and "products" in transfers and not transfers["products"]
        assert 2.5 * long["online"]["sent"] < transfers["online"]["sent"]
        assert not counted(link, 2, 8, 21, 32)["products"]


@pytest.mark.parametrize("sizes", [(128, 768, 21, 16), (256, 128, 21, 16), (32, 128, 18, 14)])
def test_fewest_bytes_are_those_of_ciphertexts_whatever_work_these_take(sizes):
    """Rows of a softmax, whose numbers are short enough for transfers on loopback."""

    def sent(linear):
        meter = twopc.meter(0, SILENT, 1, True, linear)
        rows, length, a_bits, b_bits = sizes
        a = Operand((torch.zeros(rows, length, dtype=torch.int64),), a_bits, nonnegative=True)
        b = Operand((torch.zeros(rows, 1, dtype=torch.int64),), b_bits, nonnegative=True)
        meter.multiply_rows(a, b, a_bits + b_bits - 2)
        return meter.counters()["online"]["sent"]

    transfers, ciphertexts = sent(Linear("ot")), sent(Linear("lattice"))
    assert 1.2 * ciphertexts < transfers and ciphertexts <= sent(Linear("auto"))
