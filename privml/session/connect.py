# SPDX-License-Identifier: Apache-2.0
"""One party of a real run: reach the others over TCP and open a session."""

from __future__ import annotations

from functools import partial
from typing import Any

from privml.context import Session
from privml.engines.interface import Backend, backends
from privml.errors import ConfigError
from privml.generators import CommonGenerators
from privml.session.callers import first_caller
from privml.session.connections import joining, listening, reach, reaching, reaching_dealer
from privml.session.deal import as_dealer
from privml.session.handshake import DEALER
from privml.session.identity import check_addresses, dialling, link_to
from privml.session.lanes import Link
from privml.session.session import Settings, WaitCallback, load_torch, open_session
from privml.spec import SessionSpec

# Parameters that are part of the specification now, and what it calls them.
_MOVED = {
    **{name: name for name in ("engine", "ot", "k", "security", "refill", "numerics", "deadline", "threads")},
    **{name: name for name in ("truncation", "device", "ring", "tls", "insecure", "test_seed")},
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
    on_wait: WaitCallback | None = None,
    **moved: Any,
) -> Session:
    """A session between this process and another: ``with privml.connect(rank=0, listen="127.0.0.1:9000") as s:``.

    ``spec``: how it is run, ``privml.SessionSpec()`` if None. ``privml.SessionSpec.of(threads=2, deadline=10.0)`` makes
    one from plain values.

    Between two parties, one passes ``listen``, the other one ``connect`` (both "host:port"), in either order of time:
    each waits until the specification's deadline, which is also the longest that any later read may wait. A connection
    that sends no hello, such as a port scanner's, is refused with a warning. Between three, the parties 0 and 1 do the
    same and pass the address of party 2 as ``dealer``; party 2 only listens. ``program``: a converted program (or its
    hash) that all must hold. ``on_wait`` is called with the seconds waited while no other party is there.

    An address beyond this machine needs certificates, ``spec.identity.tls``, with a name for every party that this one
    connects to.

    Raises ConfigError for wrong settings and a port in use, HandshakeMismatch when the parties disagree, IdentityError
    when a certificate is refused, PeerDisconnected when no peer comes or it goes, ProtocolError when it is not a privml
    party.
    """
    _refuse_moved(moved)
    settings = Settings.of(SessionSpec() if spec is None else spec, program)
    spec = settings.spec
    _check_places(rank, listen, connect, dealer, spec.backend)
    check_addresses(spec, listen, connect, dealer)
    load_torch()
    if rank == DEALER:
        with listening(listen) as listener:
            return of_program(as_dealer(listener, settings, on_wait))
    join = None if dealer is None else reaching_dealer(dealer, rank, spec.deadline, dialling(spec, DEALER))
    if listen is not None:
        away = link_to(spec, 1 - rank)
        with listening(listen) as listener:
            hello = partial(settings.hello, rank, "party")
            channel, greeting = first_caller(listener, hello, spec.deadline, on_wait, away)
            link = Link(channel, join or joining(listener, channel, spec.deadline, away))
            return of_program(open_session(link, rank, settings, greeting=greeting))
    away = dialling(spec, 1 - rank)
    link = Link(reach(connect, spec.deadline, on_wait, away), join or reaching(connect, spec.deadline, away))
    return of_program(open_session(link, rank, settings))


def of_program(session: Session) -> Session:
    """A session of a program of the user's own: while it is entered the parties' global generators are alike, and
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
