# SPDX-License-Identifier: Apache-2.0
"""What a server does in a session: grants what the client asks for, reserves correlations, runs, reveals."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass

from privml import _core
from privml.context import Session
from privml.errors import PeerDisconnected
from privml.program import INPUT_OWNER
from privml.service.progress import Progress, report_nodes
from privml.service.request import AnyTerms, Service, Shape, grant
from privml.session.lanes import Link
from privml.session.ledger import Ledger
from privml.session.session import EngineOpener
from privml.sharing import reveal

# How long a client may take to read its answer to the end.
_SECONDS_TO_READ = 10.0


@dataclass(frozen=True, slots=True)
class Answered:
    """One answered query: what it was, what it cost, and where its correlations came from."""

    number: int
    shapes: tuple[Shape, ...]
    seconds: float
    ledger: Ledger
    source: str

    def __str__(self) -> str:
        shapes = ", ".join(str(list(shape)) for shape in self.shapes)
        cost = self.ledger.snapshot()
        ahead = cost.setup + cost.preprocess
        return (
            f"query {self.number}: input {shapes}, {self.seconds:.2f} s; offline {ahead.seconds:.2f} s, "
            f"{ahead.bytes / 1e6:.2f} MB; online {cost.online.seconds:.2f} s, {cost.online.bytes / 1e6:.2f} MB; "
            f"correlations {self.source}"
        )


def answer(
    opener: Callable[..., Session],
    link: Link,
    service: Service,
    number: int,
    progress: Progress | None,
) -> Answered:
    """The session that ``opener(agree=...)`` opens on ``link``: its query answered, and the client gone."""
    start = time.monotonic()
    settled: list[AnyTerms] = []

    def agree(channel: _core.Channel) -> EngineOpener:
        settled.append(grant(channel, service))
        return settled[0].open

    with opener(agree=agree) as session:
        terms = settled[0]
        report_nodes(session, service.program, progress)
        session.reserve(terms.stock)
        for output in service.program.results(session, *terms.shapes):
            reveal(output, to=INPUT_OWNER)
        _wait_for_end(link.channels[0])
        return Answered(number, terms.shapes, time.monotonic() - start, session.ledger, terms.source)


def _wait_for_end(channel: _core.Channel) -> None:
    """The client closes once it has read everything; closing first could lose the last bytes."""
    channel.set_deadline(_SECONDS_TO_READ)
    try:
        channel.read(1)
    except PeerDisconnected:
        return
