# SPDX-License-Identifier: Apache-2.0
"""Functions of three parties from what the dealer knows of masks: near the function for every mask, at their price."""

import math

import pytest
import threepc_formulas as cost
import torch
import torch.nn.functional as F

from privml.engines.composed.functions import function as composed
from privml.engines.plain.engine import PlainEngine
from privml.engines.threepc import addition, functions, kernels_cpu, pieces
from privml.engines.threepc import backend as threepc
from privml.engines.threepc.piece_sums import piece_sums
from privml.formats import FixedPoint

SMOOTH = {
    "sigmoid": torch.sigmoid,
    "tanh": torch.tanh,
    "erf": torch.erf,
    "gelu": F.gelu,
    "gelu_tanh": lambda x: F.gelu(x, approximate="tanh"),
    "silu": F.silu,
    "softplus": lambda x: F.softplus(x, threshold=1000.0),
}
ALL = {**SMOOTH, "sin": torch.sin, "cos": torch.cos, "exp": torch.exp, "exp_negative": torch.exp}
# Bytes dealt and online, at most, of values of 64 bits with 16 fractional ones.
MOST = {
    "sigmoid": (160, 100), "tanh": (160, 100), "erf": (160, 100), "gelu": (160, 100), "gelu_tanh": (160, 100),
    "exp": (160, 100), "exp_negative": (160, 100), "sin": (160, 100), "cos": (160, 100), "softplus": (160, 100),
    "silu": (175, 100),
}  # fmt: skip


@pytest.fixture(scope="module")
def engine():
    made = threepc.create(threepc.Config("faithful"), deadline=30.0)
    yield made
    made.close()


def shared(m, r):
    """Shares of m - r at all parties, of given masks."""
    part, zeros = torch.randint(-(2**63), 2**63 - 1, r.shape), torch.zeros_like(r)
    return m, part, m, r - part, zeros, r


def every_pair(bits):
    m, r = torch.meshgrid(torch.arange(1 << bits), torch.arange(1 << bits), indexing="ij")
    return m.reshape(-1), r.reshape(-1)


def signed(x, bits):
    return (x << (64 - bits)) >> (64 - bits)


@pytest.mark.parametrize("name", ALL)
def test_every_value_and_every_mask_of_a_small_ring(engine, name):
    bits, source, target = 9, FixedPoint(9, 3), FixedPoint(16, 6)
    m, r = every_pair(bits)
    x = signed(m - r, bits)
    if name == "exp_negative":
        m, r, x = m[x <= 0], r[x <= 0], x[x <= 0]
    found = engine.reveal(engine.function(name, shared(m, r), source, target), 16).double()
    exact = ALL[name](x.double() / 8) * 64
    if name == "exp":  # saturates from the argument whose successor is too large
        exact[exact * math.exp(1 / 8) >= 2**15] = 2.0**15 - 1
    assert ((found - exact).abs() <= 2.5 + 2.0**-20 * exact.abs()).all()


