# SPDX-License-Identifier: Apache-2.0
"""The server: party 0 owns the weights and answers the queries of many clients."""

from __future__ import annotations

import contextlib
from pathlib import Path
from typing import Any

from privml.errors import ConfigError
from privml.program import Program
from privml.service.aborts import Aborts, default_aborts_file
from privml.service.events import Events, text_lines
from privml.service.monitor import Monitor
from privml.service.options import (
    DEFAULT_HOOKS,
    DEFAULT_LIMITS,
    DEFAULT_SPEC,
    Addresses,
    Hooks,
    Limits,
    addresses_of,
    refuse_moved,
)
from privml.service.request import Service, settings_of
from privml.service.server import Server
from privml.session.connections import listening
from privml.session.identity import check_addresses
from privml.session.preprocessing import StoreHalf
from privml.session.session import load_torch
from privml.spec import SessionSpec


def serve(
    program: Program,
    listen: str | Addresses,
    spec: SessionSpec = DEFAULT_SPEC,
    *,
    preprocessing: StoreHalf | None = None,
    limits: Limits = DEFAULT_LIMITS,
    hooks: Hooks = DEFAULT_HOOKS,
    **moved: Any,
) -> int:
    """Answers queries on ``listen`` ("host:port") until ``limits.queries`` are answered or ``hooks.stop`` is asked;
    returns their number.

    ``program`` carries the weights. ``listen``: with a dealer, ``Addresses``. ``spec``: how sessions run, the same at
    the clients but for what is each party's own; formats are the program's. Each client has a session of its own, on a
    thread of its own; an error in one ends that session alone, with one line to ``hooks.log``.
    ``preprocessing``: the store that sessions take their correlations from.
    Raises ConfigError for a port in use, settings that contradict each other or missing weights, CorruptFile and
    StoreError for ``limits.aborts``, and what a callback raises.
    """
    refuse_moved("serve", moved)
    addresses = addresses_of(listen, spec)
    if program.weights is None and program.weight_specs:
        raise ConfigError("the server needs the program's weights (weights.safetensors)")
    settings = settings_of(program, spec, preprocessing)
    counts, largest = aborts_of(spec, limits.aborts), limits.capacity.query_limit
    service = Service(program, settings, preprocessing, counts, largest, addresses.dealer)
    check_addresses(spec, addresses.server, addresses.dealer)
    load_torch()
    with contextlib.ExitStack() as stack:
        listener = stack.enter_context(listening(addresses.server))
        watch = None if hooks.monitor is None else stack.enter_context(Monitor(hooks.monitor))
        events = Events(text_lines(hooks.log), None if watch is None else watch.note, hooks.on_event)
        server = Server(service, listener, events, limits, hooks)
        if watch is not None:
            watch.observe(server, preprocessing)
        if hooks.on_listening is not None:
            hooks.on_listening(listener.port)
        text = f"listening on port {listener.port}, program {program.hash[:12]}"
        events.tell("listening", text=text, port=listener.port, program=program.hash)
        return server.run(limits.queries)


def aborts_of(spec: SessionSpec, file: str | Path | None) -> Aborts:
    """Where failed sessions are counted; in memory, where none is counted, if clients have no names."""
    if spec.backend.actively_secure and spec.identity.tls is not None:
        return Aborts(default_aborts_file() if file is None else Path(file))
    if file is not None:
        raise ConfigError(
            f"aborts={file} counts failed sessions by certificates: it needs an actively secure engine and TLS"
        )
    return Aborts()
