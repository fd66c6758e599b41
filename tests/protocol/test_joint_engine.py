# SPDX-License-Identifier: Apache-2.0
"""When one party fails, the other one ends too and the first error is raised; nothing hangs."""

import time

import pytest
import torch
from patience import ENDLESS

import privml
from privml import _core
from privml.engines.correlations import OtChoice
from privml.engines.party_threads import PartyThreads
from privml.engines.twopc import backend as twopc
from privml.errors import ConfigError, PeerDisconnected


class Broken(RuntimeError):
    pass


def fail():
    raise Broken("this party fails")


@pytest.fixture
def engine():
    made = twopc.create(OtChoice("ideal"), deadline=ENDLESS)
    yield made
    made.close()


@pytest.mark.parametrize("rank", [0, 1])
def test_first_error_is_raised_and_the_peer_ends(engine, rank):
    a = (torch.arange(10), torch.zeros(10, dtype=torch.int64))
    calls = [fail, fail]
    calls[1 - rank] = lambda: engine.engines[1 - rank].relu((a[1 - rank],), 32)
    with pytest.raises(Broken):
        engine.threads.run(calls)  # long before the deadline
    with pytest.raises(PeerDisconnected, match="Broken: this party fails"):
        engine.relu(a, 32)


def test_lost_channel_ends_both(engine):
    a = (torch.zeros(4, dtype=torch.int64),)

    def lose_it():
        engine.engines[0].session.close()
        return engine.engines[0].relu(a, 32)

    with pytest.raises(PeerDisconnected):
        engine.threads.run([lose_it, lambda: engine.engines[1].relu(a, 32)])


def test_parties_out_of_step_end_at_the_deadline():
    engine = twopc.create(OtChoice("ideal"), deadline=0.5)
    a = torch.zeros(4, dtype=torch.int64)
    with pytest.raises(PeerDisconnected):
        engine.threads.run([lambda: engine.engines[0].relu((a,), 32), lambda: None])


def test_same_wrong_arguments_leave_the_session_alive(engine):
    a = (torch.arange(10), torch.zeros(10, dtype=torch.int64))
    with pytest.raises(ValueError):
        engine.relu(a, 0)
    assert engine.reveal(engine.relu(a, 32)[0], 32).tolist() == list(range(10))


def test_wrong_arguments_at_one_party_end_the_session(engine):
    a = torch.zeros(4, dtype=torch.int64)
    with pytest.raises(ValueError):
        engine.threads.run([lambda: engine.engines[0].relu((a,), 0), lambda: engine.engines[1].relu((a,), 32)])
    with pytest.raises(PeerDisconnected):
        engine.relu((a, a), 32)


def test_error_in_setup_ends_both():
    channels = _core.memory_pair()

    def close():
        for channel in channels:
            channel.close()

    threads = PartyThreads(2, close)
    with pytest.raises(Broken):
        threads.run([fail, lambda: _core.TwoPartySession(channels[1], 1, "softspoken", 4)])


def test_wrong_settings():
    with pytest.raises(ConfigError):
        privml.local("twopc", ot="nothing")
    with pytest.raises(ConfigError):
        privml.local("twopc", k=11)
    with pytest.raises(ConfigError):
        privml.local("twopc", colour="red")


def test_closed_session_says_so():
    with privml.local("twopc", ot="ideal") as session:
        x = privml.share(torch.ones(3), owner=1) + privml.share(torch.ones(3), owner=0)
    with pytest.raises(PeerDisconnected, match="closed"):
        privml.reveal(torch.relu(x))
    session.close()


def test_shaped_network_takes_its_time():
    engine = twopc.create(OtChoice("ideal"), delay_ms=30)
    a = (torch.arange(10), torch.zeros(10, dtype=torch.int64))
    depth = engine.counters()["online"]["depth"]
    start = time.monotonic()
    engine.relu(a, 32)
    hops = engine.counters()["online"]["depth"] - depth
    assert hops > 2 and time.monotonic() - start >= hops * 0.03
    engine.close()


def test_same_seed_gives_the_same_shares():
    shares = []
    for _ in range(2):
        engine = twopc.create(OtChoice(), test_seed=7)
        shares.append(engine.relu((torch.arange(10), torch.zeros(10, dtype=torch.int64)), 32)[0])
        engine.close()
    assert all(torch.equal(a, b) for a, b in zip(*shares, strict=True))


def test_counters_outlive_the_session():
    engine = twopc.create(OtChoice())
    engine.relu((torch.arange(10), torch.zeros(10, dtype=torch.int64)), 32)
    open_counters = engine.counters()
    engine.close()
    engine.engines[0].close()
    assert engine.counters() == open_counters and open_counters["online"]["sent"] > 0
