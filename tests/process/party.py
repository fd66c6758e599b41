# SPDX-License-Identifier: Apache-2.0
"""One party as a process.

Says "port N" when listening, "waiting" while nobody is there, "stage NAME" as it goes, and at last "result ..." or
"error CLASS message". ``die_at`` names the stage at which it kills itself with SIGKILL.
"""

from __future__ import annotations

import os
import signal
import threading
import time
from collections.abc import Callable
from multiprocessing.connection import Connection

import torch
from patience import PATIENCE

from privml.session import connections as connection
from privml.session import session as sessions
from privml.session.connections import Link
from privml.session.handshake import shake_hands
from privml.spec import SessionSpec


def die() -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def play(rank: int, side: str, address: str, options: dict, say: Callable[[str], None]) -> None:
    die_at, deadline = options.get("die_at"), options.get("deadline", 20.0)
    named = options.get("settings", {})
    spec = SessionSpec(**{name: value for name, value in named.items() if name != "program"}, deadline=deadline)
    settings = sessions.Settings(spec, named.get("program"))

    def stage(name: str) -> None:
        say(f"stage {name}")
        if die_at == name:
            die()

    def on_wait(seconds: float) -> None:
        say(f"waiting {seconds:.1f}")

    if side == "listen":
        with connection.listening(address) as listener:
            say(f"port {listener.port}")
            channel = connection.accept(listener, deadline, on_wait)
    else:
        channel = connection.reach(address, deadline, on_wait)
    stage("handshake")
    if die_at == "setup":
        shake_hands(channel, settings.hello(rank, "party"))
        die()
    session = sessions.open_session(Link(channel), rank, settings)
    engine = session.engine
    stage("opened")
    if die_at in ("preprocess", "online"):
        threading.Timer(0.3, die).start()
    if die_at == "stop":
        signal.raise_signal(signal.SIGSTOP)  # sent to this thread, which goes no further
    if options.get("phase") == "preprocess":
        for count in range(1 << 20, 1 << 25, 1 << 20):
            engine.session.reserve(count, count)
    value = torch.arange(-500, 500) if rank == 0 else None
    a = engine.input(value, (1000,), 0, 32)
    start = time.monotonic()
    while True:
        positive, _ = engine.relu(a, 32)
        if options.get("phase") != "online" or time.monotonic() - start > PATIENCE:
            break
    say(f"result {int(engine.reveal(positive, 32).sum())}")
    session.close()


def main(pipe: Connection, rank: int, side: str, address: str, options: dict) -> None:
    """Runs ``play`` and reports how it ended."""
    torch.set_num_threads(1)
    try:
        play(rank, side, address, options, pipe.send)
    except Exception as error:
        pipe.send(f"error {type(error).__name__} {error}")
