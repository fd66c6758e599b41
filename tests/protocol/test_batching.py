# SPDX-License-Identifier: Apache-2.0
"""Calls that are joined give what each gives alone, on every engine."""

import pytest
import torch

import privml
from privml.engines.base import Operand
from privml.engines.batching import BatchingEngine, answer
from privml.engines.plain.engine import PlainEngine
from privml.engines.shares import NO_PROMISE, Promise, Shift, Window
from privml.formats import FixedPoint

BITS = 64
ENGINES = {
    "plain": lambda: privml.local("plain"),
    "twopc": lambda: privml.local("twopc", ot="ideal"),
    "threepc": lambda: privml.local("threepc", truncation="exact"),
    "threepc faithful": lambda: privml.local("threepc", truncation="faithful"),
}
F16 = FixedPoint(32, 16)
# Name -> what it calls, on a share and its second factor: shapes are those of the share.
CASES = {
    "multiply": lambda e, a, b: e.multiply(Operand(a, BITS), Operand(b, BITS), BITS),
    "square": lambda e, a, b: e.multiply(Operand(a, BITS), Operand(a, BITS), BITS),
    "multiply_rows": lambda e, a, b: e.multiply_rows(Operand(a, BITS), Operand(_first(b), BITS), BITS),
    "sum_squares": lambda e, a, b: e.sum_squares(Operand(a, BITS), BITS, Promise(), BITS),
    "truncate": lambda e, a, b: e.truncate(a, BITS, 5),
    "floor": lambda e, a, b: e.floor(a, BITS, 3, Promise(bound=1 << 40)),
    "divide_public": lambda e, a, b: e.divide_public(a, BITS, 7),
    "less_than_zero": lambda e, a, b: e.less_than_zero(a, bits=BITS),
    "equal_zero": lambda e, a, b: e.equal_zero(a, BITS),
    "less_than_many": lambda e, a, b: e.less_than_many(a, [-5, 9], BITS),
    "relu": lambda e, a, b: e.relu(a, BITS),
    "maximum": lambda e, a, b: e.maximum(a, b, BITS),
    "max_last": lambda e, a, b: e.max_last(a, BITS),
    "max_last_one_hot": lambda e, a, b: e.max_last(a, BITS, True),
    "argmax_last": lambda e, a, b: e.argmax_last(a, BITS),
    "select": lambda e, a, b: e.select(e.less_than_zero(b, BITS), a, BITS),
    "select_sum": lambda e, a, b: e.select_sum(e.less_than_zero(b, BITS), a, BITS),
    "inner": lambda e, a, b: e.inner(a, b, BITS),
    "weighted_bits": lambda e, a, b: e.weighted_bits(
        e.less_than_zero(_three(b), BITS), torch.tensor([[3, -1, 2]]), BITS
    ),
    "logical_and": lambda e, a, b: e.logical_and(e.less_than_zero(a, BITS), e.less_than_zero(b, BITS)),
    "bits_to_ring": lambda e, a, b: e.bits_to_ring(e.less_than_zero(a, BITS), BITS),
    "lookup": lambda e, a, b: e.lookup(torch.arange(16) * 7, _low(e, a), 4, BITS),
    "lookup_many": lambda e, a, b: e.lookup_many(torch.arange(32).view(2, 16) * 7, _low(e, a), 4, BITS),
    "sigmoid": lambda e, a, b: e.function("sigmoid", _low(e, a), F16, F16),
    "matmul": lambda e, a, b: e.matmul(Operand(a, BITS), Operand(_turned(b), BITS), BITS),
    "shifted matmul": lambda e, a, b: e.shifted_product(
        "matmul", Operand(a, BITS), Operand(_turned(b), BITS), BITS, Shift(3, nearest=True)
    ),
    "shifted matmul and bias": lambda e, a, b: e.shifted_product(
        "matmul", Operand(a, BITS), Operand(_turned(b), BITS), BITS, Shift(3), tuple(c[0, :2] for c in a)
    ),
    "shifted rows": lambda e, a, b: _shifted_rows(e, (Operand(a, BITS), Operand(_first(b), BITS))),
    "conv2d": lambda e, a, b: e.conv2d(
        Operand(_image(a), BITS), Operand(_image(b), BITS), Window(padding=(1, 1)), BITS
    ),
}


def _shifted_rows(engine, factors):
    if "multiply_rows" in engine.shifts_products:
        return engine.shifted_product("multiply_rows", *factors, BITS, Shift(3))
    return engine.truncate(engine.multiply_rows(*factors, BITS), BITS, 3)


def _low(engine, a):
    return tuple(c.clone() for c in a)


def _first(a):
    return tuple(c[..., :1] for c in a)


def _three(a):
    return tuple(c[:1].expand(3, *c.shape[1:]) for c in a)


def _turned(a):
    return tuple(c.transpose(-1, -2) for c in a)


def _image(a):
    return tuple(c[None, None].expand(1, 1, *c.shape) for c in a)


