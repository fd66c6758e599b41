# SPDX-License-Identifier: Apache-2.0
"""The server: party 0 owns the weights and answers one query after another."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial

from privml import _core
from privml.engines.correlations import DEFAULT_OT, OtChoice
from privml.errors import ConfigError
from privml.program import INPUT_OWNER, WEIGHTS_OWNER, Program
from privml.service.answering import Answered, Limits, answer
from privml.service.choose_ot import LinkProfile
from privml.service.progress import Progress
from privml.service.request import Service
from privml.session.connect import accept, joining, listening, reaching_dealer, refuse_insecure
from privml.session.handshake import DEALER
from privml.session.identity import Tls, link_to, refuse_open
from privml.session.lanes import Link
from privml.session.preprocessing import Preprocessing
from privml.session.session import Settings, interruptible, load_torch, open_session

# A connection that does not say hello within this time is no client.
HELLO_SECONDS = 10.0


def serve(
    program: Program,
    listen: str,
    *,
    ot: OtChoice = DEFAULT_OT,
    deadline: float = 60.0,
    queries: int = 0,
    network: Mapping[str, float] | None = None,
    threads: int = 1,
    log: Callable[[str], None] = print,
    on_listening: Callable[[int], None] | None = None,
    on_answer: Callable[[Answered], None] | None = None,
    progress: Progress | None = None,
    preprocessing: Preprocessing | None = None,
    link_profile: LinkProfile | None = None,
    dealer: str | None = None,
    truncation: str = "auto",
    device: str = "cpu",
    ring: int | None = None,
    tls: Tls | None = None,
    insecure: bool = False,
    limits: Limits | None = None,
) -> int:
    """Answers queries on ``listen`` ("host:port") until ``queries`` are answered (0: for ever); returns their number.

    ``program`` carries the weights. Each connection is a session of its own; whatever goes wrong in one ends that
    connection with one line to ``log`` and the server goes on. ``deadline``: seconds that a read may wait for a client.
    ``threads``: lanes of each session, each with a connection of its own. ``on_listening`` gets the port.
    ``preprocessing``: the store that sessions take their correlations from. ``link_profile``: the link to the clients,
    which ``ot`` "auto" reckons with (default: that of ``network``). ``dealer``: the address of party 2 (see
    ``privml.service.deal``), which makes it three parties; ``truncation``: see ``ThreePartyEngine``; ``device``: where
    this party of three computes, "cpu" or "cuda". ``ring`` (64 or 32 bits) takes the engine ``active``, secure against
    clients who deviate from the protocol. ``limits``: how many queries a session may have, and how long it may be idle
    between two of them.
    Raises ConfigError for a port in use, wrong settings or missing weights.
    """
    if program.weights is None and program.weight_specs:
        raise ConfigError("the server needs the program's weights (weights.safetensors)")
    settings = settings_of(program, ot, threads, preprocessing, dealer, truncation, device, ring)
    service = Service(program, settings, preprocessing, link_profile or LinkProfile(**(network or {})))
    refuse_insecure(settings, None, listen, dealer)
    refuse_open(tls, insecure, listen, dealer)
    load_torch()
    answered, limits = 0, limits or Limits()

    def told(answer: Answered) -> None:
        nonlocal answered
        answered += 1
        log(str(answer))
        if on_answer is not None:
            on_answer(answer)

    waiting: deque[_core.Channel] = deque()  # clients that came while another one's session was being opened
    hello_deadline = min(deadline, HELLO_SECONDS)
    with listening(listen) as listener:
        link_in = link_to(network, tls, INPUT_OWNER)
        join = joining(listener, hello_deadline, link_in, waiting.append)
        if dealer is not None:
            join = reaching_dealer(dealer, WEIGHTS_OWNER, hello_deadline, link_to(network, tls, DEALER))
        if on_listening is not None:
            on_listening(listener.port)
        log(f"listening on port {listener.port}, program {program.hash[:12]}")
        while queries == 0 or answered < queries:
            greeted = bool(waiting)
            link = Link(waiting.popleft() if greeted else accept(listener, None, link=link_in))
            opener = partial(
                open_session,
                link.channels[0],
                0,
                settings,
                role="server",
                deadline=deadline,
                hello_deadline=hello_deadline,
                join=join,
                link=link,
                greeted=greeted,
            )
            try:
                left = limits if queries == 0 else replace(limits, queries=min(limits.queries, queries - answered))
                respond = partial(answer, opener, link, service, lambda: answered + 1, told, progress, left, deadline)
                log(f"a session ended: {interruptible(link, respond)}")
            except Exception as error:  # whatever a client does, the next one is served
                log(f"a connection ended without an answer: {one_line(error)}")
                continue
            finally:
                link.close()
    return answered


def settings_of(
    program: Program,
    ot: OtChoice,
    threads: int = 1,
    preprocessing: Preprocessing | None = None,
    dealer: str | None = None,
    truncation: str = "auto",
    device: str = "cpu",
    ring: int | None = None,
) -> Settings:
    """What all parties of a query must agree on. ConfigError when the store is not as secure as ``ot`` demands."""
    if preprocessing is not None and ot.security != preprocessing.ot.security:
        raise ConfigError(
            f"ot.security={ot.security}, but the correlations of {preprocessing.store} are {preprocessing.ot.security}"
        )
    store = (None, None) if preprocessing is None else (preprocessing.id, preprocessing.when_empty)
    if ring is not None and dealer is not None:
        raise ConfigError("three parties are not secure against one that deviates: leave out dealer or ring")
    if ring is not None:
        ot = replace(ot, security="malicious")
    engine = "active" if ring is not None else "twopc" if dealer is None else "threepc"
    hashes = program.hash, program.formats_hash
    return Settings(engine, ot, *hashes, program.numerics, threads, *store, truncation, device, ring)


def one_line(error: BaseException) -> str:
    """Type and message, for a log."""
    return f"{type(error).__name__}: {' '.join(str(error).split())[:500]}"
