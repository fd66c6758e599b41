# SPDX-License-Identifier: Apache-2.0
"""Nearest-neighbour resizing: a public choice of rows and columns."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch

from privml.dispatch import implements
from privml.ops.values import like
from privml.tensor import SecretTensor

aten = torch.ops.aten


def _nearest(size: int, to: int, scale: float | None, exact: bool) -> torch.Tensor:
    step = 1 / scale if scale else size / to
    return ((torch.arange(to) + (0.5 if exact else 0.0)) * step).floor().long().clamp(max=size - 1)


def _resize(x: SecretTensor, size: Sequence[int], scales: Sequence[float | None], exact: bool) -> SecretTensor:
    first = x.dim() - len(size)
    picks = [_nearest(x.shape[first + i], n, s, exact) for i, (n, s) in enumerate(zip(size, scales, strict=True))]
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
