# SPDX-License-Identifier: Apache-2.0
"""Between which numbers values lie that come from rows of tables alone, whichever rows are chosen.

Calibration may have chosen none of the rows with the largest numbers, and other weights may take the place of a
program's. Therefore the ends follow from the tables' formats, which every weight is checked against when it is shared.
"""

from __future__ import annotations

import math
from typing import Any

import torch
from torch import fx

from privml.graph.ir import attribute, calls, extremes_of, shape_of
from privml.graph.passes.kinds import STRUCTURAL, SUMS, Kind, factor_of, is_float, is_secret
from privml.graph.passes.scales import Scales
from privml.ops.choices import ONE_HOT_ROWS, SELECT_OF_EACH, SELECT_ROWS
from privml.ops.ring_formats import interval

aten = torch.ops.aten
Ends = tuple[float, float]
_REVERSED = {aten.rsub.Tensor, aten.rsub.Scalar}
_DIFFERENCES = {aten.sub.Tensor, aten.sub.Scalar}
_TOTALS = {aten.sum.dim_IntList, aten.sum.default}
_MAXIMA = {aten.max_pool1d.default, aten.max_pool2d.default, aten.max_pool3d.default}
# Of a public factor at least so many bits are kept.
_FACTOR_BITS = 21


def ends_of_rows(module: fx.GraphModule, plan: Scales) -> dict[fx.Node, Ends]:
    """The smallest and largest number that the formats of tables allow, of every value that comes from them alone."""
    found: dict[fx.Node, Ends] = {}
    for node in calls(module.graph):  # after its operands
        if node in plan.kinds and is_float(node):
            ends = _ends(node, module, plan, found)
            if ends is not None:
                found[node] = ends
    return found


def largest_at(ends: Ends, scale: int) -> float:
    """The largest magnitude that a ring must hold for values between ``ends``: two's complement has room for one
    negative number more."""
    return max(ends[1], -ends[0] - 2.0**-scale)


def _ends(node: fx.Node, module: fx.GraphModule, plan: Scales, found: dict[fx.Node, Ends]) -> Ends | None:
    target, args = node.target, node.args

    def of(*values: Any) -> Ends | None:
        return _hull([_ends_of(value, module, plan, found) for value in values])

    if target is aten.embedding.default:
        return of(args[0])
    if target in (SELECT_ROWS, SELECT_OF_EACH):
        return of(args[1]) if args[0].target is ONE_HOT_ROWS else None
    if target in SUMS:
        a, b = of(args[0]), of(args[1])
        factor = node.kwargs.get("alpha", args[2] if len(args) > 2 else 1)
        if a is None or b is None or not isinstance(factor, (int, float)):
            return None
        if target in _REVERSED:
            return _sum(b, _times(a, -factor, -factor))
        factor = -factor if target in _DIFFERENCES else factor
        return _sum(a, _times(b, factor, factor))
    if target in _TOTALS:
        count, ends = _summed(node), of(args[0])
        return None if count is None or ends is None else (ends[0] * count, ends[1] * count)
    if plan.kinds[node] is Kind.SCALED:
        ends = of(next(value for value in args if is_secret(value)))
        return None if ends is None else _scaled(node, ends, module, plan)
    if target is aten.neg.default:
        ends = of(args[0])
        return None if ends is None else _times(ends, -1.0, -1.0)
    if target is aten.relu.default:
        ends = of(args[0])
        return None if ends is None else (max(ends[0], 0.0), max(ends[1], 0.0))
    if target is aten.where.self:
        return of(*args[1:])
    if target is aten.constant_pad_nd.default:
        return of(args[0], args[2] if len(args) > 2 else 0.0)
    if target in STRUCTURAL or target in _MAXIMA:
        return of(*(value for value in node.all_input_nodes if is_float(value)))
    return None


def _ends_of(value: Any, module: fx.GraphModule, plan: Scales, found: dict[fx.Node, Ends]) -> Ends | None:
    """Of an operand; None if it does not come from weights and public numbers alone."""
    if isinstance(value, (bool, int, float)):
        return (float(value), float(value)) if math.isfinite(value) else None
    if not isinstance(value, fx.Node) or not is_float(value):
        return None
    if value.op != "get_attr":
        return found.get(value)
    if is_secret(value):
        fmt = plan.weights[value]
        low, high = interval(fmt)
        return low * 2.0**-fmt.scale, high * 2.0**-fmt.scale
    low, high = extremes_of(value, attribute(module, value.target))
    return (low, high) if math.isfinite(high - low) else None


def _scaled(node: fx.Node, ends: Ends, module: fx.GraphModule, plan: Scales) -> Ends:
    """Times a public factor, or divided by a count of which as many were summed; either is rounded."""
    factor, count = factor_of(node, module)
    factors = factor.double() if isinstance(factor, torch.Tensor) else torch.tensor(float(factor), dtype=torch.float64)
    low, high = _times(ends, float(factors.min()) * count, float(factors.max()) * count)
    rounding = max(-low, high) * 2.0**-_FACTOR_BITS + 2.0 ** -plan.scale[node]
    return low - rounding, high + rounding


def _summed(node: fx.Node) -> int | None:
    """How many numbers a total adds up; None if that depends on an input's size."""
    sizes = shape_of(node.args[0])
    dims = node.args[1] if len(node.args) > 1 and node.args[1] else range(len(sizes))
    chosen = [sizes[dim] for dim in dims]
    return None if None in chosen else math.prod(chosen)


def _hull(parts: list[Ends | None]) -> Ends | None:
    known = [part for part in parts if part is not None]
    if not known or len(known) < len(parts):
        return None
    return min(low for low, _ in known), max(high for _, high in known)


def _sum(a: Ends, b: Ends) -> Ends:
    return a[0] + b[0], a[1] + b[1]


def _times(ends: Ends, low: float, high: float) -> Ends:
    products = [end * factor for end in ends for factor in (low, high)]
    return min(products), max(products)
