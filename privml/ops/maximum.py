# SPDX-License-Identifier: Apache-2.0
"""Maxima and minima: of two tensors, along dimensions, and their positions."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch

from privml.dispatch import implements
from privml.engines.base import Share
from privml.ops.linear import add_public, dims_of, neg
from privml.ops.values import (
    align,
    as_number,
    engine_of,
    finish,
    is_secret,
    like,
    result_dtype,
    ring_format,
    ring_value,
    signed,
)
from privml.tensor import SecretTensor

aten = torch.ops.aten


@implements(aten.maximum.default)
def maximum(a: Any, b: Any) -> SecretTensor:
    dtype = result_dtype(a, b)
    if is_secret(a) and is_secret(b):
        sa, sb, fmt, placement, engine = align(a, b, dtype)
        share = engine.maximum(sa, sb, fmt.bits)
        return finish(engine, share, fmt, placement, a.session, dtype)
    secret, public = (a, b) if is_secret(a) else (b, a)
    return maximum_public(secret, public, dtype)


def maximum_public(x: SecretTensor, bound: Any, dtype: torch.dtype) -> SecretTensor:
    """max(x, bound) = bound + relu(x - bound)."""
    bound = as_number(signed(bound))
    shifted = add_public(x, -bound, dtype) if isinstance(bound, torch.Tensor) or bound else x
    share, fmt = ring_value(shifted, dtype)
    positive, _ = engine_of(x).relu(share, fmt.bits)
    rectified = like(x, positive, ring_format(fmt.bits, fmt.scale, dtype.is_floating_point, True), dtype)
    return add_public(rectified, bound, dtype) if isinstance(bound, torch.Tensor) or bound else rectified


@implements(aten.minimum.default)
def minimum(a: Any, b: Any) -> SecretTensor:
    dtype = result_dtype(a, b)
    result = neg(maximum(-signed(a), -signed(b)))
    return result if result.dtype is dtype else result.to(dtype)


def last_dims(share: Share, x: SecretTensor, dims: Sequence[int]) -> Share:
    """The share of ``x`` with ``dims`` moved to the end and flattened into one."""
    rest = [d for d in range(x.dim()) if d not in dims]
    order = rest + list(dims)
    shape = [x.shape[d] for d in rest] + [-1]
    if order == list(range(x.dim())) and len(dims) == 1:
        return share
    return tuple(c.permute(order).reshape(shape) for c in share)


def _keep(share: Share, x: SecretTensor, dims: Sequence[int], keepdim: bool) -> Share:
    if not keepdim:
        return share
    shape = [1 if d in dims else n for d, n in enumerate(x.shape)]
    return tuple(c.reshape(shape) for c in share)


@implements(aten.amax.default)
def amax(x: SecretTensor, dim: Any = (), keepdim: bool = False) -> SecretTensor:
    dims = dims_of(x, dim)
    if not dims:
        return x.clone()
    share, fmt = ring_value(x, x.dtype)
    values, _ = engine_of(x).max_last(last_dims(share, x, dims), fmt.bits)
    return like(x, _keep(values, x, dims, keepdim), fmt)


@implements(aten.amin.default)
def amin(x: SecretTensor, dim: Any = (), keepdim: bool = False) -> SecretTensor:
    return neg(amax(neg(x), dim, keepdim))


@implements(aten.max.default)
def max_all(x: SecretTensor) -> SecretTensor:
    return amax(x)


@implements(aten.min.default)
def min_all(x: SecretTensor) -> SecretTensor:
    return amin(x)


@implements(aten.argmax.default)
def argmax(x: SecretTensor, dim: int | None = None, keepdim: bool = False) -> SecretTensor:
    dims = dims_of(x, dim)
    share, fmt = ring_value(x, x.dtype)
    index = engine_of(x).argmax_last(last_dims(share, x, dims), fmt.bits)
    return like(x, _keep(index, x, dims, keepdim), ring_format(64, 0, False, True), torch.int64)


@implements(aten.argmin.default)
def argmin(x: SecretTensor, dim: int | None = None, keepdim: bool = False) -> SecretTensor:
    return argmax(neg(x), dim, keepdim)


@implements(aten.max.dim)
def max_dim(x: SecretTensor, dim: int, keepdim: bool = False) -> tuple[SecretTensor, SecretTensor]:
    return amax(x, [dim], keepdim), argmax(x, dim, keepdim)


@implements(aten.min.dim)
def min_dim(x: SecretTensor, dim: int, keepdim: bool = False) -> tuple[SecretTensor, SecretTensor]:
    values, index = max_dim(neg(x), dim, keepdim)
    return neg(values), index
