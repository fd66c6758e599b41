# SPDX-License-Identifier: Apache-2.0
"""Further connections of many sessions at once: each finds its own, none another's."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor

import pytest

from privml import _core
from privml.errors import PeerDisconnected, ProtocolError
from privml.session.lanes import LANE_MAGIC, PendingLanes

LONG = 30.0
TOKENS = [bytes([n]) * 32 for n in range(8)]
# A session's first connection, and its other end, which keeps it open.
FIRST, _PEER = _core.memory_pair()
JOINED, WRONG_TOKEN, WRONG_LANE = (LANE_MAGIC + bytes([status]) for status in range(3))


class Named:
    """A channel whose peer has proved a name."""

    def __init__(self, channel, peer_name):
        self._channel, self.peer_name = channel, peer_name

    def __getattr__(self, name):
        return getattr(self._channel, name)


def join(desk, token, lane, name=""):
    """What the connecting side reads, and the error of the desk's side."""
    channel, other = _core.memory_pair()
    other.write(LANE_MAGIC + token + lane.to_bytes(4, "little"))
    other.flush()
    channel.read(len(LANE_MAGIC))
    try:
        desk.receive(Named(channel, name))()
        error = None
    except ProtocolError as raised:
        error = str(raised)
    other.set_deadline(LONG)
    return other, other.read(len(LANE_MAGIC) + 1), error


def test_connections_find_their_sessions_in_any_order():
    desk = PendingLanes()
    for token in TOKENS:
        desk.expect(token, 2, FIRST)
    wanted = [(token, lane) for lane in (2, 1) for token in TOKENS]

    def connect(place):
        other, answer, _ = join(desk, *place)
        assert answer == JOINED
        other.write(place[0][:1] + bytes([place[1]]))
        other.flush()

    with ThreadPoolExecutor(8) as executor:
        collected = {token: executor.submit(desk.collect, token, LONG) for token in TOKENS[:4]}
        list(executor.map(connect, wanted[::-1]))
        channels = {token: future.result(LONG) for token, future in collected.items()}
    channels |= {token: desk.collect(token, LONG) for token in TOKENS[4:]}
    for token, lanes in channels.items():
        assert [channel.read(2) for channel in lanes] == [token[:1] + b"\x01", token[:1] + b"\x02"]


def test_who_belongs_to_no_session_is_refused():
    desk = PendingLanes()
    desk.expect(TOKENS[0], 2, Named(FIRST, "lab-b"))
    assert join(desk, TOKENS[1], 1, "lab-b")[1] == WRONG_TOKEN
    assert join(desk, TOKENS[0], 1, "lab-c")[1] == WRONG_TOKEN, "another peer's"
    assert join(desk, TOKENS[0], 1)[1] == WRONG_TOKEN
    assert join(desk, TOKENS[0], 1, "lab-b")[1] == JOINED
    for lane in (0, 1, 3, 2**32 - 1):
        _, answer, error = join(desk, TOKENS[0], lane, "lab-b")
        assert answer == WRONG_LANE and "no such lane, or the lane is in use" in error
    assert join(desk, TOKENS[0], 2, "lab-b")[1] == JOINED
    assert len(desk.collect(TOKENS[0], LONG)) == 2
    assert join(desk, TOKENS[0], 1, "lab-b")[1] == WRONG_TOKEN, "a session that has its lanes expects no more"


def test_what_is_missing_is_said_at_the_deadline():
    desk = PendingLanes()
    desk.expect(TOKENS[0], 3, FIRST)
    other = join(desk, TOKENS[0], 2)[0]
    join(desk, TOKENS[0], 7)
    with pytest.raises(PeerDisconnected, match="opened 1 of 3 .* no such lane, or the lane is in use"):
        desk.collect(TOKENS[0], 0.1)
    desk.forget(TOKENS[0])
    desk.forget(TOKENS[0])
    with pytest.raises(PeerDisconnected):
        other.read(1)


@pytest.mark.parametrize("waits", [True, False])
def test_a_peer_that_has_closed_its_first_connection_is_not_waited_for(waits):
    desk, (first, peer) = PendingLanes(), _core.memory_pair()
    desk.expect(TOKENS[0], 2, first)
    join(desk, TOKENS[0], 1)
    with ThreadPoolExecutor(1) as executor:
        collected = executor.submit(desk.collect, TOKENS[0], 100 * LONG) if waits else None
        peer.close()
        with pytest.raises(PeerDisconnected, match="session's connection was closed when 1 of 2 further ones"):
            collected.result(LONG) if waits else desk.collect(TOKENS[0], 100 * LONG)


@pytest.mark.parametrize("waits", [True, False])
def test_who_is_forgotten_waits_no_more(waits):
    desk = PendingLanes()
    desk.expect(TOKENS[0], 2, FIRST)
    other = join(desk, TOKENS[0], 1)[0]
    with ThreadPoolExecutor(1) as executor:
        collected = executor.submit(desk.collect, TOKENS[0], 100 * LONG) if waits else None
        desk.forget(TOKENS[0])
        with pytest.raises(PeerDisconnected):
            other.read(1)
        with pytest.raises(PeerDisconnected, match="closed while it waited"):
            collected.result(LONG) if waits else desk.collect(TOKENS[0], 100 * LONG)


def test_a_connection_that_leaves_gives_its_lane_back():
    desk = PendingLanes()
    desk.expect(TOKENS[0], 1, FIRST)

    class Gone(Named):
        def flush(self):
            raise PeerDisconnected("gone")

    channel, other = _core.memory_pair()
    other.write(TOKENS[0] + (1).to_bytes(4, "little"))
    other.flush()
    with pytest.raises(PeerDisconnected):
        desk.receive(Gone(channel, ""))()
    assert join(desk, TOKENS[0], 1)[1] == JOINED


def test_a_connection_may_come_before_anybody_waits_for_it():
    desk, got = PendingLanes(), []
    desk.expect(TOKENS[0], 1, FIRST)
    waiting = threading.Thread(target=lambda: got.extend(desk.collect(TOKENS[0], LONG)))
    assert join(desk, TOKENS[0], 1)[1] == JOINED
    waiting.start()
    waiting.join(LONG)
    assert len(got) == 1
