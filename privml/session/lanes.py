# SPDX-License-Identifier: Apache-2.0
"""Further connections of a session, one for each lane beyond the first.

After the handshake on the first connection both parties know a token that they made together. The party that
connected opens the further connections and sends on each the session and the lane that it belongs to; the listening
party replies. Wire layout of a further connection: 8 bytes magic, 32 bytes token, 4 bytes little-endian lane; reply:
8 bytes magic, 1 byte status. The token names the session; it is not a key.
"""

from __future__ import annotations

import hashlib
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import privml._core as _core
from privml.errors import IdentityError, PeerDisconnected, ProtocolError
from privml.session.connections import Connector, Joiner, accept, close_all, reach, time_limit
from privml.session.handshake import Hello

LANE_MAGIC = b"privml\x00L"
_TOKEN_BYTES = 32
_REQUEST_BYTES = _TOKEN_BYTES + 4
JOINED, WRONG_TOKEN, WRONG_LANE = range(3)
REFUSALS = {
    WRONG_TOKEN: "it has no such session, or the session has ended",
    WRONG_LANE: "it has no such lane, or the lane is in use",
}
# A connection that sends no request within this time is closed.
_REQUEST_SECONDS = 2.0
# Seconds between two checks whether a peer has left that has not opened all of its connections.
_CHECK_SECONDS = 0.25


def session_token(ours: Hello, theirs: Hello) -> bytes:
    """32 bytes that both parties of a handshake know and neither chose alone."""
    first, second = (ours, theirs) if ours.rank < theirs.rank else (theirs, ours)
    return hashlib.sha256(f"privml lanes {first.nonce} {second.nonce}".encode()).digest()


def session_key(ours: Hello, theirs: Hello) -> bytes:
    """32 bytes that the two parties of a handshake know and no eavesdropper. Raises ProtocolError for an invalid public
    key."""
    first, second = (ours, theirs) if ours.rank < theirs.rank else (theirs, ours)
    key = _core.common_key(ours.keys[0], first.keys[1], second.keys[1], second is theirs)
    return hashlib.blake2b(f"privml session {first.nonce} {second.nonce}".encode(), key=key, digest_size=32).digest()


def session_name(token: bytes) -> str:
    """12 hexadecimal digits that name a session in both parties' logs; they reveal nothing about the token."""
    return hashlib.sha256(b"privml session " + token).hexdigest()[:12]


def public_seed(token: bytes) -> int:
    """A number that all parties of a session know and none chose alone, for public randomness such as dropout masks."""
    return int.from_bytes(hashlib.sha256(b"privml public randomness " + token).digest()[:16], "little")


def open_lanes(connect: Connector, token: bytes, count: int, deadline: float) -> list[_core.Channel]:
    """The connecting party's channels of lanes 1 to ``count``, in order.

    Raises PeerDisconnected when the peer has ended the session or does not answer in time, ProtocolError when it
    refuses one of them otherwise.
    """
    end = time.monotonic() + deadline
    channels: list[_core.Channel] = []
    try:
        for lane in range(1, count + 1):
            channels.append(connect(_left(end)))
            channels[-1].write(LANE_MAGIC + token + lane.to_bytes(4, "little"))
            channels[-1].flush()
        for lane, channel in enumerate(channels, 1):
            channel.set_deadline(_left(end))
            _check_answer(channel, lane)
    except BaseException:
        close_all(channels)
        raise
    return channels


def _check_answer(channel: _core.Channel, lane: int) -> None:
    try:
        answer = channel.read(len(LANE_MAGIC) + 1)
    except PeerDisconnected as error:
        raise PeerDisconnected(f"lane {lane} of the session was not taken by the peer: {error}") from None
    if answer[:-1] != LANE_MAGIC:
        raise ProtocolError(f"the peer's answer on lane {lane} is not one of privml's")
    if answer[-1] != JOINED:
        error = PeerDisconnected if answer[-1] == WRONG_TOKEN else ProtocolError
        raise error(f"the peer refuses lane {lane}: {REFUSALS.get(answer[-1], 'no reason given')}")


