# SPDX-License-Identifier: Apache-2.0
"""The closed forms of the three-party protocols' costs equal what a session counts: bytes and depth, no tolerance."""

import pytest
import threepc_formulas as cost
import torch

from privml.engines.base import Operand
from privml.engines.shape_tensor import ShapeTensor
from privml.engines.shares import Promise, Shift
from privml.engines.threepc import backend as threepc

N = 45


def bit(engine, x):
    return engine.input_bits(torch.ones(N, dtype=torch.uint8), (N,), 0)


def at_last(share, shape):
    return tuple(c.view(shape) for c in share)


def narrow(share, bits, bound=None):
    """A factor in a ring of 8 bits less than the product's; it is known to be below 2^bound."""
    return Operand(share, bits - 8, bound=None if bound is None else 1 << bound)


# Two openings in the messages of one.
AT_ONCE = cost.Cost(depth=-1)


# name -> (what is done with an engine, an input of N elements and its ring; the closed form, given ring and truncation)
CASES = {
    "input": (lambda e, x, b: e.input(torch.ones(N).long(), (N,), 1, b), lambda b, t: cost.entered(N, b, 1)),
    "input of party 0": (lambda e, x, b: e.input(torch.ones(N).long(), (N,), 0, b), lambda b, t: cost.entered(N, b, 0)),
    "reveal": (lambda e, x, b: e.reveal(x, b), lambda b, t: cost.revealed(N, b, None)),
    "reveal to 0": (lambda e, x, b: e.reveal(x, b, 0), lambda b, t: cost.revealed(N, b, 0)),
    "multiply": (lambda e, x, b: e.multiply(Operand(x, b), Operand(x, b), b), lambda b, t: cost.product(N, b)),
    "multiply small numbers of a narrow ring": (
        lambda e, x, b: e.multiply(narrow(x, b, b - 10), narrow(e.negate(x, b), b, b - 11), b),
        lambda b, t: cost.extend(2 * N, b - 8, b, True) + cost.product(N, b),
    ),
    "multiply two of a narrow ring": (
        lambda e, x, b: e.multiply(narrow(x, b, b - 10), narrow(e.negate(x, b), b), b),
        lambda b, t: cost.extend(N, b - 8, b, True) + cost.extend(N, b - 8, b, False) + cost.product(N, b) + AT_ONCE,
    ),
    "square of a narrow ring": (
        lambda e, x, b: e.multiply(narrow(x, b), narrow(x, b), b),
        lambda b, t: cost.extend(N, b - 8, b, False) + cost.product(N, b),
    ),
    "multiply rows": (
        lambda e, x, b: e.multiply_rows(
            Operand(at_last(x, (5, 9)), b), narrow(tuple(c[:5].view(5, 1) for c in x), b), b
        ),
        lambda b, t: cost.extend(5, b - 8, b, False) + cost.product(N, b),
    ),
    "matmul": (
        lambda e, x, b: e.matmul(Operand(at_last(x, (5, 9)), b), Operand(at_last(x, (9, 5)), b), b),
        lambda b, t: cost.product(25, b),
    ),
    "shifted product": (
        lambda e, x, b: e.shifted_product(
            "multiply", Operand(x, b), Operand(x, b), b, Shift(5, Promise(bound=1 << (b - 2)))
        ),
        lambda b, t: cost.shifted_product(N, b, 5, t),
    ),
    "reduced product of matrices": (
        lambda e, x, b: e.shifted_product(
            "matmul", Operand(at_last(x, (5, 9)), b), Operand(at_last(x, (9, 5)), b), b, Shift(5, reduces=True)
        ),
        lambda b, t: cost.shifted_product(25, b, 5, t, True),
    ),
    "sign": (lambda e, x, b: e.less_than_zero(x, b), lambda b, t: cost.sign(N, b)),
    "signs of many": (lambda e, x, b: e.less_than_many(x, [1, 2, 3], b), lambda b, t: cost.sign(N, b, 3)),
    "equal_zero": (lambda e, x, b: e.equal_zero(x, b), lambda b, t: cost.equal_zero(N, b)),
    "relu": (lambda e, x, b: e.relu(x, b), lambda b, t: cost.relu(N, b)),
    "truncate": (
        lambda e, x, b: e.truncate(x, b, 5, Promise(bound=1 << (b - 2))),
        lambda b, t: cost.truncate(N, b, 5, t),
    ),
    "truncate any value": (
        lambda e, x, b: e.truncate(x, b, 5),
        lambda b, t: cost.truncate(N, b, 5, t, t == "faithful" and b >= 63),
    ),
    "floor of any value": (lambda e, x, b: e.floor(x, b, 5), lambda b, t: cost.truncate(N, b, 5, "exact", False)),
    "truncate_reduce": (lambda e, x, b: e.truncate_reduce(x, b, 5), lambda b, t: cost.truncate_reduce(N, b, 5, t)),
    "extend": (lambda e, x, b: e.extend(x, b - 8, b), lambda b, t: cost.extend(N, b - 8, b, False)),
    "extend small": (
        lambda e, x, b: e.extend(x, b - 8, b, promise=Promise(bound=1 << (b - 10))),
        lambda b, t: cost.extend(N, b - 8, b, True),
    ),
    "quotient": (
        lambda e, x, b: e.divide_public(x, b, 768, Promise(bound=1 << (b - 2))),
        lambda b, t: cost.quotient(N, b, 768, True),
    ),
    "quotient of any value": (lambda e, x, b: e.divide_public(x, b, 768), lambda b, t: cost.quotient(N, b, 768, False)),
    "lookup": (
        lambda e, x, b: e.lookup_many(torch.ones(3, 16).long(), x, 4, b),
        lambda b, t: cost.lookup(N, 4, b, 3),
    ),
    "max_last": (lambda e, x, b: e.max_last(at_last(x, (5, 9)), b), lambda b, t: cost.maximum_last(5, 9, b)),
}
ON_BITS = {
    "bits_to_ring": (lambda e, y, b: e.bits_to_ring(y, b), lambda b, t: cost.bits_to_ring(N, b)),
    "select": (
        lambda e, y, b: e.select(y, e.public(torch.ones(N).long(), b), b),
        lambda b, t: cost.select(N, b),
    ),
    "and": (lambda e, y, b: e.logical_and(y, y), lambda b, t: cost.logical_and(N)),
}


