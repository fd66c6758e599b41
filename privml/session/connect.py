# SPDX-License-Identifier: Apache-2.0
"""One party of a real run: reach the others over TCP and open a session."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any

from privml.context import Session
from privml.engines.correlations import OtChoice
from privml.engines.interface import DEFAULT, Backend, backend, backends
from privml.errors import ConfigError
from privml.formats import Numerics
from privml.generators import CommonGenerators
from privml.session.callers import first_caller
from privml.session.connections import joining, listening, reach, reaching, reaching_dealer, refuse_insecure
from privml.session.deal import as_dealer
from privml.session.handshake import DEALER
from privml.session.identity import Tls, dialling, link_to, refuse_open
from privml.session.session import Settings, WaitCallback, hashes_of, load_torch, open_session
from privml.spec import SessionSpec


def connect(
    rank: int,
    *,
    listen: str | None = None,
    connect: str | None = None,
    engine: str = DEFAULT,
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

    ``threepc``: the parties 0 and 1 do as above and pass the address of party 2 as ``dealer``; party 2 only
    listens. ``truncation``: see ``privml.engines.threepc.engine.ThreePartyEngine``, the same at all parties.
    ``device``: where this party of ``threepc`` computes, "cpu" or "cuda"; the others may choose differently.

    ``active``: secure against a peer who deviates from the protocol, always on transfers of malicious
    security; ``ring``: 64 or 32, the bits of its ring; ``truncation``: see
    the ``Config`` of its backend.

    Raises ConfigError for wrong settings and a port in use, HandshakeMismatch when the parties disagree, IdentityError
    when a certificate is refused, PeerDisconnected when no peer comes or it goes, ProtocolError when it is no privml
    party.
    """
    chosen = backend(engine)
    if not chosen.remote:
        remote = ", ".join(each.name for each in backends() if each.remote)
        raise ConfigError(f"engine '{engine}' cannot run between processes; choose from {remote}")
    own = {"truncation": (truncation, "auto"), "device": (device, "cpu")}
    own = {name: value for name, (value, neutral) in own.items() if value != neutral}
    _check_places(rank, listen, connect, dealer, chosen)
    spec = SessionSpec(
        chosen.config(**own, **({"ring": ring} if chosen.actively_secure else {})),
        OtChoice(ot, k, chosen.security or security, refill),
        numerics,
        threads,
        deadline,
    )
    settings = Settings(spec, *hashes_of(program))
    refuse_insecure(settings, test_seed, listen, connect, dealer)
    refuse_open(tls, insecure, listen, connect, dealer)
    load_torch()
    if rank == DEALER:
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


def _check_places(rank: int, listen: str | None, connect: str | None, dealer: str | None, engine: Backend) -> None:
    ranks = range(engine.parties)
    if rank not in ranks:
        raise ConfigError(f"rank must be one of {', '.join(map(str, ranks))} for engine={engine.name}, got {rank!r}")
    if rank == DEALER:
        if listen is None or connect is not None or dealer is not None:
            raise ConfigError("party 2 waits for the others: pass listen='host:port' alone")
        return
    if (listen is None) == (connect is None):
        raise ConfigError("pass one of listen='host:port' and connect='host:port'")
    if (dealer is None) == engine.dealt:
        three = ", ".join(each.name for each in backends() if each.dealt)
        raise ConfigError(f"pass dealer='host:port', the address of party 2, with engine={three} and only with it")
