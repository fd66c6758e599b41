# SPDX-License-Identifier: Apache-2.0
"""The time of calls on this machine: measured once between local processes, and kept.

The file lies in the user's cache folder (``PRIVML_CACHE``, or privml in ``XDG_CACHE_HOME`` or ~/.cache), one for each
machine and version.
"""

from __future__ import annotations

import hashlib
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

from privml.engines.demands import NOTHING, Demand, Item, items_of
from privml.errors import PrivmlError
from privml.measure.calls import Call, Sample
from privml.measure.engines import Setting, offer_of
from privml.measure.machine import fingerprint, machine

MODULE = "privml.measure.measuring"
SECONDS_TO_MEASURE = 600.0


class CalibrationFailed(PrivmlError, RuntimeError):
    """A party of a calibration ended with an error; carries its message."""


# ---- names of what is measured
def setup(setting: Setting) -> str:
    return f"{setting.prefix}/setup/{setting.ot}"


def greeting(setting: Setting) -> str:
    return f"{setting.prefix}/greeting"


def step(setting: Setting) -> str:
    return f"{setting.prefix}/step"


def hop(setting: Setting, delayed: bool) -> str:
    return f"{setting.prefix}/hop/{'delayed' if delayed else 'still'}"


def correlation(setting: Setting) -> str:
    return f"{setting.prefix}/correlation/{setting.ot}"


def named(setting: Setting, sample: Sample) -> str:
    return f"{setting.prefix}/{sample.key}"


def of_kind(setting: Setting, item: Item) -> str:
    return f"{setting.prefix}/item/{setting.ot}/{item.key}"


def planning(setting: Setting, program: str, shapes: Sequence[Sequence[int]]) -> str:
    words = hashlib.sha256(repr((program, [tuple(shape) for shape in shapes])).encode()).hexdigest()[:20]
    return f"{setting.prefix}/planning/{words}"


@dataclass(slots=True)
class Calibration:
    """Seconds by name: of calls, of the set-up, of making a correlation or an item, of a party's counting; and from
    ``reference`` of the greeting, of a graph's node beside its calls, and of what a message takes beyond its link."""

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
            return cls(path, _checked(json.loads(path.read_text())["seconds"]))
        except (OSError, ValueError, KeyError, TypeError, RecursionError):
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

    def missing_items(self, setting: Setting, demand: Demand) -> list[Item]:
        """The items that are not measured yet."""
        items = items_of(demand) if offer_of(setting.engine).by_kind else ()
        return [item for item in items if of_kind(setting, item) not in self.seconds]

    def knows(self, setting: Setting, calls: Iterable[Call], demand: Demand = NOTHING) -> bool:
        """Whether times can be told of a query of these calls that draws ``demand``."""
        names = (setup(setting), greeting(setting), step(setting), hop(setting, False), hop(setting, True))
        measured = not self.missing(setting, calls) and not self.missing_items(setting, demand)
        return measured and all(name in self.seconds for name in names)

    def complete(self, setting: Setting, calls: Iterable[Call], demand: Demand = NOTHING) -> None:
        """Measures the calls and items that are missing, and keeps them."""
        samples, items = self.missing(setting, calls), self.missing_items(setting, demand)
        if not samples and not items and setup(setting) in self.seconds:
            return
        if self.on_measure is not None:
            self.on_measure(len(samples) + len(items))
        self.seconds.update(measure(setting, samples, items))
        self.save()

    def making(self, setting: Setting, demand: Demand) -> float:
        """Seconds that making ``demand`` takes, without a link."""
        if not offer_of(setting.engine).by_kind:
            return 0.0
        return sum(count * self.seconds[of_kind(setting, item)] for item, count in items_of(demand).items())

    def of(self, setting: Setting, call: Call) -> float:
        return call.times * self.seconds[named(setting, call.sample)]


def _checked(seconds: Any) -> dict[str, float]:
    """ValueError for anything but times by name."""
    if not isinstance(seconds, dict) or not all(type(s) in (int, float) and 0 <= s < 1e9 for s in seconds.values()):
        raise ValueError("no times")
    return seconds


def folder() -> Path:
    own = os.environ.get("PRIVML_CACHE")
    if own:
        return Path(own)
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "privml"


def measure(setting: Setting, samples: Sequence[Sample], items: Sequence[Item]) -> dict[str, float]:
    """Seconds by name, of the slowest party, from parties that are processes of their own."""
    task = {
        "engine": setting.engine,
        "ot": setting.ot,
        "threads": setting.threads,
        "truncation": setting.truncation,
        "ring": setting.ring,
        "samples": list(samples),
        "items": list(items),
    }
    with tempfile.TemporaryDirectory(prefix="privml-") as where:
        file = Path(where, "task")
        file.write_bytes(pickle.dumps(task))
        reports = _run(setting, str(file))
    found = {setup(setting): max(report["setup"] for report in reports)}
    if reports[0]["correlation"] is not None:
        found[correlation(setting)] = max(report["correlation"] for report in reports)
    for index, item in enumerate(items):
        found[of_kind(setting, item)] = max(report["items"][index] for report in reports)
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
