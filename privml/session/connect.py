# SPDX-License-Identifier: Apache-2.0
"""One party of a real run: reach the others over TCP and open a session."""

from __future__ import annotations

import threading
import time
import warnings
from collections.abc import Callable, Mapping
from functools import partial
from queue import Empty, SimpleQueue
from typing import Any

import privml._core as _core
from privml.context import Session
from privml.engines.interface import Backend, backends
from privml.errors import ConfigError, HandshakeMismatch, PeerDisconnected, PrivmlError
from privml.generators import CommonGenerators
from privml.session.connections import Link, listening, reach, time_limit
from privml.session.dealer import as_dealer, dealer_opener
from privml.session.handshake import DEALER, Handshake, Hello, receive_hello
from privml.session.identity import accept_options, check_addresses, connect_options
from privml.session.lanes import lane_acceptor, lane_opener
from privml.session.session import HELLO_PATIENCE, Settings, load_torch, open_session
from privml.spec import SessionSpec, WaitCallback, checked_spec

# Waiting is divided into slices, so that an interrupt is seen soon and connections are accepted while hellos are read.
_SLICE_SECONDS, _SHORT_SECONDS = 0.5, 0.05
# Connections whose hello is read at a time; the oldest is closed for a further one.
_MOST_CALLERS = 64

# A connection, and its hello or what ended it.
_Outcome = tuple[_core.Channel, Handshake | PrivmlError]
# Parameters that are part of the specification now, and what it calls them.
_MOVED = {
    **{name: name for name in ("engine", "ot", "k", "security", "refill", "numerics", "deadline", "threads")},
    **{name: name for name in ("truncation", "device", "ring", "tls", "insecure", "on_wait", "test_seed")},
    "network": "delay_ms=..., bandwidth_mbps",
}


def connect(
    rank: int,
    spec: SessionSpec | None = None,
    *,
    listen: str | None = None,
    connect: str | None = None,
    dealer: str | None = None,
    program: Any = None,
    **moved: Any,
) -> Session:
    """A session between this process and another: ``with privml.connect(rank=0, listen="127.0.0.1:9000") as s:``.

    ``spec``: how it is run; if None ``privml.SessionSpec()``, with the formats of ``program``.
    ``privml.SessionSpec.of(threads=2, deadline=10.0)`` makes one from plain values.

    Between two parties, one passes ``listen``, the other one ``connect`` (both "host:port"), in either order of time:
    each waits until the specification's deadline, which is also the longest that any later read may wait. A connection
    that sends no hello, such as a port scanner's, is refused with a warning. Between three, the parties 0 and 1 do the
    same and pass the address of party 2 as ``dealer``; party 2 only listens. ``program``: a converted program (or its
    hash) that all must hold.

    An address beyond this machine needs certificates, ``spec.identity.tls``, with a name for every party that this one
    connects to.

    Raises ConfigError for wrong settings and a port in use, HandshakeMismatch when the parties disagree, IdentityError
    when a certificate is refused, PeerDisconnected when no peer comes or it goes, ProtocolError when it is not a privml
    party.
    """
    _refuse_moved(moved)
    numerics = getattr(program, "numerics", None)
    settings = Settings.of(SessionSpec(numerics=numerics) if spec is None else checked_spec(spec), program)
    spec = settings.spec
    _check_places(rank, listen, connect, dealer, spec.backend)
    check_addresses(spec, listen, connect, dealer)
    load_torch()
    if rank == DEALER:
        assert listen is not None
        with listening(listen) as listener:
            return of_program(as_dealer(listener, settings))
    join = None if dealer is None else dealer_opener(dealer, rank, spec.deadline, connect_options(spec, DEALER))
    if listen is not None:
        away = accept_options(spec, 1 - rank)
        with listening(listen) as listener:
            hello = partial(settings.hello, rank, "party")
            channel, handshake = accept_peer(listener, hello, spec.deadline, spec.on_wait, away)
            link = Link(channel, join or lane_acceptor(listener, channel, spec.deadline, away))
            return of_program(open_session(link, rank, settings, handshake=handshake))
    assert connect is not None
    away = connect_options(spec, 1 - rank)
    link = Link(reach(connect, spec.deadline, spec.on_wait, away), join or lane_opener(connect, spec.deadline, away))
    return of_program(open_session(link, rank, settings))


def of_program(session: Session) -> Session:
    """A session of a program of the user's own: while it is entered the parties' global generators are equal, and
    errors name the program's lines."""
    assert session.common_seed is not None and session.transcript is not None
    session.generators = CommonGenerators(session.common_seed)
    session.transcript.names_lines = True
    return session


