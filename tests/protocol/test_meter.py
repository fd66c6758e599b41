# SPDX-License-Identifier: Apache-2.0
"""What a meter books for an operation equals what the session counts: bytes, depth, correlations, by phase."""

from dataclasses import replace

import pytest
import torch

from privml.engines.base import Operand
from privml.engines.correlations import OtChoice
from privml.engines.shares import Promise, Window
from privml.engines.twopc import backend as twopc
from privml.engines.twopc.linear import BY_TRANSFERS, Linear, chunk_factor
from privml.formats import FixedPoint, Float
from privml.session.ledger import Ledger, Snapshot


def words(engine, shape, owner=0, bits=64):
    return engine.input(torch.ones(shape, dtype=torch.int64), shape, owner, bits)


def ones(engine, shape):
    return engine.input_bits(torch.ones(shape, dtype=torch.uint8), shape, 1)


def factor(engine, shape, bits, owner=None, bound=None):
    return Operand(words(engine, shape, owner or 0, bits), bits, owner, bound=bound)


def squared(engine, a, bits):
    return engine.multiply(a, a, bits)


OPERATIONS = {
    "relu": lambda e: e.relu(words(e, (300,)), 32),
    "large relu": lambda e: e.relu(words(e, (70_000,)), 20),
    "large and": lambda e: e.logical_and(ones(e, (9001,)), ones(e, (9001,))),
    "large select": lambda e: e.select(ones(e, (9001,)), words(e, (9001,)), 32),
    "large max_last": lambda e: e.max_last(words(e, (9001, 3)), 20),
    "large max_last one-hot": lambda e: e.max_last(words(e, (8300, 2)), 20, one_hot=True),
    "large argmax_last": lambda e: e.argmax_last(words(e, (9001, 2)), 20),
    "large lookup": lambda e: e.lookup(torch.arange(16), words(e, (9001,)), 4, 12),
    "large multiply": lambda e: e.multiply(factor(e, (9001,), 16), factor(e, (9001,), 16), 32),
    "large multiply owned": lambda e: e.multiply(factor(e, (9001,), 32), factor(e, (9001,), 12, 1), 44),
    "large matmul": lambda e: e.matmul(factor(e, (50, 90), 32), factor(e, (90, 40), 12, 0), 44),
    "large conv2d": lambda e: e.conv2d(
        factor(e, (2, 6, 18, 18), 32), factor(e, (8, 6, 3, 3), 12, 0), Window(padding=(1, 1)), 44
    ),
    "large depthwise conv2d": lambda e: e.conv2d(
        factor(e, (2, 16, 18, 18), 32), factor(e, (16, 1, 3, 3), 12, 0), Window(padding=(1, 1), groups=16), 44
    ),
    "large truncate": lambda e: e.truncate(words(e, (9001,)), 32, 12),
    "less_than_zero": lambda e: e.less_than_zero(words(e, (77,)), 37),
    "equal_zero": lambda e: e.equal_zero(words(e, (77,)), 64),
    "truncate": lambda e: e.truncate(words(e, (91,)), 32, 12),
    "truncate nonnegative": lambda e: e.truncate(words(e, (91,)), 32, 12, Promise(nonnegative=True)),
    "truncate bounded": lambda e: e.truncate(words(e, (91,)), 32, 12, Promise(bound=1 << 30)),
    "truncate_reduce": lambda e: e.truncate_reduce(words(e, (91,)), 44, 12),
    "rectified_quotient": lambda e: e.rectified_quotient(words(e, (91,)), 32, 12, 16),
    "rectified_quotient wider": lambda e: e.rectified_quotient(words(e, (91,)), 32, 12, 32),
    "rectified_maximum": lambda e: e.rectified_maximum(words(e, (31, 4)), 32, 12, 16),
    "extend": lambda e: e.extend(words(e, (91,)), 16, 37),
    "extend nonnegative": lambda e: e.extend(words(e, (91,)), 16, 37, promise=Promise(nonnegative=True)),
    "extend bounded": lambda e: e.extend(words(e, (91,)), 16, 37, promise=Promise(bound=1 << 14)),
    "and": lambda e: e.logical_and(ones(e, (33,)), ones(e, (33,))),
    "bits_to_ring": lambda e: e.bits_to_ring(ones(e, (33,)), 32),
    "select": lambda e: e.select(ones(e, (33,)), words(e, (33,)), 32),
    "maximum": lambda e: e.maximum(words(e, (33,)), words(e, (33,)), 32),
    "max_last": lambda e: e.max_last(words(e, (13, 9)), 32),
    "max_last one-hot": lambda e: e.max_last(words(e, (13, 9)), 32, one_hot=True),
    "argmax_last": lambda e: e.argmax_last(words(e, (13, 10)), 32),
    "lookup": lambda e: e.lookup(torch.arange(256), words(e, (50,)), 8, 32),
    "multiply": lambda e: e.multiply(factor(e, (40,), 16), factor(e, (40,), 16), 32),
    "multiply owned": lambda e: e.multiply(factor(e, (40,), 32), factor(e, (40,), 12, 1), 44),
    "multiply bounded": lambda e: e.multiply(factor(e, (40,), 16, bound=1 << 14), factor(e, (40,), 12), 27),
    "multiply bounded, wide": lambda e: e.multiply(factor(e, (40,), 16, bound=1 << 14), factor(e, (40,), 12), 40),
    "multiply bounded, owned": lambda e: e.multiply(factor(e, (40,), 16, bound=9), factor(e, (40,), 12, 1), 28),
    "multiply rows": lambda e: e.multiply_rows(
        factor(e, (4, 9), 16, bound=9), replace(factor(e, (4, 1), 12), nonnegative=True), 27
    ),
    "sum of squares": lambda e: e.sum_squares(
        factor(e, (4, 9), 16, bound=1 << 14), 30, Promise(nonnegative=True, bound=1 << 29), 37
    ),
    "square": lambda e: squared(e, factor(e, (41,), 16), 32),
    "square bounded": lambda e: squared(e, factor(e, (41,), 16, bound=1 << 14), 30),
    "large square": lambda e: squared(e, factor(e, (70_001,), 6), 12),
    "multiply of two owners": lambda e: e.multiply(factor(e, (40,), 32, 0), factor(e, (40,), 12, 1), 44),
    "matmul": lambda e: e.matmul(factor(e, (5, 9), 64), factor(e, (9, 4), 64), 64),
    "matmul owned": lambda e: e.matmul(factor(e, (5, 9), 32), factor(e, (9, 4), 12, 0), 44),
    "batched matmul": lambda e: e.matmul(factor(e, (3, 5, 9), 64), factor(e, (3, 9, 4), 64), 64),
    "conv2d": lambda e: e.conv2d(
        factor(e, (2, 3, 8, 8), 32), factor(e, (4, 3, 3, 3), 12, 0), Window(padding=(1, 1)), 44
    ),
    "reveal": lambda e: e.reveal(words(e, (1000,)), 37),
    "large reveal": lambda e: e.reveal(words(e, (70_000,)), 3),
    "reveal to one": lambda e: (e.reveal(words(e, (1000,)), 37, 1), e.reveal(words(e, (7,)), 37, 0)),
    "reveal bits": lambda e: e.reveal_bits(ones(e, (1001,)), 0),
}


