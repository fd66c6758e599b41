# SPDX-License-Identifier: Apache-2.0
"""Comparisons, selection and maxima of floats; -0 equals +0."""

from __future__ import annotations

from typing import Any

import torch

from privml.dispatch import implements_floating
from privml.engines.base import Engine, Share
from privml.formats import Float
from privml.ops.floating.arithmetic import abs_, neg
from privml.ops.floating.values import (
    as_float,
    compared,
    components,
    elementwise,
    finished,
    operands,
    real_dtype,
    reduced_last,
)
from privml.ops.linear import dims_of
from privml.ops.maximum import keep, last_dims, position
from privml.ops.ring_formats import proved
from privml.ops.values import BOOLEAN, engine_of, is_secret, join, like
from privml.ops.words import nonzeros, selected
from privml.tensor import SecretTensor

aten = torch.ops.aten


@implements_floating(aten.lt.Tensor, aten.lt.Scalar)
def lt(a: Any, b: Any) -> SecretTensor:
    return compared("less_than", a, b)


@implements_floating(aten.gt.Tensor, aten.gt.Scalar)
def gt(a: Any, b: Any) -> SecretTensor:
    return compared("less_than", b, a)


@implements_floating(aten.le.Tensor, aten.le.Scalar)
def le(a: Any, b: Any) -> SecretTensor:
    return compared("less_than", b, a, True)


@implements_floating(aten.ge.Tensor, aten.ge.Scalar)
def ge(a: Any, b: Any) -> SecretTensor:
    return compared("less_than", a, b, True)


@implements_floating(aten.eq.Tensor, aten.eq.Scalar)
def eq(a: Any, b: Any) -> SecretTensor:
    return (
        compared("equal", a, b) if not _is_zero(b) else _bits(a, engine_of(a).logical_not(nonzeros(a.share, a.format)))
    )


@implements_floating(aten.ne.Tensor, aten.ne.Scalar)
def ne(a: Any, b: Any) -> SecretTensor:
    return compared("equal", a, b, True) if not _is_zero(b) else _bits(a, nonzeros(a.share, a.format))


def _is_zero(b: Any) -> bool:
    return not isinstance(b, torch.Tensor) and b == 0


def _bits(x: SecretTensor, share: Share) -> SecretTensor:
    return like(x, share, BOOLEAN, torch.bool)


@implements_floating(aten.isnan.default)
def isnan(x: SecretTensor) -> torch.Tensor:
    return torch.zeros(x.shape, dtype=torch.bool)


@implements_floating(aten.isinf.default)
def isinf(x: SecretTensor) -> SecretTensor:
    return compared("equal", abs_(x), torch.inf)


@implements_floating(aten.logical_not.default)
def logical_not(x: SecretTensor) -> SecretTensor:
    return eq(x, 0)


def _as_bits(x: Any) -> Any:
    return x if x.dtype is torch.bool else x != 0


@implements_floating(aten.logical_and.default)
def logical_and(a: Any, b: Any) -> SecretTensor:
    return _as_bits(a) & _as_bits(b)


@implements_floating(aten.logical_or.default)
def logical_or(a: Any, b: Any) -> SecretTensor:
    return _as_bits(a) | _as_bits(b)


@implements_floating(aten.logical_xor.default)
def logical_xor(a: Any, b: Any) -> SecretTensor:
    return _as_bits(a) ^ _as_bits(b)


@implements_floating(aten.any.default, aten.any.dim, aten.any.dims)
def any_(x: SecretTensor, *args: Any, **kwargs: Any) -> SecretTensor:
    return torch.any(x != 0, *args, **kwargs)


@implements_floating(aten.all.default, aten.all.dim, aten.all.dims)
def all_(x: SecretTensor, *args: Any, **kwargs: Any) -> SecretTensor:
    return torch.all(x != 0, *args, **kwargs)


@implements_floating(aten.count_nonzero.default, aten.count_nonzero.dim_IntList)
def count_nonzero(x: SecretTensor, dim: Any = None) -> SecretTensor:
    return torch.sum(x != 0, dims_of(x, dim))


# ---- selection
@implements_floating(aten.where.self)
def where(condition: Any, a: Any, b: Any) -> SecretTensor:
    dtype = real_dtype(a, b)
    if not is_secret(condition):
        shares, fmt, placement, session = operands(a, b)
        share = components(lambda x, y: torch.where(condition, x, y), *shares)
        return finished(share, fmt, placement, session, dtype)
    if not is_secret(a) and not is_secret(b):
        a = as_float(a, condition.session)
    (sa, sb), fmt, placement, session = operands(a, b)
    placement = join(placement, condition.placement)
    shape = torch.broadcast_shapes(condition.shape, sa[0].shape)
    bit, sa, sb = (components(lambda c: c.expand(shape), s) for s in (condition.share, sa, sb))
    share = selected(session.engine_for(placement), bit, sa, sb, fmt)
    return finished(share, fmt, placement, session, dtype)


@implements_floating(aten.where.ScalarOther, aten.where.ScalarSelf)
def where_scalar(condition: Any, a: Any, b: Any) -> SecretTensor:
    return where(condition, *(v if isinstance(v, torch.Tensor) else torch.tensor(v) for v in (a, b)))


@implements_floating(aten.masked_fill.Scalar, aten.masked_fill.Tensor)
def masked_fill(x: Any, mask: Any, value: Any) -> SecretTensor:
    filling = value if isinstance(value, torch.Tensor) else torch.tensor(value, dtype=x.dtype)
    return where(mask, filling.to(x.dtype), x)


