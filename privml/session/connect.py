# SPDX-License-Identifier: Apache-2.0
"""One party of a real run: reach the others over TCP and open a session."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, TypeVar

from privml import _core
from privml.context import Numerics, Session
from privml.engines.correlations import OtChoice
from privml.errors import ConfigError, PeerDisconnected, ProtocolError, ServiceMoved
from privml.generators import CommonGenerators
from privml.session.address import parse_address
from privml.session.callers import first_caller
from privml.session.dealer import reach_dealer
from privml.session.handshake import DEALER
from privml.session.identity import Tls, dialling, is_loopback, link_to, refuse_open
from privml.session.lanes import Joiner, accept_lanes, open_lanes
from privml.session.session import Settings, WaitCallback, hashes_of, load_torch, open_session

# Waiting happens in slices, so that an interrupt is seen soon.
_SLICE_SECONDS = 0.5
Result = TypeVar("Result")


def connect(
    rank: int,
    *,
    listen: str | None = None,
    connect: str | None = None,
    engine: str = "twopc",
    ot: str = "softspoken",
    k: int = 4,
    security: str = "semi_honest",
    program: Any = None,
    numerics: Numerics | None = None,
    deadline: float = 60.0,
    on_wait: WaitCallback | None = None,
    network: Mapping[str, float] | None = None,
    threads: int = 1,
    refill: str = "none",
    dealer: str | None = None,
    truncation: str = "auto",
    device: str = "cpu",
    ring: int = 64,
    tls: Tls | None = None,
    insecure: bool = False,
    test_seed: int | None = None,
) -> Session:
    """A session between this process and another: ``with privml.connect(rank=0, listen="127.0.0.1:9000") as s:``.

    One party passes ``listen``, the other ``connect`` (both "host:port"), in either order of time: each waits
    until ``deadline`` (seconds), which is also the longest any later read may wait. Who connects and says no hello,
    such as a port scanner, is refused with a warning. ``program``: a converted
    program (or its hash) that both must hold. ``on_wait`` is called with the seconds waited while nobody is there.
    ``network``: delay_ms and bandwidth_mbps to simulate, both parties on one machine. ``threads``: the session's lanes,
    each with a connection of its own; ``refill``: "background" makes correlations on further connections while the
    online phase runs. Both are the same at both parties.

    ``tls``: this party's certificate and the names of the others; needed for every address beyond this machine unless
    ``insecure`` allows to do without. It has a name for every party that this one dials.

    ``engine="threepc"``: the parties 0 and 1 do as above and pass the address of party 2 as ``dealer``; party 2 only
    listens. ``truncation``: see ``privml.engines.threepc.ThreePartyEngine``, the same at all parties.
    ``device``: where this party of ``threepc`` computes, "cpu" or "cuda"; the others may choose differently.

    ``engine="active"``: secure against a peer who deviates from the protocol, always on transfers of malicious
    security; ``ring``: 64 or 32, the bits of its ring; ``truncation``: see ``privml.engines.active.ActiveEngine``.

    Raises ConfigError for wrong settings and a port in use, HandshakeMismatch when the parties disagree, IdentityError
    when a certificate is refused, PeerDisconnected when no peer comes or it goes, ProtocolError when it is no privml
    party.
    """
    _check_places(rank, listen, connect, dealer, engine)
    program_hash, formats_hash = hashes_of(program)
    active = engine == "active"
    choice = OtChoice(ot, k, "malicious" if active else security, refill)
    numerics = numerics or (Numerics(bits=32, scale=8) if active and ring == 32 else Numerics())
    settings = Settings(
        engine, choice, program_hash, formats_hash, numerics, threads, truncation=truncation, device=device,
        ring=ring if active else None,
    )  # fmt: skip
    refuse_insecure(settings, test_seed, listen, connect, dealer)
    refuse_open(tls, insecure, listen, connect, dealer)
    load_torch()
    if rank == DEALER:
        from privml.session.deal import as_dealer

        with listening(listen) as listener:
            session = as_dealer(listener, settings, deadline, on_wait, network, test_seed=test_seed, tls=tls)
            return of_program(session)
    join = None if dealer is None else reaching_dealer(dealer, rank, deadline, dialling(network, tls, DEALER))
    if listen is not None:
        link = link_to(network, tls, 1 - rank)
        with listening(listen) as listener:
            channel, greeting = first_caller(listener, partial(settings.hello, rank, "party"), deadline, on_wait, link)
            join = join or joining(listener, channel, deadline, link)
            session = open_session(
                channel, rank, settings, deadline=deadline, join=join, greeting=greeting, test_seed=test_seed
            )
            return of_program(session)
    link = dialling(network, tls, 1 - rank)
    channel = reach(connect, deadline, on_wait, link)
    join = join or reaching(connect, deadline, link)
    return of_program(open_session(channel, rank, settings, deadline=deadline, join=join, test_seed=test_seed))


def of_program(session: Session) -> Session:
    """A session of a program of the user's own: while it is entered the parties' global generators are alike, and
    errors name the program's lines."""
    assert session.common_seed is not None and session.transcript is not None
    session.generators = CommonGenerators(session.common_seed)
    session.transcript.names_lines = True
    return session


