# SPDX-License-Identifier: Apache-2.0
"""The three-party engine, operation by operation, against int64 arithmetic, and its books against its meter."""

import pytest
import torch

from privml import _core
from privml.engines import failures, ring
from privml.engines.base import Operand
from privml.engines.failures import TruncationsMayFail
from privml.engines.shares import Promise, Shift, Window
from privml.engines.threepc import backend as threepc
from privml.engines.threepc.comparison import chosen_plan
from privml.engines.threepc.links import DEALER
from privml.engines.threepc.maxima import levels
from privml.engines.threepc.party import COMPARISONS, packed_bytes
from privml.engines.threepc.sign import prime_for
from privml.errors import ConfigError, ProtocolError

WIDTHS = (2, 5, 8, 13, 16, 31, 32, 33, 60, 61, 63, 64)


@pytest.fixture(scope="module", params=["exact", "faithful", "probabilistic", "auto"])
def engine(request):
    made = threepc.create(threepc.Config(request.param), deadline=20.0)
    yield made
    made.close()


def mode(engine):
    return engine.engines[0].truncation


def edges(bits, room, count=60):
    """Random values of |x| <= 2^(bits - room), the edges among them."""
    top = 1 << min(bits - room, 62)
    random = torch.randint(-top, top, (count,))
    return torch.cat([random, torch.tensor([0, -1, top - 1, -top, min(1, top - 1)])])


@pytest.fixture(scope="module", params=COMPARISONS)
def comparing(request):
    made = threepc.create(threepc.Config(comparison=request.param), deadline=20.0)
    yield made
    made.close()


def everything(bits):
    """All values of a small ring, or random ones with edges."""
    if bits <= 8:
        return torch.arange(-(1 << (bits - 1)), 1 << (bits - 1))
    return edges(bits, 1)


def share(engine, value, bits, owner=1):
    return engine.input(value, value.shape, owner, bits)


@pytest.mark.parametrize("bits", WIDTHS)
@pytest.mark.parametrize("owner", [0, 1, DEALER])
def test_inputs_come_out_again(engine, owner, bits):
    x = everything(bits)
    a = share(engine, x, bits, owner)
    for to in (None, 0, 1, DEALER):
        assert torch.equal(engine.reveal(a, bits, to), ring.wrap(x, bits))
    b = engine.input_bits((x & 1).to(torch.uint8), x.shape, owner)
    for to in (None, 0, 1, DEALER):
        assert torch.equal(engine.reveal_bits(b, to), (x & 1).to(torch.uint8))


@pytest.mark.parametrize("bits", WIDTHS)
def test_linear_and_products(engine, bits):
    x, y = everything(bits), everything(bits).flip(0)
    a, b = share(engine, x, bits, 0), share(engine, y, bits, DEALER)
    wanted = {
        "add": (engine.add(a, b, bits), x + y),
        "subtract": (engine.subtract(a, b, bits), x - y),
        "negate": (engine.negate(a, bits), -x),
        "public": (engine.add_public(engine.multiply_public(a, 3, bits), 5, bits), 3 * x + 5),
        "sum": (engine.sum(a, [0], True, bits), x.sum(0, True)),
        "multiply": (engine.multiply(Operand(a, bits), Operand(b, bits), bits), x * y),
        "square": (engine.multiply(Operand(a, bits), Operand(a, bits), bits), x * x),
        "constant": (engine.subtract(engine.public(y, bits), a, bits), y - x),
    }
    for name, (result, expected) in wanted.items():
        assert torch.equal(engine.reveal(result, bits), ring.wrap(expected, bits)), name


