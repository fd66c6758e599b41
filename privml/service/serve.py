# SPDX-License-Identifier: Apache-2.0
"""The server: party 0 owns the weights and answers one query after another."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial

from privml import _core
from privml.engines.correlations import DEFAULT_OT, OtChoice
from privml.errors import ConfigError, PeerDisconnected
from privml.program import Program
from privml.service.progress import Progress, report_nodes
from privml.service.request import Shape, grant
from privml.session.connect import accept, listening, refuse_insecure
from privml.session.ledger import Ledger
from privml.session.session import Settings, interruptible, load_torch, open_session
from privml.sharing import reveal

# A connection that does not say hello within this time is no client.
HELLO_SECONDS = 10.0


@dataclass(frozen=True, slots=True)
class Answered:
    """One answered query: what it was and what it cost."""

    number: int
    shapes: tuple[Shape, ...]
    seconds: float
    ledger: Ledger

    def __str__(self) -> str:
        shapes = ", ".join(str(list(shape)) for shape in self.shapes)
        cost = self.ledger.snapshot()
        ahead = cost.setup + cost.preprocess
        return (
            f"query {self.number}: input {shapes}, {self.seconds:.2f} s; offline {ahead.seconds:.2f} s, "
            f"{ahead.bytes / 1e6:.2f} MB; online {cost.online.seconds:.2f} s, {cost.online.bytes / 1e6:.2f} MB"
        )


def serve(
    program: Program,
    listen: str,
    *,
    ot: OtChoice = DEFAULT_OT,
    deadline: float = 60.0,
    queries: int = 0,
    network: Mapping[str, float] | None = None,
    log: Callable[[str], None] = print,
    on_listening: Callable[[int], None] | None = None,
    on_answer: Callable[[Answered], None] | None = None,
    progress: Progress | None = None,
) -> int:
    """Answers queries on ``listen`` ("host:port") until ``queries`` are answered (0: for ever); returns their number.

    ``program`` carries the weights. Each connection is a session of its own; whatever goes wrong in one ends that
    connection with one line to ``log`` and the server goes on. ``deadline``: seconds that a read may wait for a client.
    ``on_listening`` gets the port. Raises ConfigError for a port in use, wrong settings or missing weights.
    """
    if program.weights is None and program.weight_specs:
        raise ConfigError("the server needs the program's weights (weights.safetensors)")
    settings = settings_of(program, ot)
    refuse_insecure(settings, listen, None)
    load_torch()
    answered = 0
    with listening(listen) as listener:
        if on_listening is not None:
            on_listening(listener.port)
        log(f"listening on port {listener.port}, program {program.hash[:12]}")
        while queries == 0 or answered < queries:
            channel = accept(listener, None, network=network)
            try:
                job = partial(_answer, channel, program, settings, deadline, answered + 1, progress)
                answer = interruptible(channel, job)
            except Exception as error:  # whatever a client does, the next one is served
                log(f"a connection ended without an answer: {type(error).__name__}: {_one_line(error)}")
                continue
            finally:
                channel.close()
            answered += 1
            log(str(answer))
            if on_answer is not None:
                on_answer(answer)
    return answered


def settings_of(program: Program, ot: OtChoice) -> Settings:
    """What both parties of a query must agree on."""
    return Settings("twopc", ot, program.hash, program.formats_hash, program.numerics)


def _answer(
    channel: _core.Channel,
    program: Program,
    settings: Settings,
    deadline: float,
    number: int,
    progress: Progress | None,
) -> Answered:
    start = time.monotonic()
    shapes: list[Shape] = []
    session = open_session(
        channel,
        0,
        settings,
        role="server",
        deadline=deadline,
        hello_deadline=min(deadline, HELLO_SECONDS),
        agree=lambda channel: shapes.extend(grant(channel, program.inputs)),
    )
    with session:
        report_nodes(session, program, progress)
        session.reserve(program.correlations(*shapes, ot=settings.ot).stock)
        outputs = program.run(session, *shapes)
        for output in outputs if isinstance(outputs, tuple) else (outputs,):
            reveal(output, to=1)
        _wait_for_end(channel)
        return Answered(number, tuple(shapes), time.monotonic() - start, session.ledger)


def _wait_for_end(channel: _core.Channel) -> None:
    """The client closes once it has read everything; closing first could lose the last bytes."""
    channel.set_deadline(HELLO_SECONDS)
    try:
        channel.read(1)
    except PeerDisconnected:
        return


def _one_line(error: BaseException) -> str:
    return " ".join(str(error).split())[:500]
