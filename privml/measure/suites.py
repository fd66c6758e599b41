# SPDX-License-Identifier: Apache-2.0
"""The suites of ``privml bench``: each names its kind, and every row of every kind makes the same record."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, NamedTuple

import torch

from privml.conversion import convert
from privml.errors import ConfigError
from privml.measure import classical, networks
from privml.measure.calibration import transfers_of
from privml.measure.engine_operators import SCALES
from privml.measure.launch import CORE, ENGINE, Run, launch, ranked
from privml.measure.scratch import scratch_folder
from privml.program import Program
from privml.session.ledger import PHASES, Snapshot
from privml.spec import SessionSpec

# A network is run and timed rather than predicted alone if it sends at most this many bytes.
MEASURED = 400_000_000
Report = Mapping[str, Any]


@dataclass(frozen=True)
class Task:
    """A row of a suite. ``op``: its name; ``row``: what the suite's file says of it; ``n``: operations at once, or
    inputs of a query; ``bits``: of the values' ring, where the kind reads it; ``network``: the name of the link that
    ``spec`` simulates; ``load``: a shipped model by its name.
    """

    suite: str
    kind: str
    op: str
    row: Mapping[str, Any]
    n: int
    spec: SessionSpec
    network: str
    bits: int = 64
    repeats: int = 3
    load: Callable[[str], Any] | None = None

    @property
    def params(self) -> Mapping[str, Any]:
        return self.row["params"]

    def published(self) -> dict[str, Any]:
        """The figures of others that the row has for this ring and this n."""
        found = {}
        for name, tables in self.row.get("published", {}).items():
            figures = tables.get(str(self.bits))
            if isinstance(figures, Mapping):
                figures = figures.get(str(self.n))
            if figures is not None and not (name in TOTALS and self.n != self.row["n"]):
                found[name] = figures
        return found


# Published figures of a whole row, of no other n.
TOTALS = ("megabytes",)


class Kind(NamedTuple):
    """``measure``: what a task makes; ``reads``: the settings that count for suites of this kind alone."""

    measure: Callable[[Task], dict[str, Any]]
    reads: tuple[str, ...] = ()


def measure(task: Task) -> dict[str, Any]:
    """The record of a row: see ``record``."""
    return KINDS[task.kind].measure(task)


def record(task: Task, seconds: float | None, phases: Report, peak: int | None, **details: Any) -> dict[str, Any]:
    """``seconds``: of all n with their correlations, of the slowest party (None: predicted alone). ``phases``: of each
    what ``merged`` says. ``peak_rss_bytes``: of the largest party. ``published``: figures of others. ``details``: what
    only this kind measures."""
    sizes = [phases[name]["bytes"] for name in ("preprocess", "online") if phases.get(name)]
    ot = transfers_of(task.spec)
    return {
        "suite": task.suite,
        "op": task.op,
        "n": task.n,
        "params": dict(task.params),
        "engine": task.spec.engine.engine,
        "settings": asdict(task.spec.engine),
        "bits": task.bits if {"bits", "k"} & set(KINDS[task.kind].reads) else None,
        "ot": ot.tag if ot else "",
        "network": task.network,
        "threads": task.spec.threads,
        "seconds": seconds,
        "bytes_per_op": sum(sizes) / task.n,
        "ops_per_second": task.n / seconds if seconds else None,
        "phases": dict(phases),
        "peak_rss_bytes": peak,
        "published": task.published(),
        "details": details,
    }


def merged(reports: Sequence[Report]) -> dict[str, Any]:
    """Of what the parties counted, by rank and phase: ``seconds`` of the slowest, ``bytes`` that all send, ``sent``: by
    the one that sends the most, ``party0``: sent and received by party 0, ``depth``: the longest chain of messages."""
    found: dict[str, Any] = {}
    for name in PHASES:
        counts = [report[name] for report in reports if report.get(name)]
        if counts:
            sent = [count["sent"] for count in counts]
            found[name] = {
                "seconds": max(count["seconds"] for count in counts),
                "bytes": sum(sent),
                "sent": max(sent),
                "party0": sent[0] + counts[0]["received"],
                "depth": max(count["depth"] for count in counts),
            }
    return found


# ---- compiled sessions: operators of the two-party core, and of the actively secure one
def core(task: Task, session: str = "TwoPartySession") -> dict[str, Any]:
    ot, threads = task.spec.ot, task.spec.threads
    settings = asdict(task.spec.engine)
    made = {
        "session": session, "operator": task.row["operator"], "n": task.n, "params": dict(task.params),
        "ot": (ot.provider, ot.k, ot.security), "background": ot.in_background, "threads": threads,
        "ring": task.bits, "repeats": task.repeats, "seconds_per_byte": task.spec.expected_link.seconds_per_byte,
        "linear": settings.get("linear", "ot"),
        "ciphertexts": settings.get("linear", "ot") != "ot" and settings.get("noise", "tail") == "tail",
    }  # fmt: skip
    reports = ranked(CORE, 2, made, link=task.spec.simulated)
    peak = max(report["peak_rss_bytes"] for report in reports)
    return record(task, max(report["seconds"] for report in reports), merged([r["phases"] for r in reports]), peak)


def active_core(task: Task) -> dict[str, Any]:
    """The online phase, and apart from it the making of what that draws. A network is a query between processes."""
    if task.row["operator"] != "network":
        return core(task, "ActiveSession")
    program, inputs, module = shipped(task)
    run = launch(program, inputs, task.spec)
    with torch.no_grad():
        right = torch.equal(run.outputs[0].argmax(1), module(inputs).argmax(1))
    if not right:
        raise ConfigError(f"{task.op}: the labels are not those of the clear model")
    return record(task, *of_run(run))


def of_run(run: Run) -> tuple[float, dict[str, Any], int]:
    """Seconds, phases and peak memory of a query."""
    peak = max(report.peak_rss_bytes for report in run.reports)
    return run.client.seconds, merged([report.ledger["total"] for report in run.reports]), peak


def shipped(task: Task) -> tuple[Program, torch.Tensor, torch.nn.Module]:
    """The shipped model that a row names, converted; n of its samples."""
    model = task.load(task.params["model"])
    numerics = {"bits": task.bits, **task.params["numerics"]}
    program = convert(model.module, calibration=model.preprocess(model.calibration), numerics=numerics)
    return program, model.preprocess(model.samples[: task.n]), model.module


# ---- operators of an engine
def engine(task: Task) -> dict[str, Any]:
    """Each party a process that runs the engine alone; a network's program is converted once for all parties."""
    if task.bits not in SCALES:
        raise ConfigError(f"suite {task.suite} has bits={' and bits='.join(map(str, SCALES))}, got {task.bits}")
    made = {
        "spec": task.spec,
        "operator": task.row["operator"],
        "n": task.n,
        "bits": task.bits,
        "repeats": task.repeats,
    }
    with scratch_folder() as folder:
        params = {**task.params, "folder": str(folder)}
        if task.row["operator"] == "network":
            program, images, _ = shipped(task)
            program.save(folder)
            torch.save(images, Path(folder, "images.pt"))
        parties, spec = task.spec.backend.parties, task.spec
        reports = ranked(ENGINE, parties, {**made, "params": params}, spec.threads, spec.simulated)
    memory = [report["peak_rss_bytes"] for report in reports]
    details = {
        name: [report[name] for report in reports] for name in ("cpu_seconds", "peak_rss_bytes", "peak_device_bytes")
    }
    phases, seconds = merged([report["phases"] for report in reports]), max(report["seconds"] for report in reports)
    return record(task, seconds, phases, max(memory), layers=reports[0]["layers"], **details)