@pytest.mark.parametrize("bits", [32, 64])
def test_matrices_and_convolutions(engine, bits):
    x, y = torch.randint(-(2**31), 2**31, (2, 3, 4, 5)), torch.randint(-(2**31), 2**31, (2, 3, 5, 2))
    a, b = share(engine, x, bits), share(engine, y, bits, 0)
    product = engine.matmul(Operand(a, bits), Operand(b, bits), bits)
    assert torch.equal(engine.reveal(product, bits), ring.wrap(x @ y, bits))
    w = torch.randint(-(2**31), 2**31, (6, 1, 2, 2))
    c = share(engine, w, bits, DEALER)
    window = Window((1, 2), (1, 0), groups=3)
    result = engine.conv2d(Operand(a, bits), Operand(c, bits), window, bits)
    assert torch.equal(engine.reveal(result, bits), ring.wrap(ring.conv2d(x, w, window), bits))
    public = engine.conv2d_public(a, w, window, bits)
    assert torch.equal(engine.reveal(public, bits), ring.wrap(ring.conv2d(x, w, window), bits))
    assert torch.equal(engine.reveal(engine.matmul_public(a, y, bits), bits), ring.wrap(x @ y, bits))


def test_operands_of_other_widths(engine):
    x, y = everything(8), everything(8).flip(0)
    product = engine.multiply(Operand(share(engine, x, 8), 8), Operand(share(engine, y, 8, 0), 8), 40)
    assert torch.equal(engine.reveal(product, 40), x * y)


@pytest.mark.parametrize("bits", WIDTHS)
def test_signs(engine, bits):
    x = everything(bits)
    for owner in (0, 1, DEALER):
        a = share(engine, x, bits, owner)
        for _ in range(3 if bits <= 8 else 1):
            assert torch.equal(engine.reveal_bits(engine.less_than_zero(a, bits)), (x < 0).to(torch.uint8))
    assert torch.equal(engine.reveal_bits(engine.equal_zero(a, bits)), (x == 0).to(torch.uint8))
    value, positive = engine.relu(a, bits)
    assert torch.equal(engine.reveal(value, bits), x.clamp(min=0))
    assert torch.equal(engine.reveal_bits(positive), (x >= 0).to(torch.uint8))


@pytest.mark.parametrize("bits", range(2, 65))
def test_both_comparisons_in_every_ring(comparing, bits):
    x = everything(bits)
    a = share(comparing, x, bits)
    assert torch.equal(comparing.reveal_bits(comparing.less_than_zero(a, bits)), (x < 0).to(torch.uint8))
    assert torch.equal(comparing.reveal_bits(comparing.equal_zero(a, bits)), (x == 0).to(torch.uint8))


@pytest.mark.parametrize("bits", [8, 32, 64])
def test_one_against_many(comparing, bits):
    x, thresholds = edges(bits, 2), [-5, 0, 3, 17]
    below = comparing.reveal_bits(comparing.less_than_many(share(comparing, x, bits), thresholds, bits))
    assert torch.equal(below, torch.stack([(x < t).to(torch.uint8) for t in thresholds]))


@pytest.mark.parametrize("bits", [4, 6, 9])
def test_every_mask_and_value_has_the_right_sign(comparing, bits):
    """All (m, r) of a small ring, among them those where the published protocol fails: r = 0 mod 2^(bits-1)."""
    m, r = torch.meshgrid(torch.arange(1 << bits), torch.arange(1 << bits), indexing="ij")
    nothing, part = torch.zeros_like(m), torch.randint(0, 1 << bits, m.shape)
    shares = (m, part, m, r - part, nothing, r)
    for _ in range(4):
        found = comparing.reveal_bits(comparing.less_than_zero(shares, bits))
        assert torch.equal(found, (ring.wrap(m - r, bits) < 0).to(torch.uint8))


