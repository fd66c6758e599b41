# SPDX-License-Identifier: Apache-2.0
"""A bias that a public mask has hidden places of is added before they are hidden.

The number that stands for minus infinity fills a ring; as an operand of a sum it would have to be brought to the other
operand's scale. Biases of positions, which attention adds to its scores, are masked so.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import fx

from privml.graph.ir import calls, tensor_of
from privml.graph.passes.kinds import is_float, is_secret
from privml.graph.passes.ranges import NEVER
from privml.graph.passes.rewriting import new_call, shape_key, tidy

aten = torch.ops.aten


def masks_last(module: fx.GraphModule) -> fx.GraphModule:
    """x + where(mask, bias, -inf) becomes where(mask, x + bias, -inf). Changes and returns ``module``."""
    for node in list(calls(module.graph)):
        if node.target is not aten.add.Tensor or node.kwargs or not is_float(node):
            continue
        for x, masked in (node.args[:2], node.args[1::-1]):
            if _hides(masked) and is_secret(x) and _shape(x) == _shape(node):
                shape = tensor_of(node).shape
                total = new_call(node, aten.add.Tensor, (x, masked.args[1]), shape, node)
                hidden = new_call(node, masked.target, (masked.args[0], total, masked.args[2]), shape, node)
                node.replace_all_uses_with(hidden)
                break
    return tidy(module)


def _hides(value: Any) -> bool:
    if not isinstance(value, fx.Node) or value.target is not aten.where.ScalarOther:
        return False
    mask, bias, number = value.args
    return not is_secret(mask) and is_secret(bias) and isinstance(number, (int, float)) and number <= NEVER


def _shape(node: fx.Node) -> tuple[str, ...]:
    return shape_key(tensor_of(node).shape)
