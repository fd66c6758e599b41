# SPDX-License-Identifier: Apache-2.0
"""What is linear in its first operand and in its second: products of matrices, and convolutions."""

from __future__ import annotations

import torch
import torch.nn.functional as F

from privml.errors import UnsupportedOperator
from privml.graph.onnx.table import Node, Run, function, operator
from privml.graph.onnx.window import Pads, check_spatial, pad, symmetric, window

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


# ---- convolutions
_CONV = (F.conv1d, F.conv2d, F.conv3d)
_TRANSPOSE = (F.conv_transpose1d, F.conv_transpose2d, F.conv_transpose3d)


@operator("Conv")
def conv(node: Node) -> Run:
    check_spatial(node)
    geometry, groups = window(node), node.attribute("group", 1)
    node.ignore("kernel_shape")  # it is the weight's

    def run(x: torch.Tensor, w: torch.Tensor, b: torch.Tensor | None = None) -> torch.Tensor:
        n = x.dim() - 2
        pads = geometry.padding(x.shape[2:], w.shape[2:])
        if symmetric(pads):
            both = [lo for lo, _ in pads]
        else:
            x, both = pad(x, pads), [0] * n
        return _CONV[n - 1](x, w, b, geometry.stride(n), both, geometry.dilation(n), groups)

    return run


@operator("ConvTranspose")
def conv_transpose(node: Node) -> Run:
    check_spatial(node)
    geometry, groups = window(node), node.attribute("group", 1)
    extra, wanted = node.attribute("output_padding"), node.attribute("output_shape")
    node.ignore("kernel_shape")

    def run(x: torch.Tensor, w: torch.Tensor, b: torch.Tensor | None = None) -> torch.Tensor:
        n = x.dim() - 2
        strides, dilations = geometry.stride(n), geometry.dilation(n)
        after = list(extra or [0] * n)
        full = [
            s * (size - 1) + (k - 1) * d + 1
            for size, k, s, d in zip(x.shape[2:], w.shape[2:], strides, dilations, strict=True)
        ]
        if wanted is not None or geometry.auto_pad.startswith("SAME"):
            sizes = list(wanted or [size * s for size, s in zip(x.shape[2:], strides, strict=True)])
            totals = [f + a - size for f, a, size in zip(full, after, sizes[-n:], strict=True)]
            pads = [_divided(total, geometry.auto_pad) for total in totals]
        else:
            pads = geometry.padding(x.shape[2:], w.shape[2:])
        if symmetric(pads) and all(lo >= 0 for lo, _ in pads) and _torch_takes(after, strides, dilations):
            both = [lo for lo, _ in pads]
            return _TRANSPOSE[n - 1](x, w, b, strides, both, after, groups, dilations)
        y = _TRANSPOSE[n - 1](x, w, None, strides, 0, 0, groups, dilations)
        y = pad(y, [(-lo, a - hi) for (lo, hi), a in zip(pads, after, strict=True)])
        return y if b is None else y + b.reshape([-1] + [1] * n)

    return run


def _divided(total: int, auto_pad: str) -> tuple[int, int]:
    """What is cut off before and after; zeros that are added all come after."""
    if total < 0 and auto_pad.startswith("SAME"):
        raise UnsupportedOperator(
            f"ConvTranspose with auto_pad={auto_pad} whose kernel does not fill the output: onnx and its runtimes "
            "disagree on where the zeros go; give pads and output_padding instead"
        )
    less = max(total, 0) // 2
    return (less, total - less) if auto_pad == "SAME_UPPER" or total < 0 else (total - less, less)


def _torch_takes(output_padding: Pads, strides: list[int], dilations: list[int]) -> bool:
    return all(p == 0 or p < max(s, d) for p, s, d in zip(output_padding, strides, dilations, strict=True))
