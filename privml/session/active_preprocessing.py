# SPDX-License-Identifier: Apache-2.0
"""Actively secure sessions that take what they draw from a store instead of making it.

Each query of such a store has a MAC key of its own, of which a half holds this party's part, and all that it draws was
made under that key. A check that fails shows the peer something of the key, and so does one in whose middle the peer
leaves or this party dies; with one key for the whole store each such query would be an attempt at all later ones.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import privml._core as _core
from privml.engines.active.backend import BACKEND, established, numbers_of
from privml.engines.active.engine import ActiveEngine
from privml.engines.correlations import OtChoice
from privml.errors import CorruptFile, ProtocolError
from privml.session.ledger import Snapshot
from privml.session.preprocessing import ELSEWHERE, Allotment, JointWriter, StoreHalf

# (done, total, label)
Progress = Callable[[int, int, str], None]


def fill(
    engine: ActiveEngine,
    channel: _core.Channel,
    writer: JointWriter,
    demand: Mapping[str, Any],
    progress: Progress | None = None,
) -> Snapshot:
    """Makes one query's ``demand`` after the other, each in a session of its own on ``channel``, ``engine`` being the
    first, and puts it into the store. Returns what all of them cost."""
    header, cost = writer.header, Snapshot()
    for query in range(header.queries):
        if progress is not None:
            progress(query, header.queries, f"query {query + 1}")
        if query > 0:
            ot = OtChoice(header.provider, header.k, header.security)
            engine = established(channel, header.rank, ot, header.ring)
        engine.reserve(dict(demand))
        for index, kind in enumerate(header.kinds):
            for _ in range(header.chunks_per_query(index)):
                size, context = writer.next_size(index), writer.next_context(index)
                writer.put(index, _core.seal_active(engine.session, writer.seal, kind.name, size, context))
        cost = cost + Snapshot.of(engine.counters())
        engine.session.retire()
    if progress is not None:
        progress(header.queries, header.queries, "done")
    return cost


class ActivePreprocessing(StoreHalf):
    """A half of a store for the engine ``active``."""

    engine = BACKEND.name

    def allot(self, theirs: dict[str, Any], wanted: Mapping[str, Any]) -> Allotment | None:
        place = self._near(theirs.get("position"), self.store.header.per_query)
        taken = None if self._lacking(wanted) else self.store.take_query_after(place)
        return None if taken is None else Allotment(*taken)

    def claim(self, start: object, wanted: Mapping[str, Any]) -> Allotment | None:
        if start is None:
            return None
        header, place = self.store.header, self._ahead(start)
        query = header.query_at(place)
        if query == header.queries or place != header.query_start(query) or self._lacking(wanted):
            raise ProtocolError(ELSEWHERE)
        return Allotment(place, self.store.take_query(query))

    def _lacking(self, wanted: Mapping[str, Any]) -> list[str]:
        """Kinds of which a query of the store has less."""
        made = {kind.name: kind.count for kind in self.store.header.kinds}
        return [name for name, count in numbers_of(wanted).items() if count > made.get(name, 0)]

    def _shortage(self, wanted: Mapping[str, Any]) -> str:
        lacking = self._lacking(wanted)
        if not lacking:
            return "is used up"
        return f"was made for queries of {self.store.header.batch} input(s), which draw fewer {lacking[0]}"

    def open(self, channel: _core.Channel, rank: int, allotment: Allotment, truncation: str) -> ActiveEngine:
        """An engine whose session holds all that was made for a query, which was allotted to it."""
        header, seal, chunks = self.store.header, self.store.seal, allotment.chunks
        key = next(chunks)
        altered = f"the {self.store} was altered: {{}} does not open"
        core = _core.stored_active_session(channel, rank, header.ring, seal, key.sealed, key.context)
        if core is None:
            raise CorruptFile(altered.format(key.context.decode()))
        try:
            for chunk in chunks:
                name = header.kinds[chunk.kind].name
                if not _core.unseal_active(core, seal, name, chunk.count, chunk.sealed, chunk.context):
                    raise CorruptFile(altered.format(chunk.context.decode()))
        except BaseException:
            core.close()
            raise
        return ActiveEngine(core, truncation)
