# SPDX-License-Identifier: Apache-2.0
"""Pooling of floats over windows, and its gradients."""

from __future__ import annotations

import math
from typing import Any

import torch

from privml.dispatch import implements_floating
from privml.engines.base import Engine, Share
from privml.formats import Float
from privml.ops.averaging import counts_of
from privml.ops.floating.arithmetic import mean, total
from privml.ops.floating.compare import max_last, max_last_one_hot
from privml.ops.floating.values import components, finished, pairwise
from privml.ops.pooling import WindowPosition, flat_index, rank_of
from privml.ops.ring_formats import proved
from privml.ops.values import engine_of, is_secret, join, like
from privml.ops.windows import Windows, bordered_windows, fold_place, pad, unfold, windows_of
from privml.ops.words import public_words
from privml.tensor import SecretTensor

aten = torch.ops.aten


def _max_windows(engine: Engine, share: Share, fmt: Float, w: Windows) -> Share:
    """Windows padded with minus infinity."""
    return bordered_windows(share, w, lambda shape: public_words(engine, -math.inf, shape, fmt))


@implements_floating(aten.max_pool2d_with_indices.default, aten.max_pool3d_with_indices.default)
def max_pool_with_indices(
    x: SecretTensor, kernel: Any, stride: Any = (), padding: Any = 0, dilation: Any = 1, ceil_mode: bool = False
) -> tuple[SecretTensor, SecretTensor]:
    w = windows_of(x, rank_of(kernel, x), kernel, stride, padding, dilation, ceil_mode)
    engine, fmt = engine_of(x), x.format
    values, place = max_last_one_hot(engine, _max_windows(engine, x.share, fmt, w), fmt)
    result = finished(values, fmt, x.placement, x.session, x.dtype)

    def index() -> Share:
        return flat_index(engine, place, w)

    index_format = proved(64, 0, False, 0, math.prod(w.size) - 1)
    indices = SecretTensor(index, index_format, x.placement, x.session, torch.int64, shape=result.shape)
    indices.aux = WindowPosition(place)
    return result, indices


@implements_floating(aten.max_pool2d_with_indices_backward.default, aten.max_pool3d_with_indices_backward.default)
def max_pool_with_indices_backward(
    grad: Any, x: Any, kernel: Any, stride: Any, padding: Any, dilation: Any, ceil_mode: bool, indices: Any
) -> Any:
    aux = indices.aux if is_secret(indices) else None
    if not isinstance(aux, WindowPosition) or not is_secret(grad):
        return NotImplemented
    w = windows_of(x, rank_of(kernel, x), kernel, stride, padding, dilation, ceil_mode)
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
    share = max_last(engine, _max_windows(engine, x.share, x.format, w), x.format)
    return finished(share, x.format, x.placement, x.session, x.dtype)


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
    windows = like(x, components(lambda c: unfold(pad(c, w, 0), w), x.share))
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
