# SPDX-License-Identifier: Apache-2.0
"""Sessions with a dealer: the parties 0 and 1 shake hands first, then both connect to the dealer, party 2, and name
their session by the token of that handshake.

Party 0 opens two connections to the dealer, one for what is dealt ahead of time; party 1 opens one. Wire layout of
each: 8 bytes magic, 32 bytes token, 1 byte rank, 1 byte number of the connection. The token names the session; it
is not a key. Under TLS both connections of a party must show the same names, and the three parties different ones;
the engine's keys prove again that they belong to one session.
"""

from __future__ import annotations

import threading
import time
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import privml._core as _core
from privml.context import Session
from privml.errors import HandshakeMismatch, IdentityError, InvalidInput, PeerDisconnected, ProtocolError
from privml.session.agreement import Fields, agree
from privml.session.connections import Connector, Joiner, accept, close_all, reach, time_limit
from privml.session.handshake import DEALER, DEALER_ROLE, shake_hands
from privml.session.identity import Tls, accept_options, expect_same_party, refuse_other_name, refuse_shared_names
from privml.session.lanes import public_seed
from privml.session.session import HELLO_PATIENCE, Settings, session_on
from privml.spec import SessionSpec

DEALER_MAGIC = b"privml\x00D"
_TOKEN_BYTES = 32
# A connection that sends no request within this time is closed.
_REQUEST_SECONDS = 2.0
# Rank and number of the connections of a session.
PLACES = ((0, 0), (0, 1), (1, 0))
# Incomplete sessions at a time, each of two connections at most.
MOST_WAITING = 256
# Parties 0 and 1 may exchange much without the dealer, which waits for them this many times their deadline.
PATIENCE = 5
# Of the request of parties that want queries dealt ahead.
AHEAD = "ahead"


def dealer_connections(rank: int) -> int:
    """How many connections party ``rank`` opens to the dealer."""
    return sum(place[0] == rank for place in PLACES)


def reach_dealer(connect: Connector, token: bytes, rank: int, deadline: float) -> list[_core.Channel]:
    """The connections of party ``rank`` to the dealer, in order. Raises PeerDisconnected if it cannot be reached."""
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
class SessionConnections:
    """A session's connections that the dealer has accepted so far, by (rank, number); ``since``: when the first one was
    accepted; ``first``: the name in its peer's certificate, "" without TLS."""

    token: bytes
    since: float
    first: str = ""
    channels: dict[tuple[int, int], _core.Channel] = field(default_factory=dict)

    @property
    def complete(self) -> bool:
        return len(self.channels) == len(PLACES)

    @property
    def peer(self) -> str:
        """The names in its parties' certificates."""
        return " and ".join(filter(None, (self.channels[place].peer_name for place in PLACES[1:])))

    @property
    def address(self) -> str:
        """Where its parties connect from."""
        return " and ".join(filter(None, (self.channels[place].peer_address for place in PLACES[1:])))

    @property
    def gone(self) -> bool:
        """Whether one of its connections has ended."""
        return any(channel.peer_closed for channel in self.channels.values())

    def close(self) -> None:
        close_all(self.channels.values())


class PendingSessions:
    """A dealer's incomplete sessions, to which it assigns connections. One that is not complete after ``patience``
    seconds is closed. If there are ``MOST_WAITING``, the oldest one of the name that has begun most of them is closed
    for a further one, so that no name can keep out the others. ``log`` takes a line about each connection that is
    refused or given up. ``tls``: has the names of the parties. Any thread may call."""

    def __init__(self, patience: float, log: Callable[[str], None], tls: Tls | None = None) -> None:
        self._patience, self._log, self._tls = patience, log, tls
        self._lock = threading.Lock()
        self._waiting: dict[bytes, SessionConnections] = {}

    def admit(self, channel: _core.Channel) -> SessionConnections | None:
        """The session that ``channel`` completes, or None; a connection that belongs to no session is closed."""
        self.expire()
        channel.set_deadline(_REQUEST_SECONDS)
        try:
            with time_limit(_REQUEST_SECONDS, channel, "its request"):
                asked = self.receive(channel)
            return self.add(channel, *asked)
        except (ProtocolError, PeerDisconnected, IdentityError) as error:
            self._log(f"a connection was refused: {error}")
            channel.close()
            return None

    def receive(self, channel: _core.Channel) -> tuple[bytes, tuple[int, int]]:
        """The session's token and the place that a connection requests. Raises ProtocolError, IdentityError and
        PeerDisconnected."""
        token, place = _request(channel)
        refuse_other_name(channel, self._tls, place[0])
        return token, place

    def add(self, channel: _core.Channel, token: bytes, place: tuple[int, int]) -> SessionConnections | None:
        """The session that ``channel`` completes, or None. Raises ProtocolError if its place is taken, and
        IdentityError if its names do not match those of the session, which goes on waiting."""
        gone = None
        with self._lock:
            waiting = self._waiting.get(token)
            _refuse_misfit(channel, place, {} if waiting is None else waiting.channels)
            if token not in self._waiting:
                gone = self._make_room()
                self._waiting[token] = SessionConnections(token, time.monotonic(), channel.peer_name)
            connections = self._waiting[token]
            if place in connections.channels:
                raise ProtocolError(f"connection {place[1]} of party {place[0]} is there already")
            connections.channels[place] = channel
            complete = self._waiting.pop(token) if connections.complete else None
        if gone is not None:
            self._log(f"a session was dropped: too many sessions wait for a party, most of them of {gone.first!r}")
            gone.close()
        return complete

    def _make_room(self) -> SessionConnections | None:
        """The session that must be closed before a further one may wait."""
        if len(self._waiting) < MOST_WAITING:
            return None
        ((name, _),) = Counter(each.first for each in self._waiting.values()).most_common(1)
        return self._waiting.pop(next(token for token, each in self._waiting.items() if each.first == name))

    def expire(self) -> None:
        """Closes the sessions that have waited too long."""
        now = time.monotonic()
        with self._lock:
            late = [each for each in self._waiting.values() if now - each.since > self._patience]
            for connections in late:
                del self._waiting[connections.token]
        for connections in late:
            came = sorted({rank for rank, _ in connections.channels})
            self._log(f"a session was dropped after {self._patience:g} seconds: only party {came} connected")
            connections.close()

    def close(self) -> None:
        with self._lock:
            waiting = list(self._waiting.values())
            self._waiting.clear()
        for connections in waiting:
            connections.close()


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