@pytest.mark.parametrize(("bits", "bound"), [(64, None), (64, 1 << 30), (37, None), (32, 1 << 22)])
@pytest.mark.parametrize("name", SMOOTH)
def test_errors_are_below_2_to_minus_14(engine, name, bits, bound):
    """For random values, those around the ends of the table, and the largest."""
    most = (1 << 61 if bits == 64 else 1 << (bits - 1)) if bound is None else bound
    reach = round(pieces.pieces(name, 16).reach * 2**16)
    ends = torch.cat([e + torch.arange(-9000, 9000, 101) for e in (-reach, 0, reach)])
    edges = torch.tensor([most - 1, -most + 1, most // 2, -(most // 2), 1 << 20, -(1 << 20)])
    x = torch.cat([torch.randint(-(1 << 20), 1 << 20, (4000,)), ends, edges]).clamp(-most + 1, most - 1)
    source, target = FixedPoint(bits, 16, bound=bound), FixedPoint(32, 16)
    found = engine.reveal(engine.function(name, engine.input(x, x.shape, 1, bits), source, target), max(bits, 32))
    exact = SMOOTH[name](x.double() / 2**16) * 2**16
    assert ((found - exact).abs() < 4 + 2.0**-50 * exact.abs()).all()


@pytest.mark.parametrize("name", SMOOTH)
def test_results_with_more_places_take_a_finer_table(engine, name):
    x = torch.randint(-(1 << 20), 1 << 20, (4000,))
    source, target = FixedPoint(64, 16), FixedPoint(32, 20)
    found = engine.reveal(engine.function(name, engine.input(x, x.shape, 0, 64), source, target), 64)
    assert ((found - SMOOTH[name](x.double() / 2**16) * 2**20).abs() < 4).all()


def test_exponentials_saturate_and_vanish(engine):
    x = torch.tensor([681_389, 681_390, 700_000, 1 << 40, -(1 << 40), -(1 << 61), 1 << 61, -900_000, 0])
    target = FixedPoint(32, 16)
    found = engine.reveal(engine.function("exp", engine.input(x, x.shape, 0, 64), FixedPoint(64, 16), target), 64)
    exact = torch.exp((x.double() / 2**16).clamp(max=20)) * 2**16
    assert (found <= 2**31 - 1).all() and (found[2:4] == 2**31 - 1).all() and found[6] == 2**31 - 1
    small = exact < 2**31
    assert ((found - exact).abs() <= 1.5 + 2.0**-20 * exact)[small].all()


@pytest.mark.parametrize(
    ("source", "target"), [((32, 24), (32, 24)), ((64, 24), (32, 16)), ((64, 30), (32, 8)), ((32, 24), (12, 4))]
)
def test_exponentials_just_below_saturation_fit_the_target(engine, source, target):
    """Their relative error would take them beyond it, where the next narrower ring makes them negative."""
    source, target = FixedPoint(*source), FixedPoint(*target)
    largest = (1 << (target.bits - 1)) - 1
    end = math.floor(math.log(2.0 ** (target.bits - 1 - target.scale)) * 2.0**source.scale)
    x = (end + torch.arange(-60, 4)).repeat(100)
    given = engine.input(x, x.shape, 0, source.bits)
    found = engine.reveal(engine.function("exp", given, source, target), max(source.bits, target.bits))
    exact = (torch.exp(x.double() * 2.0**-source.scale) * 2.0**target.scale).clamp(max=largest)
    assert (found <= largest).all() and ((found - exact).abs() <= 4 + 2.0**-19 * exact).all()


@pytest.mark.parametrize("scale", [0, 1, 2, 3, 4, 5])
@pytest.mark.parametrize("name", SMOOTH)
def test_arguments_with_few_places_are_looked_up_as_far_as_the_table_reaches(engine, name, scale):
    x = torch.arange(-20 << scale, (20 << scale) + 1).repeat(4)
    given = engine.input(x, x.shape, 0, 32)
    for places in (16, 20):
        found = engine.reveal(engine.function(name, given, FixedPoint(32, scale), FixedPoint(32, places)), 32)
        assert ((found - SMOOTH[name](x.double() / 2**scale) * 2**places).abs() < 4).all()


@pytest.mark.parametrize("name", ALL)
def test_exact_truncations_take_the_composed_function(name):
    """Which equals the plain engine's bit for bit, whatever the masks."""
    made = threepc.create(threepc.Config("exact"), deadline=30.0)
    x = torch.arange(-400, 1, 9) << 10
    source, target = FixedPoint(64, 16), FixedPoint(32, 16)
    expected = composed(PlainEngine(check_overflow=False, parties=3), name, (x,), source, target)[0]
    for _ in range(2):
        r = torch.randint(-(2**63), 2**63 - 1, x.shape)
        assert torch.equal(made.reveal(made.function(name, shared(x + r, r), source, target), 64), expected)
    made.close()


@pytest.mark.parametrize("scale", [12, 16, 20])
@pytest.mark.parametrize("name", ALL)
def test_closed_form_equals_the_ledger(engine, name, scale):
    n = 45
    a = engine.input(torch.full((n,), -3), (n,), 1, 64)
    for comparison in ("few_rounds", "few_bytes"):  # the dealer's answer sets both clocks alike
        for each in engine.engines:
            each.party.comparison = comparison
        if comparison == "few_rounds":
            engine.less_than_zero(engine.public(torch.ones(1, dtype=torch.int64), 64), 64)
    before = engine.counters()
    engine.function(name, a, FixedPoint(64, scale), FixedPoint(32, scale))
    after = engine.counters()
    online = {key: after["online"][key] - before["online"][key] for key in ("sent", "received", "depth")}
    spent = cost.Cost(after["preprocess"]["received"] - before["preprocess"]["received"], **online)
    assert spent == cost.function(n, name, scale)


@pytest.mark.parametrize("name", MOST)
def test_bytes_of_a_value(name):
    n = 4096
    spent = cost.function(n, name, 16)
    assert spent.dealt / n <= MOST[name][0] and (spent.sent + spent.received) / n <= MOST[name][1]


@pytest.mark.parametrize("bits", [20, 44, 60])
def test_public_sines_are_sines(bits):
    turn = torch.arange(0, 1 << 20, 997) << (bits - 20)
    found = addition._clear_sine(turn, bits, 24)
    exact = torch.sin(turn.double() * (2 * math.pi * 2.0**-bits)) * 2**24
    assert (found - exact).abs().max() < 1.5


def test_formats_that_are_not_offered():
    assert functions.offers("gelu", FixedPoint(64, 16), FixedPoint(32, 16))
    assert not functions.offers("reciprocal", FixedPoint(64, 16), FixedPoint(32, 16))
    assert not functions.offers("gelu", FixedPoint(64, 16), FixedPoint(32, 24))
    assert not functions.offers("exp", FixedPoint(64, 16), FixedPoint(40, 16))
    assert not functions.offers("exp_negative", FixedPoint(64, 40), FixedPoint(32, 16))


@pytest.mark.parametrize("scale", [12, 16, 20])
@pytest.mark.parametrize("name", SMOOTH)
def test_widths_hold_every_coefficient(name, scale):
    """Also with places at either end of a piece, which are half of it away from its middle."""
    table = pieces.pieces(name, scale)
    form, count = pieces.sizes(table, scale), 1 << table.index_bits
    half = 1 << (form.powers - 1)
    for place in (-half, half, 0, half // 3):
        hot = torch.eye(count, dtype=torch.int64)
        index = torch.zeros(count, dtype=torch.int64)
        shifts = form.powers, pieces.COEFFICIENT_SCALE - form.scale
        found = piece_sums(torch.tensor(table.coefficients), shifts, index, torch.full((count,), place), hot)
        for part, width in zip(found, form.widths, strict=True):
            assert part.abs().max() < 1 << (width - 2)


@pytest.mark.parametrize("rank", [0, 1])
@pytest.mark.parametrize("scale", [12, 20])
@pytest.mark.parametrize("name", sorted(pieces.names()))
def test_the_kernel_of_a_cpu_picks_the_same(name, scale, rank):
    """As the operations of torch, for any parts of unit vectors, with and without threads."""
    scale = pieces.FINEST_OF_MANTISSAS if name.endswith(pieces.MANTISSA) else scale
    table = pieces.pieces(name, scale)
    form, count = pieces.sizes(table, scale), 1 << table.index_bits
    columns, shifts = torch.tensor(table.coefficients), (form.powers, pieces.COEFFICIENT_SCALE - form.scale)
    index = torch.randint(0, count, (1000,))
    place = torch.randint(-(1 << (form.powers - 1)), 1 << (form.powers - 1), (1000,))
    hot = torch.randint(-(2**63), 2**63 - 1, (1000, count - 1))
    whole = torch.cat([int(rank == 0) - hot.sum(1, keepdim=True), hot], 1)
    wanted = piece_sums(columns, shifts, index, place, whole)
    assert torch.equal(kernels_cpu.piece_sums(rank, columns, shifts, index, place, hot), wanted)


@pytest.mark.parametrize("name", ["reciprocal", "rsqrt", "sqrt", "log"])
def test_functions_of_mantissas(engine, name):
    """Of numbers from 1/2 to 1 at scale 32, under any mask, at scale 26."""
    source, target = FixedPoint(36, 32), FixedPoint(64, 26)
    assert functions.offers(f"{name}_mantissa", source, target)
    x = torch.cat([torch.randint(1 << 31, 1 << 32, (20000,)), torch.tensor([1 << 31, (1 << 32) - 1])])
    for r in (torch.randint(-(2**63), 2**63 - 1, x.shape), torch.zeros_like(x), torch.full_like(x, -1)):
        found = engine.reveal(engine.function(f"{name}_mantissa", shared(x + r, r), source, target), 64)
        exact = getattr(torch, name)(x.double() / 2**32) * 2**26
        assert (found - exact).abs().max() < 4


@pytest.mark.parametrize(
    ("name", "dealt", "online"), [("reciprocal", 410, 260), ("rsqrt", 370, 245), ("log", 360, 224)]
)
def test_bytes_of_normalized_functions(name, dealt, online):
    meter, n = threepc.meter(0, threepc.Config("faithful")), 4096
    a = meter.input(None, (n,), 1, 64)
    before = meter.counters()
    meter.function(name, a, FixedPoint(64, 16), FixedPoint(32, 16))
    after = meter.counters()
    assert (after["preprocess"]["received"] - before["preprocess"]["received"]) / n <= dealt
    assert sum(after["online"][key] - before["online"][key] for key in ("sent", "received")) / n <= online


@pytest.mark.parametrize("truncation", ["faithful", "exact"])
@pytest.mark.parametrize("name", ["rsqrt", "log", "sqrt", "reciprocal"])
def test_what_is_not_positive_has_one_result(name, truncation):
    """Whatever the masks: that of the least positive number, and zero for the square root; up to the unit that
    truncations may err by."""
    made = threepc.create(threepc.Config(truncation), deadline=30.0)
    x = torch.tensor([0, -1, -3, -(2**20), -(2**31)]).repeat_interleave(60)
    source, target = FixedPoint(64, 16), FixedPoint(32, 16)
    found = made.reveal(made.function(name, made.input(x, x.shape, 1, 64), source, target), 64)
    least = {"rsqrt": 2.0**24, "log": -16 * math.log(2.0) * 2**16, "sqrt": 0.0, "reciprocal": 2.0**31 - 1}[name]
    assert ((found - least).abs() <= 4 + 2.0**-24 * abs(least)).all()
    assert len(set(found.tolist())) <= (1 if truncation == "exact" else 3)
    made.close()


@pytest.mark.parametrize("truncation", ["faithful", "exact"])
@pytest.mark.parametrize(
    ("bits", "scale", "target"), [(64, 16, 16), (32, 8, 16), (64, 24, 20), (64, 2, 14), (32, 0, 10)]
)
def test_sines_of_large_arguments(bits, scale, target, truncation):
    """The product with 1 / (2 pi) has as many places as the largest arguments need."""
    made = threepc.create(threepc.Config(truncation), deadline=30.0)
    ends = torch.tensor([2**31 - 1, -(2**31), 2**30, 12345])
    x = torch.cat([torch.randint(-(2**31), 2**31, (3000,)), ends])
    given, units = made.input(x, x.shape, 0, bits), 2.0**target
    # 2^33 / (2 pi) is rounded where truncations are exact
    allowed = 2.5 + (2.0 * math.pi * 2.0**-34 * 2.0 ** (31 - scale) * units if truncation == "exact" else 0.1)
    for name, exact in (("sin", torch.sin), ("cos", torch.cos)):
        share = made.function(name, given, FixedPoint(bits, scale), FixedPoint(32, target))
        found = made.reveal(share, max(bits, 32)).double()
        assert ((found - exact(x.double() / 2**scale) * units).abs() <= allowed).all()
    made.close()
