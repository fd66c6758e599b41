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
from privml.engines.correlations import DEFAULT_OT, Correlations, OtChoice
from privml.engines.interface import Kind
from privml.errors import ConfigError, HandshakeMismatch, ProtocolError
from privml.program import Program
from privml.service.choose_active_ot import active_forecasts, named_active_choice
from privml.service.choose_ot import forecasts, named_choice, naming, reason
from privml.service.serve import with_ends
from privml.session.active_preprocessing import fill
from privml.session.agreement import agree
from privml.session.callers import first_caller
from privml.session.connections import listening, reach
from privml.session.handshake import Greeting
from privml.session.identity import Tls, check_addresses, dialling, link_to
from privml.session.joint_writer import JointWriter
from privml.session.lanes import Link
from privml.session.ledger import Snapshot
from privml.session.session import (
    EngineOpener,
    Settings,
    WaitCallback,
    interruptible,
    load_torch,
    open_session,
    opener_of,
)
from privml.spec import Identity, LinkProfile, SessionSpec
from privml.spec import engine as engine_settings
from privml.store.key import default_key_file
from privml.store.layout import Header
from privml.store.writer import StoreWriter, bytes_needed, check_space

SERVER, CLIENT = 0, 1
ROLE = "preprocess"
DIRECTIONS = (0, 1)
Progress = Callable[[int, int, str], None]


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
    """What is to be made: ``count`` queries of ``batch`` inputs, into ``folder``, sealed with ``key_file``'s key.
    ``ring`` (64 or 32 bits) makes it for the engine ``active``, whose queries draw what ``truncation`` says."""

    program: Program
    folder: str | Path
    count: int
    batch: int = 1
    ot: OtChoice = DEFAULT_OT
    threads: int = 1
    key_file: str | Path | None = None
    link: LinkProfile = LinkProfile()
    ring: int | None = None
    truncation: str = "auto"

    def __post_init__(self) -> None:
        if self.ring is not None:
            object.__setattr__(self, "ot", replace(self.ot, security="malicious"))

    @property
    def engine(self) -> str:
        return "twopc" if self.ring is None else "active"

    def header(self, rank: int, store: str) -> Header:
        ot, size = self.ot, (self.batch, self.count)
        return Header(
            store, "0" * 32, "0", rank, ot.provider, ot.k, ot.security, self.program.hash, *size, self.kinds,
            self.engine, self.ring or 0,
        )  # fmt: skip

    @property
    def kinds(self) -> tuple[Kind, ...]:
        """What is made of a query."""
        spec = self.spec
        return spec.backend.store_kinds(self.program, self.program.shapes(self.batch), spec)

    @property
    def correlations(self) -> Correlations:
        return self.program.correlations(*self.program.shapes(self.batch), ot=self.ot, threads=self.threads)

    @property
    def demand(self) -> dict[str, Any]:
        """Of the engine ``active``."""
        return self.program.demand(*self.program.shapes(self.batch), ring=self.ring or 0, truncation=self.truncation)

    @property
    def spec(self) -> SessionSpec:
        own = {} if self.ring is None else {"ring": self.ring, "truncation": self.truncation}
        return SessionSpec(engine_settings(self.engine, **own), self.ot, self.program.numerics, self.threads)

    @property
    def settings(self) -> Settings:
        return Settings.of(replace(self.spec, threads=1), self.program)


