# SPDX-License-Identifier: Apache-2.0
"""The actively secure engine's operations on both rings, narrower widths too; costs equal what sessions count."""

import pytest
import torch

import privml
from privml.engines import ring
from privml.engines.active.backend import meter
from privml.engines.base import Operand
from privml.engines.correlations import OtChoice
from privml.engines.shares import Promise, Window
from privml.errors import ConfigError, PeerDisconnected, SecurityAbort
from privml.session.ledger import Snapshot

RINGS = (64, 32)
_generator = torch.Generator().manual_seed(5)


def local(bits, truncation="exact"):
    return privml.local("active", ring=bits, ot="ideal", bits=bits, scale=8, truncation=truncation)


@pytest.fixture(params=RINGS, ids=lambda b: f"ring{b}")
def engine(request):
    with local(request.param) as session:
        yield session.engine


def bits_of(engine):
    return engine.engines[0].ring


def random(bits, *shape):
    """Random numbers of the ring, the extreme ones first."""
    value = torch.randint(-(2**63), 2**63 - 1, shape, generator=_generator)
    edges = torch.tensor([0, -1, 1, 2 ** (bits - 1) - 1, -(2 ** (bits - 1))])
    value.view(-1)[: len(edges)] = edges[: value.numel()]
    return ring.wrap(value, bits)


def test_linear_operations_wrap_in_the_ring(engine):
    bits = bits_of(engine)
    x, y = random(bits, 4, 6), random(bits, 4, 6)
    a, b = engine.input(x, x.shape, 0, bits), engine.input(y, y.shape, 1, bits)

    def value(share):
        return engine.reveal(share, bits)

    assert torch.equal(value(a), x)
    assert torch.equal(value(engine.add(a, b, bits)), ring.wrap(x + y, bits))
    assert torch.equal(value(engine.subtract(a, b, bits)), ring.wrap(x - y, bits))
    assert torch.equal(value(engine.negate(a, bits)), ring.wrap(-x, bits))
    assert torch.equal(value(engine.add_public(a, y, bits)), ring.wrap(x + y, bits))
    assert torch.equal(value(engine.multiply_public(a, y, bits)), ring.wrap(x * y, bits))
    assert torch.equal(value(engine.multiply_public(a, -3, bits)), ring.wrap(x * -3, bits))
    assert torch.equal(value(engine.public(y, bits)), y)
    for dims in ([0], [1], [0, 1], [-1]):
        for keep in (False, True):
            assert torch.equal(value(engine.sum(a, dims, keep, bits)), ring.wrap(x.sum(dims, keep), bits))
    moved = engine.additive(lambda c: c.cumsum(1).roll(1, 0), a)
    assert torch.equal(value(moved), ring.wrap(x.cumsum(1).roll(1, 0), bits))
    factor = random(bits, 3, 6, 5)
    assert torch.equal(value(engine.matmul_public(a, factor, bits)), ring.wrap(x @ factor, bits))
    assert torch.equal(value(engine.matmul_public(a, random(bits, 0, 4), bits, left=True)), torch.zeros(0, 6).long())


def test_products(engine):
    bits = bits_of(engine)
    x, y = random(bits, 4, 6), random(bits, 4, 6)
    a, b = engine.input(x, x.shape, 0, bits), engine.input(y, y.shape, 1, bits)
    product = engine.multiply(Operand(a, bits), Operand(b, bits), bits)
    assert torch.equal(engine.reveal(product, bits), ring.wrap(x * y, bits))
    turned = Operand(tuple(c.t() for c in b), bits)
    assert torch.equal(engine.reveal(engine.matmul(Operand(a, bits), turned, bits), bits), ring.wrap(x @ y.t(), bits))
    with pytest.raises(ValueError, match="do not fit"):
        engine.matmul(Operand(a, bits), Operand(b, bits), bits)


def test_factors_of_matrix_products_are_opened_once(engine):
    bits = bits_of(engine)
    x, y = random(bits, 2, 12, 9), random(bits, 2, 9, 5)
    a, b = engine.input(x, x.shape, 0, bits), engine.input(y, y.shape, 1, bits)
    before = Snapshot.of(engine.engines[0].counters()).online.sent
    product = engine.matmul(Operand(a, bits), Operand(b, bits), bits)
    assert Snapshot.of(engine.engines[0].counters()).online.sent - before == (x.numel() + y.numel()) * bits // 8
    drawn = engine.engines[0].drawn()
    assert drawn["matrices"] == {(5, 9, 12): 2} and drawn["triples"] == 0
    assert torch.equal(engine.reveal(product, bits), ring.wrap(x @ y, bits))


