# SPDX-License-Identifier: Apache-2.0
"""Makes the correlations of many queries ahead of time, into a store at each party."""

from __future__ import annotations

import secrets
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import privml._core as _core
from privml.context import Session
from privml.engines.correlations import Correlations, OtChoice
from privml.engines.interface import Backend, Kind, backends
from privml.errors import ConfigError, HandshakeMismatch, ProtocolError
from privml.program import Program
from privml.service.choose_ot import choice_fields, choice_in, forecasts, link_of, reason
from privml.service.negotiation import settings_of
from privml.service.options import DEFAULT_SPEC, refuse_moved
from privml.session.active_preprocessing import fill
from privml.session.agreement import agree
from privml.session.connect import accept_peer
from privml.session.connections import Link, listening, reach
from privml.session.handshake import Greeting
from privml.session.identity import accept_options, check_addresses, connect_options
from privml.session.ledger import Snapshot
from privml.session.preprocessing import JointWriter
from privml.session.session import EngineOpener, Settings, engine_opener, interruptible, load_torch, open_session
from privml.spec import SessionSpec
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
    """A finished half: what it holds, where it lies, and what it cost this party."""

    header: Header
    folder: Path
    bytes: int
    seconds: float
    cost: Snapshot
    ot: OtChoice


@dataclass(frozen=True, slots=True)
class Order:
    """What is to be made: ``count`` queries of ``batch`` inputs, into ``folder``, sealed with the key in ``key_file``
    (None: ``default_key_file``). ``spec``: of the sessions that will use it; formats are the program's. Raises
    ConfigError."""

    program: Program
    folder: str | Path
    count: int
    batch: int = 1
    spec: SessionSpec = DEFAULT_SPEC
    key_file: str | Path | None = None

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

    def header(self, rank: int, store: str) -> Header:
        ot, size = self.ot, (self.batch, self.count)
        return Header(
            store, "0" * 32, "0", rank, ot.provider, ot.k, ot.security, self.program.hash, *size, self.kinds,
            self.backend.name, self.ring,
        )  # fmt: skip

    @property
    def kinds(self) -> tuple[Kind, ...]:
        """What is made of a query."""
        return self.backend.store_kinds(self.program, self.program.shapes(self.batch), self.spec)

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
    settled: list[tuple[str, Order]] = []

    def settle(channel: _core.Channel) -> EngineOpener:
        settled.append(_agree_on(channel, rank, order))
        ot = settled[0][1].ot
        return engine_opener(replace(settings, spec=replace(settings.spec, ot=ot)))

    with open_session(link, rank, settings, ROLE, agree=settle, greeting=greeting) as session:
        name, order = settled[0]
        header = order.header(rank, name)
        check_space(order.folder, header)
        with StoreWriter(order.folder, header, order.key_file or default_key_file()) as writer:
            joint = JointWriter(writer, channel)
            if order.backend.by_kind:
                secret = writer.seal.seal(b"", writer.offset_context)
                cost = fill(session.engine, channel, joint, order.demand, progress)
            else:
                secret = _fill(session, joint, progress)
                cost = session.ledger.snapshot()
            _meet(channel)
            writer.commit(secret)
        return Made(writer.header, writer.folder, bytes_needed(header), time.monotonic() - start, cost, order.ot)


def _agree_on(channel: _core.Channel, rank: int, order: Order) -> tuple[str, Order]:
    """The store's id, a random one that party 0 names, after both parties have said that they make the same; and the
    order with the transfers that party 0 chooses where that is left to it."""
    spec = order.spec
    fields: dict[str, Any] = {"batch": order.batch, "queries": order.count, "threads": spec.threads}
    if rank == SERVER:
        if not order.ot.decided:
            shapes = order.program.shapes(order.batch)
            ranked = forecasts(order.program, shapes, spec, order.count)
            order = order.choosing(ranked[0].ot)
            fields |= choice_fields(order.ot, reason(ranked, link_of(spec)))
        fields["store"] = secrets.token_hex(16)

    def check(theirs: dict[str, Any]) -> tuple[tuple[str, Order], dict[str, Any]]:
        for name in ("batch", "queries", "threads"):
            if type(theirs.get(name)) is not int or theirs[name] != fields[name]:
                raise HandshakeMismatch(
                    f"the parties do not fit together: {name} is {fields[name]} here and {theirs.get(name)!r} at the "
                    "peer; give both the same program, count, batch and threads"
                )
        named = (fields if rank == SERVER else theirs).get("store")
        if not isinstance(named, str) or len(named) != 32 or any(c not in "0123456789abcdef" for c in named):
            raise ProtocolError("the peer names no store")
        if order.ot.decided:
            return (named, order), {}
        return (named, order.choosing(choice_in(theirs, spec)[0])), {}

    return agree(channel, fields, check, "the peer refuses to preprocess")[0]


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