def without_seconds(counters):
    return {
        name: {k: v for k, v in value.items() if k != "seconds"} if isinstance(value, dict) else value
        for name, value in counters.items()
    }


# A link over which protocols work on longer chunks.
SLOW = Linear(delay=0.04)
SETTINGS = [
    (OtChoice("ideal"), 1),
    (OtChoice("ideal"), 1, SLOW),
    (OtChoice(), 1),
    (OtChoice(), 1, SLOW),
    (OtChoice(k=2), 1),
    (OtChoice(k=3, security="malicious"), 1),
    (OtChoice("silent"), 1),
    (OtChoice("silent", security="malicious"), 1),
    (OtChoice("ideal"), 3),
    (OtChoice(), 2),
    (OtChoice("silent"), 2),
    (OtChoice(refill="background"), 1),
    (OtChoice(security="malicious", refill="background"), 2),
    (OtChoice("silent", refill="background"), 1),
]


@pytest.fixture(scope="module", params=SETTINGS, ids=str)
def engines(request):
    """A joint engine and the meters of both parties; all run the same sequence, stocks and depth included."""
    choice, threads, *slow = request.param
    linear = slow[0] if slow else BY_TRANSFERS
    made = twopc.create(choice, threads=threads, linear=linear)
    yield made, [twopc.meter(rank, choice, threads, linear=linear) for rank in range(2)]
    made.close()


