# SPDX-License-Identifier: Apache-2.0
"""Maximum pooling before a non-decreasing function instead of after it: the same numbers, fewer evaluations."""

from __future__ import annotations

import torch
from torch import fx

from privml.graph.ir import calls

aten = torch.ops.aten

_POOLS = (aten.max_pool1d.default, aten.max_pool2d.default, aten.max_pool3d.default)
# max(f(a), f(b)) = f(max(a, b)) needs f non-decreasing; functions with a slope argument are left out.
_MONOTONE = (
    aten.relu.default,
    aten.relu6.default,
    aten.hardtanh.default,
    aten.hardsigmoid.default,
    aten.clamp.default,
    aten.clamp_min.default,
    aten.clamp_max.default,
    aten.sigmoid.default,
    aten.tanh.default,
)


def maxpool_before_monotone(module: fx.GraphModule) -> fx.GraphModule:
    """pool(f(x)) becomes f(pool(x)) (MIZAR, Theorem 1); changes and returns ``module``.

    Padding of a pool counts as minus infinity and never wins, so it does not hinder the exchange.
    """
    for pool in list(calls(module.graph)):
        while pool.target in _POOLS and _exchangeable(pool.args[0]):
            _exchange(module.graph, pool)
    module.graph.lint()
    module.recompile()
    return module


def _exchangeable(function: fx.Node) -> bool:
    if function.op != "call_function" or function.target not in _MONOTONE or len(function.users) != 1:
        return False
    bounds = [*function.args[1:], *function.kwargs.values()]
    return not any(isinstance(bound, fx.Node) for bound in bounds)


def _exchange(graph: fx.Graph, pool: fx.Node) -> None:
    function = pool.args[0]
    x = function.args[0]
    pool.replace_all_uses_with(function)
    pool.args = (x, *pool.args[1:])
    function.args = (pool, *function.args[1:])
    function.meta["val"] = pool.meta.get("val")
    pool.append(function)
