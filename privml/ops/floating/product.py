# SPDX-License-Identifier: Apache-2.0
"""Products of matrices and convolutions of floats, by the session's ``numerics.dot``.

``exact``: the correctly rounded products are added as ``total`` adds, neighbours first. ``fused``: as ``dot`` says,
where the sum has more than one product and its integers fit a ring; else as ``exact``.
"""

from __future__ import annotations

from typing import Any

import torch

from privml.context import Session
from privml.dispatch import implements_floating
from privml.engines.shares import Window
from privml.errors import InvalidInput
from privml.formats import Float
from privml.ops.convolution import gradients, pairs, two_dimensional
from privml.ops.floating import dot
from privml.ops.values import is_secret, widest
from privml.tensor import SecretTensor

aten = torch.ops.aten


def _fused(a: Any, b: Any, count: int) -> tuple[Session, Float, int] | None:
    """Session, format and guard bits of a fused product; None for a chain."""
    secrets = [v for v in (a, b) if is_secret(v)]
    session = secrets[0].session
    if session.numerics.dot == "exact" or count < 2 or a.numel() == 0 or b.numel() == 0:
        return None
    fmt = widest([v.format for v in secrets if isinstance(v.format, Float)])
    guard = dot.guard_bits(fmt, count)
    return None if guard is None else (session, fmt, guard)


@implements_floating(aten.mm.default, aten.bmm.default)
def matmul(a: Any, b: Any) -> SecretTensor:
    """[..., n, k] @ [..., k, m]."""
    if a.shape[-1] != b.shape[-2]:
        raise InvalidInput(f"matmul: shapes {tuple(a.shape)} and {tuple(b.shape)} do not fit")
    fused = _fused(a, b, a.shape[-1])
    if fused is not None:
        return dot.matmul(a, b, *fused)
    products = a.unsqueeze(-1) * b.unsqueeze(-3)
    return products.squeeze(-2) if a.shape[-1] == 1 else torch.sum(products, [-2])


def affine(a: Any, b: Any, bias: Any, beta: float = 1, alpha: float = 1) -> SecretTensor:
    """alpha * (a @ b) + beta * bias."""
    result = torch.matmul(a, b)
    result = result if alpha == 1 else result * alpha
    if bias is None or beta == 0:
        return result
    return result + (bias if beta == 1 else bias * beta)


@implements_floating(aten.addmm.default, aten.baddbmm.default)
def addmm(bias: Any, a: Any, b: Any, beta: float = 1, alpha: float = 1) -> SecretTensor:
    return affine(a, b, bias, beta, alpha)


@implements_floating(aten.linear.default)
def linear(x: Any, weight: Any, bias: Any = None) -> SecretTensor:
    flat = x if x.dim() == 2 else x.reshape(-1, x.shape[-1])
    result = affine(flat, weight.t(), bias)
    return result if x.dim() == 2 else result.view(*x.shape[:-1], weight.shape[0])


@implements_floating(aten.mv.default)
def mv(a: Any, b: Any) -> SecretTensor:
    return affine(a, b.unsqueeze(-1), None).squeeze(-1)


@implements_floating(aten.dot.default, aten.vdot.default)
def inner(a: Any, b: Any) -> SecretTensor:
    return affine(a.unsqueeze(0), b.unsqueeze(-1), None).reshape(())


@implements_floating(aten.addmv.default)
def addmv(bias: Any, a: Any, b: Any, beta: float = 1, alpha: float = 1) -> SecretTensor:
    column = bias.unsqueeze(-1) if bias.dim() else bias
    return affine(a, b.unsqueeze(-1), column, beta, alpha).squeeze(-1)


@implements_floating(aten.addcmul.default)
def addcmul(x: Any, a: Any, b: Any, value: float = 1) -> SecretTensor:
    return x + (a * b if value == 1 else (a * b) * value)


@implements_floating(aten.lerp.Scalar, aten.lerp.Tensor)
def lerp(a: Any, b: Any, weight: Any) -> SecretTensor:
    return a + (b - a) * weight


# ---- convolutions
def convolve(
    x: Any,
    weight: Any,
    bias: Any,
    window: Window,
) -> SecretTensor:
    """2-D convolution plus bias [o]; as a chain, windows of the image times the kernel as a matrix."""
    fused = _fused(x, weight, weight[0].numel())
    if fused is not None:
        result = dot.conv2d(x, weight, window, *fused)
        return result if bias is None else result + bias.view(1, -1, 1, 1)
    stride, padding, dilation, groups = window
    kernel, (batch, channels, height, width) = weight.shape[2:], x.shape
    out = [
        (n + 2 * p - d * (k - 1) - 1) // s + 1
        for n, k, s, p, d in zip((height, width), kernel, stride, padding, dilation, strict=True)
    ]
    padded = torch.nn.functional.pad(x, [padding[1], padding[1], padding[0], padding[0]]) if any(padding) else x
    area = (padded.shape[2], padded.shape[3])
    places = torch.arange(area[0] * area[1]).reshape(area)
    rows = torch.arange(out[0])[:, None] * stride[0] + torch.arange(kernel[0])[None] * dilation[0]
    columns = torch.arange(out[1])[:, None] * stride[1] + torch.arange(kernel[1])[None] * dilation[1]
    windows = places[rows[:, None, :, None], columns[None, :, None, :]].reshape(out[0] * out[1], -1)
    image = padded.reshape(batch, groups, channels // groups, places.numel())[..., windows]  # b, g, c, places, window
    image = image.permute(0, 1, 3, 2, 4).reshape(batch * groups, out[0] * out[1], weight[0].numel())
    outputs = weight.shape[0] // groups
    matrix = weight.reshape(1, groups, outputs, -1).transpose(-1, -2)
    matrix = matrix.expand(batch, groups, *matrix.shape[2:]).reshape(batch * groups, *matrix.shape[2:])
    result = torch.bmm(image, matrix).transpose(1, 2).reshape(batch, groups * outputs, *out)
    return result if bias is None else result + bias.view(1, -1, 1, 1)


@implements_floating(aten.convolution.default)
def convolution(x: Any, weight: Any, bias: Any, *geometry: Any) -> Any:
    return two_dimensional(convolve, x, weight, bias, *geometry)


@implements_floating(aten.convolution_backward.default)
def convolution_backward(*arguments: Any) -> Any:
    return gradients(convolve, *arguments)


@implements_floating(aten.conv2d.default, aten.conv1d.default)
def conv(
    x: Any, weight: Any, bias: Any = None, stride: Any = 1, padding: Any = 0, dilation: Any = 1, groups: int = 1
) -> SecretTensor:
    rank = weight.dim() - 2
    batched = x if x.dim() == rank + 2 else x.unsqueeze(0)
    rest = pairs(stride, rank), pairs(padding, rank), pairs(dilation, rank)
    result = convolution(batched, weight, bias, *rest, False, [0] * rank, groups)
    return result if x.dim() == rank + 2 else result.squeeze(0)
