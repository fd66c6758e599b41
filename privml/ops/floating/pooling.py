# SPDX-License-Identifier: Apache-2.0
"""Pooling of floats over windows, and its gradients."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import torch

from privml.dispatch import implements_floating
from privml.engines.base import Engine, Share
from privml.formats import Float
from privml.ops.averaging import counts_of
from privml.ops.floating.arithmetic import mean, total
from privml.ops.floating.compare import max_last, max_last_one_hot, position
from privml.ops.floating.values import components, finished, pairwise
from privml.ops.values import engine_of, is_secret, join, like, ring_format
from privml.ops.windows import Windows, as_tuple, fold_place, pad, unfold, windows_of
from privml.ops.words import public_words
from privml.tensor import SecretTensor

aten = torch.ops.aten


@dataclass(frozen=True, slots=True)
class WindowPosition:
    """Left on the indices: Boolean share [..., windows, window size] of each maximum's position."""

    share: Share


def _windows(engine: Engine, share: Share, fmt: Float, w: Windows, border: float) -> Share:
    """The windows [..., *count, window] of a share, padded with ``border``."""
    if border == 0 or not (any(w.before) or any(w.after)):
        return tuple(unfold(pad(c, w, 0), w) for c in share)
    inside = pad(torch.ones(w.size, dtype=torch.bool), w, 0)
    outside = public_words(engine, border, inside.shape, fmt)
    return tuple(unfold(torch.where(inside, pad(c, w, 0), b), w) for c, b in zip(share, outside, strict=True))


@implements_floating(aten.max_pool2d_with_indices.default, aten.max_pool3d_with_indices.default)
def max_pool_with_indices(
    x: SecretTensor, kernel: Any, stride: Any = (), padding: Any = 0, dilation: Any = 1, ceil_mode: bool = False
) -> tuple[SecretTensor, SecretTensor]:
    w = windows_of(x, _rank(kernel, x), kernel, stride, padding, dilation, ceil_mode)
    engine, fmt = engine_of(x), x.format
    values, place = max_last_one_hot(engine, _windows(engine, x.share, fmt, w, -math.inf), fmt)
    result = finished(values, fmt, x.placement, x.session, x.dtype)

    def flat_index() -> Share:
        grid = torch.arange(math.prod(w.size)).reshape(w.size)
        return position(engine, place, unfold(pad(grid, w, 0), w))

    indices = SecretTensor(
        flat_index, ring_format(64, 0, False, True), x.placement, x.session, torch.int64, shape=result.shape
    )
    indices.aux = WindowPosition(place)
    return result, indices


def _rank(kernel: Any, x: torch.Tensor) -> int:
    return x.dim() - 2 if x.dim() == 5 or isinstance(kernel, int) else len(kernel)


@implements_floating(aten.max_pool2d_with_indices_backward.default, aten.max_pool3d_with_indices_backward.default)
def max_pool_with_indices_backward(
    grad: Any, x: Any, kernel: Any, stride: Any, padding: Any, dilation: Any, ceil_mode: bool, indices: Any
) -> Any:
    aux = indices.aux if is_secret(indices) else None
    if not isinstance(aux, WindowPosition) or not is_secret(grad):
        return NotImplemented
    w = windows_of(x, _rank(kernel, x), kernel, stride, padding, dilation, ceil_mode)
    placement, fmt = join(grad.placement, indices.placement), grad.format
    engine = grad.session.engine_for(placement)
    spread = components(lambda c, p: c.unsqueeze(-1).expand(p.shape), grad.share, aux.share)
    share = _folded(engine, engine.float_select(aux.share, spread, fmt), fmt, w)
    return SecretTensor(share, fmt, placement, grad.session, grad.dtype)


def _folded(engine: Engine, share: Share, fmt: Float, w: Windows) -> Share:
    """Adds [..., *count, window] up into [..., *size]: every place of the window fills places of its own."""
    parts = [tuple(fold_place(c[..., i], w, i) for c in share) for i in range(math.prod(w.kernel))]
    return pairwise(lambda a, b: engine.float_operation("add", fmt, a, b), parts)


@implements_floating(aten.max_pool1d.default, aten.max_pool2d.default, aten.max_pool3d.default)
def max_pool(
    x: SecretTensor, kernel: Any, stride: Any = (), padding: Any = 0, dilation: Any = 1, ceil_mode: bool = False
) -> SecretTensor:
    w, engine = windows_of(x, len(kernel), kernel, stride, padding, dilation, ceil_mode), engine_of(x)
    share = max_last(engine, _windows(engine, x.share, x.format, w, -math.inf), x.format)
    return finished(share, x.format, x.placement, x.session, x.dtype)


@implements_floating(aten.adaptive_max_pool2d.default, aten.adaptive_max_pool3d.default)
def adaptive_max_pool(x: SecretTensor, size: Any) -> Any:
    """Where the windows are all of one size."""
    lengths = x.shape[-len(size) :]
    if any(n % m for n, m in zip(lengths, size, strict=True)):
        return NotImplemented
    return max_pool_with_indices(x, [n // m for n, m in zip(lengths, size, strict=True)])


# ---- means
@implements_floating(aten.avg_pool2d.default, aten.avg_pool3d.default)
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
    windows = like(x, _windows(engine_of(x), x.share, x.format, w, 0))
    return _divided(total(windows, [windows.dim() - 1], False), w, count_include_pad, divisor_override)


def _divided(x: SecretTensor, w: Windows, *counting: Any) -> SecretTensor:
    counts = counts_of(w, *counting)
    return x / (counts.to(x.dtype) if isinstance(counts, torch.Tensor) else counts)


@implements_floating(aten.avg_pool2d_backward.default, aten.avg_pool3d_backward.default)
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
    grad = _divided(grad, w, count_include_pad, divisor_override)
    share = components(lambda c: c.unsqueeze(-1).expand(*c.shape, math.prod(w.kernel)), grad.share)
    return like(grad, _folded(engine_of(grad), share, grad.format, w))


@implements_floating(aten.avg_pool1d.default)
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
    return avg_pool(x.unsqueeze(-2), *wide, ceil_mode, count_include_pad).squeeze(-2)


@implements_floating(aten._adaptive_avg_pool2d.default, aten.adaptive_avg_pool2d.default)
def adaptive_avg_pool2d(x: SecretTensor, size: Any) -> SecretTensor:
    (height, width), (rows, columns) = x.shape[-2:], size
    if rows == columns == 1:
        return mean(x, [-2, -1], True)
    if height % rows == 0 and width % columns == 0:
        return avg_pool(x, (height // rows, width // columns))
    parts = []
    for i in range(rows):
        for j in range(columns):
            top, bottom = i * height // rows, -(-(i + 1) * height // rows)
            left, right = j * width // columns, -(-(j + 1) * width // columns)
            parts.append(mean(x[..., top:bottom, left:right], [-2, -1]))
    return torch.stack(parts, -1).reshape(*x.shape[:-2], rows, columns)


@implements_floating(aten.adaptive_avg_pool1d.default)
def adaptive_avg_pool1d(x: SecretTensor, size: Any) -> SecretTensor:
    return adaptive_avg_pool2d(x.unsqueeze(-2), [1, size[0]]).squeeze(-2)
