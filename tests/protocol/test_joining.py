# SPDX-License-Identifier: Apache-2.0
"""Further connections of a session: who joins, who is refused, and that nothing waits for ever."""

import gc
import os
import threading
from concurrent.futures import ThreadPoolExecutor
from functools import partial

import pytest
import torch
from parties import run_both
from patience import PATIENCE
from ports import reserved

import privml
from privml import _core
from privml.errors import ConfigError, HandshakeMismatch, PeerDisconnected, ProtocolError
from privml.session.connections import Link, accept, reach
from privml.session.handshake import MAGIC
from privml.session.lanes import LANE_MAGIC, accept_lanes, lane_acceptor, lane_opener, open_lanes
from privml.session.session import Settings, open_session
from privml.spec import SessionSpec

TOKEN = bytes(range(32))
# A session's first connection, and its other end, which keeps it open.
FIRST, _PEER = _core.memory_pair()


def request(lane: int, token: bytes = TOKEN) -> bytes:
    return LANE_MAGIC + token + lane.to_bytes(4, "little")


@pytest.fixture
def listener():
    made = _core.TcpListener("127.0.0.1", 0)
    yield made
    made.close()


@pytest.fixture
def connector(listener):
    return partial(reach, f"127.0.0.1:{listener.port}")


def background(call):
    executor = ThreadPoolExecutor(1)
    future = executor.submit(call)
    executor.shutdown(wait=False)
    return future


def accepting(listener, count, deadline=20.0):
    return background(lambda: accept_lanes(partial(accept, listener), FIRST, TOKEN, count, deadline))


def speak(connector, sent: bytes):
    channel = connector(5.0)
    channel.set_deadline(5.0)
    channel.write(sent)
    channel.flush()
    return channel


def test_lanes_come_in_any_order_and_keep_their_numbers(listener, connector):
    waiting = accepting(listener, 3)
    theirs = {lane: speak(connector, request(lane)) for lane in (3, 1, 2)}
    for lane, channel in theirs.items():
        assert channel.read(9) == LANE_MAGIC + b"\x00"
        channel.write(bytes([lane]))
        channel.flush()
    assert [channel.read(1)[0] for channel in waiting.result(PATIENCE)] == [1, 2, 3]


def test_a_wrong_token_is_refused_at_once_and_the_right_one_still_joins(listener, connector):
    waiting = accepting(listener, 1)
    with pytest.raises(PeerDisconnected, match="refuses lane 1: it has no such session, or the session has ended"):
        open_lanes(connector, bytes(32), 1, 10.0)
    assert len(open_lanes(connector, TOKEN, 1, 10.0)) == len(waiting.result(PATIENCE)) == 1


@pytest.mark.parametrize("lanes", [(1, 1), (0,), (3,), (2**32 - 1,)], ids=str)
def test_a_lane_too_many_is_refused(listener, connector, lanes):
    waiting = accepting(listener, 2, deadline=1.0)
    answers = [speak(connector, request(lane)).read(9) for lane in lanes]
    assert answers[-1] == LANE_MAGIC + b"\x02"
    with pytest.raises(PeerDisconnected, match=f"opened {len(lanes) - 1} of 2 .* no such lane, or the lane is in use"):
        waiting.result(PATIENCE)


def test_nobody_waits_for_lanes_of_a_peer_that_is_gone(listener, connector):
    first, peer = _core.memory_pair()
    waiting = background(lambda: accept_lanes(partial(accept, listener), first, TOKEN, 2, 100 * PATIENCE))
    joined = speak(connector, request(2))
    joined.read(9)
    peer.close()
    with pytest.raises(PeerDisconnected, match="connection was closed when 1 of 2 further ones were open"):
        waiting.result(PATIENCE)


def test_too_few_lanes_end_with_a_clear_error_at_the_deadline(listener, connector):
    waiting = accepting(listener, 3, deadline=1.0)
    joined = speak(connector, request(2))
    with pytest.raises(PeerDisconnected, match="opened 1 of 3 further connections within 1 seconds"):
        waiting.result(PATIENCE)
    joined.read(9)
    with pytest.raises(PeerDisconnected):  # the lane that had joined is closed
        joined.read(1)


@pytest.mark.parametrize(
    "sent", [b"GET / HTTP/1.1\r\n", b"\x00" * 8, MAGIC + b"another", LANE_MAGIC + b"short", b""], ids=repr
)
def test_strangers_do_not_keep_a_lane_from_joining(listener, connector, sent):
    waiting = accepting(listener, 1)
    stranger = speak(connector, sent)
    assert len(open_lanes(connector, TOKEN, 1, 10.0)) == len(waiting.result(PATIENCE)) == 1
    with pytest.raises(PeerDisconnected):
        stranger.read(1)