def test_bits(engine):
    x, y = torch.tensor([0, 0, 1, 1], dtype=torch.uint8), torch.tensor([0, 1, 0, 1], dtype=torch.uint8)
    a, b = engine.input_bits(x, x.shape, 0), engine.input_bits(y, y.shape, DEALER)
    for result, expected in (
        (engine.xor(a, b), x ^ y), (engine.logical_and(a, b), x & y), (engine.logical_or(a, b), x | y),
        (engine.logical_not(a), x ^ 1),
    ):  # fmt: skip
        assert torch.equal(engine.reveal_bits(result), expected)
    value = torch.tensor([5, -7, 9, -(2**40)])
    c = share(engine, value, 64)
    assert torch.equal(engine.reveal(engine.select(a, c, 64), 64), value * x)
    assert torch.equal(engine.reveal(engine.bits_to_ring(b, 17), 17), y.long())
    twice = tuple(torch.stack([p, q]) for p, q in zip(a, b, strict=True))
    values = tuple(torch.stack([p, p]) for p in c)
    assert torch.equal(engine.reveal(engine.select_sum(twice, values, 64), 64), value * x + value * y)
    weights = torch.tensor([[3, -1], [0, 2**40]])
    assert torch.equal(
        engine.reveal(engine.weighted_bits(twice, weights, 64), 64), weights @ torch.stack([x, y]).long()
    )
    assert torch.equal(engine.reveal(engine.inner(values, values, 64), 64), 2 * value * value)


def check_floor(engine, found, expected):
    low = found - expected
    if mode(engine) == "exact":
        assert not low.any()
    else:
        assert not ((low != 0) & (low != 1)).any()


@pytest.mark.parametrize("bits", [5, 8, 16, 33, 60, 64])
@pytest.mark.parametrize("shift", [1, 3])
def test_truncations(engine, shift, bits):
    if mode(engine) == "probabilistic":
        x = torch.randint(-9, 9, (5,)) if bits == 64 else torch.zeros(5, dtype=torch.int64)
        found = engine.reveal(engine.truncate(share(engine, x, bits), bits, shift), bits)
        return check_floor(engine, found, x >> shift)
    small = edges(bits, 2) if bits > 8 else torch.arange(-(1 << (bits - 2)), 1 << (bits - 2))
    for _ in range(8 if bits <= 8 else 1):
        a = share(engine, small, bits)
        check_floor(engine, engine.reveal(engine.truncate(a, bits, shift), bits), small >> shift)
        bounded = engine.truncate(a, bits, shift, Promise(bound=1 << (bits - 2)))
        check_floor(engine, engine.reveal(bounded, bits), small >> shift)
        positive = everything(bits)
        positive = positive[positive >= 0]
        found = engine.truncate(share(engine, positive, bits, 0), bits, shift, Promise(nonnegative=True))
        check_floor(engine, engine.reveal(found, bits), positive >> shift)
        if bits < 63 or mode(engine) == "exact":
            x = everything(bits)
            found = engine.reveal(engine.truncate(share(engine, x, bits), bits, shift), bits)
            check_floor(engine, found, x >> shift)
        reduced = engine.reveal(engine.truncate_reduce(share(engine, small, bits), bits, shift), bits - shift)
        check_floor(engine, reduced, small >> shift)


@pytest.mark.parametrize("bits", [2, 3, 5, 6])
def test_exact_truncations_round_every_value_down(bits):
    engine = threepc.create(threepc.Config("exact"), deadline=20.0)
    x = torch.arange(-(1 << (bits - 1)), 1 << (bits - 1)).repeat(200)  # all values, with nearly all masks
    for shift in range(1, bits):
        assert torch.equal(engine.reveal(engine.truncate(share(engine, x, bits), bits, shift), bits), x >> shift)
    engine.close()


@pytest.mark.parametrize("bits", [62, 63, 64])
@pytest.mark.parametrize("shift", [1, 16, 40, 63])
def test_exact_truncations_of_a_full_ring_do_not_depend_on_the_masks(bits, shift):
    engine, shift = threepc.create(threepc.Config("exact"), deadline=20.0), min(shift, bits - 1)
    top = 1 << (bits - 1)
    x = torch.tensor([top - 1, -top, 1 << (bits - 2), -(1 << (bits - 2)) - 1, 3 << (bits - 3), -1, 0]).repeat(40)
    assert torch.equal(engine.reveal(engine.truncate(share(engine, x, bits), bits, shift), bits), x >> shift)
    assert torch.equal(engine.reveal(engine.floor(share(engine, x, bits), bits, shift), bits), x >> shift)
    engine.close()


