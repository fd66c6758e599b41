# SPDX-License-Identifier: Apache-2.0
"""Makes the correlations of many queries ahead of time, into a store at each party."""

from __future__ import annotations

import hashlib
import secrets
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import privml._core as _core
from privml.context import Session
from privml.engines.correlations import Correlations, OtChoice
from privml.engines.interface import Backend, backends
from privml.errors import ConfigError, HandshakeMismatch, ProtocolError
from privml.program import Program
from privml.service.choose_ot import choice_fields, choice_in, forecasts, reason
from privml.service.negotiation import link_fields, link_in, settings_of
from privml.service.options import DEFAULT_SPEC, refuse_moved
from privml.session.active_preprocessing import fill
from privml.session.agreement import agree
from privml.session.connect import accept_peer
from privml.session.connections import Link, listening, reach
from privml.session.handshake import Greeting
from privml.session.identity import accept_options, check_addresses, connect_options
from privml.session.ledger import NodeRecord, Snapshot
from privml.session.preprocessing import JointWriter, fill_products
from privml.session.session import EngineOpener, Settings, engine_opener, interruptible, load_torch, open_session
from privml.spec import LinkProfile, SessionSpec
from privml.store.key import default_key_file
from privml.store.layout import Header
from privml.store.writer import StoreWriter, bytes_needed, check_space

SERVER, CLIENT = 0, 1
ROLE = "preprocess"
DIRECTIONS = (0, 1)
Progress = Callable[[int, int, str], None]


def refuse_without_stores(spec: SessionSpec) -> None:
    """ConfigError for an engine whose correlations are not made ahead of queries."""
    if not spec.backend.stores:
        able = ", ".join(each.name for each in backends() if each.stores)
        raise ConfigError(f"engine={spec.backend.name} needs no correlations beforehand: choose from {able}")


@dataclass(frozen=True, slots=True)
class Made:
    """A finished half: what it holds, where it lies, and what it cost this party; ``layers``: of prepared products, by
    layer, part of that."""

    header: Header
    folder: Path
    bytes: int
    seconds: float
    cost: Snapshot
    ot: OtChoice
    layers: tuple[NodeRecord, ...] = ()


@dataclass(frozen=True, slots=True)
class Order:
    """What is to be made: ``count`` queries of ``batch`` inputs, into ``folder``, sealed with the key in ``key_file``
    (None: ``default_key_file``). ``spec``: of the sessions that will use it; formats are the program's. ``products``:
    whether products with weights are prepared, too, for which party 0 needs them; None: what party 0 says. Raises
    ConfigError."""

    program: Program
    folder: str | Path
    count: int
    batch: int = 1
    spec: SessionSpec = DEFAULT_SPEC
    key_file: str | Path | None = None
    products: bool | None = None

    def __post_init__(self) -> None:
        refuse_without_stores(self.spec)
        spec = settings_of(self.program, self.spec).spec
        # Only sessions that compute meanwhile refill in the background.
        object.__setattr__(self, "spec", replace(spec, ot=replace(spec.ot, refill="none")))

    @property
    def backend(self) -> Backend:
        return self.spec.backend

    @property
    def ot(self) -> OtChoice:
        return self.spec.ot

    @property
    def ring(self) -> int:
        """Bits; 0 for an engine without a choice of rings."""
        return getattr(self.spec.engine, "ring", 0)

    def header(self, rank: int, store: str, prepared: Sequence[Any] = ()) -> Header:
        """Of party ``rank``; ``prepared``: see ``prepared``."""
        ot, size, shapes = self.ot, (self.batch, self.count), self.program.shapes(self.batch)
        kinds = self.backend.store_kinds(self.program, shapes, self.spec, rank, prepared)
        link = self.spec.expected_link
        named = (link.delay_ms, link.bandwidth_mbps) if self.backend.reckons_with_link(self.spec) else ()
        noise = getattr(self.spec.engine, "noise", "") if prepared else ""
        return Header(
            store, "0" * 32, "0", rank, ot.provider, ot.k, ot.security, self.program.hash, *size, kinds,
            self.backend.name, self.ring, link=named, noise=noise,
        )  # fmt: skip

    def prepared(self) -> tuple[Any, ...]:
        """The products that are prepared for each query."""
        if not self.products:
            return ()
        return self.backend.prepared_products(self.program, self.program.shapes(self.batch), self.spec, self.count)

    @property
    def demand(self) -> Any:
        """What a query reserves."""
        return self.program.demand(self.program.shapes(self.batch), self.spec)

    @property
    def settings(self) -> Settings:
        return Settings.of(replace(self.spec, threads=1), self.program)

    def choosing(self, ot: OtChoice) -> Order:
        """The same with these transfers."""
        return replace(self, spec=replace(self.spec, ot=ot))

    def reckoning(self, link: LinkProfile) -> Order:
        """The same with this link."""
        return replace(self, spec=replace(self.spec, link=link, simulated=None))


