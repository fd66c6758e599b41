# SPDX-License-Identifier: Apache-2.0
"""The server: party 0 owns the weights and answers the queries of many clients."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path

from privml.engines.correlations import DEFAULT_OT, OtChoice
from privml.errors import ConfigError
from privml.program import INPUT_OWNER, WEIGHTS_OWNER, Program
from privml.service.aborts import Aborts, default_aborts_file
from privml.service.answering import Answered, Limits
from privml.service.dispatcher import DEFAULT_CAPACITY, Capacity
from privml.service.events import Events, Watch, text_lines
from privml.service.host import State
from privml.service.monitor import Monitor
from privml.service.progress import Progress
from privml.service.request import Service
from privml.service.server import Server
from privml.service.stopping import Stop
from privml.session.connections import listening, reaching_dealer
from privml.session.handshake import DEALER
from privml.session.identity import Tls, check_addresses, dialling, link_to
from privml.session.preprocessing import StoreHalf
from privml.session.session import Settings, load_torch
from privml.spec import Identity, LinkProfile, SessionSpec
from privml.spec import engine as engine_settings


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
    on_event: Watch | None = None,
    on_state: Callable[[State], None] | None = None,
    progress: Progress | None = None,
    preprocessing: StoreHalf | None = None,
    link_profile: LinkProfile | None = None,
    dealer: str | None = None,
    truncation: str = "auto",
    device: str = "cpu",
    ring: int | None = None,
    tls: Tls | None = None,
    insecure: bool = False,
    limits: Limits | None = None,
    aborts: str | Path | None = None,
    capacity: Capacity = DEFAULT_CAPACITY,
    monitor: str | None = None,
    stop: Stop | None = None,
) -> int:
    """Answers queries on ``listen`` ("host:port") until ``queries`` are answered (0: for ever) or ``stop`` is asked;
    returns their number.

    ``program`` carries the weights. Each client is a session of its own, on a thread of its own; ``capacity`` says how
    many there may be at a time, and how large a query is at most. Whatever goes wrong in one ends that one with one
    line to ``log``. ``deadline``: seconds that a read may wait for a client. ``threads``: lanes of each session, each
    with a connection of its own.
    ``on_listening`` gets the port; ``on_event`` everything that happens (see ``privml.service.events``), on any
    thread, one at a time. ``on_state`` how it stands, whenever that changes. ``progress`` is
    called on the thread of each session. ``monitor``: the address of this
    machine where health and metrics are to be read (see ``privml.service.monitor``).
    ``preprocessing``: the store that sessions take their correlations from. ``link_profile``: the link to the clients,
    which ``ot`` "auto" reckons with (default: that of ``network``). ``dealer``: the address of party 2 (see
    ``privml.service.deal``), which makes it three parties; ``truncation``: see ``ThreePartyEngine``; ``device``: where
    this party of three computes, "cpu" or "cuda". ``ring`` (64 or 32 bits) takes the engine ``active``, secure against
    clients who deviate from the protocol. ``limits``: how many queries a session may have, and how long it may be idle
    between two of them, as long as nobody waits. ``aborts``: the file that counts, by the names of their certificates,
    how many actively secure sessions of each client have failed (None: ``privml.service.aborts.default_aborts_file``).
    Raises ConfigError for a port in use, wrong settings or missing weights, CorruptFile and StoreError for
    ``aborts``, and what a callback raises.
    """
    if program.weights is None and program.weight_specs:
        raise ConfigError("the server needs the program's weights (weights.safetensors)")
    settings = settings_of(program, ot, threads, preprocessing, dealer, truncation, device, ring)
    settings = with_ends(settings, deadline, network, Identity(tls, insecure))
    link = link_profile or LinkProfile(**(network or {}))
    counts = aborts_of(settings, tls, aborts)
    service = Service(program, settings, preprocessing, link, counts, capacity.query_limit)
    check_addresses(settings.spec, listen, dealer)
    load_torch()
    join = None
    if dealer is not None:
        patience = min(deadline, capacity.hello_seconds)
        join = reaching_dealer(dealer, WEIGHTS_OWNER, patience, dialling(settings.spec, DEALER))
    with contextlib.ExitStack() as stack:
        listener = stack.enter_context(listening(listen))
        watch = None if monitor is None else stack.enter_context(Monitor(monitor))
        events = Events(text_lines(log), None if watch is None else watch.note, on_event)
        server = Server(
            service,
            listener,
            link_to(settings.spec, INPUT_OWNER),
            events,
            capacity=capacity,
            stop=stop or Stop(),
            deadline=deadline,
            limit=queries,
            limits=limits or Limits(),
            join=join,
            progress=progress,
            on_answer=on_answer,
            on_state=on_state,
        )
        if watch is not None:
            watch.observe(server, preprocessing)
        if on_listening is not None:
            on_listening(listener.port)
        text = f"listening on port {listener.port}, program {program.hash[:12]}"
        events.tell("listening", text=text, port=listener.port, program=program.hash)
        return server.run()


def aborts_of(settings: Settings, tls: Tls | None, file: str | Path | None) -> Aborts:
    """Where failed sessions are counted: in memory, which nobody is counted in, where clients have no names."""
    if settings.backend.actively_secure and tls is not None:
        return Aborts(default_aborts_file() if file is None else Path(file))
    if file is not None:
        raise ConfigError(f"aborts={file} counts actively secure sessions by certificates: it needs ring and tls")
    return Aborts()


def settings_of(
    program: Program,
    ot: OtChoice,
    threads: int = 1,
    preprocessing: StoreHalf | None = None,
    dealer: str | None = None,
    truncation: str = "auto",
    device: str = "cpu",
    ring: int | None = None,
) -> Settings:
    """What all parties of a query must agree on. ConfigError when the store is not as secure as ``ot`` demands."""
    engine = "active" if ring is not None else "twopc" if dealer is None else "threepc"
    if ring is not None:
        ot = replace(ot, security="malicious")
    if preprocessing is not None and engine != "threepc":
        preprocessing.expect_engine(engine, ring)
    if preprocessing is not None and ot.security != preprocessing.ot.security:
        raise ConfigError(
            f"ot.security={ot.security}, but the correlations of {preprocessing.store} are {preprocessing.ot.security}"
        )
    if ring is not None and dealer is not None:
        raise ConfigError("three parties are not secure against one that deviates: leave out dealer or ring")
    own = {"truncation": (truncation, "auto"), "device": (device, "cpu"), "ring": (ring, None)}
    chosen = engine_settings(engine, **{name: value for name, (value, neutral) in own.items() if value != neutral})
    spec = SessionSpec(chosen, ot, program.numerics, threads)
    return Settings.of(spec, program, preprocessing)


def with_ends(settings: Settings, deadline: float, network: Mapping[str, float] | None, identity: Identity) -> Settings:
    """``settings`` with what is this party's own."""
    simulated = None if network is None else LinkProfile(**network)
    return replace(settings, spec=replace(settings.spec, deadline=deadline, simulated=simulated, identity=identity))
