# SPDX-License-Identifier: Apache-2.0
"""How three parties find each other: the parties 0 and 1 shake hands first, then both reach the dealer, party 2, and
name their session by the token of that handshake.

Party 0 opens two connections to the dealer, one for what is dealt ahead of time; party 1 opens one. Wire layout of
each: 8 bytes magic, 32 bytes token, 1 byte rank, 1 byte number of the connection. The token tells sessions apart; it
is no key. Under TLS both connections of a party prove the same names, and the three parties different ones; that they
belong to one session is proved again by its keys (``privml.engines.threepc.keys``).
"""

from __future__ import annotations

import threading
import time
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

import privml._core as _core
from privml.errors import IdentityError, PeerDisconnected, ProtocolError
from privml.session.cutoff import ending_within
from privml.session.identity import Tls, expect_same_party, refuse_other_name, refuse_shared_names
from privml.session.lanes import Connector, close_all

DEALER_MAGIC = b"privml\x00D"
_TOKEN_BYTES = 32
# A connection that says nothing within this time keeps no other one waiting.
_REQUEST_SECONDS = 2.0
# Rank and number of the connections of a session.
PLACES = ((0, 0), (0, 1), (1, 0))
# Incomplete sessions at a time; each holds two connections at most.
MOST_WAITING = 256


def dealer_connections(rank: int) -> int:
    """How many connections party ``rank`` opens to the dealer."""
    return sum(place[0] == rank for place in PLACES)


def reach_dealer(connect: Connector, token: bytes, rank: int, deadline: float) -> list[_core.Channel]:
    """The connections of party ``rank`` to the dealer, in order. Raises PeerDisconnected when it is not there."""
    end = time.monotonic() + deadline
    channels: list[_core.Channel] = []
    try:
        for number in range(dealer_connections(rank)):
            channels.append(connect(max(end - time.monotonic(), 0.0)))
            channels[-1].write(DEALER_MAGIC + token + bytes([rank, number]))
            channels[-1].flush()
    except BaseException:
        close_all(channels)
        raise
    return channels


@dataclass(slots=True, eq=False)
class Gathering:
    """A session's connections that have come so far, by place; ``since``: when the first one came; ``first``: the name
    that its peer has proved, "" without TLS."""

    token: bytes
    since: float
    first: str = ""
    channels: dict[tuple[int, int], _core.Channel] = field(default_factory=dict)

    @property
    def complete(self) -> bool:
        return len(self.channels) == len(PLACES)

    @property
    def peer(self) -> str:
        """The names that its parties have proved."""
        return " and ".join(filter(None, (self.channels[place].peer_name for place in PLACES[1:])))

    @property
    def gone(self) -> bool:
        """Whether one of its connections has ended."""
        return any(channel.peer_closed for channel in self.channels.values())

    def close(self) -> None:
        close_all(self.channels.values())


class Lobby:
    """Where a dealer sorts connections into sessions. A session that is not complete after ``patience`` seconds is
    closed. Of ``MOST_WAITING`` incomplete ones the oldest of the name that has begun most of them makes room for one
    more, so that nobody who begins many keeps out another name. ``log`` takes a line about each connection that is
    refused or given up. ``tls``: whose names the parties must prove. Any thread may call."""

    def __init__(self, patience: float, log: Callable[[str], None], tls: Tls | None = None) -> None:
        self._patience, self._log, self._tls = patience, log, tls
        self._lock = threading.Lock()
        self._waiting: dict[bytes, Gathering] = {}

    def admit(self, channel: _core.Channel) -> Gathering | None:
        """The session that ``channel`` completes, or None; a connection that belongs to none is closed."""
        self.expire()
        channel.set_deadline(_REQUEST_SECONDS)
        try:
            with ending_within(_REQUEST_SECONDS, channel, "its request"):
                asked = self.hear(channel)
            return self.add(channel, *asked)
        except (ProtocolError, PeerDisconnected, IdentityError) as error:
            self._log(f"a connection was refused: {error}")
            channel.close()
            return None

    def hear(self, channel: _core.Channel) -> tuple[bytes, tuple[int, int]]:
        """The session and the place that a connection asks for. Raises ProtocolError, IdentityError and
        PeerDisconnected."""
        token, place = _request(channel)
        refuse_other_name(channel, self._tls, place[0])
        return token, place

    def add(self, channel: _core.Channel, token: bytes, place: tuple[int, int]) -> Gathering | None:
        """The session that ``channel`` completes, or None. Raises ProtocolError for one that is there already, and
        IdentityError for one whose names do not go with the others of its session, which waits on."""
        gone = None
        with self._lock:
            waiting = self._waiting.get(token)
            _refuse_misfit(channel, place, {} if waiting is None else waiting.channels)
            if token not in self._waiting:
                gone = self._make_room()
                self._waiting[token] = Gathering(token, time.monotonic(), channel.peer_name)
            gathering = self._waiting[token]
            if place in gathering.channels:
                raise ProtocolError(f"connection {place[1]} of party {place[0]} is there already")
            gathering.channels[place] = channel
            complete = self._waiting.pop(token) if gathering.complete else None
        if gone is not None:
            self._log(f"a session was given up: too many wait for their other party, most of them of {gone.first!r}")
            gone.close()
        return complete

    def _make_room(self) -> Gathering | None:
        """Who has to go before one more may wait."""
        if len(self._waiting) < MOST_WAITING:
            return None
        ((name, _),) = Counter(each.first for each in self._waiting.values()).most_common(1)
        return self._waiting.pop(next(token for token, each in self._waiting.items() if each.first == name))

    def expire(self) -> None:
        """Closes what has waited too long."""
        now = time.monotonic()
        with self._lock:
            late = [each for each in self._waiting.values() if now - each.since > self._patience]
            for gathering in late:
                del self._waiting[gathering.token]
        for gathering in late:
            came = sorted({rank for rank, _ in gathering.channels})
            self._log(f"a session was given up after {self._patience:g} seconds: only party {came} came")
            gathering.close()

    def close(self) -> None:
        with self._lock:
            waiting = list(self._waiting.values())
            self._waiting.clear()
        for gathering in waiting:
            gathering.close()


def _refuse_misfit(
    channel: _core.Channel, place: tuple[int, int], others: Mapping[tuple[int, int], _core.Channel]
) -> None:
    refuse_shared_names(channel)
    for (rank, _), other in others.items():
        if rank == place[0]:
            expect_same_party(other, channel)
        else:
            refuse_shared_names(other, channel)


def _request(channel: _core.Channel) -> tuple[bytes, tuple[int, int]]:
    if channel.read(len(DEALER_MAGIC)) != DEALER_MAGIC:
        raise ProtocolError("its first bytes do not ask for a dealer")
    request = channel.read(_TOKEN_BYTES + 2)
    place = (request[_TOKEN_BYTES], request[_TOKEN_BYTES + 1])
    if place not in PLACES:
        raise ProtocolError(f"a session has no connection {place[1]} of party {place[0]}")
    return request[:_TOKEN_BYTES], place
