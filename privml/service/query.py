# SPDX-License-Identifier: Apache-2.0
"""The client: party 1 owns the input and learns the outputs."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import torch

from privml import _core
from privml.engines.correlations import DEFAULT_OT, OtChoice
from privml.errors import InvalidInput
from privml.program import INPUT_OWNER, WEIGHTS_OWNER, Program
from privml.service.inputs import checked_input
from privml.service.progress import Progress, report_nodes
from privml.service.request import AnyTerms, Service, ask
from privml.service.serve import settings_of
from privml.session.connect import following, reach, reaching, reaching_dealer, refuse_insecure
from privml.session.handshake import DEALER
from privml.session.identity import Tls, link_to, refuse_open
from privml.session.lanes import Joiner, Link
from privml.session.ledger import Ledger
from privml.session.preprocessing import Preprocessing
from privml.session.session import EngineOpener, WaitCallback, interruptible, load_torch, open_session
from privml.sharing import reveal


@dataclass(frozen=True, slots=True)
class Answer:
    """The outputs of a query in clear, what it cost this party, and where its correlations came from."""

    outputs: tuple[torch.Tensor, ...]
    seconds: float
    ledger: Ledger
    source: str


def query(
    program: Program,
    server: str,
    inputs: Any | Sequence[Any],
    *,
    ot: OtChoice = DEFAULT_OT,
    deadline: float = 60.0,
    network: Mapping[str, float] | None = None,
    threads: int = 1,
    on_wait: WaitCallback | None = None,
    progress: Progress | None = None,
    preprocessing: Preprocessing | None = None,
    dealer: str | None = None,
    truncation: str = "auto",
    device: str = "cpu",
    ring: int | None = None,
    tls: Tls | None = None,
    insecure: bool = False,
) -> Answer:
    """Asks the server at ``server`` ("host:port") for the outputs of ``inputs``: an array or tensor, or a tuple or list
    with one of them per input of the program. ``threads``: the session's lanes, as many as the server's.
    ``preprocessing``: the store that the correlations are taken from. ``dealer``, ``truncation``, ``ring``: as at the
    server; ``device``: see ``serve``.

    Raises InvalidInput, before anything is sent, for a wrong shape or dtype and for NaN, infinite or too large values;
    then HandshakeMismatch, StoreError (too few correlations left), PeerDisconnected (also when the server is not there
    within ``deadline``), ServiceBusy (with the seconds to wait), ProtocolError. A server that sends its clients on to
    another address, where it proves the same name, is followed there once.
    """
    values = list(inputs) if isinstance(inputs, (tuple, list)) else [inputs]
    checked = checked_inputs(program, values)
    service = Service(
        program, settings_of(program, ot, threads, preprocessing, dealer, truncation, device, ring), preprocessing
    )

    def admit(*addresses: str | None) -> None:
        refuse_insecure(service.settings, None, *addresses)
        refuse_open(tls, insecure, *addresses)

    def attempt(server: str, away: Mapping[str, Any]) -> Answer:
        link, join = Link(reach(server, deadline, on_wait, away)), reaching(server, deadline, away)
        if dealer is not None:
            join = reaching_dealer(dealer, INPUT_OWNER, deadline, link_to(network, tls, DEALER))
        return interruptible(link, partial(_ask_and_run, link, join, service, checked, deadline, progress))

    admit(server, dealer)
    load_torch()
    return following(server, link_to(network, tls, WEIGHTS_OWNER), attempt, admit)


def _ask_and_run(
    link: Link,
    join: Joiner,
    service: Service,
    inputs: Sequence[torch.Tensor],
    deadline: float,
    progress: Progress | None,
) -> Answer:
    start = time.monotonic()
    settled: list[AnyTerms] = []

    def agree(channel: _core.Channel) -> EngineOpener:
        settled.append(ask(channel, service, [tuple(value.shape) for value in inputs]))
        return settled[0].open

    with open_session(
        link.channels[0], 1, service.settings, role="client", deadline=deadline, agree=agree, join=join, link=link
    ) as session:
        terms = settled[0]
        report_nodes(session, service.program, progress)
        session.reserve(terms.stock)
        clear = tuple(reveal(output, to=INPUT_OWNER) for output in service.program.results(session, *inputs))
        return Answer(clear, time.monotonic() - start, session.ledger, terms.source)


def checked_inputs(program: Program, values: Sequence[Any]) -> list[torch.Tensor]:
    """The inputs as tensors that the program takes; InvalidInput naming the input and the index."""
    if len(values) != len(program.inputs):
        raise InvalidInput(f"the program takes {len(program.inputs)} input(s), got {len(values)}")
    return [
        checked_input(value, spec.shape, spec.format, spec.name)
        for spec, value in zip(program.inputs, values, strict=True)
    ]
