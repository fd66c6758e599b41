# SPDX-License-Identifier: Apache-2.0
"""Processes that play parties, and their end. They fork from a server that has torch loaded already."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

import pytest
from patience import PATIENCE
from ports import reserved

sys.path.insert(0, str(Path(__file__).parent))
from commands import PROCESSES, forked


class PartyProcess:
    """``target(pipe, *args)`` in a process; it sends lines of text."""

    def __init__(self, target: Callable[..., None], *args: object) -> None:
        self.pipe, theirs = PROCESSES.Pipe(duplex=False)
        self.process = PROCESSES.Process(target=target, args=(theirs, *args))
        self.process.start()
        theirs.close()
        self.lines: list[str] = []

    def line(self, start: str, timeout: float = PATIENCE) -> str:
        """The next line that begins with ``start``."""
        while True:
            line = self._next(timeout)
            if line.startswith(start):
                return line

    def last(self, timeout: float = PATIENCE) -> str:
        """The line it ended with."""
        end = time.monotonic() + timeout
        try:
            while True:
                self._next(end - time.monotonic())
        except EOFError:
            self.process.join(PATIENCE)
            return self.lines[-1]

    def _next(self, timeout: float) -> str:
        assert self.pipe.poll(max(timeout, 0)), f"nothing within {timeout} seconds after {self.lines}"
        self.lines.append(self.pipe.recv())
        return self.lines[-1]

    def end(self) -> None:
        if self.process.is_alive():
            self.process.kill()
        self.process.join()


@pytest.fixture(autouse=True)
def forking(request, monkeypatch):
    """Parties of ``launch`` fork, too, but in tests that are marked ``fresh``."""
    if "fresh" not in request.keywords:
        monkeypatch.setattr("privml.measure.launch.fresh", forked)


@pytest.fixture
def start():
    """Starts processes and ends them with the test."""
    started = []

    def start(target: Callable[..., None], *args: object) -> PartyProcess:
        started.append(PartyProcess(target, *args))
        return started[-1]

    yield start
    for each in started:
        each.end()


@pytest.fixture
def party(start):
    import party

    return lambda rank, side, address, **options: start(party.main, rank, side, address, options)


@pytest.fixture
def free_port() -> Iterator[int]:
    with reserved(1) as (address,):
        yield int(address.split(":")[1])


# ---- the small network, served on threads of this process (running.py)
@pytest.fixture(scope="session")
def program():
    from small_network import converted

    return converted()


@pytest.fixture
def server(program):
    from running import IDEAL, Running
    from services import serve

    return lambda **options: Running(partial(serve, program, "127.0.0.1:0"), **{"ot": IDEAL, **options})


@pytest.fixture
def ask(program):
    """query(running, value): an answer that was checked, or the error."""
    from running import IDEAL
    from services import query

    return lambda running, value, **options: query(program, running.address, value, **{"ot": IDEAL, **options})


@pytest.fixture
def pause(program):
    from running import IDEAL, Paused

    return lambda running, value, **options: Paused(program, running.address, value, **{"ot": IDEAL, **options})


@pytest.fixture(scope="module")
def program_folder(program, tmp_path_factory):
    path = tmp_path_factory.mktemp("program")
    program.save(path)
    return str(path)


# ---- stores of that network's correlations
@pytest.fixture(scope="module")
def filling():
    """What both parties are told beside the program and the folder."""
    return {}


@pytest.fixture(scope="module")
def made(program, tmp_path_factory, filling):
    """The folder of both halves, and what the parties said."""
    from store_pairs import filled

    folder = tmp_path_factory.mktemp("made")
    return folder, filled(program, folder, **filling)


@pytest.fixture
def stores(made, tmp_path):
    from store_pairs import copied

    return copied(made[0], tmp_path)