def dealer_opener(address: str, rank: int, deadline: float, options: Mapping[str, Any] | None = None) -> Joiner:
    """Opens the connections of party 0 or 1 to the dealer at ``address``."""
    connector = partial(reach, address, options=options)
    return lambda token, count: reach_dealer(connector, token, rank, deadline)


def open_dealer(
    connections: SessionConnections,
    settings: Settings,
    check: Callable[[Fields], None],
) -> Session:
    """Shakes hands with both other parties and sets up the engine; the session owns the channels from here on.

    ``check`` gets the request that the parties send to the dealer in clear, and raises a PrivmlError to refuse it. A
    read may wait for the specification's deadline until the engine is there, and 5 times as long afterwards.
    Raises HandshakeMismatch, ProtocolError (also if the requests of the two differ), PeerDisconnected; all channels
    are closed then.
    """
    spec = settings.spec
    deadline = spec.deadline
    requests: list[Fields] = []
    refused: list[InvalidInput | HandshakeMismatch] = []

    def compare(request: Fields) -> tuple[None, Fields]:
        if refused:
            raise refused[0]
        check(request)
        if requests and requests[0] != request:
            raise ProtocolError("the parties 0 and 1 sent the dealer different requests")
        requests.append(request)
        return None, {}

    channels = connections.channels
    try:
        for channel in channels.values():
            channel.set_deadline(deadline)
        for rank in range(DEALER):
            try:
                with time_limit(HELLO_PATIENCE * deadline, connections, f"the hello of party {rank}"):
                    shake_hands(channels[rank, 0], settings.hello(DEALER, DEALER_ROLE), peer=rank)
                agree(channels[rank, 0], {}, compare, f"party {rank} gives up")
            except (InvalidInput, HandshakeMismatch) as error:  # the other party must learn of it too
                refused.append(error)
        if refused:
            raise refused[0]
        ends = [channels[rank, 0] for rank in range(DEALER)]
        engine = spec.backend.open([*ends, channels[0, 1]], DEALER, spec)
        set_patience(connections, deadline)
    except BaseException:
        connections.close()
        raise
    common = public_seed(connections.token) if spec.test_seed is None else spec.test_seed
    return session_on(engine, spec.numerics, common, ends)


def set_patience(connections: SessionConnections, deadline: float) -> None:
    """Sets how long the dealer waits in a query's run, for parties with this ``deadline`` in seconds."""
    for channel in connections.channels.values():
        channel.set_deadline(PATIENCE * deadline)


def accept_session(listener: _core.TcpListener, spec: SessionSpec) -> SessionConnections:
    """The connections of the first session that is complete. Raises PeerDisconnected after the deadline."""
    end, refused = time.monotonic() + spec.deadline, []
    pending, options = PendingSessions(spec.deadline, refused.append, spec.identity.tls), accept_options(spec, 0, 1)
    try:
        while True:
            channel = accept(listener, max(end - time.monotonic(), 0.0), spec.on_wait, options)
            complete = pending.admit(channel)
            if complete is not None:
                return complete
    except PeerDisconnected as error:
        raise PeerDisconnected(f"{error}" + (f"; {refused[-1]}" if refused else "")) from None
    finally:
        pending.close()


def expect_no_request(request: Fields) -> None:
    """For programs whose parties send the dealer no request."""
    if request:
        raise ProtocolError("the parties requested other correlations than this program needs")


def as_dealer(listener: _core.TcpListener, settings: Settings) -> Session:
    """The session of the first two parties that come."""
    return open_dealer(accept_session(listener, settings.spec), settings, expect_no_request)
