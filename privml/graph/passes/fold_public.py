# SPDX-License-Identifier: Apache-2.0
"""Computes at conversion what depends on constants alone: positions, rotations, causal masks."""

from __future__ import annotations

from typing import Any

import torch
from torch import fx

from privml.graph.ir import attribute, set_attribute
from privml.graph.passes.rewriting import tidy

# Larger constants are computed again in each run, so that the program stays small.
LARGEST_CONSTANT = 1 << 22
_FRESH = (torch.ops.aten.empty.memory_format,)


def fold_public(module: fx.GraphModule) -> fx.GraphModule:
    """Public values that depend on no size that varies become constants. Changes and returns ``module``."""
    values: dict[fx.Node, Any] = {}
    for node in module.graph.nodes:
        if node.op == "get_attr" and not node.meta.get("secret"):
            values[node] = attribute(module, node.target).detach()
        elif _is_known(node, values):
            args, kwargs = fx.map_arg((node.args, node.kwargs), values.__getitem__)
            values[node] = node.target(*args, **kwargs)
    for node, value in values.items():
        needed = [user for user in node.users if user not in values]
        fits = isinstance(value, torch.Tensor) and value.numel() <= LARGEST_CONSTANT
        if not needed or not fits or node.op == "get_attr":
            continue
        constant = _constant(module, node, value)
        for user in needed:
            user.replace_input_with(node, constant)
    return tidy(module)


def _is_known(node: fx.Node, values: dict[fx.Node, Any]) -> bool:
    if node.op != "call_function" or node.meta.get("secret") or node.target in _FRESH:
        return False
    return all(operand in values for operand in node.all_input_nodes)


def _constant(module: fx.GraphModule, node: fx.Node, value: torch.Tensor) -> fx.Node:
    name = f"constant_{node.name}"
    set_attribute(module, name, value.contiguous().clone())
    with module.graph.inserting_before(node):
        made = module.graph.get_attr(name)
    made.meta.update(val=node.meta["val"], secret=False)
    return made
