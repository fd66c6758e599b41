# SPDX-License-Identifier: Apache-2.0
"""Several queries of one session, each with a ledger of its own.

What the parties say in clear between two queries belongs to neither: its bytes cross before the next query's ledger
begins, and the depth clocks of the channels that it crosses go on from where they stood.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

import privml._core as _core
from privml.context import Session
from privml.session.ledger import Ledger, Snapshot


@contextmanager
def aside(channels: Sequence[_core.Channel]) -> Iterator[None]:
    """What crosses ``channels`` inside is no message of a protocol. All parties say so alike."""
    depths = [channel.traffic()["depth"] for channel in channels]
    for channel in channels:
        channel.set_tag(0)
    yield
    for channel, depth in zip(channels, depths, strict=True):
        channel.set_depth(depth)


def begin_query(session: Session) -> None:
    """Gives ``session`` a ledger that counts from here on."""
    engines = session.engines  # not the session, see session_on
    engines.whole.refresh()
    before = Snapshot.of(engines.whole.counters())
    session.ledger = Ledger(lambda: Snapshot.of(engines.current().counters()) - before)


def make_ahead(session: Session, stock: object) -> Snapshot:
    """Makes the correlations of a query that may come; returns what that cost this party."""
    before = Snapshot.of(session.engine.counters())
    session.reserve(stock)
    return Snapshot.of(session.engine.counters()) - before
