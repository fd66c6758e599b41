# SPDX-License-Identifier: Apache-2.0
"""``privml bench suite=recurrent``: whole networks, their cost from the cost functions, and timed where it is small."""

from __future__ import annotations

from typing import Any

from omegaconf import DictConfig, OmegaConf

from privml.cli import console
from privml.cli.settings import ot_of
from privml.engines.interface import DEFAULT
from privml.measure import networks
from privml.measure.launch import PartyReport, launch
from privml.session.ledger import PHASES, Snapshot

COLUMNS = ["network", "batch", "bytes", "online depth", "one by one", "seconds", "peak memory"]
# What is run and timed rather than predicted alone: at most this many bytes.
MEASURED = 400_000_000


def are_networks(operators: dict[str, Any]) -> bool:
    """Whether a suite consists of networks rather than operators of the core."""
    return all(row["operator"] == "network" for row in operators.values())


def record_of(config: DictConfig, name: str, row: dict[str, Any]) -> dict[str, Any]:
    """The JSON line of one network; ``seconds`` is null where it was not run, ``one_by_one`` the online depth of
    its operators called one after the other."""
    batch, ot, params = int(config.batch or config.n or row["n"]), ot_of(config), row["params"]
    if "functions" in params:
        cost, depth, report = networks.functions(params["functions"], batch, ot, config.threads), None, None
    else:
        module = networks.network(params)
        program = networks.program(module, params)
        cost = networks.forecast(program, batch, ot, config.threads)
        depth = networks.one_by_one(module, program.numerics, batch, ot).online.depth
        report = run_once(config, program, networks.inputs(module, batch)) if cost.total.bytes <= MEASURED else None
    return {
        "suite": config.suite.name,
        "op": name,
        "n": batch,
        "params": params,
        "engine": DEFAULT,
        "ot": ot.tag,
        "network": config.link.name,
        "threads": config.threads,
        "seconds": None if report is None else report.seconds,
        "bytes_per_op": cost.total.bytes / batch,
        "one_by_one": depth,
        "phases": phases_of(cost, report),
        "peak_rss_bytes": None if report is None else report.peak_rss_bytes,
    }


def run_once(config: DictConfig, program: Any, values: Any) -> PartyReport:
    shape: dict[str, Any] = OmegaConf.to_container(config.link)  # type: ignore[assignment]
    shape.pop("name")
    run = launch(program, values, ot=ot_of(config), network=shape, deadline=600.0, threads=config.threads)
    return run.client


def phases_of(cost: Snapshot, report: PartyReport | None) -> dict[str, Any]:
    measured = None if report is None else report.ledger["total"]
    return {
        phase: {
            "seconds": None if measured is None else measured[phase]["seconds"],
            "bytes": getattr(cost, phase).bytes,
            "depth": getattr(cost, phase).depth,
        }
        for phase in PHASES
    }


def summary(config: DictConfig, records: list[dict[str, Any]]) -> Any:
    rows = []
    for record in records:
        seconds, memory = record["seconds"], record["peak_rss_bytes"]
        rows.append(
            [
                record["op"],
                f"{record['n']:,}",
                console.size(record["bytes_per_op"] * record["n"]),
                f"{record['phases']['online']['depth']:,}",
                "" if record["one_by_one"] is None else f"{record['one_by_one']:,}",
                "not run" if seconds is None else f"{seconds:.2f}",
                "" if memory is None else console.size(memory),
            ]
        )
    title = f"{config.suite.name}, {records[0]['ot']}, {config.link.name}, threads: {config.threads}"
    return console.table(title, COLUMNS, rows)