def _refuse_moved(given: dict[str, Any]) -> None:
    for name in given:
        if name not in _MOVED:
            raise TypeError(f"connect() got an unexpected keyword argument {name!r}")
        raise ConfigError(
            f"privml.connect has no {name}=: it is part of the specification, "
            f"privml.connect(rank, privml.SessionSpec.of({_MOVED[name]}=...), ...)"
        )


def _check_places(rank: int, listen: str | None, connect: str | None, dealer: str | None, engine: Backend) -> None:
    ranks = range(engine.parties)
    if rank not in ranks:
        raise ConfigError(f"rank must be one of {', '.join(map(str, ranks))} for engine={engine.name}, got {rank!r}")
    if rank == DEALER:
        if listen is None or connect is not None or dealer is not None:
            raise ConfigError("party 2 waits for the others: pass listen='host:port' alone")
        return
    if (listen is None) == (connect is None):
        raise ConfigError("pass one of listen='host:port' and connect='host:port'")
    if (dealer is None) == engine.dealt:
        three = ", ".join(each.name for each in backends() if each.dealt)
        raise ConfigError(f"pass dealer='host:port', the address of party 2, with engine={three} and only with it")


# ---- which of the connections to a listening party is its peer's
def accept_peer(
    listener: _core.TcpListener,
    hello: Callable[[], Hello],
    deadline: float,
    on_wait: WaitCallback | None = None,
    options: Mapping[str, Any] | None = None,
) -> tuple[_core.Channel, Handshake]:
    """The first connection, with ``options`` (see ``accept_options``), whose hello matches ``hello()``; it is not sent
    yet. ``on_wait`` is called with the seconds waited while there is no connection.

    Port scanners and other connections that send something else, half a TLS handshake or nothing block no party:
    each connection's hello is read on a thread of its own, and a warning names the reason of each refusal. Connections
    are accepted for ``deadline`` seconds; an accepted one may take as long for each read of its hello. Raises
    HandshakeMismatch as soon as a hello has other settings, and at the end the reason why the last connection was
    refused, or PeerDisconnected if there was none.
    """
    start, refused, outcome = time.monotonic(), None, None
    outcomes: SimpleQueue[_Outcome] = SimpleQueue()
    callers: list[_core.Channel] = []
    try:
        while callers or time.monotonic() - start < deadline:
            accepts = time.monotonic() - start < deadline  # or strays could keep it for ever
            channel = _next(listener, 0.0 if callers else min(_SLICE_SECONDS, deadline), options) if accepts else None
            if channel is not None:
                callers.append(channel)
                threading.Thread(
                    target=_receive, args=(channel, hello(), deadline, outcomes), name="hello", daemon=True
                ).start()
                if len(callers) > _MOST_CALLERS:
                    callers[0].close()
            elif not callers and on_wait is not None:
                on_wait(time.monotonic() - start)
            outcome = _take(outcomes) if callers else None
            if outcome is None:
                continue
            callers.remove(outcome[0])
            if isinstance(outcome[1], Handshake):
                return outcome[0], outcome[1]
            refused = outcome[1]
            if isinstance(refused, HandshakeMismatch):
                raise refused
            warnings.warn(f"a connection to port {listener.port} was refused: {refused}", stacklevel=3)
        if refused is None:
            raise PeerDisconnected(f"nobody connected to port {listener.port} within {deadline:g} seconds")
        raise type(refused)(f"{refused}; nobody else connected to port {listener.port} within {deadline:g} seconds")
    finally:
        for channel in callers:
            channel.close()
        refused = outcome = None  # an error refers to this frame: nothing here may refer to it, or sockets stay open


def _next(listener: _core.TcpListener, seconds: float, options: Mapping[str, Any] | None) -> _core.Channel | None:
    try:
        return listener.accept(seconds, **(options or {}))
    except PeerDisconnected:
        return None


def _take(outcomes: SimpleQueue[_Outcome]) -> _Outcome | None:
    try:
        return outcomes.get(timeout=_SHORT_SECONDS)
    except Empty:
        return None


def _receive(channel: _core.Channel, ours: Hello, deadline: float, outcomes: SimpleQueue[_Outcome]) -> None:
    outcome: Handshake | PrivmlError
    try:
        channel.set_deadline(deadline)
        with time_limit(HELLO_PATIENCE * deadline, channel, "the peer's hello"):
            outcome = receive_hello(channel, ours)
    except PrivmlError as error:
        channel.close()
        outcome = error
    outcomes.put((channel, outcome))
    del outcome, channel  # as above
