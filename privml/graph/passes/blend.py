# SPDX-License-Identifier: Apache-2.0
"""z a + (1 - z) b = b + z (a - b): one product instead of two, as gated cells written by hand have them."""

from __future__ import annotations

from typing import Any

import torch
from torch import fx

from privml.graph.ir import calls, copy_meta, tensor_of
from privml.graph.passes.kinds import is_float, is_secret
from privml.graph.passes.rewriting import replace_all, shape_key, tidy

aten = torch.ops.aten


def blend(module: fx.GraphModule) -> fx.GraphModule:
    """Changes and returns ``module``; products that something else uses as well stay."""
    for node in list(calls(module.graph)):
        if node.target is aten.add.Tensor and not node.kwargs and is_float(node):
            for one, other in (node.args[:2], node.args[1::-1]):
                found = _parts(one, other, node)
                if found is not None:
                    _rewrite(node, *found)
                    break
    return tidy(module)


def _parts(one: Any, other: Any, total: fx.Node) -> tuple[fx.Node, fx.Node, fx.Node] | None:
    """(z, a, b) if ``one`` is z a and ``other`` is (1 - z) b, all of one shape."""
    for product in (one, other):
        if not is_secret(product) or product.target is not aten.mul.Tensor or len(product.users) != 1:
            return None
    for rest, b in (other.args[:2], other.args[1::-1]):
        z = _one_minus(rest)
        for gate, a in (one.args[:2], one.args[1::-1]):
            if z is not None and gate is z and all(_alike(t, total) for t in (z, a, b)):
                return z, a, b
    return None


def _one_minus(value: Any) -> fx.Node | None:
    """z if ``value`` is 1 - z."""
    if not is_secret(value) or value.kwargs:
        return None
    if value.target in (aten.rsub.Scalar, aten.rsub.Tensor):
        z, one = value.args[:2]
    elif value.target is aten.sub.Tensor:
        one, z = value.args[:2]
    else:
        return None
    return z if isinstance(one, (int, float)) and one == 1 and is_secret(z) else None


def _alike(value: Any, total: fx.Node) -> bool:
    return is_secret(value) and shape_key(tensor_of(value).shape) == shape_key(tensor_of(total).shape)


def _rewrite(node: fx.Node, z: fx.Node, a: fx.Node, b: fx.Node) -> None:
    graph = node.graph
    with graph.inserting_before(node):
        difference = copy_meta(graph.call_function(aten.sub.Tensor, (a, b)), node)
        product = copy_meta(graph.call_function(aten.mul.Tensor, (difference, z)), node)
        result = copy_meta(graph.call_function(aten.add.Tensor, (product, b)), node)
    replace_all([node], [result])
