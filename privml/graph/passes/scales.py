# SPDX-License-Identifier: Apache-2.0
"""The scale of every value, the width of every weight, and the nodes at which results are truncated.

A product of scales a and b has scale a + b. It is not truncated at once: maxima, ReLU, sums and views work at any
scale, so truncation waits until a value is about to be multiplied again, where pooling has left fewer values and
ReLU has made them nonnegative, which makes it cheaper. Results of the graph are never truncated.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import fx

from privml.formats import FixedPoint
from privml.graph.ir import attribute, calls, extremes_of
from privml.graph.passes.kinds import (
    SUMS,
    Kind,
    bias_of,
    divisor_of,
    factor_of,
    factor_shift,
    factors,
    is_float,
    is_secret,
    kind_of,
)
from privml.graph.passes.ranges import FINEST, Range
from privml.ops.choices import ONE_HOT_ROWS

# Weights are recognized through these.
WEIGHT_VIEWS = (
    torch.ops.aten.t.default, torch.ops.aten.transpose.int, torch.ops.aten.permute.default,
    torch.ops.aten.reshape.default, torch.ops.aten.unsqueeze.default, ONE_HOT_ROWS,
)  # fmt: skip
# Of a product: formats have scales below 64.
LARGEST_SCALE = 62


@dataclass(slots=True)
class Scales:
    """``computed``: scale at which a node computes its result; ``scale``: scale it hands on (smaller if it
    truncates). ``weights``: formats of get_attr nodes. Float secrets only."""

    working: int
    kinds: dict[fx.Node, Kind] = field(default_factory=dict)
    computed: dict[fx.Node, int] = field(default_factory=dict)
    scale: dict[fx.Node, int] = field(default_factory=dict)
    weights: dict[fx.Node, FixedPoint] = field(default_factory=dict)

    def truncates(self, node: fx.Node) -> bool:
        return self.computed[node] > self.scale[node]


def assign_scales(
    module: fx.GraphModule,
    ranges: dict[fx.Node, Range],
    scale: int,
    weight_bits: int,
    limits: dict[fx.Node, int],
    eager: set[fx.Node],
) -> Scales:
    """Scales for activations of ``scale`` fractional bits and weights of at most ``weight_bits`` bits; ``limits``
    bounds the scales of weights in products, ``eager`` nodes truncate without waiting."""
    plan = Scales(scale)
    for node in calls(module.graph):
        if is_secret(node):
            plan.kinds[node] = kind_of(node, module)
    for node in module.graph.nodes:
        if node.op == "placeholder" and is_float(node):
            grain = ranges[node].grain if node in ranges else None
            # Values such as pixels stay exact; values off a coarse grid keep the activations' precision.
            plan.computed[node] = plan.scale[node] = scale if grain is None else max(grain, scale)
        elif node in plan.kinds and is_float(node):
            _assign(plan, module, node, weight_bits, limits, eager)
    for node in module.graph.nodes:
        if node.op == "get_attr" and is_secret(node) and node not in plan.weights:
            plan.weights[node] = weight_format(node, module, 64, scale)
    return plan


def _assign(
    plan: Scales,
    module: fx.GraphModule,
    node: fx.Node,
    weight_bits: int,
    limits: dict[fx.Node, int],
    eager: set[fx.Node],
) -> None:
    kind, scale = plan.kinds[node], plan.working
    if kind is Kind.PRODUCT:
        computed = 0
        for operand in factors(node):
            weight = weight_of(operand)
            if weight is not None and weight not in plan.weights:
                limit = limits.get(weight, LARGEST_SCALE - max(scale, FINEST))
                plan.weights[weight] = weight_format(weight, module, weight_bits, limit)
            computed += operand_scale(plan, operand)
        bias = weight_of(bias_of(node))
        if bias is not None and bias not in plan.weights:
            plan.weights[bias] = weight_format(bias, module, 64, computed)
    elif kind is Kind.SCALED:
        factor, _ = factor_of(node, module)
        shift = 0 if divisor_of(node, module) else factor_shift(factor, scale, 62)
        x = next(a for a in node.args if is_secret(a))
        carried = plan.scale.get(x, scale)
        computed = (carried if keeps_scale(node, module) else min(carried, scale)) + shift
    elif kind is Kind.SELECTION:
        weight = weight_of(node.args[1])
        if weight is not None and weight not in plan.weights:
            plan.weights[weight] = weight_format(weight, module, 64, scale)
        computed = operand_scale(plan, node.args[1])
    elif kind in (Kind.CARRIER, Kind.STRUCTURAL):
        given = [plan.scale[a] for a in node.all_input_nodes if a in plan.scale]
        computed = max(given, default=scale)
        for weight in node.all_input_nodes:
            if weight.op == "get_attr" and is_secret(weight) and weight not in plan.weights:
                plan.weights[weight] = weight_format(weight, module, 64, computed)
    else:
        computed = scale
    plan.computed[node] = computed
    can_truncate = kind in (Kind.PRODUCT, Kind.SCALED, Kind.CARRIER)
    # A factor such as 1/49 takes many bits; carrying them on would only widen the rings that follow.
    at_once = node in eager or (kind is Kind.SCALED and not keeps_scale(node, module))
    if can_truncate and computed > scale and (at_once or is_multiplied(node, plan, module)):
        plan.scale[node] = scale
    else:
        plan.scale[node] = computed


def early_products(plan: Scales) -> set[fx.Node]:
    """Products that are better truncated before they are added to what is truncated already than after: the sum then
    lies in a narrow ring, and a product whose parts go into several sums (the input's part of a recurrent layer,
    hoisted) is truncated once."""
    found: set[fx.Node] = set()
    weights = _of_weights(plan)
    for node in plan.kinds:
        if node.target in SUMS and node in plan.scale and plan.truncates(node):
            operands = [a for a in node.args[:2] if a in plan.scale and a.op != "get_attr" and a not in weights]
            fine = [a for a in operands if plan.scale[a] > plan.working]
            sources = {s for a in fine for s in _sources(a, plan)}
            if len(fine) < len(operands) and len(sources) == 1:
                found |= sources
    return found


def _of_weights(plan: Scales) -> set[fx.Node]:
    """Calls on weights alone."""
    found: set[fx.Node] = set()
    for node in plan.kinds:  # after its operands
        if all(a.op == "get_attr" or a in found for a in node.all_input_nodes if is_secret(a)):
            found.add(node)
    return found


def _sources(value: fx.Node, plan: Scales) -> set[fx.Node]:
    """The untruncated products that a value consists of, looking through views."""
    kind = plan.kinds.get(value)
    if kind is Kind.STRUCTURAL:
        return {s for a in value.all_input_nodes for s in _sources(a, plan)}
    return {value} if kind is Kind.PRODUCT and not plan.truncates(value) else set()


def operand_scale(plan: Scales, operand: fx.Node) -> int:
    weight = weight_of(operand)
    return plan.weights[weight].scale if weight is not None else plan.scale[operand]


def weight_of(value: Any) -> fx.Node | None:
    """The weight behind an operand, looking through views; None if it is no weight."""
    while isinstance(value, fx.Node) and is_secret(value):
        if value.op == "get_attr":
            return value
        views = value.op == "call_function" and len(value.all_input_nodes) == 1
        if not views or value.target not in WEIGHT_VIEWS:
            return None
        value = value.args[0]
    return None


def keeps_scale(node: fx.Node, module: fx.GraphModule) -> bool:
    """Whether a SCALED call takes operands of any scale: it divides, or its factor is a power of two."""
    if divisor_of(node, module):
        return True
    factor, _ = factor_of(node, module)
    return not isinstance(factor, torch.Tensor) and abs(math.frexp(factor)[0]) == 0.5


def is_multiplied(node: fx.Node, plan: Scales, module: fx.GraphModule) -> bool:
    """Whether some user, looking through views, needs the working scale."""
    for user in node.users:
        kind = plan.kinds.get(user) or (kind_of(user, module) if is_secret(user) and user.op != "output" else None)
        if kind is Kind.STRUCTURAL:
            if is_multiplied(user, plan, module):
                return True
        elif kind is Kind.PRODUCT:
            if any(node is operand for operand in factors(user)):
                return True
        elif kind in (Kind.FUNCTION, Kind.OTHER) or (kind is Kind.SCALED and not keeps_scale(user, module)):
            return True
    return False


def weight_format(node: fx.Node, module: fx.GraphModule, bits: int, limit: int) -> FixedPoint:
    """The largest scale up to ``limit`` at which a weight fits ``bits`` bits, and just the bits it needs then; whole
    numbers from 0 on (choices, labels) need no fraction."""
    value = attribute(module, node.target)
    low, high = extremes_of(node, value)
    largest = max(-low, high)
    if 0 < largest < 2.0 ** (bits - 1) and low >= 0 and torch.equal(value, value.round()):
        return FixedPoint(bits_for(largest, 0), 0, nonnegative=True)
    room = bits - 2 if largest == 0 else math.floor(math.log2(2.0 ** (bits - 1) / largest))
    scale = max(0, min(room, limit))
    if scale and bits_for(largest, scale) > bits:
        scale -= 1
    return FixedPoint(bits_for(largest, scale), scale)


def bits_for(largest: float, scale: int) -> int:
    """Width of the two's complement that holds values up to ``largest`` at ``scale``, rounded either way."""
    return max(2, math.ceil(largest * 2.0**scale).bit_length() + 1)
