# SPDX-License-Identifier: Apache-2.0
"""``privml bench suite=twopc [op=relu32] [ot.k=8] [link=wan]``: one JSON line per operator, and a table."""

from __future__ import annotations

import json
import time
from collections.abc import Mapping
from typing import Any

from omegaconf import DictConfig, OmegaConf

from privml.cli import console
from privml.cli.fields import WrongCall, did_you_mean
from privml.cli.measuring import spec_of
from privml.cli.paths import results_path, shipped_models
from privml.engines.interface import DEFAULT
from privml.errors import ConfigError
from privml.measure.records import append
from privml.measure.suites import KINDS, Task, measure

COLUMNS = [
    "operator", "n", "seconds", "per second", "bytes of one", "depth", "preprocess s", "online s", "published",
    "peak memory",
]  # fmt: skip
# Settings that count for some kinds of suites alone, with their values unless they are set.
_SOME_READ = {"engine": DEFAULT, "bits": 64, "device": "cpu", "truncation": None, "k": 64, "bound": None}


def run(config: DictConfig) -> None:
    rows: dict[str, Any] = OmegaConf.to_container(config.suite.operators, resolve=True)  # type: ignore[assignment]
    if config.op is not None:
        chosen = str(config.op).split("+")
        unknown = [op for op in chosen if op not in rows]
        if unknown:
            near = did_you_mean(unknown[0], rows)
            raise WrongCall(f"suite {config.suite.name} has no operator {unknown[0]}{near} (it has {', '.join(rows)})")
        rows = {op: rows[op] for op in chosen}
    refuse_ignored(config)
    tasks, records = [task_of(config, name, row) for name, row in rows.items()], []
    with console.progress("bench", config.quiet) as step:
        for index, task in enumerate(tasks):
            step(index, len(tasks), task.op)
            records.append(measure(task))
        step(len(tasks), len(tasks), "done")
    save(config, records)
    console.out.print(summary(config, records))


def refuse_ignored(config: DictConfig) -> None:
    """ConfigError for a setting that the suite does not read."""
    for name, neutral in _SOME_READ.items():
        value = config.engine.name if name == "engine" else config[name]
        if name not in KINDS[config.suite.kind].reads and value != neutral:
            raise ConfigError(f"{name}={value}: suite {config.suite.name} does not use it; leave it out")


def task_of(config: DictConfig, name: str, row: dict[str, Any]) -> Task:
    """``n``: batch, else n of the command, else the row's. ConfigError where only a query could choose the transfers,
    and for a ring beside the suite's."""
    kind = KINDS[config.suite.kind]
    bits = int(config.k if "k" in kind.reads else config.bits)
    if "engine" in kind.reads:
        if config.engine.get("ring", bits) not in (64, bits):
            raise ConfigError(f"engine.ring={config.engine.ring}, but bits={bits}: the ring of this suite is bits")
        engine = {**config.engine, "ring": bits}
    else:
        truncation = config.truncation or row.get("truncation", "auto")
        engine = {"name": config.suite.engine, "ring": bits, "device": config.device, "truncation": truncation}
        engine |= {name: config.engine[name] for name in ("linear", "noise") if name in config.engine}
    spec = spec_of(config, engine)
    if not spec.ot.decided:
        raise ConfigError("ot=auto chooses a provider for a query only; name the provider to measure")
    return Task(
        suite=config.suite.name,
        kind=config.suite.kind,
        op=name,
        row={**row, "params": params_of(config, name, row)},
        n=int(config.batch or config.n or row["n"]),
        spec=spec,
        network=config.link.name,
        bits=bits,
        repeats=config.repeats,
        load=lambda model: shipped_models().load(model),
    )


def params_of(config: DictConfig, name: str, row: dict[str, Any]) -> dict[str, Any]:
    params = dict(row["params"])
    if config.bound is None:
        return params
    if "bound" not in params:
        raise ConfigError(f"operator {name} has no bound")
    if not isinstance(config.bound, (int, float)) or not 0 < config.bound <= 1:
        raise ConfigError(f"bound={config.bound} is a part of half of the ring: it must be above 0 and at most 1")
    return {**params, "bound": float(config.bound)}


def save(config: DictConfig, records: list[dict[str, Any]]) -> None:
    """Appends to the file of the suite; also prints the lines when not on a terminal."""
    now = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
    path = results_path(config.results, f"{config.suite.name}.jsonl")
    for record in records:
        line = {"time": now, **record}
        append(path, line)
        if not console.out.is_terminal:
            print(json.dumps(line), flush=True)
    if not config.quiet:
        console.err.print(f"records: {path}", soft_wrap=True)


def summary(config: DictConfig, records: list[dict[str, Any]]) -> Any:
    """A table of any suite's records."""
    first = records[0]
    words = [first["suite"], first["engine"], first["ot"], first["network"], f"threads: {first['threads']}"]
    words[2:2] = [] if first["bits"] is None else [f"{first['bits']} bits"]
    rows = []
    for record in records:
        phases, peak = record["phases"], record["peak_rss_bytes"]
        rows.append([
            record["op"], f"{record['n']:,}", seconds(record["seconds"]), rate(record["ops_per_second"]),
            f"{record['bytes_per_op']:,.1f}", depth(phases),
            *(seconds((phases.get(name) or {}).get("seconds")) for name in ("preprocess", "online")),
            ", ".join(f"{name.replace('_', ' ')} {figures}" for name, figures in record["published"].items()),
            "" if peak is None else console.size(peak),
        ])  # fmt: skip
    return console.table(", ".join(word for word in words if word), COLUMNS, rows)


def seconds(value: float | None) -> str:
    return "" if value is None else f"{value:.3f}"


def rate(value: float | None) -> str:
    return "not run" if value is None else f"{value:,.0f}" if value >= 10 else f"{value:.3f}"


def depth(phases: Mapping[str, Any]) -> str:
    """Of the online phase alone, which waits for nothing that was made before."""
    found = (phases.get("online") or {}).get("depth")
    return "" if found is None else f"{found:,}"
