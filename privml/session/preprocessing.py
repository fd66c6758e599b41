# SPDX-License-Identifier: Apache-2.0
"""Sessions that take their correlations from a store instead of making them."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

import privml._core as _core
from privml.context import Session
from privml.engines.correlations import Correlations, OtChoice
from privml.engines.twopc.backend import BACKEND, engine_on, linear_of
from privml.engines.twopc.engine import TwoPartyEngine
from privml.engines.twopc.preparation import pieces, place_of
from privml.errors import ConfigError, CorruptFile, ProtocolError, StoreError
from privml.session.handshake import ByteChannel
from privml.spec import LinkProfile, SessionSpec
from privml.store.files import Position, offset_context
from privml.store.key import default_key_file
from privml.store.store import Chunk, Store
from privml.store.writer import StoreWriter

WHEN_EMPTY = ("refuse", "make")
# Whether this party's disk had room.
_ROOM, _FULL = b"\x01", b"\x00"
ELSEWHERE = "the peer allots correlations that this party does not have"
AHEAD = (
    "the client's half of the {store} is further ahead than a session can explain: one of the halves was restored from "
    "a copy, or the client sends a wrong position. Nothing was used; make another store with `privml preprocess` at "
    "both parties"
)
# (done, total, label)
Progress = Callable[[int, int, str], None]
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

    Raises what ``Store`` raises; ConfigError for another engine, program or rank than those it was made for.
    """

    engine: str

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
            if header.rank != rank:
                raise ConfigError(f"{folder} is the half of party {header.rank}, this is party {rank}")
            if header.program != program:
                raise ConfigError(f"{folder} was made for program {header.program[:12]}, not for {program[:12]}")
            self.expect_engine(self.engine, header.ring)
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
        """The places of the products that were prepared for each query."""
        return frozenset()

    def expect_weights(self, digest: bytes) -> None:
        """StoreError when it was made for other weights than those with this digest."""
        if not self.store.fits_weights(digest):
            raise StoreError(
                f"the {self.store} was made for other weights than the server's; make another store with `privml "
                "preprocess` at both parties"
            )

    def expect_engine(self, engine: str, ring: int | None) -> None:
        """ConfigError when it was made for another one, or for the engine ``active`` in another ring."""
        header = self.store.header
        if header.engine != engine:
            raise ConfigError(f"the {self.store} was made for engine={header.engine}, not for engine={engine}")
        if header.ring != (ring or 0):
            raise ConfigError(f"the {self.store} was made for engine.ring={header.ring}, not for {ring}")

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

    def allot(self, theirs: dict[str, Any], wanted: Any) -> Allotment | None:
        """Server: correlations for a client that sends ``theirs``, from the later of both halves' positions on, which
        makes up for a crash of one of them. None if too little is left. Raises ProtocolError for an invalid position,
        StoreError for one further ahead than what one session takes: otherwise a client could use up the server's half
        with one message."""
        raise NotImplementedError

    def claim(self, start: object, wanted: Any) -> Allotment | None:
        """Client: the same correlations of its own half, from the server's ``start`` on (None: too little is left).
        Raises ProtocolError for an impossible start."""
        raise NotImplementedError

    def refuse_shortage(self, wanted: Any) -> None:
        """Raises StoreError for what was not allotted, unless the session may make it."""
        if self.when_empty == "make":
            return
        raise StoreError(
            f"the {self.store} {self._shortage(wanted)}; make another store with `privml preprocess` at both parties, "
            "or set when_empty=make at both"
        )

    def _shortage(self, wanted: Any) -> str:
        raise NotImplementedError

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


@dataclass(frozen=True, slots=True)
class Need:
    """What a query takes from a store for ``twopc``: ``transfers``, and whether it takes ``products``, too, which were
    prepared for inputs of one shape."""

    transfers: Correlations
    products: bool = False


