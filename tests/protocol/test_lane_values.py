# SPDX-License-Identifier: Apache-2.0
"""Calls large enough to be divided over lanes give the plain engine's values, whatever the number of lanes."""

import pytest
import torch

from privml.engines.base import Operand
from privml.engines.correlations import OtChoice
from privml.engines.plain.engine import PlainEngine
from privml.engines.shares import Window
from privml.engines.twopc import backend as twopc

PLAIN = PlainEngine(check_overflow=False)
COUNT = 3 * 4096 + 77


@pytest.fixture(scope="module", params=[1, 2, 3])
def engine(request):
    made = twopc.create(OtChoice("ideal"), threads=request.param)
    yield made
    made.close()


def integers(bits, *shape, seed=1):
    generator = torch.Generator().manual_seed(seed)
    return torch.randint(-(2 ** (bits - 1)), 2 ** (bits - 1), shape, generator=generator)


def words(engine, value, bits):
    """Shares that no party knows."""
    mask = torch.full_like(value, 7)
    return engine.add(engine.input(value - 7, value.shape, 0, bits), engine.input(mask, value.shape, 1, bits), bits)


def bits_of(engine, value):
    return engine.input_bits(value.to(torch.uint8), value.shape, 1)


X, Y = integers(30, COUNT), integers(30, COUNT, seed=2)
WINDOWS = integers(20, COUNT // 3, 3)
BITS = integers(2, COUNT) > 0

WORDS = {
    "relu": lambda e: e.relu(words(e, X, 32), 32)[0],
    "rectified_quotient": lambda e: e.rectified_quotient(words(e, X, 32), 32, 9, 32),
    "truncate": lambda e: e.truncate(words(e, X, 32), 32, 9),
    "extend": lambda e: e.extend(words(e, X, 32), 32, 40),
    "maximum": lambda e: e.maximum(words(e, X, 32), words(e, Y, 32), 32),
    "select": lambda e: e.select(bits_of(e, BITS), words(e, X, 32), 32),
    "bits_to_ring": lambda e: e.bits_to_ring(bits_of(e, BITS), 32),
    "max_last": lambda e: e.max_last(words(e, WINDOWS, 32), 32)[0],
    "max_last one-hot": lambda e: e.max_last(words(e, WINDOWS, 32), 32, one_hot=True)[0],
    "argmax_last": lambda e: e.argmax_last(words(e, WINDOWS, 32), 32),
    "lookup": lambda e: e.lookup(torch.arange(16) ** 3, words(e, X.abs() % 16, 4), 4, 32),
    "multiply": lambda e: e.multiply(Operand(words(e, X, 32), 32), Operand(words(e, Y, 32), 32), 32),
    "multiply owned": lambda e: e.multiply(
        Operand(words(e, X, 32), 32), Operand(e.input(Y >> 12, Y.shape, 0, 18), 18, 0), 32
    ),
    "matmul": lambda e: e.matmul(
        Operand(words(e, integers(30, 60, 80), 32), 32),
        Operand(e.input(integers(12, 80, 50), (80, 50), 0, 12), 12, 0),
        32,
    ),
    "batched matmul": lambda e: e.matmul(
        Operand(words(e, integers(30, 6, 20, 30), 32), 32), Operand(words(e, integers(30, 6, 30, 20), 32), 32), 32
    ),
    "conv2d": lambda e: e.conv2d(
        Operand(words(e, integers(30, 3, 5, 20, 20), 32), 32),
        Operand(e.input(integers(12, 7, 5, 3, 3), (7, 5, 3, 3), 0, 12), 12, 0),
        Window((2, 1), (1, 1)), 32,
    ),
}  # fmt: skip
FLAGS = {
    "less_than_zero": lambda e: e.less_than_zero(words(e, X, 32), 32),
    "equal_zero": lambda e: e.equal_zero(words(e, X % 5, 32), 32),
    "and": lambda e: e.logical_and(bits_of(e, BITS), bits_of(e, X > 0)),
    "relu": lambda e: e.relu(words(e, X, 32), 32)[1],
    "max_last one-hot": lambda e: e.max_last(words(e, WINDOWS, 32), 32, one_hot=True)[1],
}


@pytest.mark.parametrize("name", WORDS)
def test_words(engine, name):
    expected = PLAIN.reveal(WORDS[name](PLAIN), 32)
    assert torch.equal(engine.reveal(WORDS[name](engine), 32), expected)


@pytest.mark.parametrize("name", FLAGS)
def test_flags(engine, name):
    assert torch.equal(engine.reveal_bits(FLAGS[name](engine)), PLAIN.reveal_bits(FLAGS[name](PLAIN)))


def test_work_reaches_every_lane(engine):
    before = [engine.lane(index).counters()["online"]["sent"] for index in range(engine.lanes)]
    engine.relu(words(engine, X, 32), 32)
    after = [engine.lane(index).counters()["online"]["sent"] for index in range(engine.lanes)]
    assert all(now > then for then, now in zip(before, after, strict=True))


@pytest.mark.parametrize("lane", [-1, 3])
def test_no_other_lanes(engine, lane):
    with pytest.raises(ValueError):
        engine.lane(lane)
