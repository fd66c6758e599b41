# SPDX-License-Identifier: Apache-2.0
"""Matrix products."""

from __future__ import annotations

import torch
import torch.nn.functional as F

from privml.graph.onnx.table import Node, Run, function, operator

function("MatMul", torch.matmul)
function("Det", torch.linalg.det)


@operator("Gemm")
def gemm(node: Node) -> Run:
    alpha, beta = node.attribute("alpha", 1.0), node.attribute("beta", 1.0)
    left, right = node.flag("transA"), node.flag("transB")
    # A bias row is what torch's linear layer takes.
    linear = right and not left and alpha == beta == 1.0 and node.rank(2) in (None, 1)

    def run(a: torch.Tensor, b: torch.Tensor, c: torch.Tensor | None = None) -> torch.Tensor:
        if linear and (c is None or c.shape == (b.shape[0],)):
            return F.linear(a, b, c)
        product = (a.t() if left else a) @ (b.t() if right else b)
        product = product if alpha == 1.0 else product * alpha
        if c is None:
            return product
        return product + (c if beta == 1.0 else c * beta)

    return run


@operator("Einsum")
def einsum(node: Node) -> Run:
    equation = node.attribute("equation")
    return lambda *operands: torch.einsum(equation, *operands)
