# SPDX-License-Identifier: Apache-2.0
"""The cost of a run as tables: layers, and totals by phase."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from rich.table import Table

from privml.cli import console
from privml.session.ledger import PHASES

LAYER_COLUMNS = ["layer", "operator", "preprocess", "online", "bytes", "depth", "seconds"]


def layer_table(title: str, ledger: Mapping[str, Any], timed: bool = True) -> Table:
    """``ledger`` as ``Ledger.as_dict()`` gives it; bytes are both directions, depth is one-way messages in sequence."""
    rows = [[node["name"], short(node["operator"]), *figures(node)] for node in ledger["nodes"]]
    return untimed(title, LAYER_COLUMNS, rows, None, timed)


def phase_table(title: str, ledger: Mapping[str, Any], timed: bool = True) -> Table:
    total = ledger["total"]
    rows = [[phase, *row(total[phase])] for phase in PHASES]
    whole = {key: sum(total[phase][key] for phase in PHASES) for key in ("sent", "received", "depth", "seconds")}
    return untimed(title, ["phase", "sent", "received", "depth", "seconds"], rows, ["total", *row(whole)], timed)


def untimed(title: str, columns: list[str], rows: list[list[str]], footer: list[str] | None, timed: bool) -> Table:
    """A forecast has no times: the last column is left out."""
    end = len(columns) if timed else -1
    return console.table(title, columns[:end], [row[:end] for row in rows], footer and footer[:end])


def row(count: Mapping[str, Any]) -> list[str]:
    sent, received = console.size(count["sent"]), console.size(count["received"])
    return [sent, received, str(count["depth"]), f"{count['seconds']:.3f}"]


def figures(node: Mapping[str, Any]) -> list[str]:
    def total(key: str, *phases: str) -> float:
        return sum(node[phase][key] for phase in phases)

    def size(*phases: str) -> str:
        return console.size(total("sent", *phases) + total("received", *phases))

    seconds = total("seconds", *PHASES)
    return [size("preprocess"), size("online"), size(*PHASES), str(total("depth", *PHASES)), f"{seconds:.3f}"]


def short(operator: str) -> str:
    """aten.conv2d.default -> conv2d"""
    return operator.removeprefix("aten.").split(".")[0]
