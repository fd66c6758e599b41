# SPDX-License-Identifier: Apache-2.0
"""What a server does in a session: grants each query, reserves its correlations, runs it and reveals the outputs.

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
from privml.service.events import Progress, report_nodes
from privml.service.negotiation import Allowance, NeedsNewSession, Service, Shape, Terms, grant_query
from privml.session.connections import Link
from privml.session.ledger import Ledger, begin_query, between_queries, make_ahead
from privml.session.session import EngineOpener
from privml.sharing import reveal

# What a client sends before it asks for another query.
NEXT_QUERY = b"\x01"
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
class SessionLimits:
    """Limits of one session: it has ``queries`` queries, may be ``idle`` seconds between two of them, and makes the
    correlations of a next one ``ahead`` for clients that ask for it, and prepares the products of ``prepare`` queries
    together."""

    queries: int = 1
    idle: float = 60.0
    ahead: bool = True
    prepare: int = 0

    @property
    def leaving(self) -> bool:
        """Whether this party has ended the session between two queries."""
        return False

    def begin_ahead(self) -> None:
        """Called once a query is answered, if the correlations of the next one are made then, until ``idle`` is
        read."""

    def hold(self, bytes: int) -> None:
        """Called with what the session keeps once a query is answered that is being negotiated; InvalidInput if that is
        too much."""

    def allowance(self, granted: int) -> Allowance:
        """What the client may do once ``granted`` queries, with the one being negotiated, are granted."""
        return Allowance(max(self.queries - granted, 0), self.idle, self.ahead, self.prepare)


ONE_QUERY = SessionLimits()


class SessionClosing(Exception):
    """Raised by ``SessionLimits.allowance`` of a session that takes no further query; says why."""


def answer_queries(
    opener: Callable[..., Session],
    link: Link,
    service: Service,
    limits: SessionLimits = ONE_QUERY,
    on_answer: Callable[[Answered], None] = lambda done: None,
    progress: Progress | None = None,
) -> str:
    """Answers the queries of the session that ``opener(agree=...)`` opens on ``link``; returns why it ended.

    ``on_answer`` gets each one when its outputs are sent. Raises what goes wrong within a query; with an actively
    secure engine that counts against the client (``privml.service.aborts``).
    """
    start, weights = time.monotonic(), service.program.weights
    agreed: list[Terms] = []
    channel = link.channels[0]

    def agree(channel: _core.Channel) -> EngineOpener:
        agreed.append(grant_query(channel, service, limits.allowance(1), hold=limits.hold))
        return agreed[0].open

    counted = service.aborts.counted(channel) if service.settings.backend.actively_secure else nullcontext()
    with counted, opener(agree=agree) as session:
        turn, terms = 1, agreed[0]
        while True:
            _run(session, service, terms, progress)
            done = time.monotonic()
            shapes = terms.shapes[: len(service.program.inputs)]
            on_answer(Answered(shapes, done - start, session.ledger.frozen(), terms.source, turn))
            if terms.allowance.queries == 0:
                _wait_for_end(channel)
                return "it had all its queries"
            try:
                if terms.allowance.ahead:
                    limits.begin_ahead()
                    terms.prepare(session)
                    make_ahead(session, terms.next_stock)
            except PeerDisconnected:
                if service.settings.backend.actively_secure and not limits.leaving:  # it may have seen an attempt fail
                    raise
                return "the client left"
            with between_queries(link.channels[:2] if service.settings.spec.dealt else link.channels[:1]):
                idle = limits.idle
                if not _next_requested(channel, idle):
                    late = time.monotonic() - done >= idle
                    return f"no query came within {idle:g} seconds" if late else "the client left"
                if service.program.weights is not weights:
                    return "the weights were replaced; its next query gets a session of its own"
                start, turn = time.monotonic(), turn + 1
                channel.set_deadline(service.settings.spec.deadline)
                try:
                    state = service.program.held(session)
                    terms = grant_query(channel, service, limits.allowance(turn), agreed[0], state, limits.hold)
                except SessionClosing as why:
                    return str(why)
                except NeedsNewSession:
                    return "the store does not suffice for its next query, which gets a session of its own"
                terms.go_on(session, link.channels)
            begin_query(session)


def _run(session: Session, service: Service, terms: Terms, progress: Progress | None) -> None:
    report_nodes(session, service.program, terms.shapes, progress)
    session.reserve(terms.stock)
    results = service.program.results(session, *terms.shapes[: len(service.program.inputs)])
    terms.settle(session)
    for output in results:
        reveal(output, to=INPUT_OWNER)


def _next_requested(channel: _core.Channel, seconds: float) -> bool:
    """Whether the client asks for another query within ``seconds``; False when it does not, or has left."""
    channel.set_deadline(seconds)
    try:
        byte = channel.read(1)
    except PeerDisconnected:
        return False
    if byte != NEXT_QUERY:
        raise ProtocolError("what the client sent after its answer is not a request for another query")
    return True


def _wait_for_end(channel: _core.Channel) -> None:
    """The client closes once it has read everything; closing first could lose the last bytes."""
    channel.set_deadline(_SECONDS_TO_READ)
    try:
        channel.read(1)
    except PeerDisconnected:
        return
