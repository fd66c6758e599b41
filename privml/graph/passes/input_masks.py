# SPDX-License-Identifier: Apache-2.0
"""Masks that inputs decide, and ranges of what they may hide, whatever the masks of the calibration data do.

A mask chooses between values and a constant (``where``, ``masked_fill``), or is multiplied by a large number and added.
Rows in which it happens to hide nothing say nothing of that constant. So the graph also runs with masks that hide
nothing, everything, and places at random, from the nodes on where masks act; ranges are widened by what is seen there.
Of a mask that the calibration data give one value all over nothing is known, so there the whole graph runs with such
bits: whatever is computed from them has room.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import fx

from privml.errors import UnsupportedOperator
from privml.graph.ir import attribute, attributes_of, calls, dtype_of, placeholders, source_line, tensor_of
from privml.graph.passes.kinds import is_float, is_secret
from privml.graph.passes.ranges import NEVER, Observer, Range, chunks, hold
from privml.graph.run import Run, run_graph

aten = torch.ops.aten

# A mask hides with numbers of at least this size; smaller ones are values like others.
HIDING = 1e3
# The place of the condition among the operands.
CONDITIONS = {
    aten.where.self: 0, aten.where.ScalarOther: 0, aten.where.ScalarSelf: 0, aten.where.Scalar: 0,
    aten.masked_fill.Scalar: 1, aten.masked_fill.Tensor: 1,
}  # fmt: skip
PRODUCTS = {aten.mul.Tensor, aten.mul.Scalar}
_SUMS = {aten.add.Tensor, aten.add.Scalar}
# Of these a weight may be an operand beside a mask: the constants of an ONNX file are weights.
_ARITHMETIC = {*PRODUCTS, *_SUMS, aten.sub.Tensor, aten.rsub.Tensor, aten.div.Tensor}
# Set by ``mark`` on nodes at which a mask acts; passes keep these nodes. Of one with a constant of usual size it is
# supposed that the constant comes in other places too, not that what it replaces does.
MARK, HIDES = "mask", "hides"
# What the places of a mask are taken for: all 0, all 1, at random, and the opposite of that.
_CASES = (0.0, 1.0, 0.5, -0.5)
_BATCHES = 2


@dataclass(frozen=True, slots=True)
class Masks:
    """``sources``: nodes at which masks act; ``bases``: the bits that masks are computed from; ``parts``: what is
    computed from these alone on the way to a source; ``free``: bits that inputs give or that come of comparing whole
    numbers of inputs, with nothing known beside them that would make them what they are."""

    sources: frozenset[fx.Node]
    bases: frozenset[fx.Node]
    parts: frozenset[fx.Node]
    free: frozenset[fx.Node]


def mark(module: fx.GraphModule, data: Sequence[torch.Tensor]) -> list[fx.Node]:
    """Marks the nodes at which masks of inputs act, secret or public ones, and returns them. ``data``: one batch of
    example values per input.

    UnsupportedOperator for the logarithm of a mask."""
    bits = _bits(module, data)
    for node in calls(module.graph):
        size = _chosen(node, module, bits) or _multiplied(node, module, bits) or _logarithm(node, bits)
        if size:
            node.meta.update({MARK: True, HIDES: size >= HIDING})
    return [node for node in calls(module.graph) if node.meta.get(MARK)]


def widen(module: fx.GraphModule, data: Sequence[torch.Tensor], ranges: dict[fx.Node, Range]) -> dict[fx.Node, Range]:
    """``ranges`` with what masks may do at the marked nodes. ``data``: one batch per input, of which some rows do."""
    masks = _masks(module, _bits(module, data))
    if not masks.sources and not masks.free:
        return ranges
    observer = Observer({node: replace(known) for node, known in ranges.items()}, strict=False)
    attributes = attributes_of(module)
    for part in chunks(placeholders(module.graph), data)[:_BATCHES]:
        for case in _CASES:
            supposing = _Supposing(masks, case, observer)
            try:
                run_graph(module.graph, part, attributes, scheduler=supposing)
            except (IndexError, RuntimeError):  # no row has such bits: an index that is computed from them is none
                acted = replace(masks, free=frozenset())
                run_graph(module.graph, part, attributes, scheduler=_Supposing(acted, case, observer))
            if not supposing.acted:  # other cases compute the same
                break
    hold(module.graph, observer.ranges)
    return observer.ranges


def free_bits(module: fx.GraphModule, data: Sequence[torch.Tensor]) -> frozenset[fx.Node]:
    """Bits that inputs give, or that come of comparing whole numbers of them; see ``Masks``."""
    return _masks(module, _bits(module, data)).free


def is_constant(value: torch.Tensor) -> bool:
    """Whether all numbers of a tensor, which has some, are one."""
    return bool(value.numel()) and bool((value == value.flatten()[0]).all())


def acting(node: fx.Node) -> list[fx.Node]:
    """Operands that say where ``node`` hides, or may."""
    place = CONDITIONS.get(node.target)
    operands = node.args if place is None else node.args[place : place + 1]
    return [a for a in operands if isinstance(a, fx.Node)]


def is_known(value: Any) -> bool:
    """Whether an operand is a constant: public, or a weight."""
    return not is_secret(value) or value.op == "get_attr"


def is_infinite(value: Any) -> bool:
    """Whether a number means infinity: there is no use for one of this size but to hide."""
    return isinstance(value, (int, float)) and not isinstance(value, bool) and abs(value) >= -NEVER


# ---- where masks act
def _bits(module: fx.GraphModule, data: Sequence[torch.Tensor]) -> dict[fx.Node, bool]:
    """The values that are bits or are computed from bits of inputs alone; True for those that are where it starts:
    inputs of zeros and ones, and comparisons of anything else."""
    found: dict[fx.Node, bool] = {}
    varying = set(placeholders(module.graph))
    for node, values in zip(placeholders(module.graph), data, strict=True):
        if bool(((values == 0) | (values == 1)).all()):
            found[node] = True
    for node in calls(module.graph):
        if tensor_of(node) is None:
            continue
        operands = [a for a in node.all_input_nodes if a in varying or is_secret(a)]
        masks = [a for a in operands if not (a.op == "get_attr" and node.target in _ARITHMETIC)]
        if operands:
            varying.add(node)
        if masks and all(a in found for a in masks):
            found[node] = False
        elif operands and dtype_of(node) is torch.bool:
            found[node] = True
    return found


def _chosen(node: fx.Node, module: fx.GraphModule, bits: dict[fx.Node, bool]) -> float:
    """The size of the constant, if a mask chooses between that and something else. One of usual size counts where the
    choice does not depend on weights, as masks do not."""
    place = CONDITIONS.get(node.target)
    if place is None or not is_float(node) or node.args[place] not in bits:
        return 0.0
    size = max((size_of(a, module) for i, a in enumerate(node.args) if i != place and is_known(a)), default=0.0)
    return size if size >= HIDING or not _depends_on_weights(node.args[place]) else 0.0


def _multiplied(node: fx.Node, module: fx.GraphModule, bits: dict[fx.Node, bool]) -> float:
    """The size of the number, if it is large and bits of a mask are multiplied by it."""
    if node.target not in PRODUCTS or not is_float(node) or len(node.args) != 2:
        return 0.0
    for mask, number in (node.args, node.args[::-1]):
        if isinstance(mask, fx.Node) and mask in bits and is_known(number) and size_of(number, module) >= HIDING:
            return size_of(number, module)
    return 0.0


def _logarithm(node: fx.Node, bits: dict[fx.Node, bool]) -> float:
    """``HIDING`` for the logarithm of a mask plus a number, which is large where that is small."""
    if node.target is not aten.log.default or node.args[0] not in bits:
        return 0.0
    if is_secret(node) and node.args[0].target not in _SUMS:
        raise UnsupportedOperator(
            f"layer {node.meta.get('layer', node.name)!r} takes the logarithm of a secret mask "
            f"({source_line(node) or 'source unknown'}), which is minus infinity where it hides; write "
            "torch.where(mask > 0, scores, -torch.inf)"
        )
    return HIDING


def size_of(value: Any, module: fx.GraphModule) -> float:
    """The largest magnitude of a constant; zero for public values that are not known before a run."""
    if isinstance(value, fx.Node):
        known = _constant(value, module)
        return 0.0 if known is None or not known.numel() else float(known.double().abs().nan_to_num().max())
    return abs(float(value)) if isinstance(value, (int, float)) else 0.0


def _constant(node: fx.Node, module: fx.GraphModule) -> torch.Tensor | None:
    """The values of a constant; of one that is filled in each run, its number."""
    if node.op == "get_attr":
        return attribute(module, node.target).detach()
    if node.target in (aten.full.default, aten.scalar_tensor.default, aten.full_like.default):
        number = node.args[0 if node.target is aten.scalar_tensor.default else 1]
        return torch.tensor(float(number), dtype=torch.float64) if isinstance(number, (int, float)) else None
    if node.op == "call_function" and not is_secret(node):
        known = [_constant(a, module) for a in node.all_input_nodes if is_float(a)]
        sizes = [float(k.double().abs().nan_to_num().max()) for k in known if k is not None and k.numel()]
        return torch.tensor(max(sizes), dtype=torch.float64) if sizes else None
    return None


def _depends_on_weights(node: fx.Node) -> bool:
    seen, waiting = {node}, [node]
    while waiting:
        current = waiting.pop()
        if current.op == "get_attr" and is_secret(current):
            return True
        fresh = [a for a in current.all_input_nodes if a not in seen]
        seen.update(fresh)
        waiting += fresh
    return False


def _masks(module: fx.GraphModule, bits: dict[fx.Node, bool]) -> Masks:
    sources = frozenset(node for node in calls(module.graph) if node.meta.get(MARK))
    seen: set[fx.Node] = set()
    waiting = [a for node in sources for a in acting(node) if a in bits]
    while waiting:
        current = waiting.pop()
        if current not in seen:
            seen.add(current)
            waiting += [] if bits[current] else [a for a in current.all_input_nodes if a in bits]
    bases = frozenset(node for node in seen if bits[node])
    free = frozenset(node for node, begins in bits.items() if begins and _is_free(node))
    return Masks(sources, bases, frozenset(seen) - bases, free)


def _is_free(node: fx.Node) -> bool:
    if node.op == "placeholder":
        return not node.meta.get("held")
    return not any(is_float(a) for a in node.all_input_nodes) and not _depends_on_weights(node)


# ---- runs with other masks
class _Supposing:
    """Scheduler: one node after another, where masks act with bits of which ``case`` says what they are."""

    def __init__(self, masks: Masks, case: float, observe: Callable[[fx.Node, Any], None]) -> None:
        self.masks, self.case, self.observe = masks, case, observe
        self.acted = bool(masks.sources)  # whether a run could find other values than without masks
        self.random = torch.Generator().manual_seed(0)

    @torch.no_grad()
    def __call__(self, run: Run) -> None:
        masks, supposed = self.masks, {}
        for node in run.graph.nodes:
            if node.op == "output":
                continue
            changed = _computed(node, supposed, run) if node in masks.parts or node in masks.sources else None
            value = run.compute(node) if node.op == "call_function" else run.values[node]
            if node in masks.free and is_constant(value):
                value = run.values[node] = self._bits(value)
                self.acted = True
                if node in masks.bases:
                    supposed[node] = value
            elif node in masks.bases:
                supposed[node] = self._bits(value)
            elif node in masks.parts:
                supposed[node] = changed
                self.observe(node, changed)
            if node in masks.sources:
                value = changed
                if node.users:
                    run.values[node] = value
            self.observe(node, value)

    def _bits(self, like: torch.Tensor) -> torch.Tensor:
        """Bits in the shape and dtype of ``like``, at random the same ones in both cases of that."""
        if self.case in (0.0, 1.0):
            return torch.full_like(like, self.case)
        drawn = torch.rand(like.shape, generator=self.random) < 0.5
        return (drawn if self.case > 0 else ~drawn).to(like.dtype)


def _computed(node: fx.Node, supposed: dict[fx.Node, Any], run: Run) -> Any:
    """A node's value with supposed bits in what it is computed from."""
    args, kwargs = fx.map_arg((node.args, node.kwargs), lambda a: supposed[a] if a in supposed else run.values[a])
    place = CONDITIONS.get(node.target)
    if place is not None and not node.meta.get(HIDES):
        args = list(args)
        before, after = run.values[node.args[place]], args[place]
        if place == 1 or is_known(node.args[1]):  # what is chosen where the bit is 1
            args[place] = after if place == 0 and is_known(node.args[2]) else before | after
        else:
            args[place] = before & after
    return node.target(*args, **kwargs)
