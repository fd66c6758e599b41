# SPDX-License-Identifier: Apache-2.0
"""``privml bench suite=classical engine=twopc``: trees and support vector machines in shape, on any engine."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from omegaconf import DictConfig, OmegaConf

from privml.cli import console
from privml.cli.settings import ot_of
from privml.engines.correlations import OtChoice
from privml.errors import ConfigError
from privml.measure import classical
from privml.measure.launch import launch

COLUMNS = ["model", "batch", "query ms", "per sample", "published", "protocols ms", "online", "preprocess", "depth"]
# Engines whose parties are processes of their own; otherwise, and with ot=ideal, they are threads of this process.
PROCESSES = ("twopc", "threepc", "active")


def are_classical(operators: dict[str, Any]) -> bool:
    return all(row["operator"] == "classical" for row in operators.values())


def record_of(config: DictConfig, name: str, row: dict[str, Any]) -> dict[str, Any]:
    """The JSON line of one model. ``seconds`` are those of a whole query: of parties that are threads of a session that
    has answered one before, of processes from the handshake on. ``published_ms``: milliseconds per sample online of the
    paper, for rings of ``bits`` and this batch, where it has them."""
    params, batch = row["params"], int(config.batch or config.n or row["n"])
    converted = classical.program(params, config.bits)
    values = classical.inputs(params, batch)
    shape: dict[str, Any] = OmegaConf.to_container(config.link)  # type: ignore[assignment]
    network = shape.pop("name")
    apart = config.engine.name in PROCESSES and config.ot.provider != "ideal"
    if apart:
        measured = between_processes(config, converted, values, shape)
    else:
        measured = classical.query(converted, values, config.engine.name, config.repeats, settings_of(config, shape))
    published = row.get("published", {}).get(str(config.bits), {}).get(str(batch))
    return {
        "suite": config.suite.name,
        "op": name,
        "n": batch,
        "params": params,
        "bits": config.bits,
        "engine": config.engine.name,
        "ot": transfers(config).tag if config.engine.name in ("twopc", "active") else config.engine.name,
        "parties": "processes" if apart else "threads",
        "network": network,
        "threads": config.threads,
        "published_ms": published,
        **measured,
    }


def check(config: DictConfig) -> None:
    """ConfigError for what contradicts the suite, whose rings are ``bits``."""
    if config.engine.name == "active" and config.engine.ring not in (64, config.bits):
        raise ConfigError(f"engine.ring={config.engine.ring}, but bits={config.bits}: the ring of this suite is bits")


def settings_of(config: DictConfig, shape: dict[str, Any]) -> dict[str, Any]:
    """Of an engine whose parties are threads of this process; with ot=ideal its correlations cost nothing, so that the
    online phase alone is seen."""
    if config.engine.name == "plain":
        return {}
    if config.engine.name == "threepc":
        return {**shape, "truncation": config.engine.truncation, "device": config.engine.device}
    ring = {}
    if config.engine.name == "active":
        ring = {"ring": config.bits, "truncation": config.engine.truncation}
    return {**shape, **ring, "ot": config.ot.provider}


def transfers(config: DictConfig) -> OtChoice:
    """Those of the ``ot`` group; against a party that deviates where the engine is."""
    chosen = ot_of(config)
    return replace(chosen, security="malicious") if config.engine.name == "active" else chosen


def between_processes(config: DictConfig, converted: Any, values: Any, shape: dict[str, Any]) -> dict[str, Any]:
    """The median of ``repeats`` fresh pairs (or triples) of processes, by online seconds."""
    runs = []
    for _ in range(config.repeats):
        made = launch(
            converted,
            values,
            ot=transfers(config),
            network=shape,
            deadline=600.0,
            threads=config.threads,
            dealer=config.engine.name == "threepc",
            truncation=config.engine.get("truncation", "auto"),
            device=config.engine.get("device", "cpu"),
            ring=config.bits if config.engine.name == "active" else None,
        )
        runs.append(made.client)
    runs.sort(key=lambda report: report.ledger["total"]["online"]["seconds"])
    report = runs[len(runs) // 2]
    total = report.ledger["total"]
    return {
        "seconds": report.seconds,
        "phases": {
            name: {
                "seconds": total[name]["seconds"],
                "bytes": total[name]["sent"] + total[name]["received"],
                "depth": total[name]["depth"],
            }
            for name in ("preprocess", "online")
        },
        "peak_rss_bytes": report.peak_rss_bytes,
    }


def summary(config: DictConfig, records: list[dict[str, Any]]) -> Any:
    rows = []
    for record in records:
        online, preprocess = record["phases"]["online"], record["phases"]["preprocess"]
        published, milliseconds = record["published_ms"], 1000 * record["seconds"]
        rows.append(
            [
                record["op"],
                f"{record['n']}",
                f"{milliseconds:.1f}",
                f"{milliseconds / record['n']:.1f}",
                "" if published is None else f"{published}",
                f"{1000 * (online['seconds'] + preprocess['seconds']):.1f}",
                console.size(online["bytes"]),
                console.size(preprocess["bytes"]),
                "" if online["depth"] is None else f"{online['depth']}",
            ]
        )
    title = f"{config.suite.name}, {config.engine.name}, rings of {config.bits} bits, {config.link.name}"
    return console.table(title, COLUMNS, rows)
