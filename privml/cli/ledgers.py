# SPDX-License-Identifier: Apache-2.0
"""The cost of a run as tables: layers, and totals by phase."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from rich.table import Table

from privml.cli import console
from privml.formats import FixedPoint, format_text
from privml.program import Program
from privml.session.ledger import PHASES
from privml.spec import SessionSpec

# Where correlations come from in a session of three parties.
DEALT = "dealt by party 2"
LAYER_COLUMNS = ["layer", "operator", "correlations", "online", "depth", "seconds"]


def layer_table(title: str, ledger: Mapping[str, Any], timed: bool = True, calibrated: Sequence[str] = ()) -> Table:
    """Online figures, ``ledger`` as ``Ledger.as_dict()`` gives it; bytes are both directions, depth is one-way messages
    in sequence, correlations are those drawn, where there are any. Layers that had to make correlations themselves have
    a column more; so have programs of which some layers rely on ``calibrated`` bounds, the others on proved ones, and
    sessions that make products with weights in forms of choice, and, for bytes of preparing one query's, predictions of
    prepared ones."""
    nodes = ledger["nodes"]
    late = any(node["preprocess"]["sent"] + node["preprocess"]["received"] for node in nodes)
    columns = [*LAYER_COLUMNS[:3], *(["preprocess"] if late else []), *LAYER_COLUMNS[3:]]
    rows = [[node["name"], short(node["operator"]), *figures(node, late)] for node in nodes]
    if any(node.get("products") for node in nodes):
        columns.insert(2, "products")
        for row, node in zip(rows, nodes, strict=True):
            row.insert(2, made_in(node.get("products", {})))
    if any(node.get("prepared") for node in nodes):
        place = columns.index("online")
        columns.insert(place, "prepared")
        for row, node in zip(rows, nodes, strict=True):
            row.insert(place, console.size(node.get("prepared", 0)))
    if calibrated:
        columns.insert(2, "bounds")
        for row, node in zip(rows, nodes, strict=True):
            row.insert(2, "calibrated" if node["name"] in calibrated else "proved")
    if not any(node["cots_as_sender"] + node["cots_as_receiver"] for node in nodes):
        place = columns.index("correlations")
        for line in (columns, *rows):
            del line[place]
    return untimed(title, columns, rows, None, timed)


def made_in(products: Mapping[str, int]) -> str:
    """How the products of a layer were made, in words."""
    return ", ".join(form if count == 1 else f"{count} {form}" for form, count in products.items())


def phase_table(title: str, ledger: Mapping[str, Any], timed: bool = True) -> Table:
    total = ledger["total"]
    rows = [[phase, *row(total[phase])] for phase in PHASES]
    whole = {key: sum(total[phase][key] for phase in PHASES) for key in ("sent", "received", "depth", "seconds")}
    return untimed(title, ["phase", "sent", "received", "depth", "seconds"], rows, ["total", *row(whole)], timed)


def reliance(program: Program) -> str:
    """Which layers of a program rely on calibrated bounds; the others rely on proved ones."""
    layers = ", ".join(program.calibrated_layers)
    choice = program.choice
    part = f"{choice.precision.margin:g} times " if choice is not None else ""
    return f"these layers rely on {part}the calibrated range, all others on proved bounds: {layers}"


def conditions(program: Program, spec: SessionSpec) -> str:
    """What a query runs with: engine, number formats, and how far they are from the model on the calibration data."""
    numbers = program.numerics.real
    fixed = isinstance(numbers, FixedPoint)
    text = f"up to {numbers.bits} bits, {numbers.scale} of them fractional" if fixed else format_text(numbers)
    text = f"engine {spec.backend.name}; numbers: {text}"
    choice = program.choice
    if choice is not None:
        text += f"; error in calibration {choice.error:.2%}, tolerance {choice.precision.tolerance:.2%}"
    return text


def correlation_line(ledger: Mapping[str, Any], source: str) -> str:
    """How many were drawn, and where they came from."""
    total = ledger["total"]
    sender, receiver = total["cots_as_sender"], total["cots_as_receiver"]
    if source == DEALT or (source.startswith("from ") and sender + receiver == 0):  # of other kinds
        return f"correlations: {source}"
    return f"correlations: {sender + receiver:,} drawn ({sender:,} as sender, {receiver:,} as receiver), {source}"


def untimed(title: str, columns: list[str], rows: list[list[str]], footer: list[str] | None, timed: bool) -> Table:
    """A forecast has no times: the last column is left out."""
    end = len(columns) if timed else -1
    return console.table(title, columns[:end], [row[:end] for row in rows], footer and footer[:end])


def row(count: Mapping[str, Any]) -> list[str]:
    sent, received = console.size(count["sent"]), console.size(count["received"])
    return [sent, received, str(count["depth"]), f"{count['seconds']:.3f}"]


def figures(node: Mapping[str, Any], late: bool) -> list[str]:
    def size(phase: str) -> str:
        return console.size(node[phase]["sent"] + node[phase]["received"])

    drawn = f"{node['cots_as_sender'] + node['cots_as_receiver']:,}"
    made = [size("preprocess")] if late else []
    return [drawn, *made, size("online"), str(node["online"]["depth"]), f"{node['online']['seconds']:.3f}"]


def short(operator: str) -> str:
    """aten.conv2d.default -> conv2d"""
    return operator.removeprefix("aten.").removeprefix("privml.").split(".")[0]