@pytest.mark.parametrize("window", [Window((2, 1), (1, 2), (1, 2), 2), Window()])
def test_convolutions(engine, window):
    bits = bits_of(engine)
    x, w = random(bits, 2, 4, 6, 5), random(bits, 6, 4 // window.groups, 3, 2)
    image, kernel = engine.input(x, x.shape, 0, bits), engine.input(w, w.shape, 1, bits)
    expected = ring.wrap(ring.conv2d(x, w, window), bits)
    assert torch.equal(engine.reveal(engine.conv2d_public(image, w, window, bits), bits), expected)
    secret = engine.conv2d(Operand(image, bits), Operand(kernel, bits), window, bits)
    assert torch.equal(engine.reveal(secret, bits), expected)


def test_bits(engine):
    x, y = torch.tensor([0, 0, 1, 1], dtype=torch.uint8), torch.tensor([0, 1, 0, 1], dtype=torch.uint8)
    a, b = engine.input_bits(x, (4,), 0), engine.input_bits(y, (4,), 1)
    assert torch.equal(engine.reveal_bits(engine.xor(a, b)), x ^ y)
    assert torch.equal(engine.reveal_bits(engine.logical_and(a, b)), x & y)
    assert torch.equal(engine.reveal_bits(engine.logical_or(a, b)), x | y)
    assert torch.equal(engine.reveal_bits(engine.logical_not(a)), 1 - x)
    assert torch.equal(engine.reveal_bits(engine.public(y, 1)), y)
    assert torch.equal(engine.reveal(engine.bits_to_ring(engine.xor(a, b), 32), 32), (x ^ y).long())
    z = random(32, 4)
    chosen = engine.select(b, engine.input(z, (4,), 0, 32), 32)
    assert torch.equal(engine.reveal(chosen, 32), z * y)


@pytest.mark.parametrize("width", [2, 5, 8, 17, 31, 32, 33, 63, 64])
def test_every_width_is_exact(engine, width):
    bits = bits_of(engine)
    if width > bits:
        pytest.skip("wider than the ring")
    n = 40
    x = random(width, n)
    a = engine.multiply_public(engine.input(x, (n,), 1, width), 1, width)
    noise = engine.input(random(bits, n), (n,), 0, bits)
    if width < bits:  # nothing is known of the bits above
        a = engine.add(a, engine.multiply_public(noise, 1 << width, bits), bits)
    assert torch.equal(engine.reveal(a, width), x)
    assert torch.equal(engine.reveal_bits(engine.less_than_zero(a, width)), (x < 0).to(torch.uint8))
    assert torch.equal(engine.reveal_bits(engine.equal_zero(a, width)), (x == 0).to(torch.uint8))
    if width >= 63:  # whose truncations take two bits to be left
        x = x >> 2
        a = engine.input(x, (n,), 0, width)
    for shift in {1, width // 2, width - 1}:
        assert torch.equal(engine.reveal(engine.truncate(a, width, shift), bits), x >> shift)
        assert torch.equal(engine.reveal(engine.floor(a, width, shift), bits), x >> shift)
        if shift < width - 1:
            short = engine.truncate_reduce(a, width, shift)
            assert torch.equal(engine.reveal(short, width - shift), ring.wrap(x >> shift, width - shift))
    if width < bits:
        assert torch.equal(engine.reveal(engine.extend(a, width, bits), bits), x)
        unsigned = engine.extend(a, width, bits, signed=False)
        assert torch.equal(engine.reveal(unsigned, bits), x & ((1 << width) - 1))
        small = x >> 1
        b = engine.input(small, (n,), 1, width)
        assert torch.equal(
            engine.reveal(engine.extend(b, width, bits, promise=Promise(bound=1 << (width - 2))), bits), small
        )


@pytest.mark.parametrize("mode", ["auto", "probabilistic", "faithful"])
def test_cheaper_truncations_are_one_unit_off_at_most(mode):
    with local(64, mode) as session:
        engine, n = session.engine, 2000
        x = random(40, n)
        a = engine.input(x, (n,), 0, 64)
        result = engine.reveal(engine.truncate(a, 64, 16, Promise(bound=1 << 39)), 64) - (x >> 16)
        assert set(result.tolist()) <= {0, 1} and not engine.engines[0].floors
        assert torch.equal(engine.reveal(engine.floor(a, 64, 16), 64), x >> 16)
        assert torch.equal(engine.reveal(engine.divide_public(a, 64, 10), 64), x.div(10, rounding_mode="floor"))
        failure = engine.counters()["truncation_failure"]
        assert (failure > 0) == (mode == "probabilistic")


@pytest.mark.parametrize("in_bits", [1, 2, 5, 8])
def test_lookup(engine, in_bits):
    bits = bits_of(engine)
    tables, index = random(bits, 2, 1 << in_bits), random(bits, 7, 5)
    found = engine.lookup_many(tables, engine.input(index, index.shape, 1, bits), in_bits, bits)
    assert torch.equal(engine.reveal(found, bits), tables[:, index & ((1 << in_bits) - 1)])


def test_what_does_not_fit_the_ring_of_32_bits_is_refused():
    with local(32) as session:
        engine = session.engine.engines[0]
        with pytest.raises(ConfigError, match="ring=64"):
            engine.input(torch.zeros(1), (1,), 0, 64)
        x = privml.share(torch.tensor([1.0]), owner=0)
        with pytest.raises(ConfigError, match="64 bits"):
            torch.exp(x)
    with pytest.raises(ConfigError, match="ring"):
        privml.local("active", ring=48, ot="ideal")
    with pytest.raises(ConfigError, match="truncation"):
        privml.local("active", ot="ideal", truncation="sometimes")


# ---- what a session counts
def words(engine, *shape, owner=0, bits=32):
    return engine.input(torch.ones(shape, dtype=torch.int64), shape, owner, bits)


def ones(engine, *shape):
    return engine.input_bits(torch.ones(shape, dtype=torch.uint8), shape, 1)


OPERATIONS = {
    "input": lambda e: words(e, 33),
    "input of the other": lambda e: words(e, 33, owner=1),
    "input_bits": lambda e: ones(e, 33),
    "multiply": lambda e: e.multiply(Operand(words(e, 9), 32), Operand(words(e, 9), 32), 32),
    "matmul": lambda e: e.matmul(Operand(words(e, 3, 4), 32), Operand(words(e, 4, 5), 32), 32),
    "large matmul": lambda e: e.matmul(Operand(words(e, 2, 6, 7), 32), Operand(words(e, 2, 7, 9), 32), 32),
    "less_than_zero": lambda e: e.less_than_zero(words(e, 33), 32),
    "less_than_zero narrow": lambda e: e.less_than_zero(words(e, 33), 11),
    "equal_zero": lambda e: e.equal_zero(words(e, 33), 32),
    "truncate": lambda e: e.truncate(words(e, 33), 32, 9),
    "truncate bounded": lambda e: e.truncate(words(e, 33), 32, 9, Promise(bound=1 << 20)),
    "truncate_reduce": lambda e: e.truncate_reduce(words(e, 33), 30, 9),
    "extend": lambda e: e.extend(words(e, 33), 16, 32),
    "and": lambda e: e.logical_and(ones(e, 33), ones(e, 33)),
    "bits_to_ring": lambda e: e.bits_to_ring(ones(e, 33), 32),
    "select": lambda e: e.select(ones(e, 33), words(e, 33), 32),
    "relu": lambda e: e.relu(words(e, 33), 32),
    "max_last": lambda e: e.max_last(words(e, 3, 5), 32, one_hot=True),
    "lookup": lambda e: e.lookup(torch.arange(16), words(e, 33), 4, 32),
    "reveal": lambda e: e.reveal(words(e, 33), 32),
    "reveal to one": lambda e: e.reveal(words(e, 33), 32, 1),
    "reveal_bits": lambda e: e.reveal_bits(ones(e, 33)),
    "a product revealed": lambda e: e.reveal(e.multiply(Operand(words(e, 9), 32), Operand(words(e, 9), 32), 32), 32),
}


@pytest.mark.parametrize("rank", [0, 1])
@pytest.mark.parametrize("name", OPERATIONS)
@pytest.mark.parametrize("bits", RINGS)
@pytest.mark.parametrize("mode", ["exact", "auto"])
def test_cost_equals_the_ledger(name, bits, mode, rank):
    with local(bits, mode) as session:
        OPERATIONS[name](session.engine)
        counted = Snapshot.of(session.engine.engines[rank].counters())
        drawn = session.engine.engines[rank].drawn()
    measure = meter(rank, OtChoice("ideal"), bits, mode)
    OPERATIONS[name](measure)
    booked = Snapshot.of(measure.counters())
    for phase in ("setup", "preprocess", "online"):
        one, other = getattr(counted, phase), getattr(booked, phase)
        assert (one.sent, one.received, one.depth) == (other.sent, other.received, other.depth), phase
    assert drawn == measure.drawn()


# ---- a peer that deviates
def test_an_altered_share_ends_the_session_for_good(engine):
    bits = bits_of(engine)
    a = engine.input(torch.arange(5), (5,), 0, bits)
    b = engine.input(torch.arange(5), (5,), 1, bits)
    altered = (a[0] + 1, *a[1:])
    product = engine.multiply(Operand(altered, bits), Operand(b, bits), bits)
    with pytest.raises(SecurityAbort, match="MAC check of batch"):
        engine.reveal(product, bits)
    for _ in range(2):
        with pytest.raises(SecurityAbort):
            engine.reveal(b, bits)
        with pytest.raises(SecurityAbort):
            engine.less_than_zero(a, bits)
    for party in engine.engines:  # whoever noticed first has closed the channel
        with pytest.raises((SecurityAbort, PeerDisconnected), match="this session ended"):
            party.reveal(b[: party.components], bits)


@pytest.mark.parametrize("component", ["value", "mac"])
@pytest.mark.parametrize("place", [0, 15, 31])  # of the value; its upper bits mean nothing and may change
def test_any_altered_bit_of_a_share_is_noticed(engine, component, place):
    bits, x = bits_of(engine), torch.arange(4)
    a = engine.input(x, (4,), 0, bits)
    width = len(a) // 2
    index = 0 if component == "value" else width // 2
    altered = list(a)
    altered[index] = a[index] ^ (1 << place)
    with pytest.raises(SecurityAbort):
        engine.reveal(tuple(altered), bits)
