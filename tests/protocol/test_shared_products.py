# SPDX-License-Identifier: Apache-2.0
"""Products both factors of which are shared, and batches of products, in every form: bit for bit those of the plain
engine, at the predicted cost, and with a report of which form it was."""

import itertools

import numpy as np
import pytest
import torch
from parties import run_both, succeed

import privml
from privml import _core
from privml.engines.base import Operand
from privml.engines.correlations import OtChoice
from privml.engines.plain.engine import PlainEngine
from privml.engines.ring import wrap
from privml.engines.shares import Promise, Shift, Window
from privml.engines.twopc import backend as twopc
from privml.engines.twopc.linear import BY_TRANSFERS, TRANSFERS, WIDE, ByTransfers, Linear, by_transfers, byte_price
from privml.engines.twopc.wide import WideProduct, by_ciphertexts, form_of, plan_of

T = _core.twopc
PLAIN = PlainEngine(check_overflow=False)
SOFTSPOKEN = ("softspoken", 4, "semi_honest")
SHARED = -1


@pytest.fixture(scope="module")
def engine():
    made = twopc.create(OtChoice("ideal"), deadline=60.0, linear=Linear("lattice"))
    yield made
    made.close()


@pytest.fixture
def rng(request):
    return torch.Generator().manual_seed(len(request.node.name))


def random_ring(rng, shape, bits):
    return wrap(torch.randint(-(2**63), 2**63 - 1, tuple(shape), generator=rng), bits)


def extremes(rng, shape, bits):
    """The largest and the smallest values in any mixture."""
    low = torch.randint(0, 2, tuple(shape), generator=rng)
    return torch.where(low == 1, -(1 << (bits - 1)), (1 << (bits - 1)) - 1)


def operand(engine, rng, value, bits, owner=None):
    if owner is not None:
        return Operand(engine.input(value, value.shape, owner, bits), bits, owner)
    mask = random_ring(rng, value.shape, 64)
    return Operand((value - mask, mask), bits, None)


def notes(engine, call):
    """What the call gives, and how its products were made."""
    before = engine.counters()["products"]
    result = call()
    after = engine.counters()["products"]
    return result, {name: count - before.get(name, 0) for name, count in after.items() if count > before.get(name, 0)}


SHAPES = [((5, 7), (7, 3)), ((2, 5, 7), (2, 7, 3)), ((2, 3, 4, 6), (2, 3, 6, 5)), ((9, 1, 1), (9, 1, 1))]


@pytest.mark.parametrize("values", [random_ring, extremes])
@pytest.mark.parametrize("bits", [8, 21, 32, 37, 44, 64])
@pytest.mark.parametrize("shapes", SHAPES, ids=str)
def test_products_of_shared_factors_are_exact(engine, rng, shapes, bits, values):
    x, y = values(rng, shapes[0], bits), values(rng, shapes[1], bits)
    a, b = operand(engine, rng, x, bits), operand(engine, rng, y, bits)
    got, made = notes(engine, lambda: engine.matmul(a, b, bits))
    assert torch.equal(engine.reveal(got, bits), PLAIN.matmul(Operand((x,), bits), Operand((y,), bits), bits)[0])
    assert made == {WIDE: 1}


@pytest.mark.parametrize("owners", [(None, 0), (None, 1), (0, None), (1, None), (0, 1), (1, 0)], ids=str)
def test_batches_with_a_factor_that_a_party_knows_are_exact(engine, rng, owners):
    bits, known = 32, 9
    x, y = (
        random_ring(rng, shape, bits if owner is None else known)
        for shape, owner in zip(SHAPES[1], owners, strict=True)
    )
    widths = [bits if owner is None else known for owner in owners]
    a, b = (
        operand(engine, rng, value, width, owner) for value, width, owner in zip((x, y), widths, owners, strict=True)
    )
    got, made = notes(engine, lambda: engine.matmul(a, b, bits))
    want = PLAIN.matmul(Operand((x,), widths[0]), Operand((y,), widths[1]), bits)[0]
    assert torch.equal(engine.reveal(got, bits), want) and made == {WIDE: 1}


