# SPDX-License-Identifier: Apache-2.0
"""Sessions that take their correlations from a store instead of making them."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import zip_longest
from pathlib import Path
from typing import Any, NoReturn, TypeVar

from privml.engines.base import Engine
from privml.engines.correlations import OtChoice
from privml.engines.interface import backend
from privml.engines.stores import Need, Stock, Stores
from privml.errors import ConfigError, ProtocolError, StoreError
from privml.session.handshake import ByteChannel
from privml.spec import LinkProfile, SessionSpec
from privml.store.files import Position, offset_context
from privml.store.key import default_key_file
from privml.store.store import Chunk, Store
from privml.store.writer import StoreWriter

WHEN_EMPTY = ("refuse", "make")
# Whether this party's disk had room.
_ROOM, _FULL = b"\x01", b"\x00"
# Or whether nothing more is made.
_STOPPED = b"\x02"
ELSEWHERE = "the peer allots correlations that this party does not have"
AHEAD = (
    "the client's half of the {store} is further ahead than a session can explain: one of the halves was restored from "
    "a copy, or the client sends a wrong position. Nothing was used; make another store with `privml preprocess` at "
    "both parties"
)
# Characters of two lists of shapes that an error names as they are.
_LONGEST_LISTS = 160
HalfType = TypeVar("HalfType", bound="StoreHalf")


@dataclass(frozen=True, slots=True)
class Allotment:
    """Correlations that one session has for itself, from ``start`` on; they count as used, drawn or not."""

    start: Position
    chunks: Iterator[Chunk]


class StoreHalf:
    """A party's half of a store, and what happens to a query for which it does not suffice: ``when_empty`` "refuse"
    ends it with StoreError, "make" lets the session make all its correlations as if there were no store.

    Sessions on several threads may share it. The server allots under a lock of its own, which no client can hold. A
    client holds ``turn`` from sending its position until it has claimed what it was allotted, so its sessions
    negotiate one after another; their servers hold nothing that these wait for.

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
        self.turn = threading.Lock()
        self.store = Store(folder, key_file or default_key_file())
        header = self.store.header
        try:
            stores = backend(header.engine).stores
            if stores is None:
                raise ConfigError(f"engine={header.engine} has no stores")
            self.stores: Stores = stores
            if header.rank != rank:
                raise ConfigError(f"{folder} is the half of party {header.rank}, this is party {rank}")
            if header.program != program:
                raise ConfigError(f"{folder} was made for program {header.program[:12]}, not for {program[:12]}")
            self.ot = OtChoice(header.provider, header.k, header.security)
        except ConfigError:
            self.close()
            raise

    @property
    def link(self) -> LinkProfile | None:
        """The link that it was made for, with which its queries reckon; None if it depends on none."""
        return LinkProfile(*self.store.header.link) if self.store.header.link else None

    @property
    def prepared(self) -> frozenset[str]:
        """The places of the products that were prepared for each query, and what else it holds for all of them."""
        return self.stores.places(self.store.header)

    def expect_weights(self, digest: bytes) -> None:
        """StoreError when it was made for other weights than those with this digest."""
        if not self.store.fits_weights(digest):
            raise StoreError(
                f"the {self.store} was made for other weights than the server's; make another store with `privml "
                "preprocess` at both parties"
            )

    def check(self, spec: SessionSpec) -> None:
        """ConfigError if sessions of ``spec`` cannot use it."""
        header, engine = self.store.header, spec.backend
        if spec.test_seed is not None or spec.ot.provider == "ideal":
            what = "ot=ideal" if spec.test_seed is None else f"test_seed={spec.test_seed}"
            raise ConfigError(f"{what}: sessions on the {self.store} draw what is in it; leave out one of them")
        if header.engine != engine.name:
            raise ConfigError(f"the {self.store} was made for engine={header.engine}, not for engine={engine.name}")
        if spec.ot.security != self.ot.security:
            raise ConfigError(
                f"ot.security={spec.ot.security}, but the correlations of {self.store} are {self.ot.security}"
            )
        if engine.dealt and self.when_empty != "refuse":
            raise ConfigError(
                f"when_empty={self.when_empty}: two parties cannot make what a dealer deals; leave it out, or give the "
                "dealer's address instead of the store"
            )
        self.stores.check(spec, header, str(self.store))

    @property
    def id(self) -> str:
        """What both halves have in common."""
        return self.store.header.store

    def close(self) -> None:
        self.store.close()

    def __enter__(self: HalfType) -> HalfType:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()

    def request(self) -> dict[str, Any]:
        """What a client sends to the server: its half's position."""
        return {"position": list(self.store.position)}

    def allot(self, theirs: dict[str, Any], need: Need) -> Allotment | None:
        """Server: correlations for a client that sends ``theirs``, from the later of both halves' positions on, which
        makes up for a crash of one of them. None if too little is left. Raises ProtocolError for an invalid position,
        StoreError for one further ahead than what one session takes: otherwise a client could use up the server's half
        with one message."""
        numbers = self._numbers(need)
        place = self._near(theirs.get("position"), numbers)
        if not self.stores.whole:
            taken = self.store.take_after(numbers, place)
        else:
            taken = None if self._lacking(need) else self.store.take_query_after(place)
        return None if taken is None else Allotment(*taken)

    def claim(self, start: object, need: Need) -> Allotment | None:
        """Client: the same correlations of its own half, from the server's ``start`` on (None: too little is left).
        Raises ProtocolError for an impossible start."""
        if start is None:
            return None
        header, place, numbers = self.store.header, self._ahead(start), self._numbers(need)
        fits = all(want <= have for want, have in zip(numbers, self.store.left_at(place), strict=True))
        query = header.query_at(place)
        if self.stores.whole:
            fits = query < header.queries and place == header.query_start(query) and not self._lacking(need)
        if not fits:
            raise ProtocolError(ELSEWHERE)
        return Allotment(place, self.store.take_query(query) if self.stores.whole else self.store.take(numbers, place))

    def open(self, channels: Sequence[Any], rank: int, spec: SessionSpec, allotment: Allotment, need: Need) -> Engine:
        """An engine of ``spec`` whose session holds what it needs, which was allotted to it."""
        return self.stores.open(channels, rank, spec, self._stock(allotment), need)

    def draw(self, engine: Engine, spec: SessionSpec, allotment: Allotment, need: Need) -> None:
        """Gives the session of ``engine``, which ``open`` has made, what was allotted to its next query."""
        self.stores.draw(engine, spec, self._stock(allotment), need)

    def _stock(self, allotment: Allotment) -> Stock:
        header, store = self.store.header, self.store
        offset = store.sealed_offset, offset_context(header)
        return Stock(str(store), header.kinds, self.ot, header.ring, store.seal, offset, allotment.chunks)

    def refuse_shortage(self, need: Need) -> None:
        """Raises StoreError for what was not allotted, unless the session may make it."""
        if self.when_empty == "make":
            return
        raise StoreError(
            f"the {self.store} {self._shortage(need)}; make another store with `privml preprocess` at both parties, "
            "or set when_empty=make at both"
        )

    def _shortage(self, need: Need) -> str:
        header = self.store.header
        if self.stores.whole:
            lacking = self._lacking(need)
            made = f"was made for queries of {header.batch} input(s)"
            if lacking and self.stores.exact:
                return f"was dealt for {_difference(header.kinds[0].name, lacking[0])}"
            return f"{made}, which draw fewer {lacking[0]}" if lacking else "is used up"
        rows = zip(header.kinds, self._numbers(need), self.store.left(), strict=True)
        short = [f"{want:,} of {kind.name!r}, {left:,} are left" for kind, want, left in rows if want > left]
        return f"does not suffice: the query draws {'; '.join(short) or 'correlations of a later position'}"

    def _numbers(self, need: Need) -> tuple[int, ...]:
        """By kind."""
        return tuple(need.counts.get(kind.name, 0) for kind in self.store.header.kinds)

    def _lacking(self, need: Need) -> list[str]:
        """Kinds of which a query of the store has less."""
        made = {kind.name: kind.count for kind in self.store.header.kinds}
        return [name for name, count in need.counts.items() if count > made.get(name, 0)]

    def _position(self, named: object) -> Position:
        if not isinstance(named, list) or not self.store.valid(named):
            raise ProtocolError("the peer names no position in the store")
        return tuple(named)

    def _near(self, named: object, wanted: Sequence[int]) -> Position:
        """A client's position, at most as far ahead of this half as it wants of each kind, or as one query's share."""
        place, header = self._position(named), self.store.header
        for kind, (at, ours, want, share) in enumerate(
            zip(place, self.store.position, wanted, header.per_query, strict=True)
        ):
            if at > header.end_of(kind, ours, max(want, share)):
                raise StoreError(AHEAD.format(store=self.store))
        return place

    def _ahead(self, named: object) -> Position:
        """A position of which this half has used nothing."""
        place = self._position(named)
        if any(at < ours for at, ours in zip(place, self.store.position, strict=True)):
            raise ProtocolError(ELSEWHERE)
        return place

    def __str__(self) -> str:
        return f"{self.store}, {self.store.queries_left} queries left"


