# SPDX-License-Identifier: Apache-2.0
"""Resizing: nearest neighbours are a public choice of rows and columns, linear interpolation products with public
matrices."""

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


# ---- linear interpolation
def _weights(size: int, to: int, align_corners: bool, scale: float | None) -> torch.Tensor:
    """The matrix [to, size] of torch's interpolation along one dimension."""
    unit = torch.eye(size, dtype=torch.float64).unsqueeze(0)
    return aten.upsample_linear1d.default(unit, [to], align_corners, scale)[0].t()


def _interpolated(x: SecretTensor, matrices: Sequence[torch.Tensor]) -> SecretTensor:
    """``matrices[i]`` applied along the i-th of the last dimensions."""
    for dim, matrix in enumerate(matrices, x.dim() - len(matrices)):
        x = torch.matmul(x.transpose(dim, -1), matrix.t().to(x.dtype)).transpose(dim, -1)
    return x


@implements(aten.upsample_linear1d.default, aten.upsample_bilinear2d.default)
def upsample_linear(x: SecretTensor, size: Sequence[int], align_corners: bool, *scales: float | None) -> SecretTensor:
    scales = scales or (None,) * len(size)
    last = x.shape[-len(size) :]
    return _interpolated(x, [_weights(n, m, align_corners, s) for n, m, s in zip(last, size, scales, strict=True)])


@implements(aten.upsample_linear1d.vec, aten.upsample_bilinear2d.vec)
def upsample_linear_vec(x: SecretTensor, size: Any, align_corners: bool, factors: Any) -> SecretTensor:
    if size is None:
        size = [int(n * f) for n, f in zip(x.shape[2:], factors, strict=True)]
    return upsample_linear(x, size, align_corners, *(factors or ()))


@implements(aten.upsample_linear1d_backward.default, aten.upsample_bilinear2d_backward.default)
def upsample_linear_backward(
    grad: SecretTensor, to: Sequence[int], size: Sequence[int], align_corners: bool, *scales: float | None
) -> SecretTensor:
    scales = scales or (None,) * len(to)
    last = size[-len(to) :]
    pairs = zip(last, to, scales, strict=True)
    return _interpolated(grad, [_weights(n, m, align_corners, s).t() for n, m, s in pairs])