def joining(
    listener: _core.TcpListener,
    first: _core.Channel,
    deadline: float,
    link: Mapping[str, Any] | None = None,
) -> Joiner:
    """How a listening party gets the further connections of a session, of which ``first`` is there."""
    connector = partial(accept, listener, link=link)
    return lambda token, count: accept_lanes(connector, first, token, count, deadline)


def reaching(address: str, deadline: float, link: Mapping[str, Any] | None = None) -> Joiner:
    """How a connecting party opens the further connections of a session."""
    connector = partial(reach, address, link=link)
    return lambda token, count: open_lanes(connector, token, count, deadline)


def reaching_dealer(address: str, rank: int, deadline: float, link: Mapping[str, Any] | None = None) -> Joiner:
    """How party 0 or 1 opens its connections to the dealer at ``address``."""
    connector = partial(reach, address, link=link)
    return lambda token, count: reach_dealer(connector, token, rank, deadline)


def _check_places(rank: int, listen: str | None, connect: str | None, dealer: str | None, engine: str) -> None:
    ranks = (0, 1, DEALER) if engine == "threepc" else (0, 1)
    if rank not in ranks:
        raise ConfigError(f"rank must be one of {', '.join(map(str, ranks))} for engine={engine}, got {rank!r}")
    if rank == DEALER:
        if listen is None or connect is not None or dealer is not None:
            raise ConfigError("party 2 waits for the others: pass listen='host:port' alone")
        return
    if (listen is None) == (connect is None):
        raise ConfigError("pass one of listen='host:port' and connect='host:port'")
    if (dealer is None) == (engine == "threepc"):
        raise ConfigError("pass dealer='host:port', the address of party 2, with engine=threepc and only with it")


class listening:
    """``with listening("host:port") as listener``; ConfigError when the port cannot be had."""

    def __init__(self, address: str) -> None:
        try:
            self.listener = _core.TcpListener(*parse_address(address))
        except ConfigError:
            raise
        except ValueError as error:
            raise ConfigError(f"{error}; choose another listen=host:port") from None

    def __enter__(self) -> _core.TcpListener:
        return self.listener

    def __exit__(self, *exception: object) -> None:
        self.listener.close()


def accept(
    listener: _core.TcpListener,
    deadline: float | None,
    on_wait: WaitCallback | None = None,
    link: Mapping[str, Any] | None = None,
) -> _core.Channel:
    """The next connection, made with ``link`` (see ``link_to``); ``deadline`` None waits for ever.
    Raises PeerDisconnected after the deadline."""
    return _in_slices(
        lambda seconds: listener.accept(seconds, **(link or {})),
        deadline,
        on_wait,
        f"nobody connected to port {listener.port}",
    )


def reach(
    address: str, deadline: float, on_wait: WaitCallback | None = None, link: Mapping[str, Any] | None = None
) -> _core.Channel:
    """A connection to a listening peer, tried until the deadline. Raises PeerDisconnected after it."""
    host, port = parse_address(address)
    return _in_slices(
        lambda seconds: _core.connect_tcp(host, port, seconds, **(link or {})),
        deadline,
        on_wait,
        f"nobody listens on {address}",
    )


def _in_slices(
    attempt: Callable[[float], _core.Channel], deadline: float | None, on_wait: WaitCallback | None, nobody: str
) -> _core.Channel:
    start = time.monotonic()
    while True:
        waited = time.monotonic() - start
        left = _SLICE_SECONDS if deadline is None else min(_SLICE_SECONDS, deadline - waited)
        try:
            return attempt(max(left, 0.0))
        except PeerDisconnected:
            waited = time.monotonic() - start
            if deadline is not None and waited >= deadline:
                raise PeerDisconnected(f"{nobody} within {deadline:g} seconds") from None
            if on_wait is not None:
                on_wait(waited)


def following(
    address: str,
    link: Mapping[str, Any],
    attempt: Callable[[str, Mapping[str, Any]], Result],
    admit: Callable[[str], None],
) -> Result:
    """``attempt(address, link)``, which asks the server there over connections made with ``link`` (see ``link_to``);
    and once more where that server sends its clients on, to one that proves the same name.

    ``admit`` raises for an address that this party does not talk to (see ``refuse_open``). Raises ProtocolError when
    the second server sends the client on again.
    """
    try:
        return attempt(address, link)
    except ServiceMoved as moved:
        further, name = moved.address, moved.name
    admit(further)
    if name:
        link = {**link, "identity": link["identity"].expecting([name])}
    try:
        return attempt(further, link)
    except ServiceMoved:
        raise ProtocolError(f"the server sends its clients on to {further}, which sends them on again") from None


def refuse_insecure(settings: Settings, test_seed: int | None, *addresses: str | None) -> None:
    """What is made for tests must not leave this machine."""
    for address in addresses:
        if address is None:
            continue
        host = parse_address(address)[0]
        if (settings.ot.provider == "ideal" or test_seed is not None) and not is_loopback(host):
            what = "ot=ideal" if settings.ot.provider == "ideal" else "test_seed"
            raise ConfigError(f"{what} gives no security and is allowed on loopback addresses only, not on {host}")
