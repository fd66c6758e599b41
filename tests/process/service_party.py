# SPDX-License-Identifier: Apache-2.0
"""Server and client as processes for test_service; they say what happens over a pipe."""

from __future__ import annotations

import contextlib
import gc
import os
import signal
import threading
from multiprocessing.connection import Connection

import services
import torch
from services import deal, query, serve

from privml.program import Program
from privml.service.events import Stop, on_signals
from privml.service.negotiation import settings_of
from privml.session.agreement import agree
from privml.session.connections import Link, reach
from privml.session.preprocessing import StoreHalf
from privml.session.session import open_session


def die() -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def listen_to_interrupts() -> None:
    """What a shell started in the background ignores, and with it all its children."""
    signal.signal(signal.SIGINT, signal.default_int_handler)


def serve_program(pipe: Connection, folder: str, options: dict) -> None:
    """With SIGUSR1 it frees what nothing refers to but itself."""
    signal.signal(signal.SIGUSR1, lambda *_: gc.collect())
    torch.set_num_threads(1)
    listen_to_interrupts()
    die_at = options.pop("die_at", None)
    program = Program.load(folder + "/program", folder + "/weights.safetensors")
    signals = on_signals(Stop()) if options.pop("signals", False) else contextlib.nullcontext()
    try:
        with signals as stop:
            serve(
                program,
                options.pop("listen", "127.0.0.1:0"),
                log=lambda text: pipe.send(f"log {text}"),
                on_listening=lambda port: pipe.send(f"port {port}"),
                progress=_deadly(die_at),
                preprocessing=_store(options, 0, program),
                stop=stop,
                **options,
            )
        pipe.send("end")
    except Exception as error:
        pipe.send(f"error {type(error).__name__} {error}")


def send_query(pipe: Connection, folder: str, options: dict) -> None:
    torch.set_num_threads(1)
    listen_to_interrupts()
    die_at, stop_at = options.pop("die_at", None), options.pop("stop_at", None)
    program = Program.load(folder + "/program")

    def progress(done: int, total: int, label: str) -> None:
        if label == stop_at:
            pipe.send("stopped")
            signal.raise_signal(signal.SIGSTOP)  # sent to this thread, which goes no further
        if label == die_at:
            die()

    try:
        answer = query(
            program,
            options.pop("server"),
            torch.tensor(options.pop("input")),
            progress=progress,
            on_wait=lambda seconds: pipe.send("waiting"),
            preprocessing=_store(options, 1, program),
            **options,
        )
        pipe.send(f"answer {answer.outputs[0].tolist()}")
    except Exception as error:
        pipe.send(f"error {type(error).__name__} {error}")


def deal_program(pipe: Connection, folder: str, options: dict) -> None:
    torch.set_num_threads(1)
    try:
        count = deal(
            Program.load(folder + "/program"),
            "127.0.0.1:0",
            log=lambda text: pipe.send(f"log {text}"),
            on_listening=lambda port: pipe.send(f"port {port}"),
            **options,
        )
        pipe.send(f"end {count}")
    except Exception as error:
        pipe.send(f"error {type(error).__name__} {error}")


def _store(options: dict, rank: int, program: Program) -> StoreHalf | None:
    store = options.pop("store", None)
    return None if store is None else StoreHalf(store, rank, program.hash, store + ".key")


def _deadly(die_at: str | None):
    return lambda done, total, label: die() if label == die_at else None


def send_shapes(pipe: Connection, folder: str, options: dict) -> None:
    """A client that announces shapes which its own checks would have refused."""
    program = Program.load(folder + "/program")
    try:
        channel = reach(options["server"], 20.0)
        asking = {"inputs": options["shapes"]}
        open_session(
            Link(channel),
            1,
            settings_of(program),
            "client",
            agree=lambda channel: agree(channel, asking, lambda theirs: (None, {}), "the server refuses the query")[0],
        )
        pipe.send("accepted")
    except Exception as error:
        pipe.send(f"error {type(error).__name__} {error}")


def hold_session(pipe: Connection, folder: str, options: dict) -> None:
    """A client that keeps its session and asks no more."""
    client = services.client(folder, options["server"])
    answer = client.query(torch.tensor(options["input"]))
    pipe.send(f"answer {answer.outputs[0].tolist()}")
    threading.Event().wait()
