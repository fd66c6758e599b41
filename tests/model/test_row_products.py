# SPDX-License-Identifier: Apache-2.0
"""Products of rows with a number each: the same on all engines, and cheaper than element by element."""

import pytest
import torch

from privml.engines.base import Engine, Operand
from privml.engines.twopc import backend as twopc
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
