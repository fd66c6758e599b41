# SPDX-License-Identifier: Apache-2.0
"""Computes at conversion what depends only on weights, and removes operations on public zeros."""

from __future__ import annotations

import operator
from typing import Any

import torch
from torch import fx

from privml.graph.ir import attribute, calls, copy_meta, tensor_of
from privml.graph.passes.kinds import is_float, is_secret
from privml.graph.passes.rewriting import new_weight, replace_all, tidy
from privml.graph.passes.scales import WEIGHT_VIEWS

aten = torch.ops.aten

_ZEROS = (aten.zeros.default, aten.zeros_like.default, aten.new_zeros.default)
_ZERO_VIEWS = (
    aten.select.int, aten.slice.Tensor, aten.unsqueeze.default, aten.squeeze.dim, aten.reshape.default,
    aten.expand.default, aten.transpose.int, aten.permute.default, aten.unbind.int, aten.chunk.default,
    aten.split_with_sizes.default, aten.split.Tensor, operator.getitem,
)  # fmt: skip


def fold_weights(module: fx.GraphModule) -> fx.GraphModule:
    """Sums, slices and concatenations of weights become weights. Changes and returns ``module``."""
    values: dict[fx.Node, Any] = {}
    for node in module.graph.nodes:
        if node.op == "get_attr" and is_secret(node):
            values[node] = attribute(module, node.target).detach()
        elif node.op == "call_function" and _is_known(node, values):
            args, kwargs = fx.map_arg((node.args, node.kwargs), values.__getitem__)
            values[node] = node.target(*args, **kwargs)
    for node in list(values):
        needed = [user for user in node.users if user not in values]
        if not needed or _is_view_of_weight(node) or not isinstance(values[node], torch.Tensor):
            continue
        name = f"{_origin(node).target}_{node.name}"
        weight = new_weight(module, node, name, values[node].contiguous().clone())
        for user in needed:
            user.replace_input_with(node, weight)
    return tidy(module)


def _is_known(node: fx.Node, values: dict[fx.Node, Any]) -> bool:
    if not is_secret(node) or not node.all_input_nodes or not all(a in values for a in node.all_input_nodes):
        return False
    return node.target is operator.getitem or is_float(node)


def _is_view_of_weight(node: fx.Node) -> bool:
    while node.op == "call_function" and node.target in WEIGHT_VIEWS:
        node = node.args[0]
    return node.op == "get_attr"


def _origin(node: fx.Node) -> fx.Node:
    while node.op != "get_attr":
        node = node.all_input_nodes[0]
    return node


def fold_zeros(module: fx.GraphModule) -> fx.GraphModule:
    """Products with and sums of public zeros, such as states that start at zero, are not computed. Changes and
    returns ``module``."""
    zeros: set[fx.Node] = set()
    for node in list(calls(module.graph)):
        if not is_float(node):
            continue
        if _is_zero(node, zeros):
            zeros.add(node)
        elif is_secret(node):
            _simplify(node, zeros)
    return tidy(module)


def _is_zero(node: fx.Node, zeros: set[fx.Node]) -> bool:
    return node.target in _ZEROS or (node.target in _ZERO_VIEWS and node.args[0] in zeros)


def _simplify(node: fx.Node, zeros: set[fx.Node]) -> None:
    a, b = (*node.args, None, None)[:2]
    if node.target is aten.addmm.default and b in zeros and not node.kwargs:
        _only_bias(node, b, a)
        return
    if node.target in (aten.add.Tensor, aten.sub.Tensor) and not node.kwargs and (a in zeros or b in zeros):
        other = b if a in zeros else a
        if not _same(other, node):
            return
        if node.target is aten.sub.Tensor and a in zeros:
            with node.graph.inserting_before(node):
                other = copy_meta(node.graph.call_function(aten.neg.default, (other,)), node)
        replace_all([node], [other])
    elif node.target is aten.mul.Tensor and (a in zeros or b in zeros):
        zero = a if a in zeros else b
        if _same(zero, node):
            replace_all([node], [zero])
            zeros.add(zero)
    elif node.target in (aten.linear.default, aten.mm.default) and a in zeros:
        result = _only_bias(node, a, (*node.args, None)[2] if node.target is aten.linear.default else None)
        if not is_secret(result):
            zeros.add(result)


def _same(operand: Any, node: fx.Node) -> bool:
    """Whether an operand has the shape and type of the result."""
    x = tensor_of(operand) if isinstance(operand, fx.Node) else None
    y = tensor_of(node)
    return x is not None and x.dtype == y.dtype and list(map(str, x.shape)) == list(map(str, y.shape))


def _only_bias(node: fx.Node, zero: fx.Node, bias: fx.Node | None) -> fx.Node:
    """A product with zero is its bias in every row."""
    graph, like = node.graph, tensor_of(node)
    with graph.inserting_before(node):
        sizes = [
            size if isinstance(size, int) else graph.call_function(aten.sym_size.int, (zero, i))
            for i, size in enumerate(like.shape)
        ]
        if bias is None:
            result = graph.call_function(aten.zeros.default, (sizes,), {"dtype": like.dtype})
        else:
            result = graph.call_function(aten.expand.default, (bias, sizes))
    copy_meta(result, node)
    result.meta["secret"] = bias is not None
    replace_all([node], [result])
    return result