@pytest.mark.parametrize("bits", [21, 64])
@pytest.mark.parametrize("owners", [(None, 0), (None, 1), (0, None), (1, None), (0, 1), (1, 0)], ids=str)
def test_products_with_weights_take_this_form_where_it_has_the_fewest_bytes(engine, rng, owners, bits):
    widths = [bits if owner is None else 9 for owner in owners]
    x, y = random_ring(rng, (40, 30), widths[0]), random_ring(rng, (30, 50), widths[1])
    a, b = operand(engine, rng, x, widths[0], owners[0]), operand(engine, rng, y, widths[1], owners[1])
    got, made = notes(engine, lambda: engine.matmul(a, b, bits))
    want = PLAIN.matmul(Operand((x,), widths[0]), Operand((y,), widths[1]), bits)[0]
    assert torch.equal(engine.reveal(got, bits), want) and made == {WIDE: 1}


@pytest.mark.parametrize(
    "case",
    [
        ((2, 3, 6, 5), (4, 3, 3, 2), Window((1, 1), (0, 0), (1, 1), 1)),
        ((1, 4, 7, 7), (4, 2, 3, 3), Window((2, 1), (1, 2), (1, 1), 2)),
        ((2, 3, 8, 6), (6, 1, 2, 3), Window((1, 2), (1, 0), (2, 1), 3)),
    ],
    ids=lambda case: f"{case[0]}x{case[1]}",
)
@pytest.mark.parametrize("owners", [(None, None), (0, None), (1, None)], ids=str)
def test_convolutions_with_shared_kernels_are_exact(engine, rng, case, owners):
    x_shape, w_shape, window = case
    x, w = random_ring(rng, x_shape, 32), random_ring(rng, w_shape, 32)
    a, b = operand(engine, rng, x, 32, owners[0]), operand(engine, rng, w, 32, owners[1])
    got, made = notes(engine, lambda: engine.conv2d(a, b, window, 32))
    want = PLAIN.conv2d(Operand((x,), 32), Operand((w,), 32), window, 32)[0]
    assert torch.equal(engine.reveal(got, 32), want) and made == {WIDE: 1}


@pytest.mark.parametrize("linear", [Linear("ot"), Linear("lattice", "proved")], ids=["ot", "proved"])
def test_transfers_make_the_same_and_are_told(rng, linear):
    other = twopc.create(OtChoice("ideal"), deadline=60.0, linear=linear)
    try:
        x, y = random_ring(rng, (2, 3, 4), 32), random_ring(rng, (2, 4, 2), 32)
        a, b = operand(other, rng, x, 32), operand(other, rng, y, 32)
        got, made = notes(other, lambda: other.matmul(a, b, 32))
        assert torch.equal(other.reveal(got, 32), wrap(x @ y, 32))
        why = "" if linear.noise == "tail" else " (noise=proved is for weights that one party knows)"
        assert made == {TRANSFERS + why: 1}
    finally:
        other.close()


# of factors by owner, their shapes and whether there is an addend
SHIFTED = [
    (SHAPES[1], (None, None), False),
    (SHAPES[0], (None, None), True),
    (((40, 30), (30, 50)), (None, 0), True),
    (((40, 30), (30, 50)), (1, 0), False),
    (((64, 100), (100, 120)), (None, None), False),  # both parties encrypt
]


@pytest.mark.parametrize("nearest", [False, True])
@pytest.mark.parametrize("reduces", [False, True])
@pytest.mark.parametrize("bits, shift", [(8, 1), (8, 7), (21, 9), (37, 20), (63, 12), (64, 12)])
@pytest.mark.parametrize("case", SHIFTED, ids=str)
def test_products_are_divided_exactly(engine, rng, case, bits, shift, reduces, nearest):
    shapes, owners, adds = case
    widths = [bits if owner is None else min(9, bits) for owner in owners]
    values = [random_ring(rng, shape, width) for shape, width in zip(shapes, widths, strict=True)]
    a, b = (operand(engine, rng, *each) for each in zip(values, widths, owners, strict=True))
    addend, of_addend = None, None
    if adds:  # one number for each column
        of_addend = random_ring(rng, shapes[1][-1:], bits)
        addend = operand(engine, rng, of_addend, bits).share
    how = Shift(shift, reduces=reduces, nearest=nearest)
    got, made = notes(engine, lambda: engine.shifted_product("matmul", a, b, bits, how, addend))
    left, right = (Operand((v,), width) for v, width in zip(values, widths, strict=True))
    want = PLAIN.shifted_product("matmul", left, right, bits, how, None if of_addend is None else (of_addend,))[0]
    assert torch.equal(engine.reveal(got, bits - shift * reduces), want) and made == {WIDE: 1}


