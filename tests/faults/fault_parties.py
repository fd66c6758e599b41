# SPDX-License-Identifier: Apache-2.0
"""Parties as processes: started by the spawner, killed by their number, watched through /proc and what they print."""

from __future__ import annotations

import contextlib
import itertools
import json
import os
import queue
import re
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Sequence
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
# Longer than any deadline of these tests: what has not ended by then hangs.
PATIENCE = 90.0
_TICK = 0.005


class Spawner:
    """The process of spawner.py; leaving the block kills whatever it started."""

    def __init__(self) -> None:
        environment = {**os.environ, "OMP_NUM_THREADS": "1", "PYTHONPATH": str(ROOT)}
        self._process = subprocess.Popen(
            [sys.executable, str(Path(__file__).with_name("spawner.py"))],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=environment, cwd=ROOT,
        )  # fmt: skip
        self._begun: queue.Queue[tuple[int, int]] = queue.Queue()
        self._running: dict[int, int] = {}  # number of an order by process: the system uses a process's number again
        self._status: dict[int, int] = {}  # by number of an order
        self._ends = threading.Condition()
        threading.Thread(target=self._listen, daemon=True).start()
        self._begun.get(timeout=PATIENCE)

    def _listen(self) -> None:
        orders = itertools.count()
        for line in self._process.stdout:
            report = json.loads(line)
            if "status" not in report:
                self._running[report["pid"]] = order = next(orders)
                self._begun.put((report["pid"], order))
                continue
            with self._ends:
                self._status[self._running.pop(report["pid"])] = report["status"]
                self._ends.notify_all()

    def start(self, words: Sequence[str], folder: Path, **order: object) -> Party:
        number = len(list(folder.glob("party-*.out")))
        files = {"output": str(folder / f"party-{number}.out"), "errors": str(folder / f"party-{number}.err")}
        for file in files.values():
            Path(file).touch()
        line = json.dumps({"words": [str(word) for word in words], "folder": str(folder), **files, **order})
        self._process.stdin.write(line.encode() + b"\n")
        self._process.stdin.flush()
        return Party(self, *self._begun.get(timeout=PATIENCE), words, files)

    def status(self, order: int, timeout: float) -> int | None:
        """With which status the process of an order ended (minus the signal's number), None when it did not within
        ``timeout``."""
        with self._ends:
            self._ends.wait_for(lambda: order in self._status, timeout)
            return self._status.get(order)

    def close(self) -> None:
        # A process that a test has forked may hold the pipe open, so its end alone is not enough.
        self._process.stdin.write(b"\n")
        self._process.stdin.close()
        self._process.wait(30)
        self._process.stdout.close()

    def __enter__(self) -> Spawner:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()


class Party:
    """A process; ``status`` is None while it runs."""

    def __init__(self, spawner: Spawner, pid: int, order: int, words: Sequence[str], files: dict[str, str]) -> None:
        self.spawner, self.pid, self.order, self.words = spawner, pid, order, list(words)
        self._output, self._errors = Path(files["output"]), Path(files["errors"])
        self._read = 0

    # ---- what it says
    @property
    def output(self) -> str:
        return self._output.read_text(errors="replace")

    @property
    def errors(self) -> str:
        return self._errors.read_text(errors="replace")

    def mark(self) -> None:
        """``line`` looks for what is printed from here on."""
        self._read = len(self.output)

    def line(self, pattern: str, timeout: float = PATIENCE) -> str:
        """The next printed line in which ``pattern`` is found."""
        end = time.monotonic() + timeout
        while True:
            text = self.output
            whole = text[: text.rfind("\n") + 1]
            for found in re.finditer(r"[^\n]*\n", whole[self._read :]):
                if re.search(pattern, found[0]):
                    self._read += found.end()
                    return found[0].rstrip("\n")
            ended = self.status is not None and text == self.output
            assert not ended, f"{self} ended without saying '{pattern}': {text[-2000:]}{self.errors[-2000:]}"
            assert time.monotonic() < end, f"{self} did not say '{pattern}' in {timeout} s: {text[self._read :]}"
            time.sleep(_TICK)

    def port(self) -> str:
        return "127.0.0.1:" + self.line(r"on port \d+").split("port ")[1].split(",")[0]

    @property
    def error_line(self) -> str:
        """The error it ended with, after the lines of progress."""
        other = re.compile(r"(query|answer|preprocess): \d+/\d+ |waiting for a server|$")
        return "\n".join(line for line in self.errors.splitlines() if not other.match(line))

    # ---- its life
    @property
    def status(self) -> int | None:
        return self.spawner.status(self.order, 0)

    def wait(self, timeout: float = PATIENCE) -> int:
        status = self.spawner.status(self.order, timeout)
        assert status is not None, f"{self} still runs after {timeout} s: {self.output[-500:]} {self.errors[-500:]}"
        return status

    def kill(self) -> None:
        """SIGKILL; nothing where it has ended."""
        if self.status is None:
            with contextlib.suppress(ProcessLookupError):
                os.kill(self.pid, signal.SIGKILL)

    def end(self) -> None:
        self.kill()
        self.wait(30)

    def interrupt(self) -> None:
        os.kill(self.pid, signal.SIGINT)

    # ---- what it holds
    def descriptors(self) -> int:
        return len(os.listdir(f"/proc/{self.pid}/fd"))

    def threads(self) -> int:
        return len(os.listdir(f"/proc/{self.pid}/task"))

    def holds(self) -> tuple[int, int]:
        return self.descriptors(), self.threads()

    def assert_holds(self, expected: tuple[int, int], timeout: float = 20.0) -> None:
        """Soon no more descriptors and threads than these, but for the sockets of the last session, three at most."""
        end = time.monotonic() + timeout
        while any(now > then + 3 for now, then in zip(self.holds(), expected, strict=True)):
            if time.monotonic() > end:
                held = {link: os.readlink(link) for link in map(str, Path(f"/proc/{self.pid}/fd").iterdir())}
                raise AssertionError(f"{self} holds {self.holds()}, was {expected} (descriptors, threads): {held}")
            time.sleep(0.02)

    def __str__(self) -> str:
        return f"`{' '.join(self.words[:2])}` ({self.pid})"


def seconds_until(happened: Callable[[], bool], since: float, timeout: float = PATIENCE) -> float:
    """Seconds from ``since`` until ``happened``."""
    while not happened():
        assert time.monotonic() - since < timeout, f"nothing happened within {timeout} s"
        time.sleep(_TICK)
    return time.monotonic() - since


def assert_clean_error(party: Party, *names: str) -> str:
    """It ended with status 1, one line on standard error that names the exception, and no traceback."""
    assert party.status == 1, f"{party} ended with {party.status}: {party.errors[-3000:]}"
    assert "Traceback" not in party.errors, party.errors[-3000:]
    line = party.error_line
    assert line.count("\n") == 0 and line.split(":")[0] in names, f"{party} says {line!r}, expected one of {names}"
    return line
