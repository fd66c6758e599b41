# SPDX-License-Identifier: Apache-2.0
"""Secret masks: in place of minus infinity, a number so low that what it hides has no effect.

A public mask leaves elements out exactly (``privml.ops.masks``). Of a secret one nobody knows which elements it hides,
so they take part, with a score of -C, or lowered by C. Let the scores that are shown lie in [-R, R], and exponentials
have at most 30 fractional bits. For C >= 2 R + 24 every hidden score is at least 24 > 32 log(2) below any shown one of
its row, so its exponential is below 2^-32 and rounds to zero: no sum and no average changes by a unit. R is ``margin``
times what calibration saw. In a row that is hidden altogether nothing is left to compare with: it is as if nothing were
hidden there.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import Any

import torch
from torch import fx

from privml.graph.ir import calls, copy_meta
from privml.graph.passes.ranges import NEVER, Range, calibrate

aten = torch.ops.aten

# 32 log(2), rounded up, and what rounding to a fixed-point format may take away.
_VANISHES = 24.0
# Operators that choose by their first or second operand, and those that multiply by a number.
_CHOICES = {
    aten.where.self: 0, aten.where.ScalarOther: 0, aten.where.ScalarSelf: 0, aten.where.Scalar: 0,
    aten.masked_fill.Scalar: 1, aten.masked_fill.Tensor: 1,
}  # fmt: skip
_PRODUCTS = (aten.mul.Tensor, aten.mul.Scalar)


def bound_masks(module: fx.GraphModule, data: Sequence[torch.Tensor], margin: float) -> fx.GraphModule:
    """Rewrites what secret masks hide with; ``data``: one batch of example values per input, which tells R."""
    sources = [node for node in calls(module.graph) if _may_hide(node)]
    if not sources:
        return module
    ranges, _ = calibrate(module, data)
    for node in sources:
        if node in ranges and ranges[node].hides:
            reach = margin * max(ranges[n].largest for n in _carriers(node, ranges))
            _lower(module.graph, node, 2.0 ** math.ceil(math.log2(2 * reach + _VANISHES)), ranges)
    module.graph.lint()
    module.recompile()
    return module


def _secret(value: Any) -> bool:
    return isinstance(value, fx.Node) and bool(value.meta.get("secret"))


def _never(value: Any) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool) and value <= NEVER


def _may_hide(node: fx.Node) -> bool:
    """Whether a secret chooses here between public numbers or tensors of reals and something else."""
    if node.target in _PRODUCTS:
        return _secret(node) and any(_secret(a) for a in node.args) and any(_never(a) for a in node.args)
    place = _CHOICES.get(node.target)
    return place is not None and _secret(node.args[place]) and any(not _secret(a) for a in _values(node))


def _values(node: fx.Node) -> list[Any]:
    """What a choice is made between, or the factors."""
    place = _CHOICES.get(node.target)
    return [a for i, a in enumerate(node.args) if i != place]


def _carriers(node: fx.Node, ranges: dict[fx.Node, Range]) -> Iterator[fx.Node]:
    """``node`` and the values after it in which the same elements are hidden."""
    seen, waiting = {node}, [node]
    while waiting:
        current = waiting.pop()
        yield current
        for user in current.users:
            if user not in seen and user in ranges and ranges[user].hides:
                seen.add(user)
                waiting.append(user)


def _lower(graph: fx.Graph, node: fx.Node, size: float, ranges: dict[fx.Node, Range]) -> None:
    """Puts -size in the place of the numbers that mean minus infinity."""
    for place, value in enumerate(node.args):
        if place == _CHOICES.get(node.target) or _secret(value):
            continue
        if _never(value):
            node.update_arg(place, -size)
        elif isinstance(value, fx.Node) and value in ranges and ranges[value].hides:
            with graph.inserting_before(node):
                lowered = copy_meta(graph.call_function(aten.clamp.default, (value, -size)), value)
            lowered.meta["secret"] = False
            node.update_arg(place, lowered)
