# SPDX-License-Identifier: Apache-2.0
"""Products that a session prepares while it is idle, for its own further queries."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from privml.context import Session
from privml.session.ledger import Snapshot
from privml.spec import SessionSpec

if TYPE_CHECKING:
    from privml.program import Program

# Queries for which a client lets a server prepare products.
MOST_QUERIES = 4096
# Words of results that a party holds for them, however many queries these are: 1 GiB.
MOST_WORDS = 1 << 27


class Supply:
    """A party's halves, query by query, in memory: the same number at both parties, who fill and use it in step.

    ``shapes``: of the inputs that they serve."""

    def __init__(self) -> None:
        self.shapes: Any = ()
        self._queries: deque[dict[str, Any]] = deque()

    def __len__(self) -> int:
        """Queries for which it suffices."""
        return len(self._queries)

    @property
    def places(self) -> frozenset[str]:
        """Of the products that are prepared for each query."""
        return frozenset(self._queries[0]) if self._queries else frozenset()

    def take(self) -> dict[str, Any]:
        """The halves of the next query, by place, which are gone here."""
        return self._queries.popleft()

    def fill(
        self, session: Session, program: Program, shapes: Sequence[Any], spec: SessionSpec, count: int
    ) -> Snapshot:
        """Prepares the products of ``count`` queries together if none is left, or of as many as MOST_WORDS allows; both
        parties do the same. Returns what that cost this party."""
        engine, stores = session.engines.whole, spec.backend.stores
        before = Snapshot.of(engine.counters())
        if stores is not None and not self._queries and count > 0:
            self.shapes = tuple(map(tuple, shapes))
            products = stores.products(program, shapes, spec, count)
            words = sum(each.product.rows * each.product.columns for each in products)
            count = min(count, MOST_WORDS // max(words, 1))  # the client chooses the rows, the server the queries
            made = [dict[str, Any]() for _ in range(count if products else 0)]
            for each in products if made else ():
                label = f"{program.hash} {each.place}".encode()
                for query, piece in zip(made, stores.prepare(engine, each, count, label), strict=True):
                    query[each.place] = piece
            self._queries.extend(made)
        return Snapshot.of(engine.counters()) - before