@pytest.mark.parametrize("bits", [5, 8, 33, 60])
def test_extensions(engine, bits):
    x = everything(bits)
    for to_bits in (bits + 1, 64):
        assert torch.equal(engine.reveal(engine.extend(share(engine, x, bits), bits, to_bits), to_bits), x)
        unsigned = engine.extend(share(engine, x, bits), bits, to_bits, signed=False)
        assert torch.equal(engine.reveal(unsigned, to_bits), ring.wrap(x & ((1 << bits) - 1), to_bits))
        positive = x.clamp(min=0)
        found = engine.extend(share(engine, positive, bits), bits, to_bits, promise=Promise(nonnegative=True))
        assert torch.equal(engine.reveal(found, to_bits), positive)
        small = x.clamp(-(1 << (bits - 2)), (1 << (bits - 2)) - 1)
        found = engine.extend(share(engine, small, bits), bits, to_bits, promise=Promise(bound=1 << (bits - 2)))
        assert torch.equal(engine.reveal(found, to_bits), small)


@pytest.mark.parametrize("count", [1, 2, 3, 7, 10])
def test_maxima(engine, count):
    x = torch.randint(-4, 4, (5, count))
    a = share(engine, x, 16)
    value, position = engine.max_last(a, 16, one_hot=True)
    first = x.argmax(-1)
    assert torch.equal(engine.reveal(value, 16), x.amax(-1))
    assert torch.equal(engine.reveal_bits(position), torch.nn.functional.one_hot(first, count).to(torch.uint8))
    assert torch.equal(engine.reveal(engine.argmax_last(a, 16), 64), first)


@pytest.mark.parametrize(
    "rows, count, sizes", [(1, 1, ()), (5, 2, (2,)), (4, 16, (16,)), (2, 65, (5, 13)), (3000, 9, (2, 2, 2, 2))]
)
def test_maxima_by_groups(engine, rows, count, sizes):
    assert levels(rows, count, 16, "few_bytes") == sizes
    for most in (2, 1 << 14):  # many equal ones, and all that fit
        x = torch.randint(-most, most, (rows, count))
        x[0, 0], x[-1, -1] = -most, most - 1
        a = share(engine, x, 16)
        assert torch.equal(engine.reveal(engine.max_last(a, 16)[0], 16), x.amax(-1))
        assert torch.equal(engine.reveal(engine.argmax_last(a, 16), 64), x.argmax(-1))


def test_lookups(engine):
    index = torch.arange(-8, 8)
    tables = torch.randint(-(2**40), 2**40, (3, 16))
    found = engine.reveal(engine.lookup_many(tables, share(engine, index, 4), 4, 64), 64)
    assert torch.equal(found, tables[:, index & 15])
    assert torch.equal(engine.reveal(engine.lookup(tables[0], share(engine, index, 4), 4, 20), 20),
                       ring.wrap(tables[0][index & 15], 20))  # fmt: skip


def test_nothing_at_all(engine):
    x = torch.zeros(0, 3, dtype=torch.int64)
    a = share(engine, x, 32)
    assert engine.reveal(engine.relu(a, 32)[0], 32).shape == (0, 3)
    assert engine.reveal(engine.truncate(a, 32, 3), 32).shape == (0, 3)


def test_probabilistic_truncation_fails_as_often_as_said():
    made = threepc.create(threepc.Config("probabilistic"), deadline=20.0)
    x = torch.full((20_000,), 1 << 12)
    a = share(made, x, 16)
    with pytest.warns(TruncationsMayFail, match="below 1"):
        found = made.reveal(made.truncate(a, 16, 4, Promise(bound=(1 << 12) + 1)), 16)
    wrong = ((found - (x >> 4)).abs() > 1).double().mean()
    assert abs(float(wrong) - 2.0**-4) < 0.01  # |x| / 2^16
    assert made.engines[0].failure == 1.0  # of 20 000 values one fails for sure
    made.close()


