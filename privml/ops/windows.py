# SPDX-License-Identifier: Apache-2.0
"""The geometry of sliding windows: strided views of plain tensors, and their adjoint."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch

from privml.engines.base import Share

aten = torch.ops.aten


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
    kernel, padding, dilation = (as_tuple(v, rank) for v in (kernel, padding, dilation))
    stride = as_tuple(stride, rank) if stride not in ((), [], None) else kernel
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


def as_tuple(value: Any, rank: int) -> tuple[int, ...]:
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


def bordered_windows(share: Share, w: Windows, border: Callable[[torch.Size], Share]) -> Share:
    """The windows [..., *count, window] of a share, padded with shares that ``border`` makes of the padded shape."""
    if not any(w.before) and not any(w.after):
        return tuple(unfold(c, w) for c in share)
    inside = pad(torch.ones(w.size, dtype=torch.bool), w, 0)
    outside = border(inside.shape)
    return tuple(unfold(torch.where(inside, pad(c, w, 0), b), w) for c, b in zip(share, outside, strict=True))


def fold(columns: torch.Tensor, w: Windows) -> torch.Tensor:
    """Adjoint of pad and unfold: adds [..., *count, window] up into [..., *size]."""
    return sum(fold_place(columns[..., position], w, position) for position in range(math.prod(w.kernel)))


def fold_place(column: torch.Tensor, w: Windows, position: int) -> torch.Tensor:
    """[..., *count] as [..., *size]: every element at place ``position`` of its window, zeros elsewhere."""
    lead = column.shape[: column.dim() - len(w.kernel)]
    padded = [n + b + a for n, b, a in zip(w.size, w.before, w.after, strict=True)]
    result = column.new_zeros(*lead, *padded)
    place = []
    for k in reversed(w.kernel):
        place.insert(0, position % k)
        position //= k
    cut = tuple(
        slice(p * d, p * d + (c - 1) * s + 1, s)
        for p, d, c, s in zip(place, w.dilation, w.count, w.stride, strict=True)
    )
    result[(..., *cut)] = column
    return result[(..., *(slice(b, b + n) for b, n in zip(w.before, w.size, strict=True)))]
