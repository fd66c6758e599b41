# SPDX-License-Identifier: Apache-2.0
"""What the dealer does in a session: hears what is asked, runs the program on shapes, deals; and again."""

from __future__ import annotations

import time
from dataclasses import dataclass

from privml.engines.correlations import Correlations
from privml.errors import InvalidInput, PeerDisconnected, ProtocolError
from privml.program import INPUT_OWNER, Program
from privml.service.options import QueryLimit
from privml.service.request import Service, Shape, checked_shapes
from privml.session.agreement import Fields, agree
from privml.session.dealer import SessionConnections, open_dealer, set_patience
from privml.session.handshake import DEALER
from privml.session.ledger import Ledger, between_queries
from privml.sharing import reveal

# The dealer, whom nobody tells how long a session may be idle, waits longer than servers do.
LONGEST_IDLE = 3600.0


@dataclass(frozen=True, slots=True)
class Dealt:
    """One session that ended well: the shapes of its last query, and how many ``queries`` it had."""

    shapes: tuple[Shape, ...]
    seconds: float
    ledger: Ledger
    queries: int = 1

    def __str__(self) -> str:
        shapes, cost = ", ".join(str(list(shape)) for shape in self.shapes), self.ledger.snapshot()
        count = "" if self.queries == 1 else f" of {self.queries} queries, the last one"
        return (
            f"a session{count} for input {shapes}, {self.seconds:.2f} s; dealt {cost.preprocess.bytes / 1e6:.2f} MB; "
            f"online {cost.online.bytes / 1e6:.2f} MB"
        )


def deal_session(gathering: SessionConnections, service: Service, idle: float = LONGEST_IDLE) -> Dealt:
    """The session of the parties gathered, to its end; see ``open_dealer`` for errors. Between two queries it may be
    ``idle`` for so many seconds."""
    start, queries, told = time.monotonic(), 0, []
    program, settings, limit = Program(service.program.body), service.settings, service.limit

    def check(words: Fields) -> None:
        checked_shapes(words, program, limit)
        told.append(words)

    with open_dealer(gathering, settings, check) as session:
        while told:
            shapes = checked_shapes(told[-1], program, limit)
            session.reserve(Correlations())  # as the others do: all parties take the same steps
            for output in program.results(session, *shapes):
                reveal(output, to=INPUT_OWNER)
            session.engine.finish()
            queries, seconds = queries + 1, time.monotonic() - start
            told = _next(gathering, program, limit, idle, settings.spec.deadline)
    return Dealt(shapes, seconds, session.ledger.frozen(), queries)


def _next(
    gathering: SessionConnections, program: Program, limit: QueryLimit, idle: float, deadline: float
) -> list[Fields]:
    """What both parties say about their next query; nothing when they have none."""
    told: list[Fields] = []
    refused: list[InvalidInput] = []

    def hear(words: Fields) -> tuple[None, Fields]:
        if refused:
            raise refused[0]
        checked_shapes(words, program, limit)
        if told and told[0] != words:
            raise ProtocolError("the parties 0 and 1 told the dealer different things")
        told.append(words)
        return None, {}

    channels = [gathering.channels[rank, 0] for rank in range(DEALER)]
    with between_queries(channels):
        channels[0].set_deadline(idle)
        try:
            agree(channels[0], {}, hear, "party 0 gives up")
        except PeerDisconnected:
            return []
        except InvalidInput as error:  # the other party is to hear of it too
            refused.append(error)
        set_patience(gathering, deadline)
        agree(channels[1], {}, hear, "party 1 gives up")
    return told