@pytest.mark.parametrize("name", OPERATIONS)
def test_meter_equals_session(engines, name):
    real, meters = engines
    OPERATIONS[name](real)
    for rank, meter in enumerate(meters):
        OPERATIONS[name](meter)
        assert without_seconds(meter.counters()) == without_seconds(real.engines[rank].counters())


FIXED, SINGLE = FixedPoint(16, 8), Float(8, 23)
LONG = {
    "sigmoid": lambda e, n: e.function("sigmoid", words(e, (n,), bits=16), FIXED, FIXED),
    "relu": lambda e, n: e.relu(words(e, (n,)), 32),
    "truncate": lambda e, n: e.truncate(words(e, (n,)), 32, 12),
    "float multiply": lambda e, n: e.float_operation("multiply", SINGLE, *[floats(e, n)] * 2),
}


def floats(engine, n):
    return engine.float_from_ring(words(engine, (n,), bits=16), FIXED, SINGLE)


def depth_of(name, n, delay):
    engine = twopc.meter(ot=OtChoice("ideal"), linear=Linear(delay=delay))
    LONG[name](engine, n)
    return engine.counters()["online"]["depth"]


@pytest.mark.parametrize("name", LONG)
def test_long_tensors_take_few_more_messages_over_a_slow_link(name):
    few, many = (depth_of(name, n, 0.04) for n in (10_000, 100_000))
    assert few <= many <= 1.5 * few
    assert many <= depth_of(name, 100_000, 0.0)


def test_chunks_grow_with_the_delay_up_to_a_limit():
    factors = [chunk_factor(delay) for delay in (0.0, 0.002, 0.0021, 0.005, 0.04, 10.0)]
    assert factors == [1, 1, 2, 4, 8, 8]


def test_nodes_add_up_to_the_total():
    engine = twopc.create()
    ledger = Ledger(lambda: Snapshot.of(engine.counters()))
    events = []
    ledger.on_node.append(lambda event, name: events.append((event, name)))
    opened = ledger.snapshot()
    for _ in range(2):
        with ledger.node("first", "relu"):
            a = engine.relu(words(engine, (500,)), 32)[0]
            with ledger.node("inner"):
                a = engine.truncate(a, 32, 4)
    with ledger.node("second"):
        engine.reveal(a, 32)
    assert events == [("start", "first"), ("end", "first")] * 2 + [("start", "second"), ("end", "second")]
    assert list(ledger.records) == ["first", "second"]
    assert ledger.records["first"].calls == 2 and ledger.records["first"].operator == "relu"
    total = Snapshot()
    for record in ledger.records.values():
        total = total + record.cost
    spent = ledger.snapshot() - opened
    for phase in ("setup", "preprocess", "online"):
        mine, real = getattr(total, phase), getattr(spent, phase)
        assert (mine.sent, mine.received, mine.depth) == (real.sent, real.received, real.depth)
    assert total.online.seconds > 0 and total.preprocess.bytes > 0
    assert opened.setup.bytes > 20_000 and opened.setup.depth > 0
    assert ledger.as_dict()["nodes"][0]["online"]["sent"] == ledger.records["first"].cost.online.sent
    engine.close()
