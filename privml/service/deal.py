# SPDX-License-Identifier: Apache-2.0
"""The dealer: party 2 helps a server and its clients; it knows the program without its weights, and learns nothing."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field

from privml.engines.correlations import DEFAULT_OT
from privml.program import INPUT_OWNER, Program
from privml.service.request import Shape, checked_shapes
from privml.service.serve import HELLO_SECONDS, one_line, settings_of
from privml.session.connect import accept, listening, refuse_insecure
from privml.session.deal import open_dealer
from privml.session.dealer import Gathering, Lobby
from privml.session.identity import Tls, link_to, refuse_open
from privml.session.ledger import Ledger
from privml.session.session import Settings, load_torch
from privml.sharing import reveal

# Sessions at a time; one more is refused.
MOST_SESSIONS = 16


@dataclass(frozen=True, slots=True)
class Dealt:
    """One session that ended well."""

    shapes: tuple[Shape, ...]
    seconds: float
    ledger: Ledger

    def __str__(self) -> str:
        shapes, cost = ", ".join(str(list(shape)) for shape in self.shapes), self.ledger.snapshot()
        return (
            f"a session for input {shapes}, {self.seconds:.2f} s; dealt {cost.preprocess.bytes / 1e6:.2f} MB; online "
            f"{cost.online.bytes / 1e6:.2f} MB"
        )


@dataclass(slots=True)
class _Running:
    """The sessions under way."""

    lock: threading.Lock = field(default_factory=threading.Lock)
    sessions: dict[bytes, Gathering] = field(default_factory=dict)

    def enter(self, gathering: Gathering) -> bool:
        with self.lock:
            free = gathering.token not in self.sessions and len(self.sessions) < MOST_SESSIONS
            if free:
                self.sessions[gathering.token] = gathering
            return free

    def leave(self, gathering: Gathering) -> None:
        with self.lock:
            del self.sessions[gathering.token]

    def close(self) -> None:
        with self.lock:
            for gathering in self.sessions.values():
                gathering.close()


def deal(
    program: Program,
    listen: str,
    *,
    truncation: str = "auto",
    device: str = "cpu",
    deadline: float = 60.0,
    sessions: int = 0,
    network: Mapping[str, float] | None = None,
    tls: Tls | None = None,
    insecure: bool = False,
    log: Callable[[str], None] = print,
    on_listening: Callable[[int], None] | None = None,
    on_end: Callable[[Dealt], None] | None = None,
) -> int:
    """Deals on ``listen`` ("host:port") for a server and its clients until ``sessions`` have begun (0: for ever);
    returns how many ended well.

    Each session runs on a thread of its own; whatever goes wrong in one ends it with one line to ``log``. ``deadline``:
    seconds that a read may wait for another party; the other settings as in ``serve``.
    Raises ConfigError for a port in use and wrong settings.
    """
    settings = settings_of(program, DEFAULT_OT, dealer=listen, truncation=truncation, device=device)
    refuse_insecure(settings, None, listen)
    refuse_open(tls, insecure, listen)
    load_torch()
    running, ended = _Running(), []

    def run(gathering: Gathering) -> None:
        try:
            dealt = _deal(gathering, Program(program.body), settings, deadline)
        except Exception as error:  # whatever the others do, the next ones are served
            log(f"a session ended before its answer: {one_line(error)}")
            return
        finally:
            gathering.close()
            running.leave(gathering)
        log(str(dealt))
        ended.append(dealt)
        if on_end is not None:
            on_end(dealt)

    lobby, link, begun = Lobby(HELLO_SECONDS, log, tls), link_to(network, tls, 0, 1), 0
    with listening(listen) as listener, ThreadPoolExecutor(MOST_SESSIONS, "session") as workers:
        if on_listening is not None:
            on_listening(listener.port)
        log(f"dealing on port {listener.port}, program {program.hash[:12]}")
        try:
            while sessions == 0 or begun < sessions:
                gathering = lobby.admit(accept(listener, None, lambda waited: lobby.expire(), link))
                if gathering is None:
                    continue
                if not running.enter(gathering):
                    log(f"a session was refused: {MOST_SESSIONS} are under way, or one of its name is")
                    gathering.close()
                    continue
                begun += 1
                workers.submit(run, gathering)
        except BaseException:
            running.close()
            raise
        finally:
            lobby.close()
    return len(ended)


def _deal(gathering: Gathering, program: Program, settings: Settings, deadline: float) -> Dealt:
    start = time.monotonic()
    shapes: list[tuple[Shape, ...]] = []

    def check(words: dict) -> None:
        shapes.append(checked_shapes(words, program))

    with open_dealer(gathering, settings, check, deadline=deadline) as session:
        for output in program.results(session, *shapes[0]):
            reveal(output, to=INPUT_OWNER)
    return Dealt(shapes[0], time.monotonic() - start, session.ledger)