def _quotients_after(made, case, count):
    """Shares whose masks are not uniform, or none, and their values."""
    x, zeros = torch.full((count,), 1 << 16), torch.zeros(count, dtype=torch.int64)
    small = Promise(bound=1 << 17)
    if case == "public":
        return made.public(-x, 64), -x
    if case == "of the dealer":
        return made.input(x, x.shape, DEALER, 64), x
    a, b = share(made, zeros, 64), share(made, zeros, 64)
    if case == "a product's":
        quotient = made.shifted_product("multiply", Operand(a, 64), Operand(b, 64), 64, Shift(44, small))
    else:
        quotient = made.truncate(a, 64, 44, small)
    if case == "a difference":
        quotient = made.subtract(quotient, made.truncate(b, 64, 44, small), 64)
    return made.add_public(quotient, -(1 << 16), 64), -x


@pytest.mark.parametrize("case", ["public", "of the dealer", "a product's", "a truncation's", "a difference"])
def test_probabilistic_truncations_hold_for_every_mask(case):
    """Also for masks that are 0 or small numbers, and for the dealer's values, of which all is mask."""
    made = threepc.create(threepc.Config("auto"), deadline=20.0)
    a, x = _quotients_after(made, case, 10_000)
    before = made.engines[0].failure
    found = made.reveal(made.truncate(a, 64, 4, Promise(bound=1 << 17)), 64)
    assert before < made.engines[0].failure < 2.0**-28  # it was probabilistic
    assert ((found - (x >> 4)).abs() <= 2).all()
    made.close()


@pytest.mark.parametrize("value", [1 << 12, -(1 << 12)])
def test_probabilistic_truncations_of_public_values_fail_as_often_as_said(value):
    """Whose mask is 0; all elements of a call fail together."""
    made = threepc.create(threepc.Config("probabilistic"), deadline=20.0)
    a, wrong = made.public(torch.tensor([value]), 16), 0
    with pytest.warns(TruncationsMayFail):
        for _ in range(1000):
            found = made.reveal(made.truncate(a, 16, 4, Promise(bound=(1 << 12) + 1)), 16)
            wrong += int((found - (value >> 4)).abs() > 1)
    assert abs(wrong / 1000 - 2.0**-4) < 0.04  # |x| / 2^16, within five standard deviations
    made.close()


def test_a_sum_of_failure_probabilities_is_warned_of_once(recwarn):
    total = 0.0
    for _ in range(100):
        total = failures.added(total, 2.0**-10)
    assert total == 100 * 2.0**-10
    (told,) = [warning for warning in recwarn if warning.category is TruncationsMayFail]
    assert "truncation=auto" in str(told.message)


def test_auto_is_probabilistic_only_where_failure_is_negligible():
    made = threepc.create(deadline=20.0)
    x = torch.arange(-100, 100)
    a = share(made, x, 64)
    before = made.counters()["online"]
    made.truncate(a, 64, 3, Promise(bound=1 << 20))
    assert 0 < made.engines[0].failure <= 2.0**-32
    assert made.counters()["online"] == before
    failure = made.engines[0].failure
    made.truncate(share(made, x, 64), 64, 3)
    assert made.engines[0].failure == failure
    made.close()


