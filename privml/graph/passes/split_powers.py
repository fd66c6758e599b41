# SPDX-License-Identifier: Apache-2.0
"""Powers with negative or half exponents as a root or reciprocal and a product: each has a format of its own."""

from __future__ import annotations

import torch
from torch import fx

from privml.graph.ir import calls, tensor_of
from privml.graph.passes.kinds import is_float, is_secret
from privml.graph.passes.rewriting import new_call, replace_all, tidy

aten = torch.ops.aten


def split_powers(module: fx.GraphModule) -> fx.GraphModule:
    """x^-n = (1/x)^n, x^-(n + 1/2) = rsqrt(x)^(2 n + 1), x^(n + 1/2) = x^n sqrt(x), for n >= 1. Changes and returns
    ``module``."""
    powers = [node for node in calls(module.graph) if node.target is aten.pow.Tensor_Scalar and is_secret(node)]
    for node in powers:
        if is_float(node) and is_float(node.args[0]):
            made = _parts(node, float(node.args[1]))
            if made is not None:
                replace_all([node], [made])
    return tidy(module)


def _parts(node: fx.Node, exponent: float) -> fx.Node | None:
    whole, half = divmod(abs(exponent), 1)
    if whole == 0 or half not in (0, 0.5) or half == 0 and (exponent > 0 or whole == 1):
        return None
    x = node.args[0]
    if exponent > 0:
        left = x if whole == 1 else _call(node, aten.pow.Tensor_Scalar, x, int(whole))
        return _call(node, aten.mul.Tensor, left, _call(node, aten.sqrt.default, x))
    if half == 0:
        return _call(node, aten.pow.Tensor_Scalar, _call(node, aten.reciprocal.default, x), int(whole))
    return _call(node, aten.pow.Tensor_Scalar, _call(node, aten.rsqrt.default, x), int(2 * whole + 1))


def _call(node: fx.Node, target: object, *args: object) -> fx.Node:
    return new_call(node, target, args, tensor_of(node).shape, node)
