# SPDX-License-Identifier: Apache-2.0
"""One of three parties as a process; says "stage NAME" on its way, and last "result ..." or "error CLASS message"."""

from __future__ import annotations

import os
import signal
import threading
import time
from multiprocessing.connection import Connection

import torch
from patience import PATIENCE

import privml


def die() -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def play(pipe: Connection, rank: int, places: dict, die_at: str | None, deadline: float) -> None:
    """``die_at``: opened, online (while the others compute) or stop (it stops instead of dying)."""
    with privml.connect(rank, privml.SessionSpec("threepc", deadline=deadline), **places) as session:
        pipe.send("stage opened")
        if die_at == "opened":
            die()
        if die_at == "stop":
            signal.raise_signal(signal.SIGSTOP)  # sent to this thread, which goes no further
        if die_at == "online":
            threading.Timer(0.5, die).start()
        value = torch.arange(-500, 500) if rank == 0 else None
        a = session.engine.input(value, (1000,), 0, 32)
        start = time.monotonic()
        while True:
            positive, _ = session.engine.relu(a, 32)
            if die_at is None or time.monotonic() - start > PATIENCE:
                break
        total = session.engine.reveal(positive, 32)
        pipe.send(f"result {int(total.sum())}")


def main(pipe: Connection, rank: int, places: dict, die_at: str | None, deadline: float) -> None:
    """Runs ``play`` and reports how it ended."""
    torch.set_num_threads(1)
    try:
        play(pipe, rank, places, die_at, deadline)
    except Exception as error:
        pipe.send(f"error {type(error).__name__} {error}")
