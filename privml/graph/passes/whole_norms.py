# SPDX-License-Identifier: Apache-2.0
"""Layer and root mean square norms that a model writes out are computed as the whole operators.

Step by step, the square of a small value at the scale of activations keeps hardly a bit. The whole operator keeps as
many bits of it as its largest possible value leaves, and takes one inverse root where the steps take a root and a
quotient.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import fx

from privml.graph.ir import calls, copy_meta, tensor_of
from privml.graph.passes.kinds import is_float, is_secret
from privml.graph.passes.rewriting import tidy

aten = torch.ops.aten

_SUMS = (aten.add.Tensor, aten.add.Scalar)


def whole_norms(module: fx.GraphModule) -> fx.GraphModule:
    """x / sqrt(mean(x^2) + eps) over the last dimensions, also with x = y - mean(y), as one operator without weights.
    Changes and returns ``module``."""
    for node in list(calls(module.graph)):
        if is_secret(node) and is_float(node):
            found = _norm(node)
            if found is not None:
                x, dims, eps = found
                _replace(node, x, dims, eps)
    return tidy(module)


def _replace(node: fx.Node, x: fx.Node, dims: int, eps: float) -> None:
    source = _uncentered(x, dims)
    whole = source if source is not None else x
    shape = list(tensor_of(whole).shape[-dims:])
    with node.graph.inserting_before(node):
        if source is not None:
            norm = node.graph.call_function(aten.layer_norm.default, (source, shape, None, None, eps))
        else:
            norm = node.graph.call_function(aten.rms_norm.default, (x, shape, None, eps))
    node.replace_all_uses_with(copy_meta(norm, node))


def _norm(node: fx.Node) -> tuple[fx.Node, int, float] | None:
    """(x, number of dimensions, eps) if ``node`` is x / sqrt(mean(x^2) + eps)."""
    if node.target is aten.mul.Tensor:
        pairs = (node.args[:2], node.args[1::-1])
        wanted = ((aten.rsqrt.default, None), (aten.pow.Tensor_Scalar, -0.5), (aten.reciprocal.default, None))
    elif node.target is aten.div.Tensor and not node.kwargs:
        pairs = (node.args[:2],)
        wanted = ((aten.sqrt.default, None), (aten.pow.Tensor_Scalar, 0.5))
    else:
        return None
    for x, root in pairs:
        raised = _operand(root, wanted)
        if raised is not None and raised.target is aten.sqrt.default and root.target is aten.reciprocal.default:
            raised = raised.args[0]
        elif raised is not None and root.target is aten.reciprocal.default:
            raised = None
        found = None if raised is None or not is_secret(x) else _mean_of_squares(raised, x)
        if found is not None:
            return x, *found
    return None


def _operand(value: Any, wanted: Any) -> fx.Node | None:
    """What one of the ``wanted`` functions, (operator, second argument), is applied to."""
    if is_secret(value):
        for target, second in wanted:
            if value.target is target and (second is None or value.args[1] == second):
                return value.args[0]
    return None


def _mean_of_squares(raised: fx.Node, x: fx.Node) -> tuple[int, float] | None:
    """(number of dimensions, eps) if ``raised`` is mean(x^2) + eps, or the variance of what x is centered from."""
    if raised.target not in _SUMS or raised.kwargs or not isinstance(raised.args[1], (int, float)):
        return None
    mean, eps = raised.args
    if not is_secret(mean) or eps <= 0:
        return None
    if mean.target is aten.var.correction:
        dims = _last(mean.args[0], mean.args[1] if len(mean.args) > 1 else None)
        biased = mean.kwargs.get("correction", 1) == 0 and mean.kwargs.get("keepdim") is True
        same = dims is not None and _uncentered(x, dims) is mean.args[0]
        return (dims, float(eps)) if biased and same else None
    if mean.target is not aten.mean.dim or len(mean.args) < 3 or mean.args[2] is not True:
        return None
    square = mean.args[0]
    powers = is_secret(square) and square.target is aten.pow.Tensor_Scalar and square.args == (x, 2)
    product = is_secret(square) and square.target is aten.mul.Tensor and square.args == (x, x)
    dims = _last(x, mean.args[1]) if powers or product else None
    return None if dims is None else (dims, float(eps))


def _uncentered(x: fx.Node, dims: int) -> fx.Node | None:
    """y if ``x`` is y - mean(y) over the last ``dims`` dimensions."""
    if x.target is not aten.sub.Tensor or x.kwargs or not all(is_secret(a) for a in x.args):
        return None
    y, mean = x.args
    keeps = mean.target is aten.mean.dim and len(mean.args) > 2 and mean.args[0] is y and mean.args[2] is True
    return y if keeps and _last(y, mean.args[1]) == dims else None


def _last(x: fx.Node, dims: Any) -> int | None:
    """The number of ``dims`` if they are the last dimensions of ``x``, of known sizes."""
    rank = tensor_of(x).dim()
    if not isinstance(dims, (list, tuple)) or not dims:
        return None
    if sorted(d % rank for d in dims) != list(range(rank - len(dims), rank)):
        return None
    return len(dims) if all(isinstance(size, int) for size in tensor_of(x).shape[-len(dims) :]) else None
