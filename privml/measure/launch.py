# SPDX-License-Identifier: Apache-2.0
"""All parties on this machine, each a process of its own, talking over TCP on loopback."""

from __future__ import annotations

import json
import os
import pickle
import queue
import subprocess
import sys
import threading
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import torch

from privml import errors
from privml.errors import ConfigError, PeerDisconnected, PrivmlError
from privml.measure.copies import Copies, Copy
from privml.measure.scratch import scratch_folder
from privml.program import Program
from privml.service.events import Progress
from privml.service.inputs import checked_inputs
from privml.session.ledger import cost_table
from privml.spec import LinkProfile, SessionSpec
from privml.tables import Table, size_text

ROLES = ("server", "client", "dealer")
# What a process runs: parties of a service, of an engine alone, and of compiled sessions, which do without torch.
PARTY = "privml.measure.party"
SERVICE = ("-m", PARTY)
ENGINE = ("-m", "privml.measure.engine_party")
CORE = (str(Path(__file__).with_name("core_party.py")),)
SECONDS_TO_MEASURE = 900.0
# How long a party that has reported its result may take to end.
_SECONDS_TO_CLOSE = 10.0


class PartyFailed(PrivmlError, RuntimeError):
    """A party's process ended with an error of another kind; carries its message."""


@dataclass(frozen=True, slots=True)
class PartyReport:
    """What one process measured: seconds from handshake to answer, ledger as plain numbers, peak memory; and where its
    correlations came from."""

    seconds: float
    ledger: dict[str, Any]
    peak_rss_bytes: int
    source: str = ""

    def summary(self) -> Table:
        """Cost by layer and phase, seconds and memory."""
        peak = f"{self.seconds:.2f} s from handshake to answer, peak memory {size_text(self.peak_rss_bytes)}"
        return replace(cost_table(self.ledger), notes=(peak,))

    def _repr_html_(self) -> str:
        return self.summary()._repr_html_()


@dataclass(frozen=True, slots=True)
class Run:
    """The outputs that the client learned, and the reports of the parties."""

    outputs: tuple[torch.Tensor, ...]
    server: PartyReport
    client: PartyReport
    dealer: PartyReport | None = None

    @property
    def reports(self) -> list[PartyReport]:
        """By rank."""
        return [report for report in (self.server, self.client, self.dealer) if report is not None]


def launch(
    program: Program,
    inputs: Any | Sequence[Any],
    spec: SessionSpec | None = None,
    *,
    timeout: float = 3600.0,
    progress: Progress | None = None,
    copies: Copies | None = None,
) -> Run:
    """Runs ``program`` (with weights) on ``inputs`` between two fresh processes, or three if the engine has a dealer.

    ``spec``: the session of all parties (default: ``SessionSpec()``); its connections are slowed down to its simulated
    link. ``timeout``: for the whole run, in seconds. ``copies``: processes that become the parties, of ``PARTY``; those
    that are lacking are started.
    Raises InvalidInput, and ConfigError for an engine without remote parties, before anything is started; then what any
    party raised. All processes have ended when it returns.
    """
    spec = spec or SessionSpec()
    if not spec.backend.remote:
        raise ConfigError(f"engine={spec.backend.name} cannot run between processes")
    checked = checked_inputs(program, program.ordered(inputs))
    with scratch_folder() as folder:
        program_path, weights_path = program.save(folder)
        np.savez(Path(folder, "inputs.npz"), *(value.numpy() for value in checked))
        outputs = Path(folder, "outputs.npz")
        task = {"program": str(program_path), "spec": spec, "dealer": None}
        with Parties(time.monotonic() + timeout, progress, copies) as parties:

            def address(role: str) -> str:
                return f"127.0.0.1:{parties.wait(role, 'listening')['port']}"

            def start(role: str, **further: Any) -> None:
                parties.start(role, SERVICE, {"role": role, **task, **further}, spec.threads)

            if spec.backend.dealt:
                start("dealer")
                task["dealer"] = address("dealer")
            start("server", weights=str(weights_path) if weights_path else None)
            start("client", server=address("server"), outputs=str(outputs), inputs=str(Path(folder, "inputs.npz")))
            done = [parties.wait(role, "done") for role in ROLES[: spec.backend.parties]]
        with np.load(outputs) as file:
            learned = tuple(torch.from_numpy(file[name]) for name in file.files)
    fields = ("seconds", "ledger", "peak_rss_bytes", "source")
    return Run(learned, *(PartyReport(**{name: report[name] for name in fields}) for report in done))