@implements_floating(aten.sign.default, aten.sgn.default)
def sign(x: SecretTensor) -> SecretTensor:
    """+-1 with the sign bit of x, where x is not zero."""
    one = torch.ones_like(x)
    mask = 1 << x.format.sign_bit
    share = components(lambda o, c: o | (c & mask), one.share, x.share)
    share = x.session.engine.float_select(nonzeros(x.share, x.format), share, x.format)
    return SecretTensor(share, x.format, one.placement, x.session, x.dtype)


# ---- maxima
@implements_floating(aten.maximum.default, aten.fmax.default)
def maximum(a: Any, b: Any) -> SecretTensor:
    return elementwise("maximum", a, b)


@implements_floating(aten.minimum.default, aten.fmin.default)
def minimum(a: Any, b: Any) -> SecretTensor:
    return neg(elementwise("maximum", *(torch.neg(v) if isinstance(v, torch.Tensor) else -v for v in (a, b))))


@implements_floating(aten.clamp.default, aten.clamp.Tensor)
def clamp(x: Any, min: Any = None, max: Any = None) -> SecretTensor:
    x = x if min is None else maximum(x, min)
    return x if max is None else minimum(x, max)


@implements_floating(aten.clamp_min.default, aten.clamp_min.Tensor)
def clamp_min(x: Any, min: Any) -> SecretTensor:
    return maximum(x, min)


@implements_floating(aten.clamp_max.default, aten.clamp_max.Tensor)
def clamp_max(x: Any, max: Any) -> SecretTensor:
    return minimum(x, max)


def max_last(engine: Engine, share: Share, fmt: Float) -> Share:
    """The maximum over the last dimension, by tournament."""
    return reduced_last(engine, share, lambda a, b: engine.float_operation("maximum", fmt, a, b))


def max_last_one_hot(engine: Engine, share: Share, fmt: Float) -> tuple[Share, Share]:
    """The maximum over the last dimension, and a Boolean share [..., n] of its position, the first of equal ones."""
    n = share[0].shape[-1]
    places = engine.public(torch.eye(n, dtype=torch.uint8).expand(*share[0].shape, n), 1)
    while share[0].shape[-1] > 1:
        m = share[0].shape[-1]
        left, right = (components(lambda c, i=i, m=m: c[..., i : m // 2 * 2 : 2], share) for i in range(2))
        here, there = (components(lambda c, i=i, m=m: c[..., i : m // 2 * 2 : 2, :], places) for i in range(2))
        bit = engine.float_operation("less_than", fmt, left, right)
        values = selected(engine, bit, right, left, fmt)
        spread = components(lambda b, p: b.unsqueeze(-1).expand(p.shape), bit, here)
        moved = engine.xor(here, engine.logical_and(spread, engine.xor(here, there)))
        share = components(lambda t, c, m=m: torch.cat([t, c[..., m // 2 * 2 :]], -1), values, share)
        places = components(lambda t, c, m=m: torch.cat([t, c[..., m // 2 * 2 :, :]], -2), moved, places)
    return components(lambda c: c[..., 0], share), components(lambda c: c[..., 0, :], places)


@implements_floating(aten.amax.default)
def amax(x: SecretTensor, dim: Any = (), keepdim: bool = False) -> SecretTensor:
    dims = dims_of(x, dim)
    share = max_last(engine_of(x), last_dims(x.share, x, dims), x.format) if dims else x.share
    return finished(keep(share, x, dims, keepdim), x.format, x.placement, x.session, x.dtype)


@implements_floating(aten.amin.default)
def amin(x: SecretTensor, dim: Any = (), keepdim: bool = False) -> SecretTensor:
    return neg(amax(neg(x), dim, keepdim))


@implements_floating(aten.max.default)
def max_all(x: SecretTensor) -> SecretTensor:
    return amax(x)


@implements_floating(aten.min.default)
def min_all(x: SecretTensor) -> SecretTensor:
    return amin(x)


@implements_floating(aten.max.dim)
def max_dim(x: SecretTensor, dim: int, keepdim: bool = False) -> tuple[SecretTensor, SecretTensor]:
    dims = dims_of(x, [dim])
    if not dims:
        return x.clone(), like(x, components(torch.zeros_like, x.share), proved(64, 0, False, 0, 0), torch.int64)
    engine = engine_of(x)
    value, place = max_last_one_hot(engine, last_dims(x.share, x, dims), x.format)
    index = position(engine, place, torch.arange(place[0].shape[-1]))
    fmt = proved(64, 0, False, 0, place[0].shape[-1] - 1)
    values = finished(keep(value, x, dims, keepdim), x.format, x.placement, x.session, x.dtype)
    return values, like(x, keep(index, x, dims, keepdim), fmt, torch.int64)


@implements_floating(aten.min.dim)
def min_dim(x: SecretTensor, dim: int, keepdim: bool = False) -> tuple[SecretTensor, SecretTensor]:
    values, index = max_dim(neg(x), dim, keepdim)
    return neg(values), index


@implements_floating(aten.argmax.default)
def argmax(x: SecretTensor, dim: int | None = None, keepdim: bool = False) -> SecretTensor:
    if dim is not None:
        return max_dim(x, dim, keepdim)[1]
    index = max_dim(x.reshape(-1), 0)[1]
    return index.reshape([1] * x.dim()) if keepdim else index


@implements_floating(aten.argmin.default)
def argmin(x: SecretTensor, dim: int | None = None, keepdim: bool = False) -> SecretTensor:
    return argmax(neg(x), dim, keepdim)