def _difference(made: str, asked: str) -> str:
    """Between two lists of shapes: both, or of long ones the first that differ."""
    if len(made) + len(asked) <= _LONGEST_LISTS:
        return f"inputs of {made} alone, not of {asked}"
    pairs = enumerate(zip_longest(made.split(), asked.split(), fillvalue="nothing"), start=1)
    number, (ours, theirs) = next((number, pair) for number, pair in pairs if pair[0] != pair[1])
    return f"input {number} of {ours} alone, not of {theirs}"


class Stopped(Exception):
    """No further queries are made, and those that both parties have make a store; says why."""


class JointWriter:
    """``writer`` of one half, in step with the peer's: after each query both send one byte over ``channel``, whether
    their disk had room. After a failed write nothing more is written.

    Raises StoreError, at both parties after the same query, if one of their disks is full, and Stopped if one of them
    has called ``stop``.
    """

    def __init__(self, writer: StoreWriter, channel: ByteChannel) -> None:
        self.header, self.seal = writer.header, writer.seal
        self._writer, self._channel = writer, channel
        self._of_a_query = sum(writer.header.query_start(1))
        self._put = 0
        self.complete = 0  # queries of which both parties have put everything
        self._failure: StoreError | None = None

    def put(self, kind: int, sealed: bytes) -> None:
        """See ``StoreWriter``."""
        if self._failure is None:
            try:
                self._writer.put(kind, sealed)
            except StoreError as error:
                self._failure = error
        if self._failure is not None:
            self._writer.skip(kind)
        self._put += 1
        if self._put % self._of_a_query == 0:
            self._meet()

    @property
    def query(self) -> int:
        """Of which the next chunk is, counted from 0."""
        return self._put // self._of_a_query

    def stop(self, why: str) -> NoReturn:
        """Instead of a query's first chunk: this party can make no more. Raises Stopped at both parties."""
        self._channel.write(_STOPPED)
        self._channel.flush()
        self._channel.read(1)
        raise Stopped(why)

    def _meet(self) -> None:
        self._channel.write(_ROOM if self._failure is None else _FULL)
        self._channel.flush()
        theirs = self._channel.read(1)
        if self._failure is not None:
            raise self._failure
        if theirs == _STOPPED:
            raise Stopped("the other party could make no more")
        if theirs != _ROOM:
            raise StoreError("the peer could not write its half of the store: its disk is full")
        self.complete += 1

    @property
    def offset_context(self) -> bytes:
        return self._writer.offset_context

    def next_context(self, kind: int) -> bytes:
        return self._writer.next_context(kind)

    def next_size(self, kind: int) -> int:
        return self._writer.next_size(kind)
