# SPDX-License-Identifier: Apache-2.0
"""If both operands of a matrix product are multiplied by a number, one operand is multiplied by both numbers.

Attention as torch takes it apart multiplies queries and keys each by the fourth root of their size; one product with a
power of two, as for heads of 16 or 64 numbers, is a change of scale.
"""

from __future__ import annotations

import torch
from torch import fx

from privml.graph.ir import calls
from privml.graph.passes.input_masks import MARK
from privml.graph.passes.kinds import is_float, is_secret
from privml.graph.passes.rewriting import tidy

aten = torch.ops.aten

PRODUCTS = (aten.bmm.default, aten.mm.default)
BY_NUMBER = (aten.mul.Scalar, aten.mul.Tensor)
VIEWS = {
    aten.reshape.default, aten.view.default, aten.permute.default, aten.transpose.int, aten.t.default,
    aten.expand.default, aten.unsqueeze.default, aten.squeeze.dim, aten.slice.Tensor, aten.select.int,
}  # fmt: skip


def merge_factors(module: fx.GraphModule) -> fx.GraphModule:
    """One product with a number, and its rounding, less for each matrix product. Changes and returns ``module``."""
    for node in calls(module.graph):
        if node.target in PRODUCTS:
            first, second = (factor_before(operand, node) for operand in node.args[:2])
            if first is not None and second is not None and first is not second:
                merge(first, second)
    return tidy(module)


def merge(kept: fx.Node, dropped: fx.Node) -> None:
    """Multiplies one operand of a matrix product by the numbers of both."""
    kept.update_arg(1, _product(kept.args[1], dropped.args[1]))
    dropped.replace_all_uses_with(dropped.args[0])


def _product(first: float, second: float) -> float:
    """Rounded to 15 digits, so that two fourth roots of a power of two make a power of two."""
    return float(f"{first * second:.15g}")


def factor_before(value: fx.Node, user: fx.Node) -> fx.Node | None:
    """The product with a number behind an operand, looking through views, that nothing else uses."""
    while list(value.users) == [user] and value.op == "call_function" and is_secret(value) and is_float(value):
        if value.meta.get(MARK):
            return None
        if value.target in BY_NUMBER and isinstance(value.args[1], (int, float)):
            return value
        if value.target not in VIEWS:
            return None
        value, user = value.args[0], value
    return None
