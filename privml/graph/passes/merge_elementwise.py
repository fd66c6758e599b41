# SPDX-License-Identifier: Apache-2.0
"""Independent elementwise operations of one kind become one on the concatenation of their operands."""

from __future__ import annotations

import operator
from typing import Any

import torch
from torch import fx

from privml.graph.ir import attribute, tensor_of
from privml.graph.passes.kinds import SUMS, is_float, is_secret
from privml.graph.passes.rewriting import (
    groups,
    is_from_input,
    new_call,
    new_split,
    new_weight,
    replace_all,
    shape_key,
    tidy,
)

aten = torch.ops.aten

_FUNCTIONS = {
    aten.elu.default, aten.erf.default, aten.exp.default, aten.gelu.default, aten.hardsigmoid.default,
    aten.hardtanh.default, aten.log.default, aten.reciprocal.default, aten.relu.default, aten.rsqrt.default,
    aten.sigmoid.default, aten.silu.default, aten.softplus.default, aten.sqrt.default, aten.tanh.default,
}  # fmt: skip
_OF_TWO = {aten.mul.Tensor, aten.add.Tensor, aten.sub.Tensor, aten.rsub.Tensor}


def merge_elementwise(module: fx.GraphModule) -> fx.GraphModule:
    """f(a), f(b) becomes the parts of f(cat(a, b)); products and sums likewise. Changes and returns ``module``.

    Only what has the same protocols and sums before it is merged, which keeps the critical path as long as it was:
    the gates of a recurrent step, both directions of a layer, heads and branches. Weights are concatenated at once.
    """
    weights: dict[tuple[str, ...], fx.Node] = {}
    for members in groups(module, _key):
        first = members[0]
        count = 2 if first.target in _OF_TWO else 1
        operands = [_joined(module, [m.args[i] for m in members], first, weights) for i in range(count)]
        sizes = [tensor_of(m).shape[-1] for m in members]
        shape = (*tensor_of(first).shape[:-1], sum(sizes))
        merged = new_call(first, first.target, (*operands, *first.args[count:]), shape, first)
        merged.kwargs = dict(first.kwargs)
        replace_all(members, new_split(first, merged, sizes))
    return tidy(module)


def _key(node: fx.Node) -> Any:
    if not is_float(node) or not tensor_of(node).dim() or not isinstance(tensor_of(node).shape[-1], int):
        return None
    settings = (node.target, tensor_of(node).dtype, str(node.kwargs), shape_key(tensor_of(node).shape[:-1]))
    if node.target in _FUNCTIONS:
        return (*settings, str(node.args[1:])) if is_from_input(node.args[0]) else None
    if node.target not in _OF_TWO or (node.target in SUMS and node.kwargs) or len(node.args) != 2:
        return None
    kinds = [_operand_kind(operand, node) for operand in node.args]
    return None if None in kinds or node.args[0] is node.args[1] else (*settings, *kinds)


def _operand_kind(operand: Any, node: fx.Node) -> Any:
    """What operands of one position must have in common; None for what cannot be concatenated."""
    if not is_secret(operand) or not is_float(operand):
        return None
    shape, whole = tensor_of(operand).shape, tensor_of(node).shape
    if not len(shape) or str(shape[-1]) != str(whole[-1]):
        return None
    owner = "weight" if operand.op == "get_attr" else "shared" if is_from_input(operand) else "owned"
    return owner, shape_key(shape[:-1])


def _joined(module: fx.GraphModule, parts: list[fx.Node], before: fx.Node, weights: dict[Any, fx.Node]) -> fx.Node:
    """The concatenation along the last dimension; of weights a new weight, of all parts of a split what was split."""
    if parts[0].op == "get_attr":
        names = tuple(part.target for part in parts)
        if names not in weights:
            value = torch.cat([attribute(module, name).detach() for name in names], -1)
            weights[names] = new_weight(module, _front(module), f"{names[0]}_and_others", value)
        return weights[names]
    whole = _undone(parts)
    if whole is not None:
        return whole
    shape = (*tensor_of(parts[0]).shape[:-1], sum(tensor_of(part).shape[-1] for part in parts))
    return new_call(before, aten.cat.default, (parts, -1), shape, parts[0])


def _front(module: fx.GraphModule) -> fx.Node:
    return next(iter(module.graph.nodes))


def _undone(parts: list[fx.Node]) -> fx.Node | None:
    if any(part.target is not operator.getitem or part.args[1] != i for i, part in enumerate(parts)):
        return None
    split = parts[0].args[0]
    whole = all(part.args[0] is split for part in parts) and split.target is aten.split_with_sizes.default
    if not whole or len(split.args[1]) != len(parts) or (split.args[2:] or (0,))[0] != -1:
        return None
    return split.args[0]
