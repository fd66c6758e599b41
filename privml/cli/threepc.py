# SPDX-License-Identifier: Apache-2.0
"""``privml bench suite=threepc [op=sign] [bits=32] [device=cuda]``: the three-party engine in three processes."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

import torch
from omegaconf import DictConfig

from privml.cli import console
from privml.cli.paths import shipped_models
from privml.cli.tasks import common
from privml.conversion import convert
from privml.errors import ConfigError
from privml.measure import threepc

COLUMNS = ["operator", "n", "seconds", "depth", "party 0 online", "dealt", "of published", "peak memory"]


def check(config: DictConfig) -> None:
    """ConfigError for settings that the suite has not."""
    if config.bits not in (32, 64):
        raise ConfigError(f"suite threepc has bits=32 and bits=64, got {config.bits}")
    if config.device not in ("cpu", "cuda"):
        raise ConfigError(f"device must be cpu or cuda, got {config.device}")


def record_of(config: DictConfig, name: str, row: dict[str, Any]) -> dict[str, Any]:
    return measure(task_of(config, name, row))


def measure(task: dict[str, Any]) -> dict[str, Any]:
    """The record of one row; what is a network is converted once for all parties."""
    if task["operator"] != "network":
        return threepc.measure(task)
    with tempfile.TemporaryDirectory() as folder:
        save_program(task, Path(folder))
        return threepc.measure({**task, "params": {**task["params"], "folder": folder}})


def save_program(task: dict[str, Any], folder: Path) -> None:
    """Writes program, weights and images of the shipped model that the task names."""
    model = shipped_models().load(task["params"]["model"])
    numerics = {"bits": task["bits"], **task["params"]["numerics"]}
    calibration = model.preprocess(model.calibration)
    convert(model.module, calibration=calibration, numerics=numerics).save(folder)
    torch.save(model.preprocess(model.samples), folder / "images.pt")


def task_of(config: DictConfig, name: str, row: dict[str, Any]) -> dict[str, Any]:
    task = common(config, name, row)
    return {
        **task,
        "whole": task["n"] == row["n"],
        "bits": int(config.bits),
        "device": str(config.device),
        "truncation": str(config.truncation or row.get("truncation", "auto")),
        "threads": config.threads,
    }


def summary(config: DictConfig, records: list[dict[str, Any]]) -> Any:
    where = f"{config.device}, {config.link.name}"
    title = f"{config.suite.name}, {config.bits} bits, {where}"
    rows = []
    for record in records:
        part = record["of_published"]
        rows.append(
            [
                record["op"],
                f"{record['n']:,}",
                f"{record['seconds']:.3f}",
                f"{record['phases']['online']['depth']}",
                console.size(record["party0_bytes"]["online"]),
                console.size(record["party0_bytes"]["preprocess"]),
                "" if part is None else f"{part['online']:.0%} online, {part['total']:.0%} in all",
                console.size(max(record["peak_rss_bytes"])),
            ]
        )
    return console.table(title, COLUMNS, rows)
