# SPDX-License-Identifier: Apache-2.0
"""Sessions that take their correlations from a store instead of making them."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from privml import _core
from privml.engines.correlations import Correlations, OtChoice
from privml.engines.twopc import TwoPartyEngine
from privml.errors import ConfigError, CorruptFile, ProtocolError, StoreError
from privml.store.files import Position, offset_context
from privml.store.key import default_key_file
from privml.store.store import Store

WHEN_EMPTY = ("refuse", "make")


class Preprocessing:
    """A party's half of a store, and what happens to a query for which it does not suffice: ``when_empty`` "refuse"
    ends it with StoreError, "make" lets the session make all its correlations as if there were no store.

    Raises what ``Store`` raises; ConfigError for another program or rank than those it was made for.
    """

    def __init__(
        self,
        folder: str | Path,
        rank: int,
        program: str,
        key_file: str | Path | None = None,
        when_empty: str = "refuse",
    ) -> None:
        if when_empty not in WHEN_EMPTY:
            raise ConfigError(f"when_empty={when_empty}: choose from {', '.join(WHEN_EMPTY)}")
        self.when_empty = when_empty
        self.store = Store(folder, key_file or default_key_file())
        header = self.store.header
        try:
            if header.rank != rank:
                raise ConfigError(f"{folder} is the half of party {header.rank}, this is party {rank}")
            if header.program != program:
                raise ConfigError(f"{folder} was made for program {header.program[:12]}, not for {program[:12]}")
            self.ot = OtChoice(header.provider, header.k, header.security)
        except ConfigError:
            self.close()
            raise

    @property
    def id(self) -> str:
        """What both halves have in common."""
        return self.store.header.store

    def close(self) -> None:
        self.store.close()

    def __enter__(self) -> Preprocessing:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()

    # ---- settling, before the set-up
    def words(self) -> dict[str, Any]:
        """What the peer must know: where this half stands."""
        return {"position": list(self.store.position)}

    def settle(self, theirs: dict[str, Any], wanted: Correlations) -> Position | None:
        """Where both parties take ``wanted`` from: the later of both positions, which makes up for a crash of one of
        them. None when too little is left and the session is to make its own; both parties come to the same end.

        Raises StoreError when too little is left and that is refused, ProtocolError for what is no position.
        """
        position = theirs.get("position")
        if not isinstance(position, list) or len(position) != 2 or not self.store.valid(tuple(position)):
            raise ProtocolError("the peer names no position in the store")
        start = tuple(max(ours, peers) for ours, peers in zip(self.store.position, position, strict=True))
        left = self.store.left_at(start)
        if all(want <= have for want, have in zip(wanted.directions, left, strict=True)):
            return start
        if self.when_empty == "make":
            return None
        needs = " and ".join(f"{want:,}" for want in wanted.directions)
        raise StoreError(
            f"the {self.store} does not suffice: {left[0]:,} and {left[1]:,} correlations are left, the query needs "
            f"{needs}; make another store with `privml preprocess` at both parties, or set when_empty=make at both"
        )

    # ---- the session
    def open(
        self, channels: Sequence[_core.Channel], rank: int, start: Position, wanted: Correlations
    ) -> TwoPartyEngine:
        """An engine whose session holds ``wanted``, taken from ``start`` on; used in the store from then on."""
        header, seal = self.store.header, self.store.seal
        core = _core.stored_session(
            list(channels),
            rank,
            seal,
            self.store.sealed_offset,
            offset_context(header),
            self.ot.provider,
            self.ot.k,
            self.ot.security,
        )
        try:
            stocks = (_core.Stock(), _core.Stock())
            for chunk in self.store.take(wanted.directions, start):
                if not stocks[chunk.direction].add(seal, chunk.sealed, chunk.context):
                    raise CorruptFile(f"the {self.store} was altered: {chunk.context.decode()} does not open")
            for index, lane in enumerate(wanted.lanes):
                for direction, count in enumerate((lane.from0, lane.from1)):
                    stocks[direction].give(core.lane(index), direction == rank, count)
        except BaseException:
            core.close()
            raise
        return TwoPartyEngine(core)

    def __str__(self) -> str:
        return f"{self.store}, {self.store.queries_left} queries left"
