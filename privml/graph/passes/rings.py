# SPDX-License-Identifier: Apache-2.0
"""The ring of every value: wide enough for what calibration saw with a margin, and no wider.

Values that meet in one operator without a product share one ring; they form a group. A product leads to a new
group, and so does truncation.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import fx

from privml.errors import UnsupportedOperator
from privml.graph.ir import attribute, calls, source_line
from privml.graph.passes.kinds import (
    Kind,
    bias_of,
    bound_of,
    divisor_of,
    factor_of,
    factors,
    is_float,
    is_secret,
    summands,
    takes_differences,
)
from privml.graph.passes.ranges import NEVER, Range
from privml.graph.passes.row_bounds import Ends, ends_of_rows, largest_at
from privml.graph.passes.scales import Scales, bits_for, weight_of

aten = torch.ops.aten

# A node has two rings: that of its computation and that of its result.
Key = tuple[str, fx.Node | None]
FULL: Key = ("full", None)
# By so many bits a product is computed in a wider ring than it needs, for the next product's sake.
_STRETCH = 3


@dataclass(slots=True)
class Need:
    """Why a ring must have ``bits`` bits: ``seen`` (margin included) at ``layer``, with ``reserve`` bits to spare."""

    bits: int
    layer: str
    seen: float
    scale: int
    reserve: int


@dataclass(slots=True)
class Rings:
    """``bits`` of every end of every float secret. ``needs``: per group the need that decides;
    ``rows``: between which numbers values lie that come from tables alone."""

    parent: dict[Key, Key] = field(default_factory=dict)
    needs: dict[Key, Need] = field(default_factory=dict)
    bits: dict[Key, int] = field(default_factory=dict)
    rows: dict[fx.Node, Ends] = field(default_factory=dict)

    def find(self, key: Key) -> Key:
        while self.parent.setdefault(key, key) != key:
            key = self.parent[key]
        return key

    def join(self, a: Key, b: Key) -> None:
        a, b = self.find(a), self.find(b)
        if a == b:
            return
        if b == FULL:
            a, b = b, a
        self.parent[b] = a
        if b in self.needs:
            self.need(a, self.needs.pop(b))

    def need(self, key: Key, need: Need) -> None:
        root = self.find(key)
        if root not in self.needs or need.bits > self.needs[root].bits:
            self.needs[root] = need

    def of(self, key: Key) -> int:
        return self.bits[self.find(key)]

    def required(self, key: Key) -> int:
        need = self.needs.get(self.find(key))
        return 2 if need is None else need.bits


def assign_rings(
    module: fx.GraphModule, plan: Scales, ranges: dict[fx.Node, Range], full: int, margin: float, narrow: bool
) -> Rings:
    """Widths for the given scales; a width above ``full`` means that the value does not fit."""
    rings = Rings(rows=ends_of_rows(module, plan))
    rings.find(FULL)
    for node in module.graph.nodes:
        if node.op == "placeholder" and node in plan.scale:
            _require(
                rings,
                ("out", node),
                node,
                plan.scale[node],
                _seen(ranges, node) * _input_margin(plan, node, ranges, margin),
            )
    for node in calls(module.graph):
        if node in plan.kinds:
            _connect(rings, module, plan, ranges, node, margin)
    _settle(rings, plan, full, narrow)
    return rings


def _seen(ranges: dict[fx.Node, Range], node: fx.Node) -> float:
    return ranges[node].largest if node in ranges else 0.0


def _input_margin(plan: Scales, node: fx.Node, ranges: dict[fx.Node, Range], margin: float) -> float:
    """Inputs that come as exact numbers (pixels) have a fixed range and need no margin."""
    return 1.0 if node in ranges and ranges[node].grain == plan.scale[node] else margin


def _require(rings: Rings, key: Key, node: fx.Node, scale: int, largest: float, reserve: int = 0) -> None:
    layer = node.meta.get("layer", node.name)
    if not math.isfinite(largest):
        raise UnsupportedOperator(
            f"layer {layer!r} adds infinity to every element ({source_line(node) or 'source unknown'}), which no "
            "fixed-point number can be; hide some elements with torch.where or masked_fill, or add a finite number"
        )
    rings.need(key, Need(bits_for(largest, scale) + reserve, layer, largest, scale, reserve))


def _connect(
    rings: Rings, module: fx.GraphModule, plan: Scales, ranges: dict[fx.Node, Range], node: fx.Node, margin: float
) -> None:
    kind, reserve = plan.kinds[node], int(takes_differences(node))
    inside, outside = ("in", node), ("out", node)
    sources = [a for a in node.all_input_nodes if a in plan.scale]

    def reach(value: fx.Node) -> float:
        """What calibration saw, with the margin, and what comes from tables at the rows that it did not choose."""
        ends, found = rings.rows.get(value), _seen(ranges, value) * margin
        return found if ends is None else max(found, largest_at(ends, plan.scale[value]))

    seen = reach(node)
    if kind is Kind.PRODUCT:
        _require(rings, inside, node, plan.computed[node], seen + _bias_size(module, node))
    elif kind is Kind.SELECTION:
        _require(rings, inside, node, plan.computed[node], seen)
    elif kind is Kind.SCALED:
        factor, count = factor_of(node, module)
        divides = divisor_of(node, module) is not None
        _require(rings, inside, node, plan.computed[node], seen)
        if not divides:  # the whole part of the factor and one bit
            _require(rings, inside, node, 0, _size_of(factor, module), 1)
        for source in sources:
            if divides:  # in the ring of the sum, which must leave a bit free
                rings.join(inside, ("out", source))
                _require(rings, inside, node, plan.scale[source], seen * count + 2.0**-plan.working * count, 1)
            _require(rings, ("out", source), node, plan.scale[source], seen * count)
    elif kind in (Kind.CARRIER, Kind.STRUCTURAL, Kind.COMPARISON):
        for source in sources:
            rings.join(inside, ("out", source))
        scale = max([plan.scale[source] for source in sources], default=plan.working)
        largest = max([seen] + [reach(source) for source in sources])
        largest = max([largest] + [_size_of(a, module) for a in summands(node) if a not in sources])
        _require(rings, inside, node, scale, largest, reserve)
    elif kind is Kind.FUNCTION:
        for source in sources:
            rings.join(inside, ("out", source))
            _require(rings, inside, node, plan.scale[source], reach(source), reserve)
        if node in plan.scale:
            # one more for functions that reach their bound
            _require(rings, outside, node, plan.scale[node], min(seen, bound_of(node)) + 2.0 ** -plan.scale[node])
        return
    else:
        for source in sources:
            rings.join(FULL, ("out", source))
            # clamps, selections and similar operators compare it
            _require(rings, ("out", source), node, plan.scale[source], reach(source), 1)
        if node in plan.scale:
            rings.join(FULL, outside)
            _require(rings, outside, node, plan.scale[node], seen)
        return
    if node not in plan.scale:
        return
    if plan.truncates(node):
        _require(rings, outside, node, plan.scale[node], seen)
    else:
        rings.join(inside, outside)


def _bias_size(module: fx.GraphModule, node: fx.Node) -> float:
    """The product before its bias must fit too: an engine may look at it."""
    bias = weight_of(bias_of(node))
    return 0.0 if bias is None else _size_of(bias, module)


def _size_of(value: Any, module: fx.GraphModule) -> float:
    if isinstance(value, fx.Node):
        if value.op != "get_attr" or not is_float(value):
            return 0.0
        public, value = not is_secret(value), attribute(module, value.target)
        value = value[value > NEVER] if public else value  # what a public mask hides takes no room
    if isinstance(value, torch.Tensor):
        value = value.detach()
        finite = value[torch.isfinite(value)].abs()
        return float(finite.max()) if finite.numel() else 0.0
    return abs(float(value)) if isinstance(value, (int, float)) else 0.0


def _settle(rings: Rings, plan: Scales, full: int, narrow: bool) -> None:
    for root in {rings.find(key) for key in list(rings.parent)}:
        wide = root == rings.find(FULL) or not narrow
        rings.bits[root] = max(full, rings.required(root)) if wide else rings.required(root)
    if not narrow:
        return
    consumers = _consumers(rings, plan)
    grows = any(node.meta.get("grows") for node in plan.scale)
    for _ in range(2 if grows else 1):  # again for products that have become wider
        _keep_for_products(rings, plan, consumers)
        _fit_products(rings, plan, consumers)
    for node, kind in plan.kinds.items():
        root = rings.find(("out", node))
        if kind is Kind.FUNCTION and node in plan.scale and root != rings.find(FULL):
            # The last step of a function gives a larger ring for little, where a product would have to compare.
            _meet_products(rings, root, consumers)


def _meet_products(rings: Rings, root: Key, consumers: dict[Key, list[fx.Node]]) -> None:
    """Widens a group to the ring of the matrix products that read it."""
    products = [user for user in consumers.get(root, ()) if user.target is not aten.mul.Tensor]
    rings.bits[root] = max([rings.bits[root], *(rings.of(("in", user)) for user in products)])


def _fit_products(rings: Rings, plan: Scales, consumers: dict[Key, list[fx.Node]]) -> None:
    for node, kind in plan.kinds.items():
        if node not in plan.scale:
            continue
        if plan.truncates(node) and rings.find(("out", node)) != rings.find(FULL):
            _fit_to_consumers(rings, plan, node, consumers)
        for operand in factors(node) if kind is Kind.PRODUCT else ():
            # A product's ring holds its shared operands.
            if operand in plan.kinds and weight_of(operand) is None:
                inside = rings.find(("in", node))
                rings.bits[inside] = max(rings.bits[inside], rings.of(("out", operand)))


def _consumers(rings: Rings, plan: Scales) -> dict[Key, list[fx.Node]]:
    """The products that want the values of a group in their own ring. Elementwise products take operands of any
    widths: what functions read as well stays narrow for them."""
    read = {rings.find(("in", node)) for node, kind in plan.kinds.items() if kind is Kind.FUNCTION}
    result: dict[Key, list[fx.Node]] = {}
    for node, kind in plan.kinds.items():
        if kind is Kind.PRODUCT:
            for operand in factors(node):
                if is_secret(operand) and operand in plan.scale:
                    root = rings.find(("out", operand))
                    if node.target is not aten.mul.Tensor or root not in read:
                        result.setdefault(root, []).append(node)
    return result


def _keep_for_products(rings: Rings, plan: Scales, consumers: dict[Key, list[fx.Node]]) -> None:
    """State that grows is kept in the ring of the products that read all of it in every call, and what is appended to
    it is computed there."""
    kept = {rings.find(("out", node)) for node in plan.scale if node.meta.get("grows")} - {rings.find(FULL)}
    for root in kept:
        _meet_products(rings, root, consumers)
    for node, kind in plan.kinds.items():
        root, inside = rings.find(("out", node)), rings.find(("in", node))
        if kind is Kind.PRODUCT and node in plan.scale and root in kept:
            rings.bits[inside] = max(rings.bits[inside], rings.bits[root])


def _fit_to_consumers(rings: Rings, plan: Scales, node: fx.Node, consumers: dict[Key, list[fx.Node]]) -> None:
    """Truncation can end in any smaller ring: in that of the next product if it is hardly wider than the present
    one (nothing is extended then), else in the smallest (truncate-and-reduce), to be extended by the product."""
    root, inside = rings.find(("out", node)), rings.find(("in", node))
    wanted = max([rings.of(("in", user)) for user in consumers.get(root, ())], default=0)
    if inside != rings.find(FULL) and rings.bits[inside] < wanted <= rings.bits[inside] + _STRETCH:
        rings.bits[inside] = wanted
    before = rings.bits[inside]
    shift = plan.computed[node] - plan.scale[node]
    rings.bits[root] = max(rings.bits[root], wanted if wanted <= before else before - shift)
