# SPDX-License-Identifier: Apache-2.0
"""Further connections of a session, one for each lane beyond the first.

After the handshake on the first connection both parties know a token that they made together. The party that
connected opens the further connections and says on each which session and which lane it belongs to; the listening
party answers. Wire layout of a further connection: 8 bytes magic, 32 bytes token, 4 bytes little-endian lane; answer:
8 bytes magic, 1 byte status. The token tells sessions apart; it is no key.
"""

from __future__ import annotations

import hashlib
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import privml._core as _core
from privml.errors import IdentityError, PeerDisconnected, ProtocolError
from privml.session.cutoff import ending_within
from privml.session.handshake import Hello

LANE_MAGIC = b"privml\x00L"
_TOKEN_BYTES = 32
_REQUEST_BYTES = _TOKEN_BYTES + 4
JOINED, WRONG_TOKEN, WRONG_LANE = range(3)
REFUSALS = {
    WRONG_TOKEN: "there is no such session there, or it has ended",
    WRONG_LANE: "there is no such lane, or it is taken",
}
# A connection that says nothing within this time keeps no lane waiting.
_REQUEST_SECONDS = 2.0
# How often a peer is looked at that has not opened all of its connections.
LOOK_SECONDS = 0.25

# Opens or accepts one connection within so many seconds.
Connector = Callable[[float], _core.Channel]
# All further connections of a session, from its token and their number.
Joiner = Callable[[bytes, int], Sequence[_core.Channel]]


def session_token(ours: Hello, theirs: Hello) -> bytes:
    """32 bytes that both parties of a handshake know and neither chose alone."""
    first, second = (ours, theirs) if ours.rank < theirs.rank else (theirs, ours)
    return hashlib.sha256(f"privml lanes {first.nonce} {second.nonce}".encode()).digest()


def session_key(ours: Hello, theirs: Hello) -> bytes:
    """32 bytes that both parties of a handshake know and nobody who listens. Raises ProtocolError for a public key that
    is none."""
    first, second = (ours, theirs) if ours.rank < theirs.rank else (theirs, ours)
    key = _core.common_key(ours.keys[0], first.keys[1], second.keys[1], second is theirs)
    return hashlib.blake2b(f"privml session {first.nonce} {second.nonce}".encode(), key=key, digest_size=32).digest()


def session_name(token: bytes) -> str:
    """12 hexadecimal digits that both parties know a session by, for logs; they tell nothing about the token."""
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
        raise ProtocolError(f"the peer's answer on lane {lane} is none of privml's")
    if answer[-1] != JOINED:
        error = PeerDisconnected if answer[-1] == WRONG_TOKEN else ProtocolError
        raise error(f"the peer refuses lane {lane}: {REFUSALS.get(answer[-1], 'no reason given')}")


def accept_lanes(
    accept: Connector, first: _core.Channel, token: bytes, count: int, deadline: float
) -> list[_core.Channel]:
    """The listening party's channels of lanes 1 to ``count``, in order.

    Connections that do not belong to this session are refused and closed (a server with many sessions sorts them by a
    ``LaneDesk`` instead). Raises PeerDisconnected, saying what came instead, when a lane is missing at the end, and at
    once where ``first``, the session's connection of lane 0, is closed.
    """
    end = time.monotonic() + deadline
    joined: dict[int, _core.Channel] = {}
    refused: list[str] = []
    try:
        while len(joined) < count:
            until = min(end, time.monotonic() + LOOK_SECONDS)
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
    """The lane that a new connection joins, or None when it is none of this session's."""
    channel.set_deadline(seconds)
    try:
        with ending_within(seconds, channel, "its request"):
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
    """Token and lane that a further connection names behind its magic."""
    request = channel.read(_REQUEST_BYTES)
    return request[:_TOKEN_BYTES], int.from_bytes(request[_TOKEN_BYTES:], "little")


def answer_lane(channel: _core.Channel, status: int) -> None:
    """What a further connection hears: that it has JOINED, or why not."""
    channel.write(LANE_MAGIC + bytes([status]))
    channel.flush()


def missing_lanes(joined: int, count: int, deadline: float, refused: Sequence[str]) -> PeerDisconnected:
    return _incomplete(f"the peer opened {joined} of {count} further connections within {deadline:g} seconds", refused)


def closed_early(joined: int, count: int, refused: Sequence[str]) -> PeerDisconnected:
    return _incomplete(f"the session's connection was closed when {joined} of {count} further ones had come", refused)


def _incomplete(text: str, refused: Sequence[str]) -> PeerDisconnected:
    if refused:
        text += f"; {len(refused)} refused, the last one because {refused[-1]}"
    return PeerDisconnected(text)


def _left(end: float) -> float:
    return max(end - time.monotonic(), 0.0)


def close_all(channels: Any) -> None:
    for channel in channels:
        channel.close()


class Link:
    """All channels of a session, which any thread may close at once. ``join`` brings the further ones."""

    def __init__(self, channel: _core.Channel, join: Joiner | None = None) -> None:
        self.channels, self.join = [channel], join
        self._lock, self._closed = threading.Lock(), False

    def add(self, channels: Sequence[_core.Channel]) -> None:
        """They are closed at once where the others were."""
        with self._lock:
            self.channels.extend(channels)
            closed = self._closed
        if closed:
            close_all(channels)

    def close(self) -> None:
        with self._lock:
            self._closed, channels = True, list(self.channels)
        close_all(channels)