def accept_lanes(
    accept: Connector, first: _core.Channel, token: bytes, count: int, deadline: float
) -> list[_core.Channel]:
    """The listening party's channels of lanes 1 to ``count``, in order.

    Connections that do not belong to this session are refused and closed (a server with many sessions uses
    ``PendingLanes`` instead). Raises PeerDisconnected, with what was refused, if a lane is missing at the end, and at
    once if ``first``, the session's connection of lane 0, is closed.
    """
    end = time.monotonic() + deadline
    joined: dict[int, _core.Channel] = {}
    refused: list[str] = []
    try:
        while len(joined) < count:
            until = min(end, time.monotonic() + _CHECK_SECONDS)
            try:
                channel = accept(_left(until))
            except PeerDisconnected:
                if first.peer_closed:
                    raise closed_early(len(joined), count, refused) from None
                if _left(until) == 0 < _left(end):  # nothing but time has passed
                    continue
                raise missing_lanes(len(joined), count, deadline, refused) from None
            lane = _take(channel, token, count, joined, min(_REQUEST_SECONDS, _left(end)), refused)
            if lane is not None:
                joined[lane] = channel
    except BaseException:
        close_all(joined.values())
        raise
    return [joined[lane] for lane in range(1, count + 1)]


def _take(
    channel: _core.Channel,
    token: bytes,
    count: int,
    joined: Mapping[int, Any],
    seconds: float,
    refused: list[str],
) -> int | None:
    """The lane that a new connection joins, or None if it does not belong to this session."""
    channel.set_deadline(seconds)
    try:
        with time_limit(seconds, channel, "its request"):
            if channel.read(len(LANE_MAGIC)) != LANE_MAGIC:
                raise ProtocolError("its first bytes do not join a session")
            named, lane = read_request(channel)
        status = WRONG_TOKEN if named != token else JOINED
        if status == JOINED and (not 1 <= lane <= count or lane in joined):
            status = WRONG_LANE
        answer_lane(channel, status)
        if status == JOINED:
            return lane
        refused.append(f"lane {lane}: {REFUSALS[status]}")
    except (ProtocolError, PeerDisconnected, IdentityError) as error:
        refused.append(str(error))
    channel.close()
    return None


def read_request(channel: _core.Channel) -> tuple[bytes, int]:
    """The token and the lane that a further connection sends after its magic."""
    request = channel.read(_REQUEST_BYTES)
    return request[:_TOKEN_BYTES], int.from_bytes(request[_TOKEN_BYTES:], "little")


def answer_lane(channel: _core.Channel, status: int) -> None:
    """Replies to a further connection: that it has JOINED, or why not."""
    channel.write(LANE_MAGIC + bytes([status]))
    channel.flush()


def missing_lanes(joined: int, count: int, deadline: float, refused: Sequence[str]) -> PeerDisconnected:
    return _incomplete(f"the peer opened {joined} of {count} further connections within {deadline:g} seconds", refused)


def closed_early(joined: int, count: int, refused: Sequence[str]) -> PeerDisconnected:
    return _incomplete(f"the session's connection was closed when {joined} of {count} further ones were open", refused)


def _incomplete(text: str, refused: Sequence[str]) -> PeerDisconnected:
    if refused:
        text += f"; {len(refused)} refused, the last one because {refused[-1]}"
    return PeerDisconnected(text)


def _left(end: float) -> float:
    return max(end - time.monotonic(), 0.0)


def lane_acceptor(
    listener: _core.TcpListener,
    first: _core.Channel,
    deadline: float,
    options: Mapping[str, Any] | None = None,
) -> Joiner:
    """Accepts the further connections of a listening party's session, whose first connection is ``first``."""
    connector = partial(accept, listener, options=options)
    return lambda token, count: accept_lanes(connector, first, token, count, deadline)


