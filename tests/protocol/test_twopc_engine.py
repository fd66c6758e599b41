# SPDX-License-Identifier: Apache-2.0
"""The two-party engine against the plain engine, bit for bit, on random shapes, widths and placements."""

import itertools
import zlib

import pytest
import torch

from privml.engines.base import Operand
from privml.engines.correlations import OtChoice
from privml.engines.plain.engine import PlainEngine
from privml.engines.ring import wrap
from privml.engines.shares import Promise, Window
from privml.engines.twopc import backend as twopc

PLAIN = PlainEngine(check_overflow=False)
OWNERS = (None, 0, 1)


@pytest.fixture(scope="module", params=["ideal", "softspoken", "silent"])
def engine(request):
    made = twopc.create(OtChoice(request.param), deadline=20.0)
    yield made
    made.close()


@pytest.fixture
def rng(request):
    return torch.Generator().manual_seed(zlib.crc32(request.node.name.encode()))


def random_ring(rng, shape, bits):
    return wrap(torch.randint(-(2**63), 2**63 - 1, tuple(shape), generator=rng), bits)


def random_shape(rng, dims=3, limit=5):
    return [int(torch.randint(1, limit, (), generator=rng)) for _ in range(dims)]


def shared(rng, value, bits):
    """Random additive shares; the bits above the width are noise."""
    mask = torch.randint(-(2**63), 2**63 - 1, tuple(value.shape), generator=rng)
    noise = torch.randint(-(2**63), 2**63 - 1, tuple(value.shape), generator=rng)
    above = torch.zeros_like(noise) if bits == 64 else noise << bits
    return value - mask + above, mask


def shared_bits(rng, value):
    mask = torch.randint(0, 2, tuple(value.shape), generator=rng, dtype=torch.uint8)
    return value ^ mask, mask


def operand(engine, rng, value, bits, owner, **kind):
    share = shared(rng, value, bits) if owner is None else engine.input(value, value.shape, owner, bits)
    return Operand(share, bits, owner, **kind), Operand((value,), bits, owner, **kind)


WIDTHS = [8, 32, 37, 64]


@pytest.mark.parametrize("bits", WIDTHS)
@pytest.mark.parametrize("to", [None, 0, 1])
def test_reveal(engine, rng, bits, to):
    value = random_ring(rng, random_shape(rng), bits)
    assert torch.equal(engine.reveal(shared(rng, value, bits), bits, to), value)
    bit = torch.randint(0, 2, (3, 5), generator=rng, dtype=torch.uint8)
    assert torch.equal(engine.reveal_bits(shared_bits(rng, bit), to), bit)


@pytest.mark.parametrize("bits", WIDTHS)
def test_linear(engine, rng, bits):
    shape = random_shape(rng)
    x, y = random_ring(rng, shape, bits), random_ring(rng, shape, bits)
    a, b = shared(rng, x, bits), shared(rng, y, bits)
    checks = [
        (x + y, engine.add(a, b, bits)),
        (x - y, engine.subtract(a, b, bits)),
        (-x, engine.negate(a, bits)),
        (x * -7, engine.multiply_public(a, -7, bits)),
        (x * y, engine.multiply_public(a, y, bits)),
        (x + 11, engine.add_public(a, 11, bits)),
        (x + y, engine.add_public(a, y, bits)),
        (x.sum((0, 2), True), engine.sum(a, (0, 2), True, bits)),
        (x.sum(1), engine.sum(a, (1,), False, bits)),
    ]
    for want, share in checks:
        assert torch.equal(engine.reveal(share, bits), wrap(want, bits))
    assert torch.equal(engine.reveal(engine.public(x, bits), bits), x)


@pytest.mark.parametrize("bits", WIDTHS)
@pytest.mark.parametrize("name", ["less_than_zero", "equal_zero", "relu"])
def test_comparisons(engine, rng, name, bits):
    value = random_ring(rng, random_shape(rng), bits)
    value.view(-1)[0] = 0
    share = shared(rng, value, bits)
    if name == "relu":
        got, positive = engine.relu(share, bits)
        want, want_positive = PLAIN.relu((value,), bits)
        assert torch.equal(engine.reveal(got, bits), want[0])
        assert torch.equal(engine.reveal_bits(positive), want_positive[0])
    else:
        got, want = getattr(engine, name)(share, bits), getattr(PLAIN, name)((value,), bits)
        assert torch.equal(engine.reveal_bits(got), want[0])


@pytest.mark.parametrize("bits", WIDTHS)
def test_bits_and_select(engine, rng, bits):
    value = random_ring(rng, (4, 6), bits)
    a, b = (torch.randint(0, 2, (4, 6), generator=rng, dtype=torch.uint8) for _ in range(2))
    sa, sb = shared_bits(rng, a), shared_bits(rng, b)
    assert torch.equal(engine.reveal_bits(engine.logical_and(sa, sb)), a & b)
    assert torch.equal(engine.reveal_bits(engine.logical_or(sa, sb)), a | b)
    assert torch.equal(engine.reveal_bits(engine.xor(sa, sb)), a ^ b)
    assert torch.equal(engine.reveal_bits(engine.logical_not(sa)), a ^ 1)
    assert torch.equal(engine.reveal(engine.bits_to_ring(sa, bits), bits), wrap(a.long(), bits))
    assert torch.equal(engine.reveal(engine.select(sa, shared(rng, value, bits), bits), bits), value * a)


