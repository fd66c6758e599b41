# SPDX-License-Identifier: Apache-2.0
"""Pooling and nearest-neighbour resizing. Windows are strided views of every component; only the maximum
talks."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch

from privml.dispatch import dispatch, implements, intercepts
from privml.engines.base import Share
from privml.ops.linear import mean, scale_public
from privml.ops.values import engine_of, expand, finish, is_secret, like, ring_format, ring_value
from privml.tensor import SecretTensor

aten = torch.ops.aten


@dataclass(frozen=True, slots=True)
class WindowPosition:
    """Left on the indices: Boolean share [..., windows, window size] of each maximum's position."""

    share: Share


@dataclass(frozen=True, slots=True)
class Windows:
    """Where the windows of a pooling lie; all sequences have one entry per spatial dimension."""

    size: tuple[int, ...]
    kernel: tuple[int, ...]
    stride: tuple[int, ...]
    before: tuple[int, ...]
    after: tuple[int, ...]
    dilation: tuple[int, ...]
    count: tuple[int, ...]


def windows_of(
    x: torch.Tensor, rank: int, kernel: Any, stride: Any, padding: Any, dilation: Any, ceil_mode: bool
) -> Windows:
    """torch's geometry: with ``ceil_mode`` a last partial window counts if it starts in image or padding."""
    kernel, padding, dilation = (_tuple(v, rank) for v in (kernel, padding, dilation))
    stride = _tuple(stride, rank) if stride not in ((), [], None) else kernel
    size = tuple(x.shape[-rank:])
    count, after = [], []
    for n, k, s, p, d in zip(size, kernel, stride, padding, dilation, strict=True):
        room = n + 2 * p - d * (k - 1) - 1
        windows = (-(-room // s) if ceil_mode else room // s) + 1
        if ceil_mode and (windows - 1) * s >= n + p:
            windows -= 1
        count.append(windows)
        after.append(max(p, (windows - 1) * s + d * (k - 1) + 1 - n - p))
    return Windows(size, kernel, stride, padding, tuple(after), dilation, tuple(count))


def _tuple(value: Any, rank: int) -> tuple[int, ...]:
    values = (value,) if isinstance(value, int) else tuple(value)
    return values * rank if len(values) == 1 else values


def pad(x: torch.Tensor, w: Windows, value: int) -> torch.Tensor:
    if not any(w.before) and not any(w.after):
        return x
    amounts = [side for pair in reversed(list(zip(w.before, w.after, strict=True))) for side in pair]
    return aten.constant_pad_nd(x, amounts, value)


def unfold(x: torch.Tensor, w: Windows) -> torch.Tensor:
    """Padded [..., *size] as [..., *count, window]."""
    rank = len(w.kernel)
    lead = x.dim() - rank
    steps = x.stride()[lead:]
    shape = [*x.shape[:lead], *w.count, *w.kernel]
    strides = [
        *x.stride()[:lead],
        *(a * s for a, s in zip(steps, w.stride, strict=True)),
        *(a * d for a, d in zip(steps, w.dilation, strict=True)),
    ]
    view = x.as_strided(shape, strides, x.storage_offset())
    return view.reshape(*x.shape[:lead], *w.count, math.prod(w.kernel))


def fold(columns: torch.Tensor, w: Windows) -> torch.Tensor:
    """Adjoint of pad and unfold: adds [..., *count, window] up into [..., *size]."""
    rank = len(w.kernel)
    lead = columns.shape[: columns.dim() - rank - 1]
    padded = [n + b + a for n, b, a in zip(w.size, w.before, w.after, strict=True)]
    result = columns.new_zeros(*lead, *padded)
    for position in range(math.prod(w.kernel)):
        place, rest = [], position
        for k in reversed(w.kernel):
            place.insert(0, rest % k)
            rest //= k
        cut = tuple(
            slice(p * d, p * d + (c - 1) * s + 1, s)
            for p, d, c, s in zip(place, w.dilation, w.count, w.stride, strict=True)
        )
        result[(..., *cut)] += columns[..., position]
    return result[(..., *(slice(b, b + n) for b, n in zip(w.before, w.size, strict=True)))]


# ---- maximum
def _max_windows(x: SecretTensor, w: Windows) -> Share:
    lowest = -(1 << (x.format.bits - 2)) + 1
    engine = engine_of(x)
    if not any(w.before) and not any(w.after):
        return tuple(unfold(c, w) for c in x.share)
    inside = pad(torch.ones(w.size, dtype=torch.bool), w, 0)
    border = engine.public(torch.full(inside.shape, lowest), x.format.bits)
    return tuple(
        unfold(torch.where(inside, pad(c, w, 0), b), w) for c, b in zip(x.share, border, strict=True)
    )


def _max_pool(x: SecretTensor, w: Windows) -> SecretTensor:
    engine = engine_of(x)
    values, _ = engine.max_last(_max_windows(x, w), x.format.bits)
    return finish(engine, values, x.format, x.placement, x.session, x.dtype)


def _wants_gradient(x: torch.Tensor) -> bool:
    return torch.is_grad_enabled() and x.requires_grad


@implements(aten.max_pool2d_with_indices.default)
def max_pool2d_with_indices(
    x: SecretTensor,
    kernel: Any,
    stride: Any = (),
    padding: Any = 0,
    dilation: Any = 1,
    ceil_mode: bool = False,
) -> tuple[SecretTensor, SecretTensor]:
    w = windows_of(x, 2, kernel, stride, padding, dilation, ceil_mode)
    engine, fmt = engine_of(x), x.format
    index_format = ring_format(64, 0, False, True)
    if not _wants_gradient(x):
        values = _max_pool(x, w)
        frozen = like(
            x, tuple(c.clone() for c in x.share)
        )  # writes to x must not change indices asked for later
        indices = SecretTensor(
            lambda: _indices(frozen, engine.max_last(_max_windows(frozen, w), fmt.bits, True)[1], w),
            index_format, x.placement, x.session, torch.int64, shape=values.shape,
        )  # fmt: skip
        return values, indices
    share, position = engine.max_last(_max_windows(x, w), fmt.bits, True)
    values = finish(engine, share, fmt, x.placement, x.session, x.dtype)
    indices = SecretTensor(
        lambda: _indices(x, position, w),
        index_format,
        x.placement,
        x.session,
        torch.int64,
        shape=values.shape,
    )
    indices.aux = WindowPosition(position)
    return values, indices


def _indices(x: SecretTensor, position: Share, w: Windows) -> Share:
    """torch's flat index into the unpadded image."""
    engine = engine_of(x)
    grid = torch.arange(math.prod(w.size)).reshape(w.size)
    table = unfold(pad(grid, w, 0), w)
    ring = engine.bits_to_ring(position, 64)
    table = table.expand(ring[0].shape)
    return engine.sum(engine.multiply_public(ring, table, 64), [ring[0].dim() - 1], False, 64)


@implements(aten.max_pool2d_with_indices_backward.default)
def max_pool2d_with_indices_backward(
    grad: Any, x: Any, kernel: Any, stride: Any, padding: Any, dilation: Any, ceil_mode: bool, indices: Any
) -> Any:
    aux = indices.aux if is_secret(indices) else None
    if not isinstance(aux, WindowPosition):
        return NotImplemented
    w = windows_of(x, 2, kernel, stride, padding, dilation, ceil_mode)
    share, fmt = ring_value(grad, grad.dtype)
    shape = aux.share[0].shape
    engine = grad.session.engine_for(grad.placement if grad.placement == x.placement else indices.placement)
    chosen = engine.select(aux.share, expand(tuple(c.unsqueeze(-1) for c in share), shape), fmt.bits)
    plain = ring_format(fmt.bits, fmt.scale, True)
    return SecretTensor(tuple(fold(c, w) for c in chosen), plain, indices.placement, x.session, grad.dtype)


@implements(aten.max_pool2d.default, aten.max_pool3d.default)
def max_pool(
    x: SecretTensor,
    kernel: Any,
    stride: Any = (),
    padding: Any = 0,
    dilation: Any = 1,
    ceil_mode: bool = False,
) -> SecretTensor:
    rank = 3 if x.dim() == 5 else 2
    return _max_pool(x, windows_of(x, rank, kernel, stride, padding, dilation, ceil_mode))


@implements(aten.max_pool1d.default)
def max_pool1d(
    x: SecretTensor,
    kernel: Any,
    stride: Any = (),
    padding: Any = 0,
    dilation: Any = 1,
    ceil_mode: bool = False,
) -> SecretTensor:
    return _max_pool(x, windows_of(x, 1, kernel, stride, padding, dilation, ceil_mode))


@intercepts(torch.max_pool2d, aten.max_pool2d.default)
def max_pool2d_without_indices(x: Any, *args: Any, **kwargs: Any) -> Any:
    """torch always asks for indices, which cost as much again; without a backward pass nobody reads them."""
    names = {"kernel_size": "kernel"}
    kwargs = {names.get(k, k): v for k, v in kwargs.items()}
    if not is_secret(x) or _wants_gradient(x):
        return NotImplemented
    return dispatch(aten.max_pool2d.default, (x, *args), kwargs)


# ---- averages
@implements(aten.avg_pool2d.default)
def avg_pool2d(
    x: SecretTensor,
    kernel: Any,
    stride: Any = (),
    padding: Any = 0,
    ceil_mode: bool = False,
    count_include_pad: bool = True,
    divisor_override: int | None = None,
) -> SecretTensor:
    w = windows_of(x, 2, kernel, stride, padding, 1, ceil_mode)
    share, fmt = ring_value(x, x.dtype)
    engine = engine_of(x)
    columns = tuple(unfold(pad(c, w, 0), w) for c in share)
    total = like(x, engine.sum(columns, [columns[0].dim() - 1], False, fmt.bits), fmt)
    return scale_public(total, _inverse_count(w, count_include_pad, divisor_override), x.dtype)


def _inverse_count(w: Windows, count_include_pad: bool, divisor: int | None) -> torch.Tensor | float:
    """What each window's sum is multiplied by: torch counts declared padding, never the overhang."""
    if divisor:
        return 1.0 / divisor
    if w.before == w.after and (count_include_pad or not any(w.before)):
        return 1.0 / math.prod(w.kernel)
    counted = torch.zeros([n + b + a for n, b, a in zip(w.size, w.before, w.after, strict=True)])
    margins = w.before if count_include_pad else (0,) * len(w.size)
    area = tuple(slice(b - m, b + n + m) for n, b, m in zip(w.size, w.before, margins, strict=True))
    counted[area] = 1
    return 1.0 / unfold(counted, w).sum(-1).double()


@implements(aten.avg_pool2d_backward.default)
def avg_pool2d_backward(
    grad: SecretTensor,
    x: Any,
    kernel: Any,
    stride: Any,
    padding: Any,
    ceil_mode: bool,
    count_include_pad: bool,
    divisor_override: int | None,
) -> SecretTensor:
    w = windows_of(x, 2, kernel, stride, padding, 1, ceil_mode)
    grad = scale_public(grad, _inverse_count(w, count_include_pad, divisor_override), grad.dtype)
    window = math.prod(w.kernel)
    return like(grad, tuple(fold(c.unsqueeze(-1).expand(*c.shape, window), w) for c in grad.share))


@implements(aten.avg_pool1d.default)
def avg_pool1d(
    x: SecretTensor,
    kernel: Any,
    stride: Any = (),
    padding: Any = 0,
    ceil_mode: bool = False,
    count_include_pad: bool = True,
) -> SecretTensor:
    kernel, padding = _tuple(kernel, 1), _tuple(padding, 1)
    stride = _tuple(stride, 1) if stride not in ((), [], None) else kernel
    return avg_pool2d(
        x.unsqueeze(-2), (1, *kernel), (1, *stride), (0, *padding), ceil_mode, count_include_pad
    ).squeeze(-2)


def _bins(size: int, bins: int) -> torch.Tensor:
    """0/1 matrix [bins, size] of torch's adaptive windows: floor(i n / m) up to ceil((i + 1) n / m)."""
    matrix = torch.zeros(bins, size, dtype=torch.int64)
    for i in range(bins):
        matrix[i, i * size // bins : -(-(i + 1) * size // bins)] = 1
    return matrix


@implements(aten._adaptive_avg_pool2d.default, aten.adaptive_avg_pool2d.default)
def adaptive_avg_pool2d(x: SecretTensor, size: Sequence[int]) -> SecretTensor:
    height, width = x.shape[-2:]
    rows, columns = size
    if rows == columns == 1:
        return mean(x, [-2, -1], True)
    if height % rows == 0 and width % columns == 0:
        return avg_pool2d(x, (height // rows, width // columns))
    down, across = _bins(height, rows), _bins(width, columns)
    flat = x.reshape(-1, height, width)
    total = torch.matmul(torch.matmul(flat, across.t()).transpose(1, 2), down.t()).transpose(1, 2)
    inverse = 1.0 / (down.sum(1, keepdim=True) * across.sum(1)).double()
    return scale_public(total.reshape(*x.shape[:-2], rows, columns), inverse, x.dtype)


@implements(aten._adaptive_avg_pool2d_backward.default)
def adaptive_avg_pool2d_backward(grad: SecretTensor, x: Any) -> SecretTensor:
    down, across = _bins(x.shape[-2], grad.shape[-2]), _bins(x.shape[-1], grad.shape[-1])
    inverse = 1.0 / (down.sum(1, keepdim=True) * across.sum(1)).double()
    scaled = scale_public(grad, inverse, grad.dtype).reshape(-1, *grad.shape[-2:])
    spread = torch.matmul(torch.matmul(scaled, across).transpose(1, 2), down).transpose(1, 2)
    return spread.reshape(x.shape)


@implements(aten.adaptive_avg_pool1d.default)
def adaptive_avg_pool1d(x: SecretTensor, size: Sequence[int]) -> SecretTensor:
    return adaptive_avg_pool2d(x.unsqueeze(-2), [1, size[0]]).squeeze(-2)


# ---- nearest-neighbour resizing
def _nearest(size: int, to: int, scale: float | None, exact: bool) -> torch.Tensor:
    step = 1 / scale if scale else size / to
    return ((torch.arange(to) + (0.5 if exact else 0.0)) * step).floor().long().clamp(max=size - 1)


def _resize(
    x: SecretTensor, size: Sequence[int], scales: Sequence[float | None], exact: bool
) -> SecretTensor:
    first = x.dim() - len(size)
    picks = [
        _nearest(x.shape[first + i], n, s, exact) for i, (n, s) in enumerate(zip(size, scales, strict=True))
    ]
    share = x.share
    for i, pick in enumerate(picks):
        share = tuple(c.index_select(first + i, pick) for c in share)
    return like(x, share)


@implements(aten.upsample_nearest1d.default, aten.upsample_nearest2d.default, aten.upsample_nearest3d.default)
def upsample_nearest(x: SecretTensor, size: Sequence[int], *scales: float | None) -> SecretTensor:
    return _resize(x, size, scales or [None] * len(size), False)


@implements(aten._upsample_nearest_exact1d.default, aten._upsample_nearest_exact2d.default)
def upsample_nearest_exact(x: SecretTensor, size: Sequence[int], *scales: float | None) -> SecretTensor:
    return _resize(x, size, scales or [None] * len(size), True)


@implements(aten.upsample_nearest1d.vec, aten.upsample_nearest2d.vec)
def upsample_nearest_vec(x: SecretTensor, size: Any, factors: Any) -> SecretTensor:
    if size is None:
        size = [int(n * f) for n, f in zip(x.shape[2:], factors, strict=True)]
    return _resize(x, size, factors or [None] * len(size), False)
