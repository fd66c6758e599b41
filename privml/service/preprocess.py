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
from privml.engines.correlations import OtChoice
from privml.engines.interface import Backend, backends
from privml.engines.stores import Stores
from privml.errors import ConfigError, HandshakeMismatch, PeerDisconnected, ProtocolError
from privml.program import Program
from privml.service.choose_ot import choice_fields, choice_in, forecasts, reason
from privml.service.negotiation import announced, link_fields, link_in, settings_of
from privml.service.options import DEFAULT_SPEC, refuse_moved
from privml.session.agreement import Fields, agree
from privml.session.connect import accept_peer
from privml.session.connections import Link, listening, reach
from privml.session.dealer import AHEAD, PATIENCE, dealer_opener
from privml.session.handshake import DEALER, Handshake
from privml.session.identity import accept_options, check_addresses, connect_options
from privml.session.ledger import NodeRecord, Snapshot
from privml.session.preprocessing import JointWriter, Stopped
from privml.session.session import EngineOpener, Settings, engine_opener, interruptible, load_torch, open_session
from privml.spec import LinkProfile, SessionSpec
from privml.store.key import default_key_file
from privml.store.layout import Header, check_kinds
from privml.store.writer import StoreWriter, bytes_needed, check_space

SERVER, CLIENT = 0, 1
ROLE = "preprocess"
Progress = Callable[[int, int, str], None]


def refuse_without_stores(spec: SessionSpec) -> None:
    """ConfigError for an engine whose correlations are not made ahead of queries."""
    if not spec.backend.stores:
        able = ", ".join(each.name for each in backends() if each.stores)
        raise ConfigError(f"engine={spec.backend.name} needs no correlations beforehand: choose from {able}")


@dataclass(frozen=True, slots=True)
class Made:
    """A finished half: what it holds, where it lies, and what it cost this party; ``layers``: of prepared products, by
    layer, part of that; ``short``: why it has fewer queries than were ordered, else ""."""

    header: Header
    folder: Path
    bytes: int
    seconds: float
    cost: Snapshot
    ot: OtChoice
    layers: tuple[NodeRecord, ...] = ()
    short: str = ""


@dataclass(frozen=True, slots=True)
class Order:
    """What is to be made: ``count`` queries of ``batch`` inputs, into ``folder``, sealed with the key in ``key_file``
    (None: ``default_key_file``). ``spec``: of the sessions that will use it; formats are the program's. ``products``:
    whether products with weights are prepared, too, or with a dealer shares of the weights are kept, for which party 0
    needs them; None: what party 0 says. Raises ConfigError."""

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
    def stores(self) -> Stores:
        found = self.backend.stores
        assert found is not None, "refused above"
        return found

    def header(self, rank: int, store: str, prepared: Sequence[Any] = ()) -> Header:
        """Of party ``rank``; ``prepared``: see ``prepared``."""
        ot, size, shapes = self.ot, (self.batch, self.count), self.program.shapes(self.batch)
        kinds = self.stores.kinds(self.program, shapes, self.spec, rank, prepared)
        check_kinds(kinds)
        link = self.spec.expected_link
        named = (link.delay_ms, link.bandwidth_mbps) if self.backend.uses_link(self.spec) else ()
        return Header(
            store, "0" * 32, "0", rank, ot.provider, ot.k, ot.security, self.program.hash, *size, kinds,
            self.backend.name, link=named, **self.stores.marks(self.spec, prepared, self.keeps_weights),
        )  # fmt: skip

    @property
    def keeps_weights(self) -> bool:
        """Whether the store holds shares of the weights."""
        return self.stores.keeps_weights and bool(self.products)

    def prepared(self) -> tuple[Any, ...]:
        """The products that are prepared for each query."""
        if not self.products:
            return ()
        return self.stores.products(self.program, self.program.shapes(self.batch), self.spec, self.count)

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
    dealer: str | None = None,
    on_listening: Callable[[int], None] | None = None,
    progress: Progress | None = None,
    **moved: Any,
) -> Made:
    """Fills this party's store: the server's half with ``listen``, the client's with ``server`` (both "host:port").
    ``dealer``: the address of party 2, which deals all queries, for an engine that has one.

    Both parties give the same program, count, batch, engine and OT. Raises ConfigError and StoreError (no space) before
    anything is sent, then HandshakeMismatch, PeerDisconnected, ProtocolError; nothing is left in the folder then. If
    the dealer goes away, the queries that it has dealt to the end make a store.
    """
    refuse_moved("preprocess", moved, "an Order with ")
    if (dealer is None) == order.backend.dealt:
        why = f"engine={order.backend.name} has "
        why += "a dealer: give its address, dealer=host:port" if dealer is None else f"no dealer: leave out {dealer}"
        raise ConfigError(why)
    if (listen is None) == (server is None):
        raise ConfigError("pass one of listen=host:port (party 0, the server) and server=host:port (party 1)")
    if order.ot.provider == "ideal" or order.spec.test_seed is not None:
        what = "ot=ideal" if order.ot.provider == "ideal" else "test_seed"
        raise ConfigError(f"{what} gives no security: its correlations are not stored")
    rank = SERVER if listen is not None else CLIENT
    settings = order.settings
    address = listen or server or ""
    deadline, on_wait, handshake = order.spec.deadline, order.spec.on_wait, None
    check_addresses(order.spec, address, dealer)
    away = (accept_options if listen is not None else connect_options)(order.spec, 1 - rank)
    order = _with_products(order, rank)
    if order.ot.decided:
        check_space(order.folder, order.header(rank, "0" * 32))
    load_torch()
    join = None if dealer is None else dealer_opener(dealer, rank, deadline, connect_options(order.spec, DEALER))
    if listen is not None:
        with listening(listen) as listener:
            if on_listening is not None:
                on_listening(listener.port)
            channel, handshake = accept_peer(listener, partial(settings.hello, rank, ROLE), deadline, on_wait, away)
            link = Link(channel, join)
    else:
        link = Link(reach(address, deadline, on_wait, away), join)
    return interruptible(link, partial(_make, link, rank, order, progress, handshake))


