# SPDX-License-Identifier: Apache-2.0
"""Stores of the three-party engine: what the dealer has dealt ahead, an entry for each query.

An entry depends on the shapes of the query, on how numbers are truncated and compared, and on the release that dealt
it, for all parties run the same steps on it. The dealer has no half.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, Any

import privml._core as _core
from privml.engines.stores import KEPT_WEIGHTS, Kind, Need, Stock, Stores
from privml.engines.threepc.device import kernels_for
from privml.engines.threepc.engine import ThreePartyEngine
from privml.engines.threepc.keys import derived
from privml.engines.threepc.party import Party
from privml.engines.threepc.randomness import Stream
from privml.engines.threepc.stored import (
    ENDS_BYTES,
    KEYS_BYTES,
    NEEDS_DEALER,
    KeptWeights,
    dealing_ahead,
    opened_entry,
    packed_keys,
    prove_entry,
    query_keys,
    settled,
    weights_key,
)
from privml.errors import ConfigError, CorruptFile, PeerDisconnected, SecurityAbort
from privml.version import VERSION

if TYPE_CHECKING:
    from privml.session.preprocessing import JointWriter
    from privml.spec import SessionSpec
    from privml.store.layout import Header

_ABOUT = {
    "truncation": "engine.truncation",
    "comparison": "engine.comparison",
    "release": "the release of privml that dealt it,",
}


def _shapes_text(shapes: Sequence[Sequence[int]]) -> str:
    return " ".join("x".join(map(str, shape)) or "scalar" for shape in shapes)


class ThreePartyStores(Stores):
    whole = exact = keeps_weights = True

    def kinds(
        self, program: Any, shapes: Any, spec: SessionSpec, rank: int = 0, products: Sequence[Any] = ()
    ) -> tuple[Kind, ...]:
        if program.state:
            raise ConfigError("this program keeps state between its calls: its correlations cannot be dealt ahead")
        dealt, online = program.dealt(shapes, spec)
        if online:
            raise ConfigError(NEEDS_DEALER)
        return (Kind(_shapes_text(shapes), 1, KEYS_BYTES + (dealt + ENDS_BYTES if rank == 0 else 0)),)

    def need(self, program: Any, shapes: Any, spec: SessionSpec) -> Need:
        return Need({_shapes_text(shapes): 1})

    def marks(self, spec: SessionSpec, products: Sequence[Any] = (), kept: bool = False) -> dict[str, Any]:
        return {"dealt": json.dumps({**self._terms(spec), "weights": "kept" if kept else "sent"})}

    def check(self, spec: SessionSpec, header: Header, store: str) -> None:
        made = self._made(header)
        for name, ours in self._terms(spec).items():
            if made.get(name) != ours:
                raise ConfigError(
                    f"the {store} does not fit: {_ABOUT[name]} is {made.get(name)!r} there and {ours!r} here; use it "
                    "as it was dealt, or make another one with `privml preprocess`"
                )

    @staticmethod
    def _terms(spec: SessionSpec) -> dict[str, str]:
        return {"truncation": spec.engine.truncation, "comparison": spec.engine.comparison, "release": VERSION}

    @staticmethod
    def _made(header: Header) -> dict[str, Any]:
        try:
            made = json.loads(header.dealt)
        except (ValueError, RecursionError):
            made = None
        if not isinstance(made, dict):
            raise CorruptFile("not a store of what a dealer deals")
        return made

    def places(self, header: Header) -> frozenset[str]:
        return frozenset([KEPT_WEIGHTS] if self._made(header).get("weights") == "kept" else [])

    # ---- making one
    def begin(self, engine: ThreePartyEngine, share_weights: Any) -> None:
        party = engine.party
        stream = Stream(weights_key(party), party.kernels) if party.rank == 0 else None
        party.weights = KeptWeights(stream, making=True)
        share_weights()

    def fill(self, engine: ThreePartyEngine, writer: JointWriter, demand: Any) -> None:
        party, (kind,) = engine.party, writer.header.kinds
        entry = packed_keys(query_keys(party, writer.query))
        if party.rank == 0:
            try:
                entry += party.links.receive_ahead(kind.bytes - KEYS_BYTES).tobytes()  # type: ignore[union-attr]
            except PeerDisconnected as error:
                writer.stop(f"the dealer is gone: {error}")
            except SecurityAbort as error:
                raise SecurityAbort(
                    f"{error}, or the dealer has another build of privml and deals another number of bytes"
                ) from None
        writer.put(0, writer.seal.seal(entry, writer.next_context(0)))

    def dealing(self, engine: ThreePartyEngine, query: int, kept: bool) -> AbstractContextManager[None]:
        return dealing_ahead(engine, query, kept)

    def sealed_offset(self, engine: ThreePartyEngine, writer: JointWriter) -> bytes:
        """Of weights that are kept: at party 0 the key of their masks, at party 1 the masked weights."""
        party, secret = engine.party, b""
        if party.weights is not None:
            secret = weights_key(party) if party.rank == 0 else bytes(party.weights.known)
        return writer.seal.seal(secret, writer.offset_context)

    # ---- using one
    def open(
        self, channels: Sequence[_core.Channel], rank: int, spec: SessionSpec, stock: Stock, need: Need
    ) -> ThreePartyEngine:
        chunk = next(stock.chunks)
        entry = stock.seal.open(chunk.sealed, chunk.context)
        opened = None if entry is None else opened_entry(rank, channels[0], entry)
        if opened is None:
            raise stock.altered(chunk)
        links, keys = opened
        prove_entry(links, keys)
        kernels, config = kernels_for(spec.engine.device), spec.engine
        streams = {peer: Stream(key, kernels) for peer, key in keys.items()}
        party = Party(links, streams, kernels, config.comparison)
        if KEPT_WEIGHTS in spec.prepared:
            party.weights = self._weights(rank, stock, kernels)
        engine = ThreePartyEngine(party, config.truncation)
        engine.transcript_keys = {1 - rank: derived(keys[1 - rank], b"transcript")}
        return engine

    def settled(self, engine: ThreePartyEngine) -> tuple[int, ...]:
        return settled(engine.party)

    @staticmethod
    def _weights(rank: int, stock: Stock, kernels: Any) -> KeptWeights:
        secret = stock.seal.open(*stock.offset)
        if secret is None:
            raise CorruptFile(f"the {stock.store} was altered: its weights cannot be decrypted")
        return KeptWeights(Stream(secret, kernels)) if rank == 0 else KeptWeights(None, secret)
