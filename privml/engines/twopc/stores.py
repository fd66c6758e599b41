# SPDX-License-Identifier: Apache-2.0
"""Stores of the semi-honest two-party engine: transfers, and of each query the products that were prepared."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import privml._core as _core
from privml.engines.correlations import Correlations
from privml.engines.stores import Kind, Need, Stock, Stores
from privml.engines.twopc.engine import TwoPartyEngine
from privml.engines.twopc.linear import Wanted
from privml.engines.twopc.preparation import found, kind_name, kind_of, pieces, place_of, worthwhile
from privml.engines.twopc.session import engine_on, linear_of, meter
from privml.errors import ConfigError, ProtocolError

if TYPE_CHECKING:
    from privml.session.preprocessing import JointWriter
    from privml.spec import SessionSpec
    from privml.store.layout import Header

DIRECTIONS = (0, 1)


def transfers(from0: int, from1: int) -> tuple[Kind, ...]:
    """Both directions of transfers, named by the sender's rank."""
    return Kind("from 0", from0), Kind("from 1", from1)


def drawn_by(engine: TwoPartyEngine) -> dict[tuple[int, int], int]:
    """Transfers that a session has spent so far, by lane and the sender's rank."""
    drawn = {}
    for index in range(engine.lanes):
        counts = engine.session.lane(index).counters()
        roles = counts["cots_as_sender"], counts["cots_as_receiver"]
        drawn |= {(index, sender): roles[sender != engine.rank] for sender in DIRECTIONS}
    return drawn


class TwoPartyStores(Stores):
    def kinds(
        self, program: Any, shapes: Any, spec: SessionSpec, rank: int = 0, products: Sequence[Wanted] = ()
    ) -> tuple[Kind, ...]:
        drawn = program.correlations(shapes, replace(spec, prepared=frozenset(each.place for each in products)))
        kinds = (kind_of(each, rank, spec.engine.noise) for each in products)
        return *transfers(*drawn.directions), *kinds

    def need(self, program: Any, shapes: Any, spec: SessionSpec) -> Need:
        drawn = program.correlations(shapes, spec)
        counts = {kind.name: kind.count for kind in transfers(*drawn.directions)}
        return Need(counts | {kind_name(place): 1 for place in spec.prepared}, drawn)

    def marks(self, spec: SessionSpec, products: Sequence[Wanted] = (), kept: bool = False) -> dict[str, Any]:
        return {"noise": spec.engine.noise} if products else {}

    def check(self, spec: SessionSpec, header: Header, store: str) -> None:
        if not self.places(header):
            return
        if spec.engine.linear == "ot":
            raise ConfigError(f"engine.linear=ot uses no prepared products, which {store} holds")
        if header.noise != spec.engine.noise:
            raise ConfigError(
                f"engine.noise={spec.engine.noise}, but the products of {store} were prepared with "
                f"engine.noise={header.noise}"
            )

    def fill(self, engine: TwoPartyEngine, writer: JointWriter, demand: Any) -> None:
        """No more than two chunks lie in memory."""
        core, header = engine.session, writer.header
        chunks = [header.chunks_per_query(direction) for direction in DIRECTIONS]
        for chunk in range(max(chunks)):
            sizes = [writer.next_size(d) if chunk < chunks[d] else 0 for d in DIRECTIONS]
            core.reserve(*Correlations(*sizes).roles(header.rank))
            for direction in DIRECTIONS:
                if chunk < chunks[direction]:
                    context, as_sender = writer.next_context(direction), direction == header.rank
                    sealed = _core.seal_correlations(core, writer.seal, as_sender, sizes[direction], context)
                    writer.put(direction, sealed)

    def sealed_offset(self, engine: TwoPartyEngine, writer: JointWriter) -> bytes:
        return _core.seal_offset(engine.session, writer.seal, writer.offset_context)

    def open(
        self, channels: Sequence[_core.Channel], rank: int, spec: SessionSpec, stock: Stock, need: Need
    ) -> TwoPartyEngine:
        lanes, choice = list(channels[: spec.threads]), (stock.ot.provider, stock.ot.k, stock.ot.security)
        core = _core.stored_session(lanes, rank, stock.seal, *stock.offset, *choice)
        engine = engine_on(core, linear_of(spec))
        try:
            self.draw(engine, spec, stock, need)
        except BaseException:
            core.close()
            raise
        return engine

    def draw(self, engine: TwoPartyEngine, spec: SessionSpec, stock: Stock, need: Need) -> None:
        seal, stocks, products = stock.seal, (_core.Stock(), _core.Stock()), {}
        for chunk in stock.chunks:
            place = place_of(stock.kinds[chunk.kind])
            if place is None:
                whole = stocks[chunk.kind].add(seal, chunk.sealed, chunk.context)
            else:
                products[place] = _core.twopc.PreparedProduct.open(seal, chunk.sealed, chunk.context)
                whole = products[place] is not None
            if not whole:
                raise stock.altered(chunk)
        engine.hold(products, linear_of(spec))
        for index, lane in enumerate(need.drawn.lanes):
            for direction, count in enumerate((lane.from0, lane.from1)):
                engine.record.given[index, direction] += count
                stocks[direction].give(engine.session.lane(index), direction == engine.rank, count)

    def settled(self, engine: TwoPartyEngine) -> tuple[int, ...]:
        drawn, record = drawn_by(engine), engine.record
        if record.prepared or any(drawn[place] != record.given[place] for place in drawn):
            raise ProtocolError(
                "the query has not drawn all that it was allotted in the store; nothing was revealed. Install one "
                "build of privml at both parties, and make another store with `privml preprocess`"
            )
        return tuple(drawn.values())

    def products(self, program: Any, shapes: Any, spec: SessionSpec, queries: int) -> tuple[Wanted, ...]:
        linear = linear_of(replace(spec, prepared=frozenset()))
        if linear.mode == "ot":
            return ()
        # Party 0 runs the program on zeros, with its own weights; of shapes alone where it has none.
        engine = meter(0, spec.ot, 1, program.weights is None, linear)
        wanted = found(engine, lambda: program.metered(engine, *shapes, weights=program.weights))
        return tuple(worthwhile(wanted, queries, engine.transfers, linear))

    def product_costs(
        self, products: Sequence[Wanted], spec: SessionSpec, queries: int, rank: int
    ) -> tuple[tuple[str, Any], ...]:
        costs, lanes = [], None
        for each in products:
            engine = meter(rank, spec.ot, linear=linear_of(spec))
            # Keys that pack answers serve all products of a session.
            lanes = engine.record.of_lanes = lanes or engine.record.of_lanes
            for _ in pieces(engine, each, queries, b""):
                pass
            costs.append((each.layer, engine.counters()))
        return tuple(costs)

    def prepare(self, engine: TwoPartyEngine, product: Wanted, queries: int, label: bytes) -> Iterator[Any]:
        return pieces(engine, product, queries, label)

    def hold(self, engine: TwoPartyEngine, products: Mapping[str, Any], spec: SessionSpec) -> None:
        engine.hold(products, linear_of(spec))

    def places(self, header: Header) -> frozenset[str]:
        return frozenset(filter(None, map(place_of, header.kinds)))
