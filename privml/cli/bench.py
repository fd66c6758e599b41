# SPDX-License-Identifier: Apache-2.0
"""``privml bench suite=twopc [op=relu32] [ot.k=8] [link=wan]``: one JSON line per operator, and a table."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

from omegaconf import DictConfig, OmegaConf

from privml.cli import classical, console, networks, spdz2k, threepc
from privml.cli.tasks import common, transfers
from privml.errors import ConfigError
from privml.measure.runner import measure

COLUMNS = ["operator", "n", "bytes", "per second", "depth", "preprocess s", "online s", "peak memory"]


def run(config: DictConfig) -> None:
    operators: dict[str, Any] = OmegaConf.to_container(config.suite.operators, resolve=True)  # type: ignore[assignment]
    if config.op is not None:
        chosen = str(config.op).split("+")
        unknown = [op for op in chosen if op not in operators]
        if unknown:
            raise ConfigError(f"suite {config.suite.name} has no operator {unknown[0]}; it has: {', '.join(operators)}")
        operators = {op: operators[op] for op in chosen}
    kind = kind_of(config, operators)
    refuse_ignored(config, kind)
    records = []
    with console.progress("bench", config.quiet) as step:
        for index, (name, row) in enumerate(operators.items()):
            step(index, len(operators), name)
            records.append(kind.record_of(config, name, row))
        step(len(operators), len(operators), "done")
    save(config, records)
    console.out.print(kind.summary(config, records))


class Kind(NamedTuple):
    """A kind of suite: the JSON line of one row, the table of all lines, and which settings of ``_SOME_READ`` count."""

    record_of: Callable[[DictConfig, str, dict[str, Any]], dict[str, Any]]
    summary: Callable[[DictConfig, list[dict[str, Any]]], Any]
    reads: tuple[str, ...] = ()


# Settings that count for some suites alone, with what they are where nobody has chosen them.
_SOME_READ = {"engine": "twopc", "bits": 64, "device": "cpu", "truncation": None, "k": 64, "bound": None}


def refuse_ignored(config: DictConfig, kind: Kind) -> None:
    """ConfigError for a setting that the suite does not read."""
    for name, neutral in _SOME_READ.items():
        value = config.engine.name if name == "engine" else config[name]
        if name not in kind.reads and value != neutral:
            raise ConfigError(f"{name}={value}: suite {config.suite.name} does not read it; leave it out")


def kind_of(config: DictConfig, operators: dict[str, Any]) -> Kind:
    if config.suite.get("engine") == "threepc":
        threepc.check(config)
        return Kind(threepc.record_of, threepc.summary, ("bits", "device", "truncation"))
    if classical.are_classical(operators):
        classical.check(config)
        return Kind(classical.record_of, classical.summary, ("engine", "bits"))
    if config.suite.get("engine") == "active":
        return Kind(spdz2k.record_of, spdz2k.summary, ("k",))
    if networks.are_networks(operators):
        return Kind(networks.record_of, networks.summary)
    return Kind(record_of, summary, ("bound",))


def record_of(config: DictConfig, name: str, row: dict[str, Any]) -> dict[str, Any]:
    return measure(task_of(config, name, row))


def task_of(config: DictConfig, name: str, row: dict[str, Any]) -> dict[str, Any]:
    ot = transfers(config)
    return {
        **common(config, name, row),
        "params": params_of(config, name, row),
        "provider": ot.provider,
        "k": ot.k,
        "security": ot.security,
        "refill": ot.refill,
        "threads": config.threads,
    }


def params_of(config: DictConfig, name: str, row: dict[str, Any]) -> dict[str, Any]:
    params = dict(row["params"])
    if config.bound is None:
        return params
    if "bound" not in params:
        raise ConfigError(f"operator {name} has no bound")
    if not isinstance(config.bound, (int, float)) or not 0 < config.bound <= 1:
        raise ConfigError(f"bound={config.bound} must be a part of the half of the ring: above 0, at most 1")
    return {**params, "bound": float(config.bound)}


def save(config: DictConfig, records: list[dict[str, Any]]) -> None:
    """Appends to one file per suite, transfer provider and network; also prints the lines when not on a terminal."""
    directory = Path(config.results)
    directory.mkdir(parents=True, exist_ok=True)
    file = directory / f"{config.suite.name}-{records[0].get('ot', records[0].get('device'))}-{config.link.name}.jsonl"
    now = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
    with file.open("a") as stream:
        for record in records:
            line = json.dumps({"time": now, **record})
            stream.write(line + "\n")
            if not console.out.is_terminal:
                print(line, flush=True)


def summary(config: DictConfig, records: list[dict[str, Any]]) -> Any:
    threads = "one thread" if config.threads == 1 else f"{config.threads} threads"
    title = f"{config.suite.name}, {records[0]['ot']}, {config.link.name}, {threads} per party"
    rows = []
    for record in records:
        phases = record["phases"]
        rows.append(
            [
                record["op"],
                f"{record['n']:,}",
                f"{record['bytes_per_op']:,.1f}",
                f"{record['ops_per_second']:,.0f}"
                if record["ops_per_second"] >= 10
                else f"{record['ops_per_second']:.3f}",
                f"{phases['preprocess']['depth'] + phases['online']['depth']}",
                f"{phases['preprocess']['seconds']:.3f}",
                f"{phases['online']['seconds']:.3f}",
                console.size(record["peak_rss_bytes"]),
            ]
        )
    return console.table(title, COLUMNS, rows)
