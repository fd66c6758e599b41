# SPDX-License-Identifier: Apache-2.0
"""All parties on this machine, each a process of its own, talking over TCP on loopback."""

from __future__ import annotations

import json
import os
import queue
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import torch

from privml import errors
from privml.engines.correlations import DEFAULT_OT, OtChoice
from privml.engines.interface import backends
from privml.errors import PeerDisconnected, PrivmlError
from privml.program import Program
from privml.service.client import checked_inputs
from privml.service.events import Progress
from privml.service.worker import plain_spec
from privml.spec import LinkProfile, SessionSpec

DEALER_ROLE = "dealer"


@dataclass(frozen=True, slots=True)
class PartyReport:
    """What one process measured: seconds from handshake to answer, ledger as plain numbers, peak memory; and where its
    correlations came from."""

    seconds: float
    ledger: dict[str, Any]
    peak_rss_bytes: int
    source: str = ""


@dataclass(frozen=True, slots=True)
class Run:
    """The outputs that the client learned, and the reports of the parties."""

    outputs: tuple[torch.Tensor, ...]
    server: PartyReport
    client: PartyReport
    dealer: PartyReport | None = None


def launch(
    program: Program,
    inputs: Any | Sequence[Any],
    *,
    ot: OtChoice = DEFAULT_OT,
    network: Mapping[str, float] | None = None,
    deadline: float = 60.0,
    threads: int = 1,
    timeout: float = 3600.0,
    progress: Progress | None = None,
    dealer: bool = False,
    truncation: str = "auto",
    device: str = "cpu",
    ring: int | None = None,
) -> Run:
    """Runs ``program`` (with weights) on ``inputs`` between two fresh processes, or three with a ``dealer``.

    ``deadline``: seconds that either party waits for the other; ``threads``: the session's lanes, and torch's threads;
    ``timeout``: for the whole run; ``truncation``, ``device`` (of all three), ``ring``: see ``serve``.
    Raises InvalidInput before anything is started, and what any party raised; all processes have ended when it returns.
    """
    values = list(inputs) if isinstance(inputs, (tuple, list)) else [inputs]
    checked = checked_inputs(program, values)
    chosen = next(
        each for each in backends() if each.remote and (each.actively_secure, each.dealt) == (ring is not None, dealer)
    )
    given = {"truncation": (truncation, "auto"), "device": (device, "cpu"), "ring": (ring, None)}
    own = {name: value for name, (value, neutral) in given.items() if value != neutral}
    spec = SessionSpec(
        chosen.config(**own),
        ot if chosen.security is None else replace(ot, security=chosen.security),
        threads=threads,
        deadline=deadline,
        simulated=LinkProfile(**(network or {})),
    )
    with tempfile.TemporaryDirectory(prefix="privml-") as folder:
        program_path, weights_path = program.save(folder)
        np.savez(Path(folder, "inputs.npz"), *(value.numpy() for value in checked))
        task = {"program": str(program_path), "spec": plain_spec(spec), "dealer": None}
        outputs = Path(folder, "outputs.npz")
        with Parties(time.monotonic() + timeout, progress) as parties:
            if dealer:
                parties.start(DEALER_ROLE, task)
                port = parties.wait(DEALER_ROLE, "listening")["port"]
                task = {**task, "dealer": f"127.0.0.1:{port}"}
            parties.start("server", {**task, "weights": str(weights_path) if weights_path else None})
            port = parties.wait("server", "listening")["port"]
            parties.start(
                "client",
                {
                    **task,
                    "server": f"127.0.0.1:{port}",
                    "outputs": str(outputs),
                    "inputs": str(Path(folder, "inputs.npz")),
                },
            )
            roles = ("client", "server", DEALER_ROLE) if dealer else ("client", "server")
            reports = {role: _report(parties.wait(role, "done")) for role in roles}
        with np.load(outputs) as file:
            learned = tuple(torch.from_numpy(file[name]) for name in file.files)
    return Run(learned, reports["server"], reports["client"], reports.get(DEALER_ROLE))


def _report(done: dict[str, Any]) -> PartyReport:
    return PartyReport(done["seconds"], done["ledger"], done["peak_rss_bytes"], done["source"])


def _event(line: str) -> dict[str, Any] | None:
    """What a party tells in ``line``; None when it is no event."""
    try:
        told = json.loads(line)
    except ValueError:
        return None
    return told if isinstance(told, dict) and "event" in told else None


class Parties:
    """The two processes and what they tell; leaving the block ends them."""

    def __init__(self, end: float, progress: Progress | None) -> None:
        self._end, self._progress = end, progress
        self._processes: dict[str, subprocess.Popen] = {}
        self._events: queue.Queue[tuple[str, dict[str, Any]]] = queue.Queue()
        self._told: dict[tuple[str, str], dict[str, Any]] = {}

    def start(self, role: str, task: dict[str, Any]) -> None:
        environment = {**os.environ, "OMP_NUM_THREADS": str(task["spec"]["threads"])}
        process = subprocess.Popen(
            [sys.executable, "-m", "privml.measure.party"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env=environment,
        )
        self._processes[role] = process
        threading.Thread(target=self._listen, args=(role, process), daemon=True).start()
        process.stdin.write(json.dumps({"role": role, **task}))
        process.stdin.close()

    def _listen(self, role: str, process: subprocess.Popen) -> None:
        for line in process.stdout:
            told = _event(line)
            if told is None:  # a library's own words
                sys.stderr.write(f"{role}: {line}")
            else:
                self._events.put((role, told))
        self._events.put((role, {"event": "end"}))

    def wait(self, role: str, event: str) -> dict[str, Any]:
        """The first ``event`` of ``role``; raises what a party reports meanwhile."""
        while (role, event) not in self._told:
            try:
                teller, told = self._events.get(timeout=max(self._end - time.monotonic(), 0))
            except queue.Empty:
                raise PeerDisconnected(f"the run did not end in time; still waiting for the {role}") from None
            kind = told["event"]
            if kind == "progress" and self._progress is not None:
                self._progress(told["done"], told["total"], told["label"])
            elif kind == "error":
                raise self._first_error(teller, told)
            elif kind == "end" and (teller, "done") not in self._told:
                code = self._processes[teller].wait()
                raise PeerDisconnected(f"the {teller} process ended with status {code} before it was done")
            self._told.setdefault((teller, kind), told)
        return self._told[role, event]

    def _first_error(self, role: str, told: dict[str, Any]) -> PrivmlError:
        kind = getattr(errors, told["type"], None)
        known = isinstance(kind, type) and issubclass(kind, PrivmlError)
        message = f"{role}: {told['message']}" if known else f"{role}: {told['type']}: {told['message']}"
        return kind(message) if known else PrivmlError(message)

    def __enter__(self) -> Parties:
        return self

    def __exit__(self, *exception: object) -> None:
        for process in self._processes.values():
            if exception[0] is not None and process.poll() is None:
                process.kill()
        for process in self._processes.values():
            process.wait()
            process.stdout.close()
