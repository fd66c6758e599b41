# SPDX-License-Identifier: Apache-2.0
"""Sums of squares of rows: the same on all engines and by all forms, and what they cost by ciphertexts."""

import pytest
import torch

import privml
from privml.engines.base import Operand
from privml.engines.shares import Promise
from privml.session import local as local_session
from privml.session.ledger import Snapshot
from privml.spec import LinkProfile

ROWS, LENGTH = 3, 130


def operand(engine, bits: int, nonnegative: bool, values: torch.Tensor) -> Operand:
    half = values // 3
    parts = half, values - half
    shares = [engine.input(part, part.shape, owner, bits) for owner, part in enumerate(parts)]
    bound = None if nonnegative else 1 << (bits - 2)
    return Operand(engine.add(*shares, bits), bits, nonnegative=nonnegative, bound=bound)


@pytest.mark.parametrize("linear", ["ot", "lattice"])
@pytest.mark.parametrize("nonnegative", [False, True])
@pytest.mark.parametrize(("bits", "out_bits"), [(6, 19), (12, 30), (20, 46), (29, 64)])
def test_sums_are_exact(bits, out_bits, nonnegative, linear):
    least = 0 if nonnegative else -(1 << (bits - 2))
    random = torch.Generator().manual_seed(bits)
    values = torch.randint(least, 1 << (bits - 2), (ROWS, LENGTH), generator=random)
    values[0], values[1] = least, (1 << (bits - 2)) - 1
    promise = Promise(True, (1 << (2 * bits - 4)) + 1)
    with local_session.local("twopc", linear=linear) as session:
        engine = session.engine
        a = operand(engine, bits, nonnegative, values)
        found = engine.reveal(engine.sum_squares(a, 2 * bits - 2, promise, out_bits), out_bits)
    expected = (values * values).sum(-1, keepdim=True)
    assert torch.equal(found, expected)


@pytest.mark.parametrize("shape", [(1, 1), (2, 3), (4, 5, 40), (2, 5000)])
def test_shapes(shape):
    values = torch.randint(-1000, 1000, shape, generator=torch.Generator().manual_seed(1))
    with local_session.local("twopc", linear="lattice") as session:
        engine = session.engine
        a = operand(engine, 12, False, values)
        found = engine.reveal(engine.sum_squares(a, 22, Promise(True, (1 << 20) + 1), 40), 40)
    assert torch.equal(found, (values * values).sum(-1, keepdim=True))


def spent(linear: str, rows: int, length: int, link=None) -> tuple[int, int]:
    """Bytes and messages of sums of squares after a first one, on a meter."""
    settings = {} if link is None else {"link": link}
    spec = privml.SessionSpec.of(engine="twopc", ot="silent", linear=linear, **settings)
    engine = spec.backend.meter(spec, 0)
    a = Operand((torch.zeros(rows, length, dtype=torch.int64),), 20, bound=1 << 18)
    for _ in range(2):
        before = Snapshot.of(engine.counters())
        engine.sum_squares(a, 38, Promise(True, (1 << 36) + 1), 46)
    cost = Snapshot.of(engine.counters()).online
    return cost.bytes - before.online.bytes, cost.depth - before.online.depth


def test_ciphertexts_take_a_third_of_the_bytes():
    assert 3 * spent("lattice", 128, 768)[0] < spent("ot", 128, 768)[0]


def test_few_numbers_on_a_slow_link_save_messages():
    slow = LinkProfile(40, 100)
    assert spent("lattice", 8, 64, slow) == spent("ot", 8, 64, slow)
    assert spent("lattice", 128, 768, slow)[0] < spent("ot", 128, 768, slow)[0]


def test_a_meter_counts_what_is_sent():
    def counted(engine) -> dict:
        return {name: engine.counters()[name]["sent"] for name in ("preprocess", "online")}

    values = torch.randint(-1000, 1000, (16, 300), generator=torch.Generator().manual_seed(2))
    promise = Promise(True, (1 << 20) + 1)
    with local_session.local("twopc", linear="lattice", ot="ideal") as session:
        engine = session.engine
        a = operand(engine, 12, False, values)
        before = [counted(party) for party in engine.engines]
        engine.sum_squares(a, 22, promise, 40)
        found = [counted(party)["online"] - old["online"] for party, old in zip(engine.engines, before, strict=True)]
    spec = privml.SessionSpec.of(engine="twopc", ot="ideal", linear="lattice")
    for rank, sent in enumerate(found):
        meter = spec.backend.meter(spec, rank)
        meter.sum_squares(Operand((torch.zeros(16, 300, dtype=torch.int64),), 12, bound=1 << 10), 22, promise, 40)
        assert counted(meter)["online"] == sent > 0


def test_an_owner_computes_in_clear():
    values = torch.tensor([[3, -5, 8], [0, -1000, 7]])
    with local_session.local("twopc") as session:
        engine = session.engine
        a = Operand(engine.input(values, values.shape, 1, 12), 12, 1)
        own = engine.owned(1)
        found = engine.reveal(own.sum_squares(a, 24, Promise(True, 1 << 22), 30), 30)
    assert torch.equal(found, (values * values).sum(-1, keepdim=True))
