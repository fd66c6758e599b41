# SPDX-License-Identifier: Apache-2.0
"""From a connected channel to an open session of one party."""

from __future__ import annotations

import hashlib
import importlib
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field, replace
from functools import partial
from threading import Thread
from typing import Any, TypeVar

import privml._core as _core
from privml.context import Session
from privml.differences import report_failure
from privml.engines.base import Engine
from privml.engines.interface import Backend, backends
from privml.errors import ConfigError
from privml.formats import Numerics
from privml.session.agreement import Fields
from privml.session.agreement import agree as agree_on
from privml.session.connections import Link, time_limit
from privml.session.handshake import DEALER, DEALT_ROLE, Handshake, Hello, answer_hello, prove_store, shake_hands
from privml.session.identity import expect_same_party, refuse_shared_names
from privml.session.lanes import public_seed, session_key, session_token
from privml.session.ledger import Ledger, Snapshot
from privml.spec import SessionSpec, terms
from privml.transcript import Transcript
from privml.version import VERSION

Result = TypeVar("Result")
# How long the thread of an ended session may take to clean up.
_SECONDS_TO_END = 10.0
# A whole hello may take this many times as long as one read.
HELLO_PATIENCE = 2

# (channels, rank, test_seed) -> engine
EngineOpener = Callable[[Sequence[_core.Channel], int, int | None], Engine]


@dataclass(frozen=True, slots=True)
class Settings:
    """A session's specification, of which the parties compare the ``terms``, and what they compute: ``program`` and
    ``formats``, hashes in hex or None; ``store``, the id of the store that correlations come from, and ``when_empty``,
    what happens if they do not suffice (see ``privml.session.preprocessing``)."""

    spec: SessionSpec = field(default_factory=SessionSpec)
    program: str | None = None
    formats: str | None = None
    store: str | None = None
    when_empty: str | None = None

    def __post_init__(self) -> None:
        engine = self.spec.backend
        if not engine.remote:
            remote = [each.name for each in backends() if each.remote]
            raise ConfigError(f"engine '{engine.name}' cannot run between processes; choose from {', '.join(remote)}")
        if self.store is not None and not engine.stores:
            raise ConfigError(f"engine={engine.name} needs no correlations beforehand: leave out the store")

    @property
    def backend(self) -> Backend:
        return self.spec.backend

    @staticmethod
    def of(spec: SessionSpec, program: Any = None, store: Any = None) -> Settings:
        """``program``: a converted program, or its hash in hex, or None; ``store``: a ``StoreHalf`` or None."""
        hashes = (
            (program, None) if program is None or isinstance(program, str) else (program.hash, program.formats_hash)
        )
        return Settings(spec, *hashes, *((None, None) if store is None else (store.id, store.when_empty)))

    def hello(self, rank: int, role: str) -> Hello:
        # Elsewhere party 0 names the link once hands are shaken.
        named = role == "party" and self.backend.uses_link(self.spec)
        expected = self.spec.expected_link
        link = f"{float(expected.delay_ms)!r} ms, {float(expected.bandwidth_mbps)!r} Mbit/s" if named else None
        return Hello(
            VERSION, rank, role=role, program=self.program, formats=self.formats, store=self.store,
            when_empty=self.when_empty, link=link, **terms(self.spec),
        )  # fmt: skip


def open_session(
    link: Link,
    rank: int,
    settings: Settings,
    role: str = "party",
    *,
    agree: Callable[[_core.Channel], EngineOpener | None] | None = None,
    handshake: Handshake | None = None,
) -> Session:
    """Shakes hands on the first channel of ``link`` and sets up the engine; the session owns its channels from here on.

    The specification's deadline is how long any read may wait; the peer's hello as a whole may take twice as long.
    ``agree`` runs between the handshake and the set-up, for what else the parties settle in clear, and may return
    another way to make the engine. ``handshake``: the peer's hello was received already.
    Raises HandshakeMismatch, ServiceBusy, ServiceMoved, ProtocolError, PeerDisconnected; all channels are closed then.
    """
    spec, channel = settings.spec, link.channels[0]
    test_seed = spec.test_seed
    try:
        further = spec.backend.connections(spec, rank) - 1
        if further > 0 and link.join is None:
            raise ConfigError("threads, ot.refill=background and a dealer need a way to open further connections")
        channel.set_deadline(spec.deadline)
        if handshake is None:
            ours = settings.hello(rank, role)
            with time_limit(HELLO_PATIENCE * spec.deadline, channel, "the peer's hello"):
                handshake = Handshake(ours, shake_hands(channel, ours))
        else:
            answer_hello(channel, handshake)
        token, key = (of(handshake.ours, handshake.theirs) for of in (session_token, session_key))
        prove_store(channel, handshake.ours, key)
        if further > 0:
            link.add(link.join(token, further))
        for each in link.channels:
            each.set_deadline(spec.deadline)
        opener = agree(channel) if agree is not None else None
        common = public_seed(token) if test_seed is None else test_seed
        if spec.ot.provider == "ideal" and spec.backend.transfers and test_seed is None:
            test_seed = common % 2**64  # the correlations' seed, which both parties know
        if opener is None:
            opener = engine_opener(settings)
        key = key if test_seed is None else seeded_key(test_seed)
        engine = opener(link.channels, rank, test_seed)
    except BaseException:
        link.close()
        raise
    return session_on(engine, spec.numerics, common, link.channels[: engine.parties - 1], key)