class Preprocessing(StoreHalf):
    """A half of a store for the engine ``twopc``: transfers, and of each query the products that were prepared."""

    engine = BACKEND.name

    @property
    def prepared(self) -> frozenset[str]:
        return frozenset(filter(None, (place_of(kind) for kind in self.store.header.kinds)))

    def allot(self, theirs: dict[str, Any], wanted: Need) -> Allotment | None:
        numbers = self._numbers(wanted)
        place = self._near(theirs.get("position"), numbers)
        taken = self.store.take_after(numbers, place)
        return None if taken is None else Allotment(*taken)

    def claim(self, start: object, wanted: Need) -> Allotment | None:
        if start is None:
            return None
        place, numbers = self._ahead(start), self._numbers(wanted)
        if any(want > have for want, have in zip(numbers, self.store.left_at(place), strict=True)):
            raise ProtocolError(ELSEWHERE)
        return Allotment(place, self.store.take(numbers, place))

    def _numbers(self, wanted: Need) -> tuple[int, ...]:
        """By kind."""
        transfers = wanted.transfers.directions
        return *transfers, *(kind.count * wanted.products for kind in self.store.header.kinds[len(transfers) :])

    def _shortage(self, wanted: Need) -> str:
        left, needs = self.store.left(), " and ".join(f"{want:,}" for want in wanted.transfers.directions)
        if wanted.products and not all(left):
            return "does not suffice: no query's prepared products are left"
        return f"does not suffice: {left[0]:,} and {left[1]:,} correlations are left, the query needs {needs}"

    def open(
        self,
        channels: Sequence[_core.Channel],
        rank: int,
        spec: SessionSpec,
        allotment: Allotment,
        wanted: Correlations,
    ) -> TwoPartyEngine:
        """An engine of ``spec`` whose session holds ``wanted``, which was allotted to it."""
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
        engine = engine_on(core, linear_of(spec))
        try:
            self.draw(engine, spec, allotment, wanted)
        except BaseException:
            core.close()
            raise
        return engine

    def draw(self, engine: TwoPartyEngine, spec: SessionSpec, allotment: Allotment, wanted: Correlations) -> None:
        """Gives the session of ``engine``, which ``open`` has made, ``wanted`` for its next query, and the products
        that were allotted with it."""
        seal, stocks, products = self.store.seal, (_core.Stock(), _core.Stock()), {}
        for chunk in allotment.chunks:
            place = place_of(self.store.header.kinds[chunk.kind])
            if place is None:
                whole = stocks[chunk.kind].add(seal, chunk.sealed, chunk.context)
            else:
                products[place] = _core.twopc.PreparedProduct.open(seal, chunk.sealed, chunk.context)
                whole = products[place] is not None
            if not whole:
                raise CorruptFile(f"the {self.store} was altered: {chunk.context.decode()} does not open")
        engine.hold(products, linear_of(spec))
        for index, lane in enumerate(wanted.lanes):
            for direction, count in enumerate((lane.from0, lane.from1)):
                stocks[direction].give(engine.session.lane(index), direction == engine.rank, count)


class JointWriter:
    """``writer`` of one half, in step with the peer's: after each query both send one byte over ``channel``, whether
    their disk had room. After a failed write nothing more is written.

    Raises StoreError, at both parties after the same query, if one of their disks is full.
    """

    def __init__(self, writer: StoreWriter, channel: ByteChannel) -> None:
        self.header, self.seal = writer.header, writer.seal
        self._writer, self._channel = writer, channel
        self._of_a_query = sum(writer.header.query_start(1))
        self._put = 0
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

    def _meet(self) -> None:
        self._channel.write(_ROOM if self._failure is None else _FULL)
        self._channel.flush()
        theirs = self._channel.read(1)
        if self._failure is not None:
            raise self._failure
        if theirs != _ROOM:
            raise StoreError("the peer could not write its half of the store: its disk is full")

    @property
    def offset_context(self) -> bytes:
        return self._writer.offset_context

    def next_context(self, kind: int) -> bytes:
        return self._writer.next_context(kind)

    def next_size(self, kind: int) -> int:
        return self._writer.next_size(kind)


def fill_products(
    session: Session, writer: JointWriter, products: Sequence[Any], progress: Progress | None = None
) -> None:
    """Prepares the products of all queries of the store, one after the other, and puts each query's part into it.
    ``products``: what ``Backend.prepared_products`` gives, at party 0 with the weights; their cost is booked by
    layer."""
    header = writer.header
    for number, each in enumerate(products):
        if progress is not None:
            progress(number, len(products), each.layer)
        kind = next(i for i, kind in enumerate(header.kinds) if place_of(kind) == each.place)
        label = f"{header.store} {header.program} {each.place}".encode()
        made = pieces(session.engine, each, header.queries, label)
        for _ in range(header.queries):
            with session.ledger.node(each.layer, "prepare"):
                piece = next(made)
            writer.put(kind, piece.seal(writer.seal, writer.next_context(kind)))
