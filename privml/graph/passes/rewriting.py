# SPDX-License-Identifier: Apache-2.0
"""Helpers of the passes: new weights and calls, and groups of calls that do not depend on each other."""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import fx

from privml.graph.ir import calls, set_attribute, tensor_of
from privml.graph.passes.kinds import DIFFERENCES, STRUCTURAL, SUMS, is_secret

aten = torch.ops.aten

# (protocols run before, sums since the last one, 0 for calls that may be merged and 1 for views)
Slot = tuple[int, int, int]
_LOCAL = (STRUCTURAL - DIFFERENCES) | {aten.sum.dim_IntList, aten.sum.default}
_SCALINGS = (aten.mul.Tensor, aten.mul.Scalar)


# ---- new nodes
def new_weight(module: fx.GraphModule, before: fx.Node, name: str, value: torch.Tensor) -> fx.Node:
    """A secret attribute called ``name`` or, if that is taken, a similar name, read in front of ``before``."""
    taken = {node.target for node in module.graph.nodes if node.op == "get_attr"}
    while name in taken:
        name += "_"
    set_attribute(module, name, value)
    with module.graph.inserting_before(before):
        node = module.graph.get_attr(name)
    node.meta.update(val=value.to("meta"), secret=True, input=False)
    return node


def new_call(before: fx.Node, target: Callable, args: Sequence[Any], shape: Any, like: fx.Node) -> fx.Node:
    """A call on secrets in front of ``before``, with the type, layer and origin of ``like``; ``shape`` is a list of
    shapes for a call with several results."""
    with before.graph.inserting_before(before):
        node = before.graph.call_function(target, tuple(args))
    node.meta = {k: v for k, v in like.meta.items() if k in ("layer", "stack_trace")}
    node.meta.update(secret=True, input=True)
    example = tensor_of(like)
    several = isinstance(shape, list)
    node.meta["val"] = [example.new_empty(s) for s in shape] if several else example.new_empty(tuple(shape))
    return node


def new_split(before: fx.Node, whole: fx.Node, sizes: Sequence[int]) -> list[fx.Node]:
    """``whole`` in parts of these sizes along its last dimension."""
    shapes = [(*tensor_of(whole).shape[:-1], size) for size in sizes]
    parts = new_call(before, aten.split_with_sizes.default, (whole, list(sizes), -1), shapes, whole)
    return [new_call(before, operator.getitem, (parts, i), shape, whole) for i, shape in enumerate(shapes)]


def replace_all(nodes: Sequence[fx.Node], by: Sequence[fx.Node]) -> None:
    """Puts one node in the place of another, for several at once."""
    for node, other in zip(nodes, by, strict=True):
        node.replace_all_uses_with(other)
    for node in nodes:
        node.graph.erase_node(node)


def tidy(module: fx.GraphModule) -> fx.GraphModule:
    """``module`` without the nodes and weights that nothing uses any more."""
    module.graph.eliminate_dead_code()
    module.delete_all_unused_submodules()
    module.graph.lint()
    module.recompile()
    return module


# ---- which calls may be merged
def shape_key(shape: Sequence[Any]) -> tuple[str, ...]:
    """Shapes as something to compare; sizes that vary count as equal when they are the same symbol."""
    return tuple(map(str, shape))


def groups(module: fx.GraphModule, key: Callable[[fx.Node], Any]) -> list[list[fx.Node]]:
    """Calls of equal ``key`` (None: never merged) and equal slot, two or more each, so that one call could take the
    place of the first. If there are any, the graph's nodes are put into the order of their slots."""
    places = _slots(module.graph)
    found: dict[Any, list[fx.Node]] = {}
    for node in calls(module.graph):
        kind = key(node) if places[node][2] == 0 else None
        if kind is not None:
            found.setdefault((places[node], kind), []).append(node)
    several = [members for members in found.values() if len(members) > 1]
    if several:
        _sort(module.graph, places)
    return sorted(several, key=lambda members: places[members[0]])


def _slots(graph: fx.Graph) -> dict[fx.Node, Slot]:
    """The earliest slot of every node; calls of one slot that ends in 0 do not depend on each other."""
    result: dict[fx.Node, Slot] = {}
    for node in graph.nodes:
        parents = node.all_input_nodes
        inputs = any(parent.meta["input"] and is_secret(parent) for parent in parents)
        node.meta["input"] = inputs or node.op == "placeholder"
        level, sums, _ = max((result[parent] for parent in parents), default=(0, 0, 0))
        if node.op != "call_function" or not inputs or not is_secret(node) or _is_local(node):
            result[node] = (level, sums, 1)
        elif node.target in SUMS:
            result[node] = (level, sums + 1, 0)
        else:
            result[node] = (level + 1, 0, 0)
    return result


def is_from_input(node: Any) -> bool:
    """Whether a secret is no function of weights alone; to be asked within ``groups``."""
    return is_secret(node) and node.meta["input"]


def _is_local(node: fx.Node) -> bool:
    if node.target in _SCALINGS:
        factors = [a for a in node.args if not is_secret(a)]
        return len(factors) == 1 and isinstance(factors[0], (int, float)) and float(factors[0]).is_integer()
    return node.target in _LOCAL


def _sort(graph: fx.Graph, places: dict[fx.Node, Slot]) -> None:
    first = [node for node in graph.nodes if node.op in ("placeholder", "get_attr")]
    rest = [node for node in graph.nodes if node.op == "call_function"]
    ordered = first + sorted(rest, key=places.__getitem__)
    for before, node in zip(ordered, ordered[1:], strict=False):
        before.append(node)