def lane_opener(address: str, deadline: float, options: Mapping[str, Any] | None = None) -> Joiner:
    """Opens the further connections of a connecting party's session."""
    connector = partial(reach, address, options=options)
    return lambda token, count: open_lanes(connector, token, count, deadline)


@dataclass(slots=True)
class _Expected:
    """A session's further connections: how many, its first one, and those that have joined (None: before the reply)."""

    count: int
    first: _core.Channel
    lanes: dict[int, _core.Channel | None] = field(default_factory=dict)
    refused: list[str] = field(default_factory=list)
    forgotten: bool = False

    @property
    def joined(self) -> int:
        return sum(channel is not None for channel in self.lanes.values())


class PendingLanes:
    """A server's sessions that wait for further connections, which may come in any order; any thread may call."""

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._expected: dict[bytes, _Expected] = {}

    def expect(self, token: bytes, count: int, first: _core.Channel) -> None:
        """Accepts connections with ``token`` from here on, if their peer shows the same name as on ``first``, the
        session's connection of lane 0. Must be called before the peer can know the token."""
        with self._changed:
            self._expected[token] = _Expected(count, first)

    def receive(self, channel: _core.Channel) -> Callable[[], None]:
        """Reads the request of a connection whose magic was read; the returned function replies. That function raises
        ProtocolError if the connection belongs to no session; its caller closes the connection."""
        return partial(self._admit, channel, *read_request(channel))

    def _admit(self, channel: _core.Channel, token: bytes, lane: int) -> None:
        with self._changed:
            expected = self._expected.get(token)
            status = self._status(expected, channel, lane)
            if status == JOINED:
                expected.lanes[lane] = None
            elif status == WRONG_LANE:
                expected.refused.append(f"lane {lane}: {REFUSALS[status]}")
        try:
            answer_lane(channel, status)
            if status != JOINED:
                raise ProtocolError(f"a further connection was refused: {REFUSALS[status]}")
        except BaseException:
            with self._changed:
                if status == JOINED:
                    del expected.lanes[lane]
            raise
        with self._changed:
            if self._expected.get(token) is not expected:  # given up meanwhile
                raise ProtocolError("a further connection came after its session had begun")
            expected.lanes[lane] = channel
            self._changed.notify_all()

    @staticmethod
    def _status(expected: _Expected | None, channel: _core.Channel, lane: int) -> int:
        if expected is None or channel.peer_name != expected.first.peer_name:
            return WRONG_TOKEN
        free = 1 <= lane <= expected.count and lane not in expected.lanes
        return JOINED if free else WRONG_LANE

    def collect(self, token: bytes, deadline: float) -> list[_core.Channel]:
        """The channels of lanes 1 to the session's count, in order, which the caller owns from here on.
        Raises PeerDisconnected, with what was refused, if one is missing after ``deadline`` seconds, and at once if the
        session is forgotten or its first connection is closed."""
        end = time.monotonic() + deadline
        with self._changed:
            expected = self._expected.get(token)
            while expected is not None and not expected.forgotten and expected.joined < expected.count:
                left = end - time.monotonic()
                if left <= 0:
                    raise missing_lanes(expected.joined, expected.count, deadline, expected.refused)
                if expected.first.peer_closed:
                    raise closed_early(expected.joined, expected.count, expected.refused)
                self._changed.wait(min(left, _CHECK_SECONDS))
            if expected is None or expected.forgotten:
                raise PeerDisconnected("the session was closed while it waited for its further connections")
            del self._expected[token]
            return [expected.lanes[lane] for lane in range(1, expected.count + 1)]

    def forget(self, token: bytes) -> None:
        """Closes the session's connections that were not collected, and ends a ``collect`` that waits for them."""
        with self._changed:
            expected = self._expected.pop(token, None)
            if expected is not None:
                expected.forgotten = True
                self._changed.notify_all()
        if expected is not None:
            close_all(channel for channel in expected.lanes.values() if channel is not None)