@pytest.mark.parametrize(
    "promise", [Promise(bound=1 << 18), Promise(nonnegative=True), Promise(True, 1 << 18)], ids=str
)
@pytest.mark.parametrize("nearest", [False, True])
def test_products_of_which_something_is_proved_are_divided_exactly(engine, rng, promise, nearest):
    x, y = random_ring(rng, (5, 7), 8), random_ring(rng, (7, 3), 8)
    if promise.nonnegative:
        x, y = x.abs(), y.abs()
    how = Shift(9, promise, nearest=nearest)
    a, b = operand(engine, rng, x, 21), operand(engine, rng, y, 21)
    got = engine.reveal(engine.shifted_product("matmul", a, b, 21, how), 21)
    assert torch.equal(got, (x @ y + (256 if nearest else 0)) >> 9)


@pytest.mark.parametrize("bits", [3, 4, 6, 63, 64])
def test_a_quotient_is_rounded_where_its_half_leaves_the_ring(engine, rng, bits):
    """For every bound of a small ring and the largest one of large rings, at the ends of the bound."""
    most = (1 << (bits - 1)) - 1
    for bound in range(1, most + 1) if bits < 8 else (most,):
        ends = torch.arange(min(bound, 40))
        values = torch.cat([ends - bound, bound - 1 - ends])
        for shift in {1, 2, bits // 2, bits - 1} - ({1} if bits == 64 else set()):
            share = operand(engine, rng, values, bits).share
            got = engine.reveal(engine.truncate(share, bits, shift, Promise(bound=bound), True), bits)
            want = PLAIN.truncate((values,), bits, shift, Promise(bound=bound), True)[0]
            assert torch.equal(got, want), (bound, shift)


def test_a_truncation_that_drops_the_noise_too_saves_a_message():
    a, b = (Operand((torch.zeros(4, 32, 32, dtype=torch.int64),), 20) for _ in range(2))
    depths = []
    for fused in (True, False):
        meter = twopc.meter(0, OtChoice("ideal"), 1, True, Linear("lattice"))
        if fused:
            meter.shifted_product("matmul", a, b, 20, Shift(8))
        else:
            meter.truncate(meter.matmul(a, b, 20), 20, 8)
        depths.append(meter.counters()["online"]["depth"])
    assert depths[0] < depths[1]


@pytest.mark.parametrize("provider", ["ideal", "softspoken"])
def test_the_meter_books_what_crosses_the_wire(rng, provider):
    ot, linear = OtChoice(provider), Linear("lattice")
    engine, meter = twopc.create(ot, deadline=60.0, linear=linear), twopc.meter(0, ot, 1, True, linear)
    try:
        for left, right in (SHAPES[1], SHAPES[0], ((4, 32, 32), (4, 32, 32)), SHAPES[1]):
            x, y = random_ring(rng, left, 32), random_ring(rng, right, 32)
            engine.matmul(operand(engine, rng, x, 32), operand(engine, rng, y, 32), 32)
            meter.matmul(Operand((torch.zeros_like(x),), 32), Operand((torch.zeros_like(y),), 32), 32)
            engine.shifted_product("matmul", *(operand(engine, rng, v, 32) for v in (x, y)), 32, Shift(9))
            meter.shifted_product("matmul", *(Operand((torch.zeros_like(v),), 32) for v in (x, y)), 32, Shift(9))
            got, want = engine.counters(), meter.counters()
            for phase in ("preprocess", "online"):
                assert {**got[phase], "seconds": 0} == {**want[phase], "seconds": 0}
            for name in ("cots_as_sender", "cots_as_receiver", "products"):
                assert got[name] == want[name]
    finally:
        engine.close()


# ---- the choice
def shared(batch, rows, inner, columns, bits=32, link=BY_TRANSFERS):
    formats = (SHARED, bits, True), (SHARED, bits, True)
    return WideProduct(batch, rows, inner, columns, bits, *formats, byte_price(link))


def call_of(product):
    shapes = (1, product.batch * product.inner, product.columns, 1), (product.batch * product.rows, product.inner, 1, 1)
    return ByTransfers(
        "conv2d", (shapes[0], product.y_format), (shapes[1], product.x_format),
        (*shapes, (1, 1), (0, 0, 0, 0), (1, 1), product.batch, product.bits),
    )  # fmt: skip


LAN, WAN = (Linear("auto", delay=delay, seconds_per_byte=8 / rate) for delay, rate in ((2e-4, 1e9), (0.04, 1e8)))


def test_what_is_chosen_is_what_is_predicted_to_be_faster():
    names = set()
    for shape, link in itertools.product([(1, 1, 4, 6), (4, 32, 32, 32), (12, 128, 64, 128)], [LAN, WAN]):
        made = shared(*shape, link=link)
        faster = by_ciphertexts(made, SOFTSPOKEN, link).seconds < by_transfers(call_of(made), SOFTSPOKEN, link).seconds
        names.add(form_of(made, SOFTSPOKEN, link, call_of(made)).name)
        assert form_of(made, SOFTSPOKEN, link, call_of(made)).name == (WIDE if faster else TRANSFERS)
    assert names == {WIDE, TRANSFERS}
    assert form_of(shared(12, 128, 64, 128), SOFTSPOKEN, LAN, call_of(shared(12, 128, 64, 128))).name == WIDE


def test_slow_links_take_fewer_bytes_and_more_work():
    links = [Linear("auto"), LAN, WAN, Linear("auto", seconds_per_byte=1e-5)]
    for shape in ((1, 32, 128, 384), (4, 32, 32, 32), (1, 1, 400, 120)):
        plans = [plan_of(shared(*shape, link=link)) for link in links]
        sides = [[side for side in plan["sides"] if side is not None] for plan in plans]
        sent = [sum(side["upload_bytes"] + side["answer_bytes"] for side in each) for each in sides]
        work = [sum(side["nanoseconds"] for side in each) for each in sides]
        assert sent == sorted(sent, reverse=True) and work == sorted(work)
        assert sent[0] > sent[-1] and work[0] < work[-1] / 1.5


def test_with_mode_lattice_the_fewest_bytes_are_taken():
    assert byte_price(Linear("lattice")) is None
    for shape in ((1, 32, 128, 384), (4, 32, 32, 32), (2, 32, 64, 32), (1, 1, 400, 120)):
        fewest, *others = (
            sum(side["upload_bytes"] + side["answer_bytes"] + side["key_bytes"] // 4 for side in plan["sides"] if side)
            for plan in (plan_of(shared(*shape, link=link)) for link in (Linear("lattice"), Linear("auto"), LAN, WAN))
        )
        assert all(fewest <= other for other in others) and fewest < others[0]


def test_products_without_elements_are_left_to_transfers():
    assert form_of(shared(0, 2, 3, 2), SOFTSPOKEN, Linear("lattice"), call_of(shared(1, 2, 3, 2))).name == TRANSFERS
    huge = shared(1, 1, 1 << 17, 1)
    assert "no lattice parameters fit" in form_of(huge, SOFTSPOKEN, Linear("lattice"), call_of(huge)).why


def test_products_of_attention_and_of_the_comparison_have_the_bytes_of_the_arithmetic():
    one_owner = T.wide_plan(T.WideKeys(), (12, 128, 64, 128), (SHARED, 32, True), (SHARED, 32, True), 32)
    sides = [side for side in one_owner["sides"] if side is not None]
    assert len(sides) == 1 and sides[0]["terms"] == 2
    assert sides[0]["upload_bytes"] == 12 * 2 * 128 * 64 * sides[0]["upload_bits"] // 8
    assert sides[0]["answer_bytes"] == 2 * 12 * 128 * 128 * sides[0]["answer_bits"] // 8, "one half of each answer"
    assert min(sides[0]["core_svp"], sides[0]["gates"]) >= 128 and one_owner["log2_failure"] <= -100
    both = T.wide_plan(T.WideKeys(), (1, 128, 768, 768), (SHARED, 32, True), (SHARED, 32, True), 32)
    assert all(side["terms"] == 1 for side in both["sides"])
    assert sum(side["key_bytes"] + side["upload_bytes"] + side["answer_bytes"] for side in both["sides"]) < 3.3e6


# ---- in programs
class Attention(torch.nn.Module):
    """With a projection of its own for each of queries, keys and values."""

    def __init__(self):
        super().__init__()
        self.q, self.k, self.v = (torch.nn.Linear(16, 16) for _ in range(3))

    def forward(self, x):
        q, k, v = (part(x).unflatten(-1, (2, 8)).transpose(1, 2) for part in (self.q, self.k, self.v))
        return ((q @ k.transpose(-1, -2)).relu() @ v).transpose(1, 2).flatten(2)


def test_projections_of_one_input_are_one_product():
    torch.manual_seed(1)
    model, x = Attention().eval(), torch.randn(4, 6, 16)
    program = privml.convert(model, calibration=x)
    results, products = {}, {}
    for linear in ("ot", "lattice"):
        with privml.local("twopc", linear=linear) as session:
            session.numerics = program.numerics
            results[linear] = privml.reveal(program.run(session, x[:1]))
            products[linear] = session.engine.counters()["products"]
    assert products == {"ot": {TRANSFERS: 3}, "lattice": {WIDE: 3}}, "of all projections, of scores, and of values"
    assert torch.equal(results["ot"], results["lattice"])
    assert (results["lattice"] - model(x[:1])).abs().max() < 0.1


# ---- as Python calls the core
def test_arguments_that_do_not_fit_are_refused_before_a_session_is_touched():
    meter = _core.TwoPartySession.meter(0)
    keys, words, form = T.WideKeys(), np.zeros(6, np.int64), (SHARED, 32, True)
    for sizes, x_format, ell in [
        ((1, 2, 4, 2), form, 32),
        ((1, 2, 3, 2), (SHARED, 31, True), 32),
        ((1, 0, 3, 2), form, 32),
    ]:
        with pytest.raises(ValueError):
            T.wide_matmul(meter, keys, words, x_format, words, form, sizes, ell)
    for owner in (0, 1):
        known = (owner, 8, True)
        with pytest.raises(ValueError):
            T.wide_matmul(meter, keys, words, known, words, known, (1, 2, 3, 2), 32)
    assert meter.counters()["online"]["sent"] == 0


def test_keys_come_once_and_serve_all_shapes():
    random = np.random.default_rng(1)
    sizes = [(2, 5, 6, 7), (2, 5, 6, 7), (1, 40, 3, 40)]

    def party(rank, channel):
        session, keys, results = _core.TwoPartySession(channel, rank, "softspoken", 4), T.WideKeys(), []
        form, sent = (SHARED, 32, True), []
        for (batch, rows, inner, columns), (xs, ys) in zip(sizes, factors, strict=True):
            before = session.counters()["online"]["sent"]
            shape = batch, rows, inner, columns
            results.append(T.wide_matmul(session, keys, xs[rank], form, ys[rank], form, shape, 32))
            sent.append(session.counters()["online"]["sent"] - before)
        return results, sent

    factors = []
    for batch, rows, inner, columns in sizes:
        shapes = (batch, rows, inner), (batch, inner, columns)
        factors.append([[random.integers(0, 1 << 32, shape) for _ in range(2)] for shape in shapes])
    first, second = succeed(run_both(party))
    for (a, b), (xs, ys) in zip(zip(first[0], second[0], strict=True), factors, strict=True):
        assert not (((a + b) - (xs[0] + xs[1]) @ (ys[0] + ys[1])) & 0xFFFFFFFF).any()
    sent = [a + b for a, b in zip(first[1], second[1], strict=True)]
    assert sent[1] < sent[0] - 100_000
