# SPDX-License-Identifier: Apache-2.0
"""The records of a zoo, arranged for pages and charts."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

from privml.measure import words
from privml.measure.records import Record

# Families of operators, for charts with few colours.
PRODUCTS, COMPARISONS, FUNCTIONS, ELEMENTWISE, OTHER = "products", "comparisons", "functions", "elementwise", "other"
# Name -> what it is, in the order of legends.
FAMILIES = {
    PRODUCTS: "matrix products and convolutions",
    COMPARISONS: "ReLU, maxima, comparisons",
    FUNCTIONS: "exponentials, sigmoids, norms",
    ELEMENTWISE: "sums and products by element",
    OTHER: "openings, views, conversions",
}
_OPERATORS = {
    PRODUCTS: (
        "conv", "convolution", "linear", "mm", "matmul", "bmm", "addmm", "baddbmm", "einsum", "dot", "select_rows",
        "select_of_each",
    ),
    COMPARISONS: (
        "relu", "max", "min", "arg", "gt", "lt", "ge", "le", "eq", "ne", "clamp", "where", "sort", "topk", "abs",
        "sign",
    ),
    FUNCTIONS: (
        "sigmoid", "tanh", "exp", "softmax", "safe_softmax", "gelu", "silu", "erf", "log", "sqrt", "rsqrt", "norm",
        "layer_norm", "native_layer_norm", "reciprocal", "div", "pow", "sin", "cos", "softplus",
    ),
    ELEMENTWISE: ("add", "sub", "mul", "neg", "mean", "avg_pool", "sum", "adaptive_avg_pool", "square", "lerp"),
}  # fmt: skip
INPUTS, PREPARED, SETUP, LOCAL = "inputs", "prepared", "setup", "local"
# What is not online, and what sends nothing, in the order of legends after the families.
FURTHER = {
    INPUTS: "sharing of weights and inputs",
    PREPARED: "correlations, made or dealt ahead",
    SETUP: "set-up of a connection",
    LOCAL: "work beside layers: handshake, sharing, views",
}
# More layers than this are drawn as one segment per family.
MOST_SEGMENTS = 24


@dataclass(frozen=True)
class Segment:
    """A part of a bar: ``share`` of the whole, in percent."""

    kind: str
    name: str
    share: float
    text: str


@dataclass(frozen=True)
class Model:
    name: str
    records: tuple[Record, ...]

    @property
    def title(self) -> str:
        return self.records[0].title

    @property
    def first(self) -> Record:
        return self.records[0]

    @cached_property
    def plain(self) -> Record | None:
        return next((record for record in self.records if record.engine == "plain"), None)

    def run(self, way: Record, network: str) -> Record | None:
        """Of the engine and transfers of ``way``."""
        return next((r for r in self.records if r.way == way.way and r.network["name"] == network), None)

    def any_run(self, way: Record) -> Record | None:
        """On any network, a measured one if there is one: bytes and depth do not depend on it."""
        runs = [record for record in self.records if record.way == way.way]
        return next((record for record in runs if record.measured), runs[0] if runs else None)


class Zoo:
    """``models``: by name. ``ways``: one record of each engine with its transfers, not of the plain engine; ``runs``:
    all of those."""

    def __init__(self, records: Sequence[Record]) -> None:
        ordered = words.ordered(records)
        names = sorted({record.model for record in ordered})
        self.models = [Model(name, tuple(r for r in ordered if r.model == name)) for name in names]
        self.runs = [record for record in ordered if record.engine != "plain"]
        self.ways = list({record.way: record for record in reversed(self.runs)}.values())[::-1]
        self.networks = words.networks(ordered)
        self.records = ordered

    def link(self, network: str) -> str:
        return next(words.link(record) for record in self.runs if record.network["name"] == network)

    @property
    def machine(self) -> str:
        about = max((record.about for record in self.records), key=lambda about: about.get("time", ""))
        revisions = sorted({record.about.get("revision", "") for record in self.records} - {""})
        text = (
            f"{about['processor']}, {about['cores']} cores, Python {about['python']}, torch {about['torch']}, privml "
        )
        return text + f"{about['privml']} ({', '.join(revisions)}), {about['time']}."


def per_row(record: Record) -> float:
    """Measured seconds for each row of the query."""
    return record.measured.seconds / record.rows


def bytes_bar(record: Record) -> list[Segment]:
    """Layers online in their order, then what was sent ahead; empty without a cost."""
    if record.cost is None or not record.cost.bytes:
        return []
    parts = [(family(layer.operator), layer.name, layer.bytes) for layer in record.layers if layer.bytes]
    shared = record.cost.online.bytes - sum(amount for _, _, amount in parts)
    phases = {INPUTS: shared, PREPARED: record.cost.preprocess.bytes, SETUP: record.cost.setup.bytes}
    parts += [(kind, FURTHER[kind], amount) for kind, amount in phases.items()]
    return _segments(parts, record.cost.bytes, words.size)


def time_bar(record: Record) -> list[Segment]:
    """The same of the measured time; what no layer or phase accounts for is work without messages."""
    if record.measured is None:
        return []
    parts = [(family(x.operator), x.name, x.seconds) for x in record.layers if x.bytes + x.prepared]
    cost = record.measured
    phases = {PREPARED: cost.preprocess.seconds, SETUP: cost.setup.seconds}
    parts += [(kind, FURTHER[kind], amount) for kind, amount in phases.items()]
    rest = cost.seconds - sum(amount for _, _, amount in parts)
    parts.append((LOCAL, FURTHER[LOCAL], max(rest, 0.0)))
    return _segments(parts, sum(amount for _, _, amount in parts), words.duration)


def _segments(parts: list[tuple[str, str, float]], whole: float, text: object) -> list[Segment]:
    parts = [part for part in parts if part[2] > 0]
    if len(parts) > MOST_SEGMENTS:
        kinds = {**FAMILIES, **FURTHER}
        sums = {kind: sum(amount for k, _, amount in parts if k == kind) for kind in kinds}
        parts = [(kind, kinds[kind], amount) for kind, amount in sums.items() if amount]
    return [Segment(kind, name, 100 * amount / whole, text(amount)) for kind, name, amount in parts]


def short(operator: str) -> str:
    """aten.conv2d.default -> conv2d"""
    return operator.removeprefix("aten.").removeprefix("privml.").split(".")[0]


def family(operator: str) -> str:
    """The family of an operator, by its name; PRODUCTS before the others, since baddbmm adds as well."""
    name = short(operator).removeprefix("_")
    for kind, stems in _OPERATORS.items():
        if any(name == stem or name.startswith((stem + "_", stem + "2d", stem + "1d")) for stem in stems):
            return kind
    starts = {"arg": COMPARISONS, "max": COMPARISONS, "min": COMPARISONS, "softmax": FUNCTIONS, "log": FUNCTIONS}
    return next((kind for start, kind in starts.items() if name.startswith(start)), OTHER)