@pytest.mark.parametrize("bits", WIDTHS)
@pytest.mark.parametrize("shift", [0, 1, 5, 7])
def test_truncation(engine, rng, bits, shift):
    value = random_ring(rng, (3, 7), bits)
    share = shared(rng, value, bits)
    assert torch.equal(engine.reveal(engine.truncate(share, bits, shift), bits), value >> shift)
    if shift:
        reduced = engine.reveal(engine.truncate_reduce(share, bits, shift), bits - shift)
        assert torch.equal(reduced, wrap(value >> shift, bits - shift))
    half = value.abs() >> 1
    share = engine.truncate(shared(rng, half, bits), bits, shift, Promise(nonnegative=True))
    assert torch.equal(engine.reveal(share, bits), half >> shift)


@pytest.mark.parametrize("bits", WIDTHS)
@pytest.mark.parametrize("shift", [1, 5, 7])
def test_rectified_quotients(engine, rng, bits, shift):
    value = random_ring(rng, (3, 7), bits)
    share = shared(rng, value, bits)
    for out_bits in {1, bits - shift, bits - 1, bits, 64}:
        found = engine.reveal(engine.rectified_quotient(share, bits, shift, out_bits), out_bits)
        assert torch.equal(found, wrap(value.clamp(min=0) >> shift, out_bits))
        assert torch.equal(found, PLAIN.rectified_quotient((value,), bits, shift, out_bits)[0])


@pytest.mark.parametrize("bits, to_bits", [(8, 9), (8, 64), (20, 37), (32, 64), (63, 64)])
def test_extension(engine, rng, bits, to_bits):
    value = random_ring(rng, (5, 3), bits)
    share = shared(rng, value, bits)
    assert torch.equal(engine.reveal(engine.extend(share, bits, to_bits), to_bits), value)
    unsigned = value & ((1 << bits) - 1)
    assert torch.equal(
        engine.reveal(engine.extend(share, bits, to_bits, signed=False), to_bits), wrap(unsigned, to_bits)
    )
    half = unsigned >> 1
    share = engine.extend(shared(rng, half, bits), bits, to_bits, promise=Promise(nonnegative=True))
    assert torch.equal(engine.reveal(share, to_bits), half)


