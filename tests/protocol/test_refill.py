# SPDX-License-Identifier: Apache-2.0
"""Correlations made in the background: the same values, exact predictions, and nothing that hangs or stays behind."""

import os
import time
from concurrent.futures import ThreadPoolExecutor

import pytest
import torch
from patience import ENDLESS
from ports import reserved

import privml
from privml import _core
from privml.conversion import convert
from privml.engines.correlations import OtChoice
from privml.engines.twopc import backend as twopc
from privml.errors import ConfigError, HandshakeMismatch, PeerDisconnected
from privml.spec import SessionSpec

BACKGROUND = OtChoice(refill="background")


class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        torch.manual_seed(3)
        self.first, self.second = torch.nn.Conv2d(1, 3, 3), torch.nn.Linear(3 * 7 * 7, 4)

    def forward(self, x):
        return self.second(torch.relu(self.first(x)).flatten(1))


@pytest.fixture(scope="module")
def program():
    torch.manual_seed(4)
    return convert(Net().eval(), torch.randn(1, 1, 9, 9), calibration=torch.randn(16, 1, 9, 9))


INPUT = torch.randn(2, 1, 9, 9, generator=torch.Generator().manual_seed(5))


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("announced", [False, True])
def test_prediction_equals_the_run(program, threads, announced):
    with privml.local("plain") as session:
        expected = privml.reveal(program.run(session, INPUT))
    shapes = program.shapes(len(INPUT))
    with privml.local("twopc", threads=threads, refill="background") as session:
        if announced:
            session.reserve(program.correlations(shapes, SessionSpec(ot=BACKGROUND, threads=threads)).stock)
        assert torch.equal(privml.reveal(program.run(session, INPUT), to=1), expected)
        real = session.ledger.snapshot()
    if not announced:
        assert real.preprocess.sent > 0
        return
    predicted = program.cost(shapes, SessionSpec(ot=BACKGROUND, threads=threads), rank=0).snapshot()
    for phase in ("setup", "preprocess", "online"):
        mine, made = getattr(predicted, phase), getattr(real, phase)
        assert (mine.sent, mine.received, mine.depth) == (made.sent, made.received, made.depth), phase
    assert (predicted.cots_as_sender, predicted.cots_as_receiver) == (real.cots_as_sender, real.cots_as_receiver)


def test_an_announcement_does_not_wait():
    """It returns before the peer has said anything; a reservation in the foreground ends at its deadline then."""
    x = (torch.arange(10), torch.zeros(10, dtype=torch.int64))
    engine = twopc.create(OtChoice(refill="background"), deadline=ENDLESS)
    for each in engine.engines:
        each.session.reserve(1000, 1000)
    assert engine.reveal(engine.relu(x, 32)[0], 32).tolist() == list(range(10))
    engine.close()
    engine = twopc.create(OtChoice(refill="none"), deadline=0.2)
    with pytest.raises(PeerDisconnected):
        engine.engines[0].session.reserve(1000, 1000)
    engine.close()


def test_same_seed_gives_the_same_shares():
    shares = []
    for _ in range(2):
        engine = twopc.create(OtChoice(refill="background"), test_seed=7, threads=2)
        x = (torch.arange(20_000), torch.zeros(20_000, dtype=torch.int64))
        shares.append(engine.relu(x, 32)[0])
        engine.close()
    assert all(torch.equal(a, b) for a, b in zip(*shares, strict=True))


def tasks():
    """Threads of this process, those of the core included."""
    return len(os.listdir("/proc/self/task"))


def test_a_closed_session_ends_its_refill():
    before = tasks()
    x = (torch.arange(10), torch.zeros(10, dtype=torch.int64))
    engine = twopc.create(OtChoice(refill="background"), deadline=ENDLESS)
    engine.threads.run([lambda e=e: e.session.reserve(1 << 22, 1 << 22) for e in engine.engines])
    engine.engines[0].close()  # while it is being made
    with pytest.raises(PeerDisconnected):
        engine.relu(x, 32)
    engine.close()
    while tasks() > before:  # the system drops ended threads when it comes to it
        time.sleep(0.05)


def test_correlations_in_the_background_do_not_leave_for_a_store():
    engine = twopc.create(OtChoice(refill="background"))
    seal = _core.Seal(bytes(32), bytes(16))
    with pytest.raises(ValueError, match="refill"):
        _core.seal_correlations(engine.engines[0].session, seal, True, 0, b"")
    engine.close()


def test_unknown_refill():
    with pytest.raises(ConfigError, match="refill"):
        privml.local("twopc", refill="sometimes")


@pytest.mark.parametrize("refills", [("background", "background"), ("background", "none")])
def test_between_parties(refills):
    def party(rank, address):
        side = {"listen": address} if rank == 0 else {"connect": address}
        with privml.connect(rank, privml.SessionSpec.of(deadline=20.0, threads=2, refill=refills[rank]), **side):
            x = privml.share(torch.arange(-5000.0, 5000.0) if rank == 1 else None, owner=1, shape=(10_000,))
            w = privml.share(torch.full((10_000,), 0.5) if rank == 0 else None, owner=0, shape=(10_000,))
            return privml.reveal(torch.relu(x * w), to=1)

    with reserved(1) as (address,), ThreadPoolExecutor(2) as executor:
        futures = [executor.submit(party, rank, address) for rank in range(2)]
    if refills[0] != refills[1]:
        for future in futures:
            with pytest.raises(HandshakeMismatch, match="refill is '"):
                future.result()
    else:
        assert torch.equal(futures[1].result(), torch.arange(-5000.0, 5000.0).mul(0.5).clamp(min=0))