def _make(link: Link, rank: int, order: Order, progress: Progress | None, handshake: Handshake | None) -> Made:
    start, settings = time.monotonic(), order.settings
    channel = link.channels[0]
    settled: list[tuple[str, Order, tuple[Any, ...]]] = []

    def settle(channel: _core.Channel) -> EngineOpener:
        settled.append(_agree_on(channel, rank, order))
        agreed = settled[0][1]
        return engine_opener(replace(settings, spec=replace(settings.spec, ot=agreed.ot)), asked_of_dealer(agreed))

    with open_session(link, rank, settings, ROLE, agree=settle, handshake=handshake) as session:
        name, order, products = settled[0]
        header = order.header(rank, name, products)
        check_space(order.folder, header)
        bound = products or order.keeps_weights
        weights = order.program.weights_digest() if bound and rank == SERVER else None
        if order.backend.dealt:
            for each in link.channels:  # a dealer computes each query, which may be large
                each.set_deadline(PATIENCE * order.spec.deadline)
        with StoreWriter(order.folder, header, order.key_file or default_key_file(), weights) as writer:
            joint, short = JointWriter(writer, channel), ""
            if order.keeps_weights:
                order.stores.begin(session.engine, partial(order.program.prepare, session))
            try:
                cost = _fill(session, channel, joint, order, progress)
            except Stopped as why:
                short, cost = str(why), Snapshot.of(session.engine.counters())
                if joint.complete == 0:
                    raise PeerDisconnected(f"{short}; no query was dealt to its end") from None
                writer.shorten(joint.complete)
            secret = order.stores.sealed_offset(session.engine, joint)
            if products:
                cost = _prepare(session, joint, order.stores, products, progress)
            if progress is not None:
                progress(order.count, order.count, "done")
            _meet(channel)
            writer.commit(secret)
        layers = tuple(session.ledger.records.values())
        seconds = time.monotonic() - start
        return Made(writer.header, writer.folder, bytes_needed(writer.header), seconds, cost, order.ot, layers, short)


def asked_of_dealer(order: Order) -> Fields:
    """What both parties send to a dealer about an order, in clear."""
    ahead = {"queries": order.count, "weights": order.keeps_weights}
    return {**announced(order.program, order.program.shapes(order.batch), None), AHEAD: ahead}


def _with_products(order: Order, rank: int) -> Order:
    """Party 0 prepares products if it has the weights; the other one learns whether it does."""
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
        if order.backend.uses_link(spec):
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
        settled = order if rank == SERVER else _as_decided(order, theirs)
        products = settled.prepared()
        return (named, settled, products), {"prepared": _digest(products)}

    result, verdict = agree(channel, fields, check, "the peer refuses to preprocess")
    if verdict.get("prepared") != _digest(result[2]):
        raise HandshakeMismatch("the parties would not prepare the same products; install the same release at both")
    return result


def _as_decided(order: Order, fields: dict[str, Any]) -> Order:
    """The client's order with what party 0 has decided."""
    if order.backend.uses_link(order.spec):
        order = order.reckoning(link_in(fields))
    if not order.ot.decided:
        order = order.choosing(choice_in(fields, order.spec)[0])
    if type(fields.get("products")) is not bool:
        raise ProtocolError("the peer does not say whether products are prepared")
    return replace(order, products=fields["products"])


def _digest(products: Sequence[Any]) -> str:
    """Of what both parties know of the products."""
    return hashlib.sha256(repr([(each.place, each.product) for each in products]).encode()).hexdigest()


def _fill(
    session: Session,
    channel: _core.Channel,
    writer: JointWriter,
    order: Order,
    progress: Progress | None,
) -> Snapshot:
    """Makes one query's correlations after the other; returns what all that cost. Stopped if there are fewer."""
    stores, engine, count, demand = order.stores, session.engine, order.count, order.demand
    cost = Snapshot()  # of sessions that are over
    for query in range(count):
        if progress is not None:
            progress(query, count, f"query {query + 1}")
        if query > 0 and stores.fresh:
            cost = cost + Snapshot.of(engine.counters())
            engine = order.backend.open([channel], writer.header.rank, order.spec)
        stores.fill(engine, writer, demand)
    return cost + Snapshot.of(engine.counters())


def _prepare(
    session: Session, writer: JointWriter, stores: Stores, products: Sequence[Any], progress: Progress | None
) -> Snapshot:
    """Prepares the products of all queries of the store, one after the other; their cost is booked by layer. Only party
    0 has their weights. Returns what the session has cost with them."""
    header = writer.header
    for number, each in enumerate(products):
        if progress is not None:
            progress(number, len(products), each.layer)
        kind = len(header.kinds) - len(products) + number
        label = f"{header.store} {header.program} {each.place}".encode()
        made = stores.prepare(session.engine, each, header.queries, label)
        for _ in range(header.queries):
            with session.ledger.node(each.layer, "prepare"):
                piece = next(made)
            writer.put(kind, piece.seal(writer.seal, writer.next_context(kind)))
    return Snapshot.of(session.engine.counters())


def _meet(channel: _core.Channel) -> None:
    """Both halves are complete before either becomes a store."""
    channel.write(b"complete")
    channel.flush()
    if channel.read(8) != b"complete":
        raise ProtocolError("the peer did not complete its half of the store")