@pytest.mark.parametrize("bits", WIDTHS)
@pytest.mark.parametrize("divisor", [1, 2, 3, 12, 49, 255, 2**26 - 1])
def test_division(engine, rng, bits, divisor):
    value = random_ring(rng, (3, 7), bits)
    expected = value.div(divisor, rounding_mode="floor")
    assert torch.equal(engine.reveal(engine.divide_public(shared(rng, value, bits), bits, divisor), bits), expected)
    magnitude = random_ring(rng, (3, 7), bits).abs() >> 1
    quotient = engine.divide_public(shared(rng, magnitude, bits), bits, divisor, Promise(nonnegative=True))
    assert torch.equal(engine.reveal(quotient, bits), magnitude // divisor)
    small = value >> 2
    quotient = engine.divide_public(shared(rng, small, bits), bits, divisor, Promise(bound=2 ** (bits - 3)))
    assert torch.equal(engine.reveal(quotient, bits), small.div(divisor, rounding_mode="floor"))


@pytest.mark.parametrize("bits", [16, 32, 64])
@pytest.mark.parametrize("length", [1, 2, 5, 10])
def test_maxima(engine, rng, bits, length):
    value = random_ring(rng, (4, 2, length), bits) >> 2
    value[0] = value[0, 0, 0]  # equal values: the first one wins
    share = shared(rng, value, bits)
    want, want_position = PLAIN.max_last((value,), bits, one_hot=True)
    got, position = engine.max_last(share, bits, one_hot=True)
    assert torch.equal(engine.reveal(got, bits), want[0])
    assert torch.equal(engine.reveal_bits(position), want_position[0])
    assert torch.equal(engine.reveal(engine.max_last(share, bits)[0], bits), want[0])
    assert torch.equal(engine.reveal(engine.argmax_last(share, bits), 64), PLAIN.argmax_last((value,), bits)[0])
    other = random_ring(rng, value.shape, bits) >> 2
    got = engine.maximum(share, shared(rng, other, bits), bits)
    assert torch.equal(engine.reveal(got, bits), torch.maximum(value, other))


@pytest.mark.parametrize("in_bits", [1, 4, 8])
@pytest.mark.parametrize("out_bits", [5, 32, 64])
def test_lookup(engine, rng, in_bits, out_bits):
    table = random_ring(rng, (1 << in_bits,), 64)
    index = torch.randint(0, 1 << in_bits, (6, 3), generator=rng)
    got = engine.lookup(table, shared(rng, index, in_bits), in_bits, out_bits)
    assert torch.equal(engine.reveal(got, out_bits), wrap(table[index], out_bits))


# (bits of a, bits of b, bits of the product)
PRODUCTS = [(64, 64, 64), (32, 32, 32), (37, 37, 37), (32, 12, 44), (16, 16, 32), (12, 32, 32), (16, 8, 48)]


@pytest.mark.parametrize("owners", list(itertools.product(OWNERS, OWNERS)), ids=str)
@pytest.mark.parametrize("widths", PRODUCTS, ids=str)
def test_multiply(engine, rng, widths, owners):
    m, n, ell = widths
    x, y = random_ring(rng, (3, 4), m), random_ring(rng, (3, 4), n)
    a, plain_a = operand(engine, rng, x, m, owners[0])
    b, plain_b = operand(engine, rng, y, n, owners[1])
    want = PLAIN.multiply(plain_a, plain_b, ell)[0]
    assert torch.equal(engine.reveal(engine.multiply(a, b, ell), ell), want)


@pytest.mark.parametrize("signs", list(itertools.product([True, False], repeat=2)), ids=str)
@pytest.mark.parametrize("owner", OWNERS)
def test_multiply_unsigned_and_nonnegative(engine, rng, signs, owner):
    values = [random_ring(rng, (11,), 16) if s else torch.randint(0, 1 << 16, (11,), generator=rng) for s in signs]
    a, plain_a = operand(engine, rng, values[0], 16, None, signed=signs[0])
    b, plain_b = operand(engine, rng, values[1], 16, owner, signed=signs[1])
    want = wrap(values[0] * values[1], 32)
    assert torch.equal(engine.reveal(engine.multiply(a, b, 32), 32), want)
    half = torch.randint(0, 1 << 15, (11,), generator=rng)
    a, _ = operand(engine, rng, half, 16, None, nonnegative=True)
    assert torch.equal(engine.reveal(engine.multiply(a, b, 32), 32), wrap(half * values[1], 32))


@pytest.mark.parametrize("owners", list(itertools.product(OWNERS, OWNERS)), ids=str)
@pytest.mark.parametrize("widths", [(64, 64, 64), (32, 12, 44), (32, 32, 32)], ids=str)
@pytest.mark.parametrize("batch", [(), (2, 3)], ids=str)
def test_matmul(engine, rng, batch, widths, owners):
    m, n, ell = widths
    rows, inner, columns = random_shape(rng, 3, 7)
    a, plain_a = operand(engine, rng, random_ring(rng, (*batch, rows, inner), m), m, owners[0])
    b, plain_b = operand(engine, rng, random_ring(rng, (*batch, inner, columns), n), n, owners[1])
    want = PLAIN.matmul(plain_a, plain_b, ell)[0]
    assert torch.equal(engine.reveal(engine.matmul(a, b, ell), ell), want)


CONVOLUTIONS = [  # x, w, window
    ((2, 3, 6, 5), (4, 3, 3, 2), Window((1, 1), (0, 0), (1, 1), 1)),
    ((1, 4, 7, 7), (4, 2, 3, 3), Window((2, 1), (1, 2), (1, 1), 2)),
    ((2, 2, 8, 6), (2, 1, 2, 3), Window((1, 2), (1, 0), (2, 1), 2)),
    ((1, 3, 5, 5), (5, 3, 1, 1), Window((1, 1), (0, 0), (1, 1), 1)),
]


@pytest.mark.parametrize("owners", list(itertools.product(OWNERS, OWNERS)), ids=str)
@pytest.mark.parametrize("case", CONVOLUTIONS, ids=lambda c: f"{c[0]}x{c[1]}")
def test_conv2d(engine, rng, case, owners):
    x_shape, w_shape, window = case
    a, plain_a = operand(engine, rng, random_ring(rng, x_shape, 32), 32, owners[0])
    b, plain_b = operand(engine, rng, random_ring(rng, w_shape, 12), 12, owners[1])
    want = PLAIN.conv2d(plain_a, plain_b, window, 44)[0]
    assert torch.equal(engine.reveal(engine.conv2d(a, b, window, 44), 44), want)


def test_empty_and_scalar_tensors(engine, rng):
    empty, scalar = torch.zeros(0, 3, dtype=torch.int64), torch.tensor(-5)
    assert engine.reveal(engine.relu(shared(rng, empty, 32), 32)[0], 32).shape == (0, 3)
    assert engine.reveal(engine.relu(shared(rng, scalar, 32), 32)[0], 32).shape == ()


def test_owner_must_pass_its_value(engine):
    with pytest.raises(ValueError, match="owns this input"):
        engine.input(None, (3,), 1, 32)


def test_wrong_widths_leave_the_session_alive(engine, rng):
    value = random_ring(rng, (3,), 32)
    with pytest.raises(ValueError):
        engine.less_than_zero(shared(rng, value, 32), 65)
    assert torch.equal(engine.reveal(shared(rng, value, 32), 32), value)
