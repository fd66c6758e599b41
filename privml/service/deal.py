# SPDX-License-Identifier: Apache-2.0
"""The dealer: party 2 helps a server and its clients; it knows the program without its weights, and learns nothing."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field

from privml.engines.correlations import DEFAULT_OT
from privml.program import Program
from privml.service.dealing import Dealt, deal_session
from privml.service.serve import HELLO_SECONDS, one_line, settings_of
from privml.session.connect import accept, listening, refuse_insecure
from privml.session.dealer import Gathering, Lobby
from privml.session.identity import Tls, link_to, refuse_open
from privml.session.session import load_torch

# Sessions at a time; one more is refused.
MOST_SESSIONS = 16


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
            dealt = deal_session(gathering, Program(program.body), settings, deadline)
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