# ---- books
OPERATIONS = {
    "input": lambda e, x: x,
    "input of the dealer": lambda e, x: share(e, torch.ones(77, dtype=torch.int64), 40, DEALER),
    "reveal": lambda e, x: e.reveal(x, 37),
    "reveal to one": lambda e, x: [e.reveal(x, 37, to) for to in range(3)],
    "multiply": lambda e, x: e.multiply(Operand(x, 37), Operand(x, 37), 37),
    "matmul": lambda e, x: e.matmul(
        Operand(tuple(c.view(7, 11) for c in x), 37), Operand(tuple(c.view(11, 7) for c in x), 37), 37
    ),
    "shifted product": lambda e, x: e.shifted_product("multiply", Operand(x, 37), Operand(x, 37), 37, Shift(9)),
    "shifted product, bounded": lambda e, x: e.shifted_product(
        "multiply", Operand(x, 37), Operand(x, 37), 37, Shift(9, Promise(bound=1 << 30)), x
    ),
    "shifted product, small": lambda e, x: e.shifted_product(
        "multiply", Operand(x, 37), Operand(x, 37), 37, Shift(9, Promise(bound=2))
    ),
    "shifted product, reduced": lambda e, x: e.shifted_product(
        "multiply", Operand(x, 37), Operand(x, 37), 37, Shift(9, reduces=True)
    ),
    "less_than_zero": lambda e, x: e.less_than_zero(x, 37),
    "less_than_many": lambda e, x: e.less_than_many(x, [1, 2, 3], 37),
    "equal_zero": lambda e, x: e.equal_zero(x, 37),
    "relu": lambda e, x: e.relu(x, 37),
    "truncate": lambda e, x: e.truncate(x, 37, 9),
    "truncate bounded": lambda e, x: e.truncate(x, 37, 9, Promise(bound=1 << 30)),
    "truncate_reduce": lambda e, x: e.truncate_reduce(x, 37, 9),
    "extend": lambda e, x: e.extend(x, 37, 64),
    "extend bounded": lambda e, x: e.extend(x, 37, 64, promise=Promise(bound=1 << 30)),
    "and": lambda e, x: e.logical_and(e.less_than_zero(x, 37), e.less_than_zero(x, 37)),
    "bits_to_ring": lambda e, x: e.bits_to_ring(e.less_than_zero(x, 37), 37),
    "select_sum": lambda e, x: e.select_sum(e.less_than_many(x, [1, 2], 37), tuple(torch.stack([c, c]) for c in x), 37),
    "weighted_bits": lambda e, x: e.weighted_bits(e.less_than_many(x, [1, 2], 37), torch.ones(3, 2).long(), 37),
    "max_last": lambda e, x: e.max_last(tuple(c.view(7, 11) for c in x), 37, one_hot=True),
    "argmax_last": lambda e, x: e.argmax_last(tuple(c.view(7, 11) for c in x), 37),
    "lookup": lambda e, x: e.lookup(torch.arange(16), x, 4, 12),
}


def spent(counters):
    return {name: (c["sent"], c["received"], c["depth"]) for name, c in list(counters.items())[:3]}


@pytest.mark.parametrize(("truncation", "comparison"), [("exact", "few_bytes"), ("auto", "few_rounds")])
@pytest.mark.parametrize("name", OPERATIONS)
def test_the_meter_books_what_a_session_does(name, truncation, comparison):
    real = threepc.create(threepc.Config(truncation, comparison=comparison), deadline=20.0)
    x = torch.ones(77, dtype=torch.int64)
    OPERATIONS[name](real, share(real, x, 37))
    real.reveal(share(real, x, 8), 8)  # waits for the dealer's answers
    for rank in range(2):
        meter = threepc.meter(rank, threepc.Config(truncation, comparison=comparison))
        OPERATIONS[name](meter, meter.input(x, x.shape, 1, 37))
        meter.reveal(meter.input(x, x.shape, 1, 8), 8)
        assert spent(meter.counters()) == spent(real.engines[rank].counters()), rank
    meter = threepc.meter(DEALER, threepc.Config(truncation, comparison=comparison))
    OPERATIONS[name](meter, meter.input(x, x.shape, 1, 37))
    meter.reveal(meter.input(x, x.shape, 1, 8), 8)
    mine, real_spent = spent(meter.counters()), spent(real.engines[DEALER].counters())
    assert [c[:2] for c in mine.values()] == [c[:2] for c in real_spent.values()]
    real.close()


