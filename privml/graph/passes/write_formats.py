# SPDX-License-Identifier: Apache-2.0
"""Writes the formats of one candidate precision into a graph."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import torch
from torch import fx

from privml.errors import OverflowDetected
from privml.formats import Boolean, FixedPoint, Integer
from privml.graph.ir import tensor_of
from privml.graph.passes.float_layers import named_floats, write_floats
from privml.graph.passes.kinds import Kind, factors, is_secret
from privml.graph.passes.precision import Headroom, Precision
from privml.graph.passes.ranges import Range
from privml.graph.passes.rings import Rings, assign_rings
from privml.graph.passes.scales import Scales, assign_scales, early_products, operand_scale, weight_of


def write_formats(module: fx.GraphModule, ranges: dict[fx.Node, Range], precision: Precision) -> tuple[Rings, Scales]:
    """``format``, ``request`` and ``working`` of every secret node, for a precision with bits, scale and weight_bits.

    OverflowDetected, which names the layer, where a value does not fit the rings."""
    limits: dict[fx.Node, int] = {}
    eager: set[fx.Node] = set()
    for _ in range(64):
        plan = assign_scales(module, ranges, precision.scale, precision.weight_bits, limits, eager)
        while not early_products(plan) <= eager:
            eager |= early_products(plan)
            plan = assign_scales(module, ranges, precision.scale, precision.weight_bits, limits, eager)
        rings = assign_rings(module, plan, ranges, precision.bits, precision.margin, precision.narrow)
        over = [root for root, bits in rings.bits.items() if bits > precision.bits]
        if not over:
            _annotate(module, plan, rings, ranges, precision)
            return rings, plan
        if not _truncate_earlier(plan, rings, over, eager) and not _lower_weights(plan, rings, over, limits):
            break
    need = max((rings.needs[root] for root in over if root in rings.needs), key=lambda n: n.bits)
    raise OverflowDetected(
        f"layer {need.layer!r}: values up to {need.seen:g} (with margin {precision.margin:g}) at scale {need.scale} "
        f"need {need.bits} bits, the ring has {precision.bits}; use numerics bits=64, a smaller scale, or scale the "
        "model's inputs"
    )


def _truncate_earlier(plan: Scales, rings: Rings, over: list[Any], eager: set[fx.Node]) -> bool:
    """Ends the wait of products that lead, untruncated, to values too large for the ring; False if there are none."""
    before = len(eager)
    for node, kind in plan.kinds.items():
        if kind is not Kind.PRODUCT and rings.find(("in", node)) in over:
            waiting = [node]
            while waiting:
                source = waiting.pop()
                if plan.kinds.get(source) is Kind.PRODUCT:
                    eager.add(source)
                elif source in plan.kinds and (source is node or not plan.truncates(source)):
                    waiting += [a for a in source.all_input_nodes if plan.scale.get(a, 0) > plan.working]
    return len(eager) > before


def _lower_weights(plan: Scales, rings: Rings, over: list[Any], limits: dict[fx.Node, int]) -> bool:
    """One fractional bit less for the weights whose products are too large; False when nothing is left to lower."""
    lowered = False
    for node, kind in plan.kinds.items():
        if kind is Kind.PRODUCT and rings.find(("in", node)) in over:
            for operand in factors(node):
                weight = weight_of(operand)
                if weight is not None and plan.weights[weight].scale > 3:
                    limits[weight] = plan.weights[weight].scale - 1
                    lowered = True
    return lowered


def _annotate(
    module: fx.GraphModule, plan: Scales, rings: Rings, ranges: dict[fx.Node, Range], precision: Precision
) -> None:
    for node in module.graph.nodes:
        for key in ("format", "request", "working", "fixed"):
            node.meta.pop(key, None)
        if not is_secret(node) or node.op == "output":
            continue
        tensor = tensor_of(node)
        if node.op == "get_attr":
            node.meta["format"] = plan.weights[node]
        elif not tensor.dtype.is_floating_point:
            node.meta["format"] = Boolean() if tensor.dtype is torch.bool else Integer(precision.bits)
        elif node.op == "placeholder":
            known = ranges[node]
            positive = known.grain is not None and not known.negative
            bits = rings.of(("out", node))
            node.meta["format"] = FixedPoint(min(bits, precision.bits), plan.scale[node], nonnegative=positive)
        else:
            node.meta["format"] = FixedPoint(rings.of(("out", node)), plan.scale[node])
            _request(node, plan, rings, precision)
            if precision.bounds == "calibrated" and "request" in node.meta and not ranges[node].hides:
                node.meta["request"] = _bounded(node.meta["request"], ranges[node].largest * precision.margin)

    write_floats(named_floats(module, precision.layers or {}))


def _request(node: fx.Node, plan: Scales, rings: Rings, precision: Precision) -> None:
    """What the rule is asked for: the ring to compute in (``working``) and the result's format (``request``)."""
    kind = plan.kinds[node]
    if kind is Kind.PRODUCT:
        scale = max(operand_scale(plan, operand) for operand in factors(node))
        node.meta["working"] = FixedPoint(rings.of(("in", node)), scale)
        node.meta["request"] = node.meta["format"]
    elif kind is Kind.SCALED:
        node.meta["working"] = FixedPoint(rings.of(("in", node)), plan.working)
        node.meta["request"] = node.meta["format"]
    elif kind is Kind.SELECTION:
        node.meta["working"] = node.meta["format"]
    elif kind is Kind.CARRIER and plan.truncates(node):
        node.meta["request"] = node.meta["format"]
    elif kind is Kind.FUNCTION:
        # The ring may be wider than its values, for the sake of products that read them too.
        needed = max(rings.required(("in", node)), plan.working + 3)
        bits = min(rings.of(("in", node)), needed if precision.narrow else precision.bits, precision.bits)
        node.meta["working"] = FixedPoint(bits, plan.working)
        node.meta["request"] = node.meta["format"]
    elif kind is Kind.OTHER:
        node.meta["working"] = FixedPoint(precision.bits, plan.working)


def _bounded(fmt: FixedPoint, largest: float) -> FixedPoint:
    """The format with the bound of a value whose magnitude is at most ``largest``."""
    bound = math.ceil(largest * 2**fmt.scale) + 1
    return fmt if bound >> (fmt.bits - 1) else replace(fmt, bound=bound)


def headroom_report(rings: Rings, plan: Scales, ranges: dict[fx.Node, Range], margin: float) -> tuple[Headroom, ...]:
    rows = []
    for node in plan.kinds:
        root = rings.find(("in", node))
        need = rings.needs.get(root)
        if need is None or need.layer != node.meta.get("layer", node.name):
            continue
        bits = rings.bits[root]
        limit = 2.0 ** (bits - 1 - need.reserve - need.scale)
        seen = need.seen / margin
        room = math.log2(limit / seen) if seen else math.inf
        rows.append(Headroom(need.layer, bits, need.scale, seen, limit, round(room, 2)))
    return tuple(rows)
