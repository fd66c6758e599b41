# SPDX-License-Identifier: Apache-2.0
"""The conditions that every pass must keep."""

from __future__ import annotations

import math
from typing import Any

import torch
from torch import fx
from torch._ops import OpOverload

from privml.errors import ConfigError, UnsupportedOperator
from privml.graph.ir import attribute, is_allowed, real_extremes, source_line, tensor_of

aten = torch.ops.aten


def verify(module: fx.GraphModule, formats: bool = False, after: str = "") -> fx.GraphModule:
    """Returns ``module`` if it consists of operators of the table, writes to no tensor, holds finite weights,
    has no shape that depends on data, and (``formats``) a format for every secret.

    Raises UnsupportedOperator or ConfigError that names the node, and the pass ``after`` which it was found.
    """
    where = f" after the pass {after}" if after else ""
    try:
        module.graph.lint()
    except Exception as error:
        raise ConfigError(f"the graph is malformed{where}: {error}") from error
    for node in module.graph.nodes:
        place = f"node {node.name!r}{where}"
        if node.op in ("call_module", "call_method"):
            raise UnsupportedOperator(f"{place}: {node.op} {node.target} is not an operator of the table")
        if node.op == "call_function":
            _check_call(node, place)
        if node.op == "get_attr":
            _check_finite(attribute(module, node.target), node, place)
        if formats and node.meta.get("secret") and node.meta.get("format") is None:
            raise ConfigError(f"{place}: a secret without a format")
    return module


def _check_call(node: fx.Node, place: str) -> None:
    target = node.target
    if isinstance(target, OpOverload) and target._schema.is_mutable:
        raise UnsupportedOperator(f"{place}: {target} writes to its argument; a program's graph is functional")
    if not is_allowed(target):
        raise UnsupportedOperator(f"{place}: {target} is not an operator of the table; {source_line(node) or ''}")
    tensor = tensor_of(node)
    if tensor is not None and any(_depends_on_data(size) for size in tensor.shape):
        raise UnsupportedOperator(f"{place}: the shape of {target} depends on data, which would reveal it")
    for value in (*node.args, *node.kwargs.values()):
        if isinstance(value, float) and math.isnan(value):
            raise ConfigError(f"{place}: an argument of {target} is NaN")


def _depends_on_data(size: Any) -> bool:
    return isinstance(size, torch.SymInt) and any(str(symbol).startswith("u") for symbol in size.node.expr.free_symbols)


def _check_finite(tensor: torch.Tensor, node: fx.Node, place: str) -> None:
    if not tensor.dtype.is_floating_point:
        return
    # Infinities are legal in public masks: they exclude a place.
    secret, (low, high) = node.meta.get("secret"), real_extremes(tensor)
    if math.isnan(low) or secret and not (math.isfinite(low) and math.isfinite(high)):
        bad = ~torch.isfinite(tensor) if secret else torch.isnan(tensor)
        index = tuple(torch.nonzero(bad)[0].tolist())
        raise ConfigError(f"{place}: {node.target} holds NaN or infinity at index {index}")
