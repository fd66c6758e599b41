# SPDX-License-Identifier: Apache-2.0
"""One JSON line per run of an experiment: everything to read it, and to run it again."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from privml.measure.machine import machine, revision

# How a run ended. Whatever an engine or format does not offer is "unsupported", with the reason.
OK, UNSUPPORTED, FAILED = "ok", "unsupported", "failed"
PACKAGE = Path(__file__).resolve().parents[1]


def record(
    name: str,
    config: Mapping[str, Any],
    choices: Mapping[str, str],
    metrics: Mapping[str, float],
    status: str = OK,
    reason: str = "",
) -> dict[str, Any]:
    """``config``: all settings, resolved; ``choices``: what was chosen of each group of settings; ``metrics``: numbers
    by name, empty unless ``status`` is ok."""
    return {
        "time": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
        "experiment": name,
        "status": status,
        "reason": reason,
        "choices": dict(choices),
        "metrics": dict(metrics),
        "config": dict(config),
        "git": revision(PACKAGE),
        "machine": machine(),
    }


def append(file: Path, line: Mapping[str, Any]) -> None:
    """Adds one line; runs side by side may write to one file."""
    file.parent.mkdir(parents=True, exist_ok=True)
    text = (json.dumps(line, sort_keys=True) + "\n").encode()
    descriptor = os.open(file, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)
    try:
        os.write(descriptor, text)  # in one piece: lines of different runs do not mix
    finally:
        os.close(descriptor)


def size(file: Path) -> int:
    """Bytes of ``file`` so far, for ``read``."""
    return file.stat().st_size if file.exists() else 0


def read(file: Path, start: int = 0) -> list[dict[str, Any]]:
    """The records from byte ``start`` on."""
    if not file.exists():
        return []
    with file.open("rb") as stream:
        stream.seek(start)
        return [json.loads(line) for line in stream]


def phases(ledger: Mapping[str, Any]) -> dict[str, float]:
    """Metrics of a ledger (``Ledger.as_dict()``): seconds, bytes (both ways) and depth of every phase."""
    found: dict[str, float] = {}
    for phase in ("setup", "preprocess", "online"):
        count = ledger["total"][phase]
        found[f"{phase}_bytes"] = count["sent"] + count["received"]
        found[f"{phase}_depth"] = count["depth"]
        found[f"{phase}_seconds"] = count["seconds"]
    if ledger["nodes"]:  # a node's own time knows the computing between protocols, too
        found["online_seconds"] = sum(node["online"]["seconds"] for node in ledger["nodes"])
    return found


def varied(records: Sequence[Mapping[str, Any]]) -> list[str]:
    """The settings, by dotted names, in which the records differ: choices of groups first."""
    names: dict[str, set[str]] = {}
    for each in records:
        for key, value in each["choices"].items():
            names.setdefault(key, set()).add(str(value))
    found = [key for key, values in names.items() if len(values) > 1]
    groups = tuple(f"{key}." for key in names)
    flat = [flatten(each["config"]) for each in records]
    keys = dict.fromkeys(key for each in flat for key in each if not key.startswith(groups))
    for key in keys:
        if len({str(each.get(key)) for each in flat}) > 1:
            found.append(key)
    inner = dict.fromkeys(key for each in flat for key in each if key.startswith(groups))
    for key in inner:  # a setting within a group that stays the same
        if key.split(".")[0] not in found and len({str(each.get(key)) for each in flat}) > 1:
            found.append(key)
    return found


def setting(each: Mapping[str, Any], name: str) -> str:
    """The value of a name that ``varied`` gives."""
    if name in each["choices"]:
        return str(each["choices"][name])
    return str(flatten(each["config"]).get(name))


def flatten(config: Mapping[str, Any], prefix: str = "") -> dict[str, Any]:
    """Nested settings by dotted names."""
    found: dict[str, Any] = {}
    for key, value in config.items():
        if isinstance(value, Mapping) and value:
            found.update(flatten(value, f"{prefix}{key}."))
        else:
            found[f"{prefix}{key}"] = value
    return found