def seeded_key(test_seed: int) -> bytes:
    """The session's key if all randomness is deterministic."""
    return hashlib.blake2b(f"privml session {test_seed}".encode(), digest_size=32).digest()


def session_on(
    engine: Engine, numerics: Numerics, common: int, peers: Sequence[_core.Channel], key: bytes = b""
) -> Session:
    """A session that closes ``engine`` at its end, counts its costs and has a transcript: under ``key``, which both of
    two parties know, or under the keys that the engine has agreed on with several. ``peers``: a channel to each other
    party, over which it learns if a program fails here."""
    session = Session(engine, numerics, on_close=engine.close)
    engines = session.engines  # not the session: it would live until a collection of cycles, and so would its sockets
    session.ledger = Ledger(lambda: Snapshot.of(engines.current().counters()))
    session.common_seed = common
    session.on_failure = partial(report_failure, tuple(peers))
    rank = engine.rank
    assert rank is not None
    keys = engine.transcript_keys or {1 - rank: key}
    accounts = {peer: _core.Account(rank, peer) for peer in keys}
    session.transcript = Transcript(keys, lambda peer, line: accounts[peer].add(line))
    engine.follow(session.transcript, accounts)
    session.step("start")
    return session


def engine_opener(settings: Settings, fields: Fields | None = None) -> EngineOpener:
    """Opens the engine of ``settings`` on its channels. A dealer, if there is one, gets ``fields`` in clear."""

    def opened(channels: Sequence[_core.Channel], rank: int, test_seed: int | None) -> Engine:
        spec = settings.spec
        if spec.dealt:
            _join_dealer(channels, rank, settings, fields or {})
        return spec.backend.open(channels, rank, replace(spec, test_seed=test_seed))

    return opened


def _join_dealer(channels: Sequence[_core.Channel], rank: int, settings: Settings, fields: Fields) -> None:
    """Shakes hands with the dealer and sends it ``fields`` in clear."""
    peer, dealer, *dealing = channels
    refuse_shared_names(peer, dealer)
    for each in dealing:
        expect_same_party(dealer, each)
    shake_hands(dealer, settings.hello(rank, DEALT_ROLE), peer=DEALER)
    ask_dealer(dealer, fields)


def ask_dealer(dealer: _core.Channel, fields: Fields) -> None:
    """Sends ``fields`` to the dealer; InvalidInput with its reason if it refuses."""
    agree_on(dealer, fields, lambda theirs: (None, {}), "the dealer refuses the session")


def interruptible(link: Link, body: Callable[[], Result]) -> Result:
    """``body()`` on a thread of its own, so that an interrupt (Ctrl-C) ends its reads from ``link`` at once."""
    outcome: Future[Result] = Future()
    # No executor: an interrupt in the middle of its submit() can leave its locks held.
    thread = Thread(target=_fulfil, args=(outcome, body), name="session", daemon=True)
    try:
        thread.start()
        return outcome.result()
    except BaseException:
        link.close()
        if thread.ident is not None:
            thread.join(_SECONDS_TO_END)
        raise
    finally:
        del outcome, body  # an error refers to this frame: nothing here may refer to it, or sockets stay open


def _fulfil(outcome: Future[Result], body: Callable[[], Result]) -> None:
    try:
        outcome.set_result(body())
    except BaseException as error:
        outcome.set_exception(error)
    del outcome, body  # as above


def load_torch() -> None:
    """Loads, while no peer waits, what torch loads at the first operator on a secret tensor (it takes seconds)."""
    importlib.import_module("torch.distributed.tensor")