def preprocess(
    order: Order,
    *,
    listen: str | None = None,
    server: str | None = None,
    on_listening: Callable[[int], None] | None = None,
    progress: Progress | None = None,
    **moved: Any,
) -> Made:
    """Fills this party's store: the server's half with ``listen``, the client's with ``server`` (both "host:port").

    Both parties give the same program, count, batch, engine and OT. Raises ConfigError and StoreError (no space) before
    anything is sent, then HandshakeMismatch, PeerDisconnected, ProtocolError; nothing is left in the folder then.
    """
    refuse_moved("preprocess", moved, "an Order with ")
    if (listen is None) == (server is None):
        raise ConfigError("pass one of listen=host:port (party 0, the server) and server=host:port (party 1)")
    if order.ot.provider == "ideal" or order.spec.test_seed is not None:
        what = "ot=ideal" if order.ot.provider == "ideal" else "test_seed"
        raise ConfigError(f"{what} gives no security: its correlations are not worth keeping")
    rank = SERVER if listen is not None else CLIENT
    settings = order.settings
    address = listen or server or ""
    deadline, on_wait, greeting = order.spec.deadline, order.spec.on_wait, None
    check_addresses(order.spec, address)
    away = (accept_options if listen is not None else connect_options)(order.spec, 1 - rank)
    order = _with_products(order, rank)
    if order.ot.decided:
        check_space(order.folder, order.header(rank, "0" * 32))
    load_torch()
    if listen is not None:
        with listening(listen) as listener:
            if on_listening is not None:
                on_listening(listener.port)
            channel, greeting = accept_peer(listener, partial(settings.hello, rank, ROLE), deadline, on_wait, away)
            link = Link(channel)
    else:
        link = Link(reach(address, deadline, on_wait, away))
    return interruptible(link, partial(_make, link, rank, order, progress, greeting))


def _make(link: Link, rank: int, order: Order, progress: Progress | None, greeting: Greeting | None) -> Made:
    start, settings = time.monotonic(), order.settings
    channel = link.channels[0]
    settled: list[tuple[str, Order, tuple[Any, ...]]] = []

    def settle(channel: _core.Channel) -> EngineOpener:
        settled.append(_agree_on(channel, rank, order))
        ot = settled[0][1].ot
        return engine_opener(replace(settings, spec=replace(settings.spec, ot=ot)))

    with open_session(link, rank, settings, ROLE, agree=settle, greeting=greeting) as session:
        name, order, products = settled[0]
        header = order.header(rank, name, products)
        check_space(order.folder, header)
        weights = order.program.weights_digest() if products and rank == SERVER else None
        with StoreWriter(order.folder, header, order.key_file or default_key_file(), weights) as writer:
            joint = JointWriter(writer, channel)
            if order.backend.by_kind:
                secret = writer.seal.seal(b"", writer.offset_context)
                cost = fill(session.engine, channel, joint, order.demand, progress)
            else:
                secret = _fill(session, joint, progress)
                fill_products(session, joint, products, progress)
                cost = session.ledger.snapshot()
            _meet(channel)
            writer.commit(secret)
        layers = tuple(session.ledger.records.values())
        seconds = time.monotonic() - start
        return Made(writer.header, writer.folder, bytes_needed(header), seconds, cost, order.ot, layers)


