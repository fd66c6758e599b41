# SPDX-License-Identifier: Apache-2.0
"""One party as a process. Arguments: rank, listen|connect, address, JSON of options.

Prints "port N" when listening on port 0, "waiting" while nobody is there, "stage NAME" as it goes, and at last
"result ..." or "error CLASS seconds message". ``die_at`` names the stage at which it kills itself with SIGKILL.
"""

from __future__ import annotations

import json
import os
import signal
import sys
import threading
import time

import torch

from privml.session import connect as connection
from privml.session import session as sessions
from privml.session.handshake import shake_hands


def say(*words: object) -> None:
    print(*words, flush=True)


def die() -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def main(rank: int, side: str, address: str, options: dict) -> None:
    torch.set_num_threads(1)
    die_at, deadline = options.get("die_at"), options.get("deadline", 20.0)
    settings = sessions.Settings(**options.get("settings", {}))

    def stage(name: str) -> None:
        say("stage", name)
        if die_at == name:
            die()

    def on_wait(seconds: float) -> None:
        say("waiting", f"{seconds:.1f}")

    if side == "listen":
        with connection.listening(address) as listener:
            say("port", listener.port)
            channel = connection.accept(listener, deadline, on_wait)
    else:
        channel = connection.reach(address, deadline, on_wait)
    stage("handshake")
    if die_at == "setup":
        shake_hands(channel, settings.hello(rank, "party"))
        die()
    session = connection.open_session(channel, rank, settings, deadline=deadline)
    engine = session.engine
    stage("opened")
    if die_at in ("preprocess", "online"):
        threading.Timer(0.3, die).start()
    if die_at == "stop":
        os.kill(os.getpid(), signal.SIGSTOP)
    if options.get("phase") == "preprocess":
        while True:
            engine.session.reserve(1 << 22, 1 << 22)
    value = torch.arange(-500, 500) if rank == 0 else None
    a = engine.input(value, (1000,), 0, 32)
    start = time.monotonic()
    while True:
        positive, _ = engine.relu(a, 32)
        if options.get("phase") != "online" or time.monotonic() - start > 30:
            break
    say("result", int(engine.reveal(positive, 32).sum()))
    session.close()


if __name__ == "__main__":
    start = time.monotonic()
    try:
        main(int(sys.argv[1]), sys.argv[2], sys.argv[3], json.loads(sys.argv[4]))
    except Exception as error:
        say("error", type(error).__name__, f"{time.monotonic() - start:.1f}", error)
        sys.exit(1)