# ---- networks, predicted and run if they are small
def network(task: Task) -> dict[str, Any]:
    """``one_by_one``: the online depth of the operators called one after the other."""
    details: dict[str, Any] = {"one_by_one": None}
    if "functions" in task.params:
        costs = [networks.functions(task.params["functions"], task.n, task.spec, rank) for rank in (0, 1)]
        return record(task, None, unmeasured(costs), None, **details)
    module = networks.network(task.params)
    program = networks.program(module, task.params)
    costs = [networks.forecast(program, task.n, task.spec, rank) for rank in (0, 1)]
    phases, seconds, peak = unmeasured(costs), None, None
    details["one_by_one"] = networks.one_by_one(module, program.numerics, task.n, task.spec).online.depth
    if sum(phase["bytes"] for phase in phases.values()) <= MEASURED:
        seconds, measured, peak = of_run(launch(program, networks.inputs(module, task.n), task.spec))
        phases = {name: {**phases[name], "seconds": measured[name]["seconds"]} for name in phases}
    return record(task, seconds, phases, peak, **details)


def unmeasured(costs: Sequence[Snapshot]) -> dict[str, Any]:
    """Phases that are predicted, by rank, and take no seconds that are known."""
    phases = merged([{name: asdict(getattr(cost, name)) for name in PHASES} for cost in costs])
    return {name: {**phase, "seconds": None} for name, phase in phases.items()}


# ---- trees and support vector machines on any engine
def trees(task: Task) -> dict[str, Any]:
    """``parties``: "processes", timed from the handshake on, the median of the repeats by online seconds; or "threads"
    of a session that has answered a query before: without remote parties, and with ot=ideal, whose correlations cost
    nothing, so that the online phase alone is seen."""
    program, values = classical.program(task.params, task.bits), classical.inputs(task.params, task.n)
    if not task.spec.backend.remote or task.spec.ot.provider == "ideal":
        found = classical.query(program, values, task.spec, task.repeats)
        details = {"parties": "threads", "first_seconds": found["first_seconds"]}
        return record(task, found["seconds"], found["phases"], found["peak_rss_bytes"], **details)
    runs = [launch(program, values, task.spec) for _ in range(task.repeats)]
    runs.sort(key=lambda run: run.client.ledger["total"]["online"]["seconds"])
    return record(task, *of_run(runs[len(runs) // 2]), parties="processes")


KINDS = {
    "core": Kind(core, ("bound",)),
    "active_core": Kind(active_core, ("k",)),
    "engine": Kind(engine, ("bits", "device", "truncation")),
    "network": Kind(network),
    "classical": Kind(trees, ("engine", "bits")),
}