@pytest.mark.parametrize(("ell", "dealt", "opened", "depth"), [(64, 329, 39, 3), (32, 110, 29, 3), (14, 41, 11, 3)])
def test_a_sign_from_tables_costs_what_is_documented(ell, dealt, opened, depth):
    plan = chosen_plan("few_bytes", ell)
    assert (plan.table_bits + sum(plan.product_bits), sum(plan.opened), plan.depth) == (dealt, opened, depth)
    real = threepc.create(deadline=20.0)
    count = 1 << 18  # of fewer values it takes fewer messages
    a = share(real, torch.arange(count) % 4096 - 2048, ell)
    before = real.counters()
    real.less_than_zero(a, ell)
    after = real.counters()
    assert after["preprocess"]["received"] - before["preprocess"]["received"] == count * dealt // 8
    assert after["online"]["sent"] - before["online"]["sent"] == count * opened // 8
    real.close()


@pytest.mark.parametrize("ell", [7, 17, 32, 37])
def test_a_sign_of_few_values_takes_a_message_less(ell):
    few, many = (chosen_plan("few_bytes", ell, count=count) for count in (100, 1 << 20))
    assert few.depth < many.depth == chosen_plan("few_bytes", ell).depth
    x = torch.arange(-50, 50)
    real = threepc.create(deadline=20.0)
    a = share(real, x, ell)
    before = real.counters()
    below = real.less_than_zero(a, ell)
    after = real.counters()
    plane, dealt = -(-len(x) // 8), few.table_bits + sum(few.product_bits)
    assert after["preprocess"]["received"] - before["preprocess"]["received"] == dealt * plane
    assert after["online"]["sent"] - before["online"]["sent"] == sum(few.opened) * plane
    assert real.reveal_bits(below).tolist() == (x < 0).long().tolist()
    real.close()


@pytest.mark.parametrize(("ell", "width"), [(64, 7), (60, 6), (40, 6)])
def test_a_sign_by_the_dealer_costs_what_its_formula_says(ell, width):
    assert prime_for(ell).bit_length() == width and chosen_plan("few_rounds", ell) is None
    real = threepc.create(threepc.Config(comparison="few_rounds"), deadline=20.0)
    x = torch.arange(-40, 40)
    a = share(real, x, ell)
    before = [engine.counters() for engine in real.engines]
    real.reveal_bits(real.less_than_zero(a, ell), 0)
    after = [engine.counters() for engine in real.engines]
    per_party = 80 * packed_bytes(ell, width) + packed_bytes(80, 1)
    online = sum(after[i]["online"][k] - before[i]["online"][k] for i in (0, 1) for k in ("sent", "received"))
    revealed = 2 * 80 // 8  # sent by one, received by the other
    assert online - revealed == 2 * per_party
    assert after[0]["preprocess"]["received"] - before[0]["preprocess"]["received"] == 80 * packed_bytes(ell - 1, width)
    assert after[0]["online"]["depth"] - before[0]["online"]["depth"] == 2 + 1
    if (ell * width) % 8 == 0:
        assert 8 * 2 * per_party == 80 * (2 * ell * width + 2)
    real.close()


def test_two_parties_agree_on_a_key():
    (a, shown_a), (b, shown_b) = _core.key_pair(), _core.key_pair()
    key = _core.common_key(a, shown_a, shown_b, True)
    assert key == _core.common_key(b, shown_a, shown_b, False) and len(key) == 32
    assert key != _core.common_key(a, shown_b, shown_a, False)
    with pytest.raises(ProtocolError):
        _core.common_key(a, shown_a, bytes(32), True)


def test_keys_are_wiped():
    made = threepc.create(deadline=20.0)
    made.close()
    for engine in made.engines:
        assert all(not stream._key.any() for stream in engine.party.streams.values())


def test_wrong_settings():
    with pytest.raises(ConfigError):
        threepc.create(threepc.Config("sloppy"))