def test_a_listener_that_takes_nothing(listener, connector):
    with pytest.raises(PeerDisconnected, match="lane 1 of the session was not taken"):
        open_lanes(connector, TOKEN, 2, 0.5)


def test_a_listener_that_answers_nonsense(listener, connector):
    def answer():
        channel = listener.accept(10.0)
        channel.read(44)
        channel.write(b"200 OK..." * 2)
        channel.flush()

    background(answer)
    with pytest.raises(ProtocolError, match="not one of privml's"):
        open_lanes(connector, TOKEN, 1, 10.0)


# ---- sessions
def parties(settings, deadline=20.0, program=None):
    """Both parties of ``privml.connect`` on threads; results or errors by rank."""

    def party(rank, address):
        side = {"listen": address} if rank == 0 else {"connect": address}
        with privml.connect(rank, SessionSpec(deadline=deadline, **settings[rank]), **side) as session:
            return (program or run)(session, rank)

    with reserved(1) as (address,), ThreadPoolExecutor(2) as executor:
        futures = [executor.submit(party, rank, address) for rank in range(2)]
        return [future.exception() or future.result() for future in futures]


def run(session, rank):
    x = privml.share(torch.arange(-5000.0, 5000.0) if rank == 1 else None, owner=1, shape=(10_000,))
    w = privml.share(torch.full((10_000,), 0.5) if rank == 0 else None, owner=0, shape=(10_000,))
    return privml.reveal(torch.relu(x * w), to=1), session.engine.lanes, session.ledger.snapshot()


@pytest.mark.parametrize("threads", [1, 2, 3])
def test_sessions_with_lanes(threads):
    server, client = parties([{"threads": threads}] * 2)
    assert torch.equal(client[0], torch.arange(-5000.0, 5000.0).mul(0.5).clamp(min=0)) and server[0] is None
    assert server[1] == client[1] == threads
    for phase in ("setup", "preprocess", "online"):
        assert getattr(server[2], phase).sent == getattr(client[2], phase).received > 0
    assert server[2].setup.bytes == threads * parties([{"threads": 1}] * 2)[0][2].setup.bytes


def test_threads_must_agree():
    for rank, error in enumerate(parties([{"threads": 2}, {"threads": 3}])):
        assert isinstance(error, HandshakeMismatch) and f"threads is {2 + rank} here" in str(error)


@pytest.mark.parametrize("threads", [0, -1, 65, 1.5, "2", True])
def test_impossible_threads_are_refused_at_once(threads):
    with pytest.raises(ConfigError, match="threads"):
        privml.connect(0, SessionSpec(threads=threads, deadline=0.1), listen="127.0.0.1:0")


def test_lanes_need_further_connections():
    errors = run_both(lambda rank, channel: open_session(Link(channel), rank, Settings(SessionSpec(threads=2))))
    assert all(isinstance(error, ConfigError) for error in errors)


@pytest.mark.parametrize("broken", [0, 1])
def test_a_party_that_brings_no_lanes(listener, broken):
    """The other party ends within the deadline, and says what is missing."""
    address = f"127.0.0.1:{listener.port}"

    def party(rank):
        channel = accept(listener, 5.0) if rank == 0 else reach(address, 5.0)
        join = lane_acceptor(listener, channel, 1.0) if rank == 0 else lane_opener(address, 1.0)
        if rank == broken:
            join = lambda token, count: ended.wait() and []  # noqa: E731
        return open_session(Link(channel, join), rank, Settings(SessionSpec(threads=2, deadline=5.0)))

    ended = threading.Event()
    with ThreadPoolExecutor(2) as executor:
        error = [executor.submit(party, rank) for rank in range(2)][1 - broken].exception(PATIENCE)
        ended.set()
    assert isinstance(error, PeerDisconnected)
    assert ("opened 0 of 1" if broken == 1 else "lane 1 of the session was not taken") in str(error)


def descriptors():
    return len(os.listdir("/proc/self/fd"))


def test_sessions_leave_no_thread_and_no_descriptor():
    parties([{"threads": 3}] * 2)  # what is loaded once is loaded
    gc.collect()  # what other tests have left
    before = threading.active_count(), descriptors()
    for settings in ([{"threads": 3}] * 2, [{"threads": 2}, {"threads": 3}]):
        parties(settings)
    assert (threading.active_count(), descriptors()) == before


def test_a_party_that_fails_ends_the_other_one_on_all_lanes():
    def program(session, rank):
        if rank == 0:
            session.engine.lane(1).session.close()  # the session, whichever lane is asked
            raise RuntimeError("this party fails")
        return run(session, rank)

    before = threading.active_count()
    failed, other = parties([{"threads": 3}] * 2, program=program)
    assert "this party fails" in str(failed) and isinstance(other, PeerDisconnected)
    assert threading.active_count() == before