def _with_products(order: Order, rank: int) -> Order:
    """Party 0 prepares products if it has the weights; the other one hears of it."""
    if rank == CLIENT:
        return replace(order, products=None)
    if order.products and order.program.weights is None:
        raise ConfigError("products are prepared with the weights of party 0: give it weights=FILE")
    return replace(order, products=order.program.weights is not None if order.products is None else order.products)


def _agree_on(channel: _core.Channel, rank: int, order: Order) -> tuple[str, Order, tuple[Any, ...]]:
    """The store's id, a random one that party 0 names, after both parties have said that they make the same; the order
    with what party 0 decides, the link, transfers where they are left to it, and whether products are prepared; and
    these products."""
    spec = order.spec
    fields: dict[str, Any] = {"batch": order.batch, "queries": order.count, "threads": spec.threads}
    if rank == SERVER:
        if not order.ot.decided:
            shapes = order.program.shapes(order.batch)
            ranked = forecasts(order.program, shapes, spec, order.count)
            order = order.choosing(ranked[0].ot)
            fields |= choice_fields(order.ot, reason(ranked, spec.expected_link))
        fields |= {"store": secrets.token_hex(16), "products": order.products}
        if order.backend.reckons_with_link(spec):
            fields |= link_fields(spec.expected_link)

    def check(theirs: dict[str, Any]) -> tuple[tuple[str, Order, tuple[Any, ...]], dict[str, Any]]:
        for name in ("batch", "queries", "threads"):
            if type(theirs.get(name)) is not int or theirs[name] != fields[name]:
                raise HandshakeMismatch(
                    f"the parties do not fit together: {name} is {fields[name]} here and {theirs.get(name)!r} at the "
                    "peer; give both the same program, count, batch and threads"
                )
        named = (fields if rank == SERVER else theirs).get("store")
        if not isinstance(named, str) or len(named) != 32 or any(c not in "0123456789abcdef" for c in named):
            raise ProtocolError("the peer names no store")
        settled = order if rank == SERVER else _as_told(order, theirs)
        products = settled.prepared()
        return (named, settled, products), {"prepared": _digest(products)}

    result, verdict = agree(channel, fields, check, "the peer refuses to preprocess")
    if verdict.get("prepared") != _digest(result[2]):
        raise HandshakeMismatch("the parties would not prepare the same products; install the same release at both")
    return result


def _as_told(order: Order, fields: dict[str, Any]) -> Order:
    """The client's order with what party 0 has decided."""
    if order.backend.reckons_with_link(order.spec):
        order = order.reckoning(link_in(fields))
    if not order.ot.decided:
        order = order.choosing(choice_in(fields, order.spec)[0])
    if type(fields.get("products")) is not bool:
        raise ProtocolError("the peer does not say whether products are prepared")
    return replace(order, products=fields["products"])


def _digest(products: Sequence[Any]) -> str:
    """Of what both parties know of the products."""
    return hashlib.sha256(repr([(each.place, each.product) for each in products]).encode()).hexdigest()


def _fill(session: Session, writer: JointWriter, progress: Progress | None) -> bytes:
    """Makes one query's correlations after the other; never more than two chunks lie in memory. Returns the sealed
    offset."""
    core, header = session.engine.session, writer.header
    for query in range(header.queries):
        if progress is not None:
            progress(query, header.queries, f"query {query + 1}")
        pieces = [header.chunks_per_query(direction) for direction in DIRECTIONS]
        for piece in range(max(pieces)):
            sizes = [writer.next_size(d) if piece < pieces[d] else 0 for d in DIRECTIONS]
            core.reserve(*Correlations(*sizes).roles(header.rank))
            for direction in DIRECTIONS:
                if piece < pieces[direction]:
                    context = writer.next_context(direction)
                    as_sender = direction == header.rank
                    sealed = _core.seal_correlations(core, writer.seal, as_sender, sizes[direction], context)
                    writer.put(direction, sealed)
    if progress is not None:
        progress(header.queries, header.queries, "done")
    return _core.seal_offset(core, writer.seal, writer.offset_context)


def _meet(channel: _core.Channel) -> None:
    """Both halves are complete before either becomes a store."""
    channel.write(b"complete")
    channel.flush()
    if channel.read(8) != b"complete":
        raise ProtocolError("the peer did not complete its half of the store")
