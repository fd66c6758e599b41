# SPDX-License-Identifier: Apache-2.0
"""A server, and a dealer where there is one, on threads of this process, for tests of clients."""

from __future__ import annotations

import contextlib
import socket
import threading

import torch
from services import deal, serve

import privml
from privml.engines.correlations import OtChoice
from privml.program import Program

# What a client of each engine passes, and a server too.
ENGINES = {
    "twopc": {"ot": OtChoice()},
    "lanes": {"ot": OtChoice(), "threads": 2},
    "active": {"ot": OtChoice(security="malicious"), "ring": 64, "truncation": "exact"},
    "threepc": {"truncation": "exact"},
}


def plain(program: Program, engine: str, x: torch.Tensor) -> torch.Tensor:
    like = {"like": engine} if engine in ("active", "threepc") else {}
    numerics = program.numerics
    with privml.local("plain", bits=numerics.bits, scale=numerics.scale, **like) as session:
        return privml.reveal(program.run(session, x), to=1)


class _Ended(Exception):
    pass


class Serving:
    """``answered`` and ``lines`` grow; ``said(text)`` waits for lines of the log."""

    def __init__(self) -> None:
        self.answered, self.lines, self.ports, self.threads = [], [], [], []
        self.ending = False
        self.changed = threading.Condition()

    def _put(self, where: list, what: object) -> None:
        with self.changed:
            where.append(what)
            self.changed.notify_all()

    def begin(self, run, *args, **settings) -> str:
        """``run(..., on_listening=..., log=...)`` on a thread; its address."""
        known = len(self.ports)
        told = {"on_listening": lambda port: self._put(self.ports, port), "log": self._log}

        def body():
            with contextlib.suppress(_Ended):
                run(*args, "127.0.0.1:0", **told, **settings)

        self.threads.append(threading.Thread(target=body, daemon=True))
        self.threads[-1].start()
        with self.changed:
            assert self.changed.wait_for(lambda: len(self.ports) > known, 60)
        return f"127.0.0.1:{self.ports[-1]}"

    def _log(self, text: str) -> None:
        self._put(self.lines, text)
        if self.ending:
            raise _Ended

    def end(self) -> None:
        """Ends what was begun, with its next line."""
        self.ending = True
        for port in self.ports:
            with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port), 5) as caller:
                caller.sendall(b"no hello".ljust(64))
        for thread in self.threads:
            thread.join(20)

    def answers(self, count: int) -> list:
        """What it tells of so many answers, when it has; a client may have its own before."""
        with self.changed:
            assert self.changed.wait_for(lambda: len(self.answered) >= count, 60), self.lines
            return self.answered

    def said(self, text: str, times: int = 1) -> None:
        """Waits until so many lines have had ``text``."""
        with self.changed:
            assert self.changed.wait_for(lambda: sum(text in line for line in self.lines) >= times, 60), self.lines


@contextlib.contextmanager
def serving(program: Program, engine: str = "twopc", **settings):
    """(server, settings of its clients)."""
    shared, server = {**ENGINES[engine]}, Serving()
    if engine == "threepc":
        shared["dealer"] = server.begin(deal, Program(program.body), truncation="exact")
    settings = {"on_answer": lambda answer: server._put(server.answered, answer), **shared, **settings}
    server.address = server.begin(serve, program, **settings)
    try:
        yield server, {**shared, "deadline": 20.0}
    finally:
        server.end()
