# SPDX-License-Identifier: Apache-2.0
"""Stores of the actively secure engine.

Each query of such a store has a MAC key of its own, of which a half holds this party's part, and all that it draws was
made under that key. A check that fails shows the peer something of the key, and so does one in whose middle the peer
leaves or this party dies; with one key for the whole store each such query would be an attempt at all later ones.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import privml._core as _core
from privml.engines.active.engine import ActiveEngine
from privml.engines.demands import Item, items_of
from privml.engines.stores import Kind, Need, Stock, Stores
from privml.errors import ConfigError

if TYPE_CHECKING:
    from privml.session.preprocessing import JointWriter
    from privml.spec import SessionSpec
    from privml.store.layout import Header

# The kind of a store that is this party's part of the key; the first one, for the session begins with it.
KEY = "key"


def numbers_of(demand: Mapping[str, Any]) -> dict[str, int]:
    """Of each kind that is drawn, how many; the names are those of ``_core.seal_active``."""
    return {_name(item): count for item, count in items_of(demand).items()}


def _name(item: Item) -> str:
    if item.part is None:
        return item.kind
    return f"{item.kind} {'x'.join(map(str, item.part)) if isinstance(item.part, tuple) else item.part}"


class ActiveStores(Stores):
    whole = fresh = True

    def kinds(
        self, program: Any, shapes: Any, spec: SessionSpec, rank: int = 0, products: Sequence[Any] = ()
    ) -> tuple[Kind, ...]:
        drawn, ring = sorted(numbers_of(program.demand(shapes, spec)).items()), spec.engine.ring
        key = Kind(KEY, 1, _core.active_bytes(ring, KEY))
        return key, *(Kind(name, count, _core.active_bytes(ring, name)) for name, count in drawn)

    def need(self, program: Any, shapes: Any, spec: SessionSpec) -> Need:
        return Need(numbers_of(program.demand(shapes, spec)))

    def marks(self, spec: SessionSpec, products: Sequence[Any] = (), kept: bool = False) -> dict[str, Any]:
        return {"ring": spec.engine.ring}

    def check(self, spec: SessionSpec, header: Header, store: str) -> None:
        if header.ring != spec.engine.ring:
            raise ConfigError(f"the {store} was made for engine.ring={header.ring}, not for {spec.engine.ring}")

    def fill(self, engine: ActiveEngine, writer: JointWriter, demand: Any) -> None:
        header = writer.header
        engine.reserve(dict(demand))
        for index, kind in enumerate(header.kinds):
            for _ in range(header.chunks_per_query(index)):
                size, context = writer.next_size(index), writer.next_context(index)
                writer.put(index, _core.seal_active(engine.session, writer.seal, kind.name, size, context))
        engine.session.retire()

    def sealed_offset(self, engine: ActiveEngine, writer: JointWriter) -> bytes:
        return writer.seal.seal(b"", writer.offset_context)

    def open(
        self, channels: Sequence[_core.Channel], rank: int, spec: SessionSpec, stock: Stock, need: Need
    ) -> ActiveEngine:
        seal, key = stock.seal, next(stock.chunks)
        core = _core.stored_active_session(channels[0], rank, stock.ring, seal, key.sealed, key.context)
        if core is None:
            raise stock.altered(key)
        try:
            for chunk in stock.chunks:
                name = stock.kinds[chunk.kind].name
                if not _core.unseal_active(core, seal, name, chunk.count, chunk.sealed, chunk.context):
                    raise stock.altered(chunk)
        except BaseException:
            core.close()
            raise
        return ActiveEngine(core, spec.engine.truncation)
