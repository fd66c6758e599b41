# SPDX-License-Identifier: Apache-2.0
"""How long calls take on this machine: measured once between processes of ours, and kept.

The file lies in the user's cache folder (``PRIVML_CACHE``, or privml in ``XDG_CACHE_HOME`` or ~/.cache), one for each
machine and version.
"""

from __future__ import annotations

import json
import os
import pickle
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from privml.errors import PrivmlError
from privml.planning.calls import Call, Sample
from privml.planning.engines import Setting
from privml.planning.machine import fingerprint, machine

MODULE = "privml.planning.measuring"
SECONDS_TO_MEASURE = 600.0


class CalibrationFailed(PrivmlError, RuntimeError):
    """A party of a calibration ended with an error; carries its message."""


# ---- names of what is measured
def setup(setting: Setting) -> str:
    return f"{setting.prefix}/setup/{setting.ot}"


def greeting(setting: Setting) -> str:
    return f"{setting.prefix}/greeting"


def hop(setting: Setting, delayed: bool) -> str:
    return f"{setting.prefix}/hop/{'delayed' if delayed else 'still'}"


def correlation(setting: Setting) -> str:
    return f"{setting.prefix}/correlation/{setting.ot}"


def named(setting: Setting, sample: Sample) -> str:
    return f"{setting.prefix}/{sample.key}"


@dataclass(slots=True)
class Calibration:
    """Seconds by name: of calls, of the set-up, of making a correlation; and from ``reference`` of the greeting and of
    what a message takes beyond its link."""

    path: Path
    seconds: dict[str, float] = field(default_factory=dict)
    on_measure: Callable[[int], None] | None = None  # told how many calls before they are measured

    @classmethod
    def load(cls, fresh: bool = False) -> Calibration:
        """What is known about this machine; ``fresh``: nothing."""
        path = folder() / f"calibration-{fingerprint()}.json"
        if fresh or not path.exists():
            return cls(path)
        try:
            return cls(path, json.loads(path.read_text())["seconds"])
        except (OSError, ValueError, KeyError):
            return cls(path)  # it is measured again

    def save(self) -> None:
        self.path.parent.mkdir(parents=True, exist_ok=True)
        text = json.dumps({"machine": machine(), "seconds": self.seconds}, indent=1, sort_keys=True)
        written = self.path.with_suffix(f".{os.getpid()}")
        written.write_text(text)
        written.replace(self.path)

    def missing(self, setting: Setting, calls: Iterable[Call]) -> list[Sample]:
        """The samples that are not measured yet, each once."""
        samples = {call.sample.key: call.sample for call in calls}
        return [sample for sample in samples.values() if named(setting, sample) not in self.seconds]

    def knows(self, setting: Setting, calls: Iterable[Call]) -> bool:
        """Whether times can be told of a query of these calls."""
        names = (setup(setting), greeting(setting), hop(setting, False), hop(setting, True))
        return all(name in self.seconds for name in names) and not self.missing(setting, calls)

    def complete(self, setting: Setting, calls: Iterable[Call]) -> None:
        """Measures the calls that are missing, and keeps them."""
        samples = self.missing(setting, calls)
        if not samples and setup(setting) in self.seconds:
            return
        if self.on_measure is not None:
            self.on_measure(len(samples))
        self.seconds.update(measure(setting, samples))
        self.save()

    def of(self, setting: Setting, call: Call) -> float:
        return call.times * self.seconds[named(setting, call.sample)]


def folder() -> Path:
    own = os.environ.get("PRIVML_CACHE")
    if own:
        return Path(own)
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "privml"


def measure(setting: Setting, samples: Sequence[Sample]) -> dict[str, float]:
    """Seconds by name, of the slowest party, from parties that are processes of their own."""
    task = {
        "engine": setting.engine,
        "ot": setting.ot,
        "threads": setting.threads,
        "truncation": setting.truncation,
        "samples": list(samples),
    }
    with tempfile.TemporaryDirectory(prefix="privml-") as where:
        file = Path(where, "task")
        file.write_bytes(pickle.dumps(task))
        reports = _run(setting, str(file))
    found = {setup(setting): max(report["setup"] for report in reports)}
    if setting.ot is not None:
        found[correlation(setting)] = max(report["correlation"] for report in reports)
    for index, sample in enumerate(samples):
        found[named(setting, sample)] = max(report["calls"][index] for report in reports)
    return found


def _run(setting: Setting, file: str) -> list[dict[str, Any]]:
    environment = {**os.environ, "OMP_NUM_THREADS": str(setting.threads)}
    processes: list[subprocess.Popen] = []
    ports: list[int] = []
    try:
        for rank in range(setting.parties):
            command = [sys.executable, "-m", MODULE, str(rank), json.dumps(ports), file]
            pipe = subprocess.PIPE
            processes.append(subprocess.Popen(command, stdout=pipe, stderr=pipe, text=True, env=environment))
            if rank < setting.parties - 1:
                line = processes[-1].stdout.readline()
                if not line.startswith("port "):
                    raise CalibrationFailed(f"party {rank} did not start: {line}{processes[-1].communicate()[1]}")
                ports.append(int(line.split()[1]))
        return [_report(rank, process) for rank, process in enumerate(processes)]
    finally:
        for process in processes:
            if process.poll() is None:
                process.kill()


def _report(rank: int, process: subprocess.Popen) -> dict[str, Any]:
    try:
        output, errors = process.communicate(timeout=SECONDS_TO_MEASURE)
    except subprocess.TimeoutExpired:
        raise CalibrationFailed(f"party {rank} took longer than {SECONDS_TO_MEASURE:g} s") from None
    if process.returncode != 0:
        raise CalibrationFailed(f"party {rank}: {errors.strip()}")
    return json.loads(output.strip().splitlines()[-1])
