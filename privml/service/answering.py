# SPDX-License-Identifier: Apache-2.0
"""What a server does in a session: grants what the client asks for, reserves correlations, runs, reveals; and again.

After an answer the client may send one byte and ask for another query on the same connections, the weights shared and
the keys agreed already. Whatever goes wrong in a query ends its session.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import nullcontext
from dataclasses import dataclass

import privml._core as _core
from privml.context import Session
from privml.errors import PeerDisconnected, ProtocolError
from privml.program import INPUT_OWNER
from privml.service.progress import Progress, report_nodes
from privml.service.request import AnyTerms, Elsewhere, Room, Service, Shape, grant
from privml.session.connections import Link
from privml.session.ledger import Ledger, begin_query, between_queries, make_ahead
from privml.session.session import EngineOpener
from privml.sharing import reveal

# What a client sends before it asks for another query.
AGAIN = b"\x01"
# How long a client may take to read its last answer to the end.
_SECONDS_TO_READ = 10.0


@dataclass(frozen=True, slots=True)
class Answered:
    """One answered query: what it was, what it cost, and where its correlations came from. ``turn``: which one of its
    session it was, counted from 1; ``number``: which one of its server."""

    shapes: tuple[Shape, ...]
    seconds: float
    ledger: Ledger
    source: str
    turn: int = 1
    number: int = 0

    def __str__(self) -> str:
        shapes = ", ".join(str(list(shape)) for shape in self.shapes)
        cost = self.ledger.snapshot()
        ahead = cost.setup + cost.preprocess
        turn = f" ({self.turn} of its session)" if self.turn > 1 else ""
        return (
            f"query {self.number}{turn}: input {shapes}, {self.seconds:.2f} s; offline {ahead.seconds:.2f} s, "
            f"{ahead.bytes / 1e6:.2f} MB; online {cost.online.seconds:.2f} s, {cost.online.bytes / 1e6:.2f} MB; "
            f"correlations {self.source}"
        )


@dataclass(frozen=True, slots=True)
class Turns:
    """What one session may do: it has ``queries`` queries, may be ``idle`` seconds between two of them, and makes the
    correlations of a next one ``ahead`` for clients who ask for that."""

    queries: int = 1
    idle: float = 60.0
    ahead: bool = True

    @property
    def leaving(self) -> bool:
        """Whether the session was closed here while its client had asked nothing."""
        return False

    def making(self) -> None:
        """Hears that what was asked is answered, and that something is made ahead until ``idle`` is read."""

    def room(self, behind: int) -> Room:
        """What there is room for when ``behind`` queries, with the one being settled, are granted."""
        return Room(max(self.queries - behind, 0), self.idle, self.ahead)


ONE_QUERY = Turns()


class GaveWay(Exception):
    """``Turns.room`` of a session that takes no further query, as its client's next one came; says why."""


def answer(
    opener: Callable[..., Session],
    link: Link,
    service: Service,
    turns: Turns = ONE_QUERY,
    on_answer: Callable[[Answered], None] = lambda done: None,
    progress: Progress | None = None,
) -> str:
    """Answers the queries of the session that ``opener(agree=...)`` opens on ``link``; returns why it ended.

    ``on_answer`` gets each one when its outputs are sent. Raises what goes wrong within a query; with an actively
    secure engine that counts against the client (``privml.service.aborts``).
    """
    start = time.monotonic()
    settled: list[AnyTerms] = []
    channel = link.channels[0]

    def agree(channel: _core.Channel) -> EngineOpener:
        settled.append(grant(channel, service, turns.room(1)))
        return settled[0].open

    counted = service.aborts.counted(channel) if service.settings.backend.actively_secure else nullcontext()
    with counted, opener(agree=agree) as session:
        turn, terms = 1, settled[0]
        while True:
            _run(session, service, terms, progress)
            done = time.monotonic()
            on_answer(Answered(terms.shapes, done - start, session.ledger.frozen(), terms.source, turn))
            if terms.room.queries == 0:
                _wait_for_end(channel)
                return "it had all its queries"
            try:
                if terms.room.ahead:
                    turns.making()
                    make_ahead(session, terms.next_stock)
            except PeerDisconnected:
                if service.settings.backend.actively_secure and not turns.leaving:  # it may have seen an attempt fail
                    raise
                return "the client left"
            with between_queries(link.channels[:2] if service.settings.backend.dealt else link.channels[:1]):
                idle = turns.idle
                if not _asks_again(channel, idle):
                    late = time.monotonic() - done >= idle
                    return f"no query came within {idle:g} seconds" if late else "the client left"
                start, turn = time.monotonic(), turn + 1
                channel.set_deadline(service.settings.spec.deadline)
                try:
                    terms = grant(channel, service, turns.room(turn), settled[0])
                except GaveWay as why:
                    return str(why)
                except Elsewhere:
                    return "the store does not suffice for its next query, which gets a session of its own"
                terms.go_on(session, link.channels)
            begin_query(session)


def _run(session: Session, service: Service, terms: AnyTerms, progress: Progress | None) -> None:
    report_nodes(session, service.program, progress)
    session.reserve(terms.stock)
    for output in service.program.results(session, *terms.shapes):
        reveal(output, to=INPUT_OWNER)


def _asks_again(channel: _core.Channel, seconds: float) -> bool:
    """Whether the client asks for another query within ``seconds``; False when it does not, or has left."""
    channel.set_deadline(seconds)
    try:
        byte = channel.read(1)
    except PeerDisconnected:
        return False
    if byte != AGAIN:
        raise ProtocolError("what the client sent after its answer does not ask for another query")
    return True


def _wait_for_end(channel: _core.Channel) -> None:
    """The client closes once it has read everything; closing first could lose the last bytes."""
    channel.set_deadline(_SECONDS_TO_READ)
    try:
        channel.read(1)
    except PeerDisconnected:
        return