@pytest.mark.parametrize("truncation", ["probabilistic", "faithful", "exact"])
@pytest.mark.parametrize("bits", [19, 32, 64])
@pytest.mark.parametrize("name", [*CASES, *ON_BITS])
def test_closed_form_equals_the_ledger(name, bits, truncation):
    engine = threepc.create(threepc.Config(truncation, comparison="few_rounds"), deadline=20.0)
    x = engine.input(torch.ones(N, dtype=torch.int64), (N,), 1, bits)
    given = bit(engine, x) if name in ON_BITS else x
    engine.less_than_zero(engine.public(torch.ones(1, dtype=torch.int64), 64), 64)  # the dealer sets both clocks alike
    for each in engine.engines:
        each.party.comparison = "few_bytes"
    call, closed = CASES.get(name) or ON_BITS[name]
    before = engine.counters()
    call(engine, given, bits)
    after = engine.counters()
    online = {key: after["online"][key] - before["online"][key] for key in ("sent", "received", "depth")}
    spent = cost.Cost(after["preprocess"]["received"] - before["preprocess"]["received"], **online)
    assert spent == closed(bits, truncation)
    engine.close()


@pytest.mark.parametrize(
    "operation, at_most, of_aby3",
    [
        (lambda e, x: e.bits_to_ring(e.less_than_zero(x, 64), 64), 9_814_016, 14.16e6),
        (lambda e, x: e.relu(x, 64), 10_862_592, 22.54e6),
    ],
    ids=["less", "relu"],
)
def test_signs_and_relus_send_less_than_aby3(operation, at_most, of_aby3):
    """All parties together, what is dealt included, for the 2^17 values of SPU's rows in ``benchmarks/compare_spu.py``;
    ABY3's bytes are those that SPU counts there."""
    x = tuple(ShapeTensor((1 << 17,), torch.int64) for _ in range(2))
    total = 0
    for rank in range(3):
        engine = threepc.meter(rank)
        operation(engine, x)
        counters = engine.counters()
        total += counters["preprocess"]["sent"] + counters["online"]["sent"]
    assert total <= at_most < of_aby3
