# SPDX-License-Identifier: Apache-2.0
"""Average pooling: sums over windows, divided by their public sizes and rounded to the nearest."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import torch

from privml.dispatch import dispatch, implements, implements_floating
from privml.ops.fixed import inside
from privml.ops.linear import divide_public, mean, scale_public
from privml.ops.quotients import common_multiple
from privml.ops.ring_formats import added
from privml.ops.values import engine_of, like, ring_value, settle
from privml.ops.windows import Windows, as_tuple, fold, pad, unfold, windows_of
from privml.tensor import SecretTensor

aten = torch.ops.aten


@implements(aten.avg_pool2d.default, aten.avg_pool3d.default)
def avg_pool(
    x: SecretTensor,
    kernel: Any,
    stride: Any = (),
    padding: Any = 0,
    ceil_mode: bool = False,
    count_include_pad: bool = True,
    divisor_override: int | None = None,
) -> SecretTensor:
    w = windows_of(x, len(kernel), kernel, stride, padding, 1, ceil_mode)
    share, fmt = ring_value(x, x.dtype)
    engine = engine_of(x)
    columns = tuple(unfold(pad(c, w, 0), w) for c in share)
    total = like(x, engine.sum(columns, [columns[0].dim() - 1], False, fmt.bits), added(fmt, math.prod(w.kernel)))
    return divided(total, counts_of(w, count_include_pad, divisor_override))


def divided(total: SecretTensor, counts: torch.Tensor | int) -> SecretTensor:
    """A sum over public whole numbers: with different ones, multiples of it are divided by a multiple of all."""
    if isinstance(counts, int):
        return divide_public(total, counts, total.dtype)
    multiple = common_multiple(counts)
    if multiple is None:
        return scale_public(total, 1.0 / counts, total.dtype)
    with inside():
        multiples = scale_public(total, (multiple / counts).round().long(), total.dtype)
    return divide_public(multiples, multiple, total.dtype)


def counts_of(w: Windows, count_include_pad: bool, divisor: int | None) -> torch.Tensor | int:
    """What each window's sum is divided by: torch counts declared padding, never the overhang."""
    if divisor:
        return divisor
    if w.before == w.after and (count_include_pad or not any(w.before)):
        return math.prod(w.kernel)
    counted = torch.zeros([n + b + a for n, b, a in zip(w.size, w.before, w.after, strict=True)])
    margins = w.before if count_include_pad else (0,) * len(w.size)
    area = tuple(slice(b - m, b + n + m) for n, b, m in zip(w.size, w.before, margins, strict=True))
    counted[area] = 1
    return unfold(counted, w).sum(-1).double()


@implements(aten.avg_pool2d_backward.default, aten.avg_pool3d_backward.default)
def avg_pool_backward(
    grad: SecretTensor,
    x: Any,
    kernel: Any,
    stride: Any,
    padding: Any,
    ceil_mode: bool,
    count_include_pad: bool,
    divisor_override: int | None,
) -> SecretTensor:
    w = windows_of(x, len(kernel), kernel, stride, padding, 1, ceil_mode)
    grad = divided(grad, counts_of(w, count_include_pad, divisor_override))
    window = math.prod(w.kernel)
    engine = engine_of(grad)
    total = engine.additive(lambda c: fold(c.unsqueeze(-1).expand(*c.shape, window), w), grad.share)
    return like(grad, settle(engine, total, grad.format), added(grad.format, window))


@implements_floating(aten.avg_pool1d.default)
@implements(aten.avg_pool1d.default)
def avg_pool1d(
    x: SecretTensor,
    kernel: Any,
    stride: Any = (),
    padding: Any = 0,
    ceil_mode: bool = False,
    count_include_pad: bool = True,
) -> SecretTensor:
    kernel, padding = as_tuple(kernel, 1), as_tuple(padding, 1)
    stride = as_tuple(stride, 1) if stride not in ((), [], None) else kernel
    wide = (1, *kernel), (1, *stride), (0, *padding)
    arguments = (x.unsqueeze(-2), *wide, ceil_mode, count_include_pad)
    return dispatch(aten.avg_pool2d.default, arguments, {}).squeeze(-2)


def _bins(size: int, bins: int) -> torch.Tensor:
    """0/1 matrix [bins, size] of torch's adaptive windows: floor(i n / m) up to ceil((i + 1) n / m)."""
    matrix = torch.zeros(bins, size, dtype=torch.int64)
    for i in range(bins):
        matrix[i, i * size // bins : -(-(i + 1) * size // bins)] = 1
    return matrix


def _areas(down: torch.Tensor, across: torch.Tensor) -> torch.Tensor | int:
    """How many pixels each bin has."""
    areas = (down.sum(1, keepdim=True) * across.sum(1)).double()
    return areas if areas.min() < areas.max() else int(areas[0, 0])


@implements(aten._adaptive_avg_pool2d.default, aten.adaptive_avg_pool2d.default)
def adaptive_avg_pool2d(x: SecretTensor, size: Sequence[int]) -> SecretTensor:
    height, width = x.shape[-2:]
    rows, columns = size
    if rows == columns == 1:
        return mean(x, [-2, -1], True)
    if height % rows == 0 and width % columns == 0:
        return avg_pool(x, (height // rows, width // columns))
    down, across = _bins(height, rows), _bins(width, columns)
    flat = x.reshape(-1, height, width)
    total = torch.matmul(torch.matmul(flat, across.t()).transpose(1, 2), down.t()).transpose(1, 2)
    return divided(total.reshape(*x.shape[:-2], rows, columns), _areas(down, across))


@implements(aten._adaptive_avg_pool2d_backward.default)
def adaptive_avg_pool2d_backward(grad: SecretTensor, x: Any) -> SecretTensor:
    down, across = _bins(x.shape[-2], grad.shape[-2]), _bins(x.shape[-1], grad.shape[-1])
    scaled = divided(grad, _areas(down, across)).reshape(-1, *grad.shape[-2:])
    spread = torch.matmul(torch.matmul(scaled, across).transpose(1, 2), down).transpose(1, 2)
    return spread.reshape(x.shape)


@implements_floating(aten.adaptive_avg_pool1d.default)
@implements(aten.adaptive_avg_pool1d.default)
def adaptive_avg_pool1d(x: SecretTensor, size: Sequence[int]) -> SecretTensor:
    return dispatch(aten.adaptive_avg_pool2d.default, (x.unsqueeze(-2), [1, size[0]]), {}).squeeze(-2)
