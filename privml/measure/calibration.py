# SPDX-License-Identifier: Apache-2.0
"""The time of calls on this machine: measured once between local processes, and kept.

The file lies in the user's cache folder (``PRIVML_CACHE``, or that of the system), one for each machine and version.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from privml.engines.correlations import OtChoice
from privml.engines.demands import NOTHING, Demand, Item, items_of
from privml.measure.calls import Call, Sample
from privml.measure.launch import ENGINE, ranked
from privml.measure.machine import cache_folder, fingerprint, machine
from privml.service.events import Progress
from privml.spec import SessionSpec


def transfers_of(spec: SessionSpec) -> OtChoice | None:
    """What makes the engine's correlations; None if it needs none."""
    return spec.ot if spec.backend.transfers else None


# Calls of which the engine may have several forms, chosen by the link.
PRODUCTS = ("matmul", "conv2d")


# ---- names of what is measured
def prefix(spec: SessionSpec) -> str:
    """A name for what all calls of a session have in common."""
    return "/".join(map(str, (spec.engine.engine, spec.threads, *asdict(spec.engine).values())))


def setup(spec: SessionSpec) -> str:
    return f"{prefix(spec)}/setup/{transfers_of(spec)}"


def handshake(spec: SessionSpec) -> str:
    return f"{prefix(spec)}/handshake"


def step(spec: SessionSpec) -> str:
    return f"{prefix(spec)}/step"


def hop(spec: SessionSpec, delayed: bool) -> str:
    return f"{prefix(spec)}/hop/{'delayed' if delayed else 'still'}"


def layer(spec: SessionSpec) -> str:
    return f"{prefix(spec)}/layer"


def making(spec: SessionSpec) -> str:
    return f"{prefix(spec)}/making/{transfers_of(spec)}"


def correlation(spec: SessionSpec) -> str:
    return f"{prefix(spec)}/correlation/{transfers_of(spec)}"


def named(spec: SessionSpec, sample: Sample) -> str:
    products = sample.method in PRODUCTS and spec.backend.uses_link(spec)
    return f"{prefix(spec)}/{sample.key}" + (f"/{spec.expected_link}/{transfers_of(spec)}" if products else "")


def of_kind(spec: SessionSpec, item: Item) -> str:
    return f"{prefix(spec)}/item/{transfers_of(spec)}/{item.key}"


def planning(spec: SessionSpec, program: str, shapes: Sequence[Sequence[int]]) -> str:
    words = hashlib.sha256(repr((program, [tuple(shape) for shape in shapes])).encode()).hexdigest()[:20]
    return f"{prefix(spec)}/planning/{words}"


@dataclass(slots=True)
class Calibration:
    """Seconds by name: of calls, of the set-up, of making a correlation or an item, of a party's counting; and from
    ``reference`` of the handshake, of a graph's node beside its calls, and of what a message takes beyond its link."""

    path: Path
    seconds: dict[str, float] = field(default_factory=dict)
    progress: Progress | None = None  # of what is measured: called with calls done, calls in all, and the next one

    @classmethod
    def load(cls, fresh: bool = False) -> Calibration:
        """What is known about this machine; ``fresh``: nothing."""
        path = cache_folder() / f"calibration-{fingerprint()}.json"
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

    def missing(self, spec: SessionSpec, calls: Iterable[Call]) -> list[Sample]:
        """The samples that are not measured yet, each once."""
        samples = {call.sample.key: call.sample for call in calls}
        return [sample for sample in samples.values() if named(spec, sample) not in self.seconds]

    def missing_items(self, spec: SessionSpec, demand: Demand) -> list[Item]:
        """The items that are not measured yet."""
        items = items_of(demand) if spec.backend.by_kind else ()
        return [item for item in items if of_kind(spec, item) not in self.seconds]

    def knows(self, spec: SessionSpec, calls: Iterable[Call], demand: Demand = NOTHING) -> bool:
        """Whether times can be predicted of a query of these calls that draws ``demand``."""
        names = (setup(spec), handshake(spec), step(spec), hop(spec, False), hop(spec, True))
        measured = not self.missing(spec, calls) and not self.missing_items(spec, demand)
        return measured and all(name in self.seconds for name in names)

    def complete(self, spec: SessionSpec, calls: Iterable[Call], demand: Demand = NOTHING) -> None:
        """Measures the calls and items that are missing, and keeps them."""
        samples, items = self.missing(spec, calls), self.missing_items(spec, demand)
        if not samples and not items and setup(spec) in self.seconds:
            return
        self.seconds.update(measure(spec, samples, items, self.progress))
        self.save()

    def making(self, spec: SessionSpec, demand: Demand) -> float:
        """Seconds that making ``demand`` takes, without a link."""
        if not spec.backend.by_kind:
            return 0.0
        if making(spec) in self.seconds:  # estimated for this demand
            return self.seconds[making(spec)]
        return sum(count * self.seconds[of_kind(spec, item)] for item, count in items_of(demand).items())

    def of(self, spec: SessionSpec, call: Call) -> float:
        return call.times * self.seconds[named(spec, call.sample)]


def _checked(seconds: Any) -> dict[str, float]:
    """ValueError for anything but times by name."""
    if not isinstance(seconds, dict) or not all(type(s) in (int, float) and 0 <= s < 1e9 for s in seconds.values()):
        raise ValueError("no times")
    return seconds


def measure(
    spec: SessionSpec, samples: Sequence[Sample], items: Sequence[Item], progress: Progress | None = None
) -> dict[str, float]:
    """Seconds by name, of the slowest party, from parties that are processes of their own."""
    task = {"spec": spec, "samples": list(samples), "items": list(items)}
    reports = ranked(ENGINE, spec.backend.parties, task, spec.threads, progress=progress)
    found = {setup(spec): max(report["setup"] for report in reports)}
    if reports[0]["correlation"] is not None:
        found[correlation(spec)] = max(report["correlation"] for report in reports)
    for index, item in enumerate(items):
        found[of_kind(spec, item)] = max(report["items"][index] for report in reports)
    for index, sample in enumerate(samples):
        found[named(spec, sample)] = max(report["calls"][index] for report in reports)
    return found