def ranked(
    command: Sequence[str],
    parties: int,
    task: Mapping[str, Any],
    threads: int = 1,
    link: LinkProfile | None = None,
    progress: Progress | None = None,
) -> list[dict[str, Any]]:
    """What ``parties`` processes measure that run ``command`` on ``task``, by rank: they start one after the other, and
    each gets the ports of those before. ``link``: what their connections are slowed down to."""
    shape = (link.delay_ms, link.bandwidth_mbps) if link else (0.0, 0.0)
    common = {**task, "parties": parties, "link": shape}
    ports: list[int] = []
    with Parties(time.monotonic() + SECONDS_TO_MEASURE, progress) as running:
        for rank in range(parties):
            role = f"party {rank}"
            running.start(role, command, {**common, "rank": rank, "ports": list(ports)}, threads)
            if rank < parties - 1:
                ports.append(running.wait(role, "listening")["port"])
        return [running.wait(f"party {rank}", "done") for rank in range(parties)]


def _event(line: str) -> dict[str, Any] | None:
    """What a party reports in ``line``; None when it is no event."""
    try:
        message = json.loads(line)
    except ValueError:
        return None
    return message if isinstance(message, dict) and "event" in message else None


def fresh(command: Sequence[str], threads: int) -> subprocess.Popen:
    """A process that has nothing of this one but its environment, and waits for its task."""
    return subprocess.Popen(
        [sys.executable, *command],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        env={**os.environ, "OMP_NUM_THREADS": str(threads), "OPENBLAS_NUM_THREADS": "1"},
    )


class Parties:
    """Processes and the events that they write (see ``worker``); leaving the block ends them."""

    def __init__(self, end: float, progress: Progress | None = None, copies: Copies | None = None) -> None:
        self._end, self._progress, self._copies = end, progress, copies
        self._processes: dict[str, subprocess.Popen | Copy] = {}
        self._events: queue.Queue[tuple[str, dict[str, Any]]] = queue.Queue()
        self._received: dict[tuple[str, str], dict[str, Any]] = {}

    def start(self, role: str, command: Sequence[str], task: Mapping[str, Any], threads: int = 1) -> None:
        process = self._copies.take() if self._copies is not None and command == SERVICE else None
        if process is None:
            process = fresh(command, threads)
        self._processes[role] = process
        threading.Thread(target=self._listen, args=(role, process), daemon=True).start()
        process.stdin.write(pickle.dumps(dict(task)))
        process.stdin.close()

    def _listen(self, role: str, process: subprocess.Popen | Copy) -> None:
        for raw in process.stdout:
            line = raw.decode(errors="replace")
            message = _event(line)
            if message is None:  # a library's own output
                sys.stderr.write(f"{role}: {line}")
            else:
                self._events.put((role, message))
        self._events.put((role, {"event": "end"}))

    def wait(self, role: str, event: str) -> dict[str, Any]:
        """The first ``event`` of ``role``; raises what a party reports meanwhile."""
        while (role, event) not in self._received:
            try:
                sender, message = self._events.get(timeout=max(self._end - time.monotonic(), 0))
            except queue.Empty:
                raise PeerDisconnected(f"the run did not end in time; still waiting for the {role}") from None
            kind = message["event"]
            if kind == "progress" and self._progress is not None:
                self._progress(message["done"], message["total"], message["label"])
            elif kind == "error":
                raise self._first_error(sender, message)
            elif kind == "end" and (sender, "done") not in self._received:
                code = self._processes[sender].wait()
                raise PeerDisconnected(f"the {sender} process ended with status {code} before it was done")
            self._received.setdefault((sender, kind), message)
        return self._received[role, event]

    def _first_error(self, role: str, message: dict[str, Any]) -> PrivmlError:
        kind = getattr(errors, message["type"], None)
        if isinstance(kind, type) and issubclass(kind, PrivmlError):
            return kind(f"{role}: {message['message']}")
        return PartyFailed(f"{role}: {message['type']}: {message['message']}")

    def __enter__(self) -> Parties:
        return self

    def __exit__(self, *exception: object) -> None:
        for process in self._processes.values():
            if exception[0] is not None and process.poll() is None:
                process.kill()
        for process in self._processes.values():
            try:
                process.wait(max(self._end - time.monotonic(), _SECONDS_TO_CLOSE))
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
            process.stdout.close()
