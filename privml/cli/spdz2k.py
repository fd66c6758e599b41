# SPDX-License-Identifier: Apache-2.0
"""``privml bench suite=spdz2k [op=multiply] [k=32] [link=gigabit]``: the actively secure engine in two processes."""

from __future__ import annotations

from typing import Any

import torch
from omegaconf import DictConfig

from privml.cli import console
from privml.cli.paths import shipped_models
from privml.cli.tasks import common, transfers
from privml.conversion import convert
from privml.engines.active.backend import RINGS, choice_of
from privml.errors import ConfigError
from privml.measure import spdz2k
from privml.measure.launch import PartyReport, launch

COLUMNS = [
    "operator", "n", "online/s", "sent", "depth", "MP-SPDZ", "published", "made/s", "sent", "MP-SPDZ", "peak memory",
]  # fmt: skip


def record_of(config: DictConfig, name: str, row: dict[str, Any]) -> dict[str, Any]:
    task = task_of(config, name, row)
    return network_record(task) if row["operator"] == "network" else spdz2k.measure(task)


def task_of(config: DictConfig, name: str, row: dict[str, Any]) -> dict[str, Any]:
    if config.k not in RINGS:
        raise ConfigError(f"suite spdz2k has k=64 and k=32, got {config.k}")
    ot = transfers(config)
    return {**common(config, name, row), "ring": int(config.k), "provider": ot.provider, "k": ot.k}


def network_record(task: dict[str, Any]) -> dict[str, Any]:
    """A query to a shipped model between two processes, everything made for it and checked."""
    model = shipped_models().load(task["params"]["model"])
    numerics = {"bits": task["ring"], **task["params"]["numerics"]}
    program = convert(model.module, calibration=model.preprocess(model.calibration), numerics=numerics)
    inputs = model.preprocess(model.samples[: task["n"]])
    network = {name: value for name, value in task["network"].items() if name != "name"}
    ot = choice_of(task["provider"], task["k"])
    run = launch(program, inputs, ot=ot, ring=task["ring"], network=network, deadline=600.0)
    with torch.no_grad():
        right = torch.equal(run.outputs[0].argmax(1), model.module(inputs).argmax(1))
    if not right:
        raise ConfigError(f"{task['op']}: the labels are not those of the clear model")
    reports = [run.server, run.client]
    online, made = (phase_of(task, reports, name) for name in ("online", "preprocess"))
    return spdz2k.record_of(task, online, made, max(report.peak_rss_bytes for report in reports))


def phase_of(task: dict[str, Any], reports: list[PartyReport], phase: str) -> dict[str, Any]:
    totals = [{"seconds": r.ledger["total"][phase]["seconds"], "phases": r.ledger["total"]} for r in reports]
    return spdz2k.rate(task["n"], totals, phase)


def summary(config: DictConfig, records: list[dict[str, Any]]) -> Any:
    title = f"{config.suite.name}, k={config.k}, {records[0]['ot']}, {config.link.name}; bytes that a party sends"
    rows = []
    for record in records:
        online, made = record["online"], record["made"]
        rows.append([
            record["op"], f"{made['n']:,}", *(figures(online) if online else [""] * 2),
            str(online["depth"]) if online else "",
            others(record["measured"]), others(record["published"]),
            *figures(made), others(record["made_measured"]), console.size(record["peak_rss_bytes"]),
        ])  # fmt: skip
    return console.table(title, COLUMNS, rows)


def figures(part: dict[str, Any]) -> list[str]:
    rate = part["per_second"]
    return [f"{rate:,.0f}" if rate >= 10 else f"{rate:.3f}", f"{part['sent_per_op']:,.1f} B"]


def others(figures: list[float | None] | None) -> str:
    """[per second, bytes] of somebody else."""
    if figures is None:
        return ""
    rate, sent = figures
    return f"{rate:,.0f}/s" + ("" if sent is None else f", {sent:,.0f} B")
