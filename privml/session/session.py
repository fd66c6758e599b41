# SPDX-License-Identifier: Apache-2.0
"""From a connected channel to an open session of one party."""

from __future__ import annotations

import hashlib
import importlib
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from dataclasses import dataclass
from functools import partial
from threading import Thread
from typing import Any, TypeVar

from privml import _core
from privml.context import Numerics, Session
from privml.differences import report_failure
from privml.engines import active
from privml.engines.active import ActiveEngine, checked_ring
from privml.engines.base import Engine
from privml.engines.correlations import DEFAULT_OT, OtChoice
from privml.engines.threepc import established
from privml.engines.threepc.device import kernels_for
from privml.engines.threepc.engine import TRUNCATIONS
from privml.engines.twopc import TwoPartyEngine, checked_threads, connected, connections
from privml.errors import ConfigError
from privml.session.agreement import Words
from privml.session.agreement import agree as agree_on
from privml.session.cutoff import ending_within
from privml.session.dealer import dealer_connections
from privml.session.handshake import DEALER, DEALT_ROLE, Greeting, Hello, answer_hello, shake_hands
from privml.session.identity import expect_same_party, refuse_shared_names
from privml.session.lanes import Joiner, Link, public_seed, session_key, session_token
from privml.session.ledger import Ledger, Snapshot
from privml.transcript import Transcript
from privml.version import VERSION

ENGINES = ("twopc", "threepc", "active")
Result = TypeVar("Result")
# How long the thread of an ended session may take to clean up.
_SECONDS_TO_END = 10.0
# A hello as a whole may take as many times what one read may.
HELLO_PATIENCE = 2

# (channels, rank, test_seed) -> engine
EngineOpener = Callable[[Sequence[_core.Channel], int, int | None], Engine]
# Called while waiting for the peer with the seconds waited so far.
WaitCallback = Callable[[float], None]


@dataclass(frozen=True, slots=True)
class Settings:
    """What both parties must agree on. ``program`` and ``formats`` are hashes in hex or None; ``threads`` is the number
    of lanes; ``store`` names the store that correlations come from and ``when_empty`` what follows when they do not
    suffice (see ``privml.session.preprocessing``). ``truncation``: see ``ThreePartyEngine`` and ``ActiveEngine``, whose
    ``ring`` (64 or 32 bits) says also how many bits the keys of its checks have: as many. They need not agree on
    ``device`` (cpu or cuda)."""

    engine: str = "twopc"
    ot: OtChoice = DEFAULT_OT
    program: str | None = None
    formats: str | None = None
    numerics: Numerics = Numerics()
    threads: int = 1
    store: str | None = None
    when_empty: str | None = None
    truncation: str = "auto"
    device: str = "cpu"
    ring: int | None = None

    def __post_init__(self) -> None:
        if self.engine not in ENGINES:
            raise ConfigError(f"engine '{self.engine}' cannot run between processes; choose from {', '.join(ENGINES)}")
        checked_threads(self.threads)
        kernels_for(self.device)  # says what is missing before anybody waits
        self._check_truncation()
        if self.device != "cpu" and not self.dealt:
            raise ConfigError(f"device={self.device} is about three parties: name the dealer, or leave it out")
        if self.dealt and (self.threads > 1 or self.store is not None):
            raise ConfigError("engine=threepc has one lane and needs no correlations: leave out threads and stores")
        if self.dealt and self.ot.security == "malicious":
            raise ConfigError(
                "engine=threepc is semi-honest and makes no transfers: leave out ot.security=malicious, or choose "
                "engine=active, which is secure against a party that deviates"
            )
        if self.active:
            self._check_active()

    def _check_truncation(self) -> None:
        if self.truncation not in TRUNCATIONS:
            raise ConfigError(f"truncation={self.truncation} must be one of {', '.join(TRUNCATIONS)}")
        if self.truncation != "auto" and not (self.dealt or self.active):
            raise ConfigError(
                f"truncation={self.truncation} is about engines that have a choice: name the dealer of three parties, "
                "or the ring of actively secure ones, or leave it out"
            )

    def _check_active(self) -> None:
        ring = checked_ring(self.ring)
        if self.ot.provider != "ideal" and self.ot.security != "malicious":
            raise ConfigError("engine=active needs ot.security=malicious")
        if self.threads > 1 or self.ot.in_background:
            raise ConfigError("engine=active has one lane: leave out threads and ot.refill")
        if self.numerics.bits > ring:
            raise ConfigError(f"numerics of {self.numerics.bits} bits do not fit engine.ring={ring}")

    @property
    def active(self) -> bool:
        """Whether the parties are secure against one that deviates from the protocol."""
        return self.engine == "active"

    @property
    def dealt(self) -> bool:
        """Whether a dealer is the third party."""
        return self.engine == "threepc"

    def further(self, rank: int) -> int:
        """How many connections party ``rank`` needs beyond that between the parties 0 and 1."""
        return dealer_connections(rank) if self.dealt else connections(self.ot, self.threads) - 1

    def hello(self, rank: int, role: str) -> Hello:
        numerics = _describe(self.numerics)
        if self.dealt:
            return Hello(
                VERSION, rank, self.engine, "none", 0, role=role, program=self.program, formats=self.formats,
                numerics=numerics, truncation=self.truncation,
            )  # fmt: skip
        ot = self.ot
        return Hello(
            VERSION, rank, self.engine, ot.provider, ot.k, ot.security, role, self.program, self.formats, numerics,
            self.threads, ot.refill, self.store, self.when_empty,
            truncation=self.truncation if self.active else None, ring=self.ring,
        )  # fmt: skip