def _tensors(engine, result, bits=BITS):
    """What a result holds, opened."""
    if result is None:
        return []
    if not isinstance(result[0], torch.Tensor):
        return [opened for part in result for opened in _tensors(engine, part, bits)]
    if result[0].dtype is torch.uint8:
        return [engine.reveal_bits(result)]
    return [engine.reveal(result, bits)]


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("name", CASES)
def test_joined_calls_give_what_single_calls_give(name, engine):
    generator = torch.Generator().manual_seed(3)
    with ENGINES[engine]() as session:
        base = session.engine
        alike = "matmul" in name or "shifted" in name
        shapes = [(2, 3), (2, 3)] if alike else [(2, 3), (4, 3)]
        if name in ("select_sum", "inner"):
            shapes = [(2, 3), (2, 5)]
        values = [torch.randint(-9, 10, (2, *shape), generator=generator) for shape in shapes]
        if name.startswith("lookup"):
            values = [v.abs() for v in values]
        shares = [[base.input(part, part.shape, 0, BITS) for part in pair] for pair in values]
        bits = F16.bits if name == "sigmoid" else BITS
        apart = [_tensors(base, CASES[name](base, *pair), bits) for pair in shares]
        # the same, every call of the two waiting for its like of the other
        joined = _side_by_side(base, [lambda e, p=pair: CASES[name](e, *p) for pair in shares])
        for alone, together in zip(apart, joined, strict=True):
            assert len(alone) > 0
            for x, y in zip(alone, _tensors(base, together, bits), strict=True):
                slack = int(
                    engine == "threepc faithful" and (name.startswith("shifted") or name in ("truncate", "sigmoid"))
                )
                assert x.shape == y.shape and (x.long() - y.long()).abs().max() <= slack * 4


@pytest.mark.parametrize("name", [name for name in CASES if "matmul" in name])
def test_joined_products_on_ciphertexts(name, monkeypatch):
    monkeypatch.setitem(globals(), "BITS", 32)
    generator = torch.Generator().manual_seed(4)
    values = [torch.randint(-99, 99, (2, 2, 3), generator=generator) for _ in range(2)]
    with privml.local("twopc", ot="ideal", linear="lattice", bits=32) as session:
        base = session.engine
        shares = [[base.input(part, part.shape, owner, 32) for owner, part in enumerate(pair)] for pair in values]
        shares = [[base.add(*pair, 32), pair[1]] for pair in shares]  # both factors are shared
        joined = _side_by_side(base, [lambda e, p=pair: CASES[name](e, *p) for pair in shares])
        assert base.counters()["products"]
        for pair, result in zip(values, joined, strict=True):
            a, b = pair.sum(0), pair[1]
            plain = PlainEngine(check_overflow=False)
            want = CASES[name](plain, (a,), (b,))
            assert torch.equal(base.reveal(result, 32), want[0])


def _side_by_side(base, computations):
    """Runs computations in lockstep, by recording what each asks and starting it again with the answers so far."""
    answers = [[] for _ in computations]
    while True:
        asked, results = [], []
        for computation, known in zip(computations, answers, strict=True):
            remaining = iter(known)

            def ask(call, remaining=remaining):
                for value in remaining:
                    return value
                raise _Waits(call)

            try:
                results.append(computation(BatchingEngine(base, ask)))
            except _Waits as waits:
                asked.append(waits.call)
        if not asked:
            return results
        assert len(asked) == len(computations) and len({call.name for call in asked}) == 1
        if asked[0].name not in base.opened_together and asked[0].name != "conv2d":
            assert asked[0].key == asked[1].key
        if asked[0].name == "conv2d" and not base.opened_together:
            given = [answer(base, [call])[0] for call in asked]
        else:
            given = answer(base, asked)
        for known, value in zip(answers, given, strict=True):
            known.append(value)


class _Waits(Exception):
    def __init__(self, call):
        self.call = call


def test_products_and_truncations_of_three_parties_share_a_message():
    with privml.local("threepc") as session:
        engine = session.engine
        share = engine.input(torch.arange(6).view(2, 3), (2, 3), 0, BITS)
        factor = Operand(share, BITS)
        engine.reveal(share, BITS)
        start = engine.counters()["online"]["depth"]
        calls = [
            ("multiply", (factor, factor, BITS)),
            ("matmul", (factor, Operand(tuple(c.t() for c in share), BITS), BITS)),
            ("truncate", (share, BITS, 1, NO_PROMISE)),
            ("logical_and", (engine.public(torch.ones(2, dtype=torch.uint8), 1),) * 2),
        ]
        for _ in range(2):  # a message each way lengthens the longest chain at either party every other time
            product, matrix, shifted, bits = engine.together(calls)
        assert engine.counters()["online"]["depth"] == start + 2
        assert engine.reveal(product, BITS).tolist() == [[0, 1, 4], [9, 16, 25]]
        assert engine.reveal(matrix, BITS).tolist() == [[5, 14], [14, 50]]
        assert (engine.reveal(shifted, BITS) - torch.tensor([[0, 0, 1], [1, 2, 2]])).abs().max() <= 1
        assert engine.reveal_bits(bits).tolist() == [1, 1]


def test_a_promise_is_part_of_what_calls_have_in_common():
    """Joined with a call that promises more, values for which it does not hold would give wrong results."""
    keys = []
    with privml.local("twopc", ot="ideal") as session:
        a = session.engine.input(torch.arange(6).view(2, 3), (2, 3), 0, 16)
        for bound in (None, 1 << 14):
            engine = BatchingEngine(session.engine, lambda call: keys.append(call.key))
            engine.multiply(Operand(a, 16, bound=bound), Operand(a, 16), 20)
    assert keys[0] != keys[1]