def preprocess(
    order: Order,
    *,
    listen: str | None = None,
    server: str | None = None,
    deadline: float = 60.0,
    on_listening: Callable[[int], None] | None = None,
    on_wait: WaitCallback | None = None,
    progress: Progress | None = None,
    tls: Tls | None = None,
    insecure: bool = False,
) -> Made:
    """Fills this party's store: the server's half with ``listen``, the client's with ``server`` (both "host:port").

    Both parties give the same program, count, batch and OT. Raises ConfigError and StoreError (no space) before
    anything is sent, then HandshakeMismatch, PeerDisconnected, ProtocolError; nothing is left in the folder then.
    """
    if (listen is None) == (server is None):
        raise ConfigError("pass one of listen=host:port (party 0, the server) and server=host:port (party 1)")
    if order.ot.provider == "ideal":
        raise ConfigError("ot=ideal gives no security: its correlations are not worth keeping")
    rank = SERVER if listen is not None else CLIENT
    settings = with_ends(order.settings, deadline, None, Identity(tls, insecure))
    address = listen or server or ""
    check_addresses(settings.spec, address)
    greeting = None
    away = link_to(settings.spec, 1 - rank) if listen is not None else dialling(settings.spec, 1 - rank)
    if order.ot.decided:
        check_space(order.folder, order.header(rank, "0" * 32))
    load_torch()
    if listen is not None:
        with listening(listen) as listener:
            if on_listening is not None:
                on_listening(listener.port)
            channel, greeting = first_caller(listener, partial(settings.hello, rank, ROLE), deadline, on_wait, away)
            link = Link(channel)
    else:
        link = Link(reach(address, deadline, on_wait, away))
    return interruptible(link, partial(_make, link, rank, order, settings, progress, greeting))


def _make(
    link: Link,
    rank: int,
    order: Order,
    settings: Settings,
    progress: Progress | None,
    greeting: Greeting | None,
) -> Made:
    start = time.monotonic()
    channel = link.channels[0]
    settled: list[tuple[str, Order]] = []

    def settle(channel: _core.Channel) -> EngineOpener:
        settled.append(_agree_on(channel, rank, order))
        ot = settled[0][1].ot
        return opener_of(replace(settings, spec=replace(settings.spec, ot=ot)))

    with open_session(link, rank, settings, ROLE, agree=settle, greeting=greeting) as session:
        name, order = settled[0]
        header = order.header(rank, name)
        check_space(order.folder, header)
        with StoreWriter(order.folder, header, order.key_file or default_key_file()) as writer:
            joint = JointWriter(writer, channel)
            if order.ring is None:
                secret = _fill(session, joint, progress)
                cost = session.ledger.snapshot()
            else:
                secret = writer.seal.seal(b"", writer.offset_context)
                cost = fill(session.engine, channel, joint, order.demand, progress)
            _meet(channel)
            writer.commit(secret)
        return Made(writer.header, writer.folder, bytes_needed(header), time.monotonic() - start, cost, order.ot)


def _agree_on(channel: _core.Channel, rank: int, order: Order) -> tuple[str, Order]:
    """The store's id, a random one that party 0 names, after both parties have said that they make the same; and the
    order with the transfers that party 0 chooses where that is left to it."""
    words: dict[str, Any] = {"batch": order.batch, "queries": order.count, "threads": order.threads}
    if rank == SERVER:
        if not order.ot.decided:
            shapes = order.program.shapes(order.batch)
            if order.ring is None:
                ranked = forecasts(order.program, shapes, order.ot.security, order.link, order.threads, order.count)
            else:
                ranked = active_forecasts(order.program, shapes, order.ring, order.truncation, order.link, order.count)
            order = replace(order, ot=ranked[0].ot)
            words |= naming(order.ot, reason(ranked, order.link))
        words["store"] = secrets.token_hex(16)

    def check(theirs: dict[str, Any]) -> tuple[tuple[str, Order], dict[str, Any]]:
        for name in ("batch", "queries", "threads"):
            if type(theirs.get(name)) is not int or theirs[name] != words[name]:
                raise HandshakeMismatch(
                    f"the parties do not fit together: {name} is {words[name]} here and {theirs.get(name)!r} at the "
                    "peer; give both the same program, count, batch and threads"
                )
        named = (words if rank == SERVER else theirs).get("store")
        if not isinstance(named, str) or len(named) != 32 or any(c not in "0123456789abcdef" for c in named):
            raise ProtocolError("the peer names no store")
        if order.ot.decided:
            return (named, order), {}
        choice = named_choice(theirs, order.ot.security) if order.ring is None else named_active_choice(theirs)
        return (named, replace(order, ot=choice[0])), {}

    return agree(channel, words, check, "the peer refuses to preprocess")[0]


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
