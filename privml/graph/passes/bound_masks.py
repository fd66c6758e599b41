# SPDX-License-Identifier: Apache-2.0
"""Secret masks: in place of infinity, a number so large that what it hides has no effect.

A public mask leaves elements out exactly (``privml.ops.masks``). No party knows which elements a secret one hides,
so they take part, with a score of -C, or lowered by C. Let the scores that are shown lie in [-R, R], and exponentials
have at most 30 fractional bits. For C >= 2 R + 24 every hidden score is at least 24 > 32 log(2) below any shown one of
its row, so its exponential is below 2^-32 and rounds to zero: no sum and no average changes by a unit. R is ``margin``
times what calibration saw, also with masks that hide nothing. In a row that is hidden altogether nothing is left to
compare with: it is as if nothing were hidden there.

A mask that hides nothing in the calibration data is treated in the same way: what may hide is found in the graph, not
in values.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

import torch
from torch import fx

from privml.errors import UnsupportedOperator
from privml.graph.ir import calls, copy_meta, source_line
from privml.graph.passes.input_masks import CONDITIONS, HIDING, acting, is_infinite, mark, size_of, widen
from privml.graph.passes.kinds import COMPARISONS, DIFFERENCES, STRUCTURAL, is_float, is_secret
from privml.graph.passes.ranges import FAR, Range, calibrate, infinite_output

aten = torch.ops.aten

# 32 log(2), rounded up, and what rounding to a fixed-point format may take away.
_VANISHES = 24.0
_SUMS = (aten.add.Tensor, aten.sub.Tensor)
_QUOTIENTS = (aten.div.Tensor, aten.div.Scalar)
# What hides an element in an operand hides it in the result.
_ELEMENTWISE = {
    *_SUMS, aten.rsub.Tensor, aten.rsub.Scalar, aten.add.Scalar, aten.sub.Scalar, aten.mul.Tensor, aten.mul.Scalar,
    *_QUOTIENTS, aten.neg.default, aten.clamp.default, aten.clone.default,
    aten._log_softmax.default, aten.log_softmax.int, *CONDITIONS, *STRUCTURAL - DIFFERENCES,
}  # fmt: skip


def bound_masks(module: fx.GraphModule, data: Sequence[torch.Tensor], margin: float) -> fx.GraphModule:
    """Rewrites what secret masks hide with; ``data``: one batch of example values per input, which tells R.

    UnsupportedOperator where infinity does more than hide, so that no number can stand for it."""
    _write_factors(module.graph)
    sources = mark(module, data)
    if not sources:
        return module
    ranges, _ = calibrate(module, data)
    secret = [node for node in sources if any(is_secret(a) for a in acting(node))]
    places = [place for node in secret for place in _infinities(module.graph, node, ranges)]
    for node, place, sign in places:
        _put(node, place, sign, FAR)
    ranges = widen(module, data, ranges)
    for node in sources:
        _require_finite_outputs(node, ranges)
    for node, place, sign in places:
        _put(node, place, sign, _size(module, _source(node), ranges, margin))
    module.graph.lint()
    module.recompile()
    return module


def _write_factors(graph: fx.Graph) -> None:
    """a + c b, of which c is large, as a sum and a product, and b / c, of which c is small, as a product."""
    for node in list(calls(graph)):
        factor = node.kwargs.get("alpha", 1)
        if node.target in _SUMS and is_float(node) and abs(factor) >= HIDING and is_secret(node.args[1]):
            with graph.inserting_before(node):
                product = copy_meta(graph.call_function(aten.mul.Tensor, (node.args[1], factor)), node.args[1])
            node.args, node.kwargs = (node.args[0], product), {}
        elif node.target in _QUOTIENTS and is_secret(node.args[0]) and not node.kwargs:
            number = node.args[1]
            if isinstance(number, float) and 0 < abs(number) <= 1 / HIDING:
                node.target, node.args = aten.mul.Tensor, (node.args[0], 1 / number)


# ---- the numbers that mean infinity
def _infinities(graph: fx.Graph, node: fx.Node, ranges: dict[fx.Node, Range]) -> list[tuple[fx.Node, int, float]]:
    """Where a mask has infinity, or what stands for it: (node, place among its operands, sign). A public tensor in
    which some elements are infinite gets limits, which take its place."""
    found = []
    for place, value in enumerate(node.args):
        if place == CONDITIONS.get(node.target) or is_secret(value):
            continue
        if is_infinite(value):
            found.append((node, place, math.copysign(1.0, value)))
        elif isinstance(value, fx.Node) and value in ranges and ranges[value].hides:
            with graph.inserting_before(node):
                limited = copy_meta(graph.call_function(aten.clamp.default, (value, -FAR, FAR)), value)
            limited.meta["secret"] = False
            node.update_arg(place, limited)
            found += [(limited, 1, -1.0), (limited, 2, 1.0)]
    return found


def _put(node: fx.Node, place: int, sign: float, size: float) -> None:
    node.update_arg(place, sign * size)


def _source(node: fx.Node) -> fx.Node:
    """The node at which a mask acts, of itself or of the limits of its operand."""
    return node if is_secret(node) else next(iter(node.users))


def _size(module: fx.GraphModule, source: fx.Node, ranges: dict[fx.Node, Range], margin: float) -> float:
    """C of one mask: enough for all values in which it hides elements, by what is left of ``FAR`` there."""
    carriers = {n: min(ranges[n].far / FAR, 1.0) for n in _carriers(source, ranges)}
    needed = max(((2 * margin * ranges[n].largest + _VANISHES) / left for n, left in carriers.items()), default=1.0)
    size = 2.0 ** math.ceil(math.log2(needed * (1 - 1e-5)))
    for node, left in carriers.items():
        for user in node.users:
            _require_that_it_hides_only(module, node, user, size * left / 2)
    return size


def _carriers(node: fx.Node, ranges: dict[fx.Node, Range]) -> Iterator[fx.Node]:
    """``node`` and the values after it in which the same elements are hidden."""
    seen, waiting = {node}, [node]
    while waiting:
        current = waiting.pop()
        if current in ranges and ranges[current].hides:
            yield current
            fresh = [user for user in current.users if user not in seen and user.target in _ELEMENTWISE]
            seen.update(fresh)
            waiting += fresh


def _require_finite_outputs(source: fx.Node, ranges: dict[fx.Node, Range]) -> None:
    for node in _carriers(source, ranges):
        if is_secret(node) and any(user.op == "output" for user in node.users):
            raise infinite_output(source_line(node))


def _require_that_it_hides_only(module: fx.GraphModule, node: fx.Node, user: fx.Node, most: float) -> None:
    """Comparisons must find of a finite number what they find of infinity."""
    limit = max((size_of(a, module) for a in user.args if not is_secret(a)), default=0.0)
    if user.target in COMPARISONS and limit >= most:
        line = source_line(user) or source_line(node) or "source unknown"
        raise UnsupportedOperator(
            f"layer {user.meta.get('layer', user.name)!r} compares what a secret mask hides with {limit:g} ({line}), "
            "but a smaller number stands for infinity there; compute the condition from the mask itself"
        )
