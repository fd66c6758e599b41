# SPDX-License-Identifier: Apache-2.0
"""Parties as copies of this process, which need not load torch again.

Copies are made before there is anything to share: no thread that could hold a lock, no secret, no connection. Each
waits for its task as a process that ``launch`` starts does, and is its own process from then on.
"""

from __future__ import annotations

import gc
import importlib
import multiprocessing
import os
import subprocess
import sys
from collections.abc import Sequence
from multiprocessing.process import BaseProcess
from types import TracebackType
from typing import IO

from privml.measure.worker import work


def can_copy() -> bool:
    """Whether this process is free of threads, those of libraries included; where that cannot be seen it has some."""
    try:
        return len(os.listdir("/proc/self/task")) == 1
    except OSError:
        return False


class Running:
    """What ``launch.Parties`` uses of a ``subprocess.Popen``, for a process of ``multiprocessing``, which starts."""

    def __init__(self, process: BaseProcess) -> None:
        self._process = process
        process.start()
        self.pid = process.pid

    def poll(self) -> int | None:
        return self._process.exitcode

    def wait(self, timeout: float | None = None) -> int:
        self._process.join(timeout)
        if self._process.exitcode is None:
            raise subprocess.TimeoutExpired(str(self.pid), timeout or 0.0)
        return self._process.exitcode

    def kill(self) -> None:
        self._process.kill()


class Copy(Running):
    """A copy that runs ``main`` of ``module``."""

    def __init__(self, module: str) -> None:
        task, self.stdin = _pipe()
        self.stdout, events = _pipe()
        context = multiprocessing.get_context("fork")
        super().__init__(context.Process(target=_run, args=(module, task, events), daemon=True))
        task.close()
        events.close()


class Copies:
    """``count`` copies that wait for ``launch``, none if this process cannot be copied; those that were not taken end
    with the block."""

    def __init__(self, module: str, count: int) -> None:
        if count:
            importlib.import_module(module)  # once for all
        gc.freeze()  # a collection in a copy would write to every page that it shares
        self._waiting = [Copy(module) for _ in range(count)] if can_copy() else []
        gc.unfreeze()

    def take(self) -> Copy | None:
        return self._waiting.pop() if self._waiting else None

    def __enter__(self) -> Copies:
        return self

    def __exit__(self, kind: type | None, error: BaseException | None, trace: TracebackType | None) -> None:
        for copy in self._waiting:
            copy.kill()
            copy.wait()
            copy.stdin.close()
            copy.stdout.close()


def _pipe() -> tuple[IO[bytes], IO[bytes]]:
    reading, writing = os.pipe()
    return os.fdopen(reading, "rb"), os.fdopen(writing, "wb")


def _run(module: str, task: IO[bytes], events: IO[bytes]) -> None:
    """In the copy."""
    os.dup2(task.fileno(), 0)
    os.dup2(events.fileno(), 1)
    _close_others(keep=(0, 1, 2))
    sys.stdin, sys.stdout = open(0), open(1, "w")  # noqa: SIM115
    work(importlib.import_module(module).main)


def _close_others(keep: Sequence[int]) -> None:
    """What the process has open besides, pipes to other copies among it, is not this copy's."""
    for name in os.listdir("/proc/self/fd"):
        if int(name) not in keep:
            try:
                os.close(int(name))
            except OSError:  # of the listing itself
                continue