def open_session(
    channel: _core.Channel,
    rank: int,
    settings: Settings,
    *,
    role: str = "party",
    deadline: float = 60.0,
    hello_deadline: float | None = None,
    agree: Callable[[_core.Channel], EngineOpener | None] | None = None,
    join: Joiner | None = None,
    link: Link | None = None,
    greeting: Greeting | None = None,
    test_seed: int | None = None,
) -> Session:
    """Shakes hands on ``channel`` and sets up the engine; the session owns the channel from here on.

    ``deadline``: seconds that any read may wait (``hello_deadline``: for the peer's hello, which may take twice as long
    as a whole). ``agree`` runs between the handshake and the set-up, for what else the parties settle in clear, and may
    return another way to make the engine. ``join`` brings the further connections where the settings say so (see
    ``privml.session.lanes``); ``link`` learns of them. ``greeting``: the peer's hello was heard already. ``test_seed``
    makes the wire deterministic (tests only).
    Raises HandshakeMismatch, ServiceBusy, ServiceMoved, ProtocolError, PeerDisconnected; all channels are closed then.
    """
    link = Link(channel) if link is None else link
    try:
        further = settings.further(rank)
        if further > 0 and join is None:
            raise ConfigError("threads, ot.refill=background and a dealer need a way to open further connections")
        patience = deadline if hello_deadline is None else hello_deadline
        channel.set_deadline(patience)
        if greeting is None:
            ours = settings.hello(rank, role)
            with ending_within(HELLO_PATIENCE * patience, channel, "the peer's hello"):
                greeting = Greeting(ours, shake_hands(channel, ours))
        else:
            answer_hello(channel, greeting)
        token = session_token(greeting.ours, greeting.theirs)
        if further > 0:
            link.add(join(token, further))
        for each in link.channels:
            each.set_deadline(deadline)
        opener = agree(channel) if agree is not None else None
        common = public_seed(token) if test_seed is None else test_seed
        if settings.ot.provider == "ideal" and not settings.dealt and test_seed is None:
            test_seed = common % 2**64  # the correlations' seed, which both parties know
        if opener is None and settings.active:
            opener = partial(active_engine, settings)
        elif opener is None:
            ordinary = partial(make_engine, settings.ot, settings.threads)
            opener = partial(dealt_engine, settings, {}) if settings.dealt else ordinary
        key = session_key(greeting.ours, greeting.theirs) if test_seed is None else seeded_key(test_seed)
        engine = opener(link.channels, rank, test_seed)
    except BaseException:
        link.close()
        raise
    return session_on(engine, settings, common, link.channels[: engine.parties - 1], key)


def seeded_key(test_seed: int) -> bytes:
    """What stands for the session's key where all randomness is deterministic."""
    return hashlib.blake2b(f"privml session {test_seed}".encode(), digest_size=32).digest()


def session_on(
    engine: Engine, settings: Settings, common: int, peers: Sequence[_core.Channel], key: bytes = b""
) -> Session:
    """A session that closes ``engine`` at its end, counts what it costs and has a transcript: under ``key``, which both
    of two parties know, or those that the engine has agreed on with several. ``peers``: a channel to each other party,
    which is told there if a program fails."""
    session = Session(engine, settings.numerics, on_close=engine.close)
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


def make_engine(
    ot: OtChoice, threads: int, channels: Sequence[_core.Channel], rank: int, test_seed: int | None
) -> TwoPartyEngine:
    """An engine whose session makes its correlations by ``ot``."""
    if not ot.decided:
        raise ConfigError("ot=auto chooses for a query between server and client; name a provider here")
    return connected(channels, rank, ot, threads, test_seed)


def active_engine(
    settings: Settings, channels: Sequence[_core.Channel], rank: int, test_seed: int | None
) -> ActiveEngine:
    """An engine that is secure against a peer who deviates."""
    assert settings.ring is not None
    return active.established(channels[0], rank, settings.ot, settings.ring, settings.truncation, test_seed)


def dealt_engine(
    settings: Settings, words: Words, channels: Sequence[_core.Channel], rank: int, test_seed: int | None
) -> Engine:
    """The engine of party 0 or 1 on its channels to the peer and the dealer, who learns ``words`` in clear."""
    peer, dealer, *dealing = channels
    refuse_shared_names(peer, dealer)
    for each in dealing:
        expect_same_party(dealer, each)
    shake_hands(dealer, settings.hello(rank, DEALT_ROLE), peer=DEALER)
    tell_dealer(dealer, words)
    ends = {1 - rank: peer, DEALER: dealer}
    return established(
        ends, dealing[0] if dealing else None, rank, settings.truncation, test_seed, kernels_for(settings.device)
    )


def tell_dealer(dealer: _core.Channel, words: Words) -> None:
    """Says ``words`` to the dealer; InvalidInput with its reason when it refuses."""
    agree_on(dealer, words, lambda theirs: (None, {}), "the dealer refuses the session")


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


def _describe(numerics: Numerics) -> str:
    if numerics.floating is not None:
        return f"float {numerics.floating.exponent}.{numerics.floating.mantissa} {numerics.dot}"
    working, weight = numerics.working, numerics.weight
    return f"{working.bits}.{working.scale}/{weight.bits}.{weight.scale}, exp={numerics.exp}"


def hashes_of(program: Any) -> tuple[str | None, str | None]:
    """(program hash, formats hash) of a converted program, or of a plain hash in hex, or of None."""
    if program is None or isinstance(program, str):
        return program, None
    return program.hash, program.formats_hash
