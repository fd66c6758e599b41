# SPDX-License-Identifier: Apache-2.0
"""Maxima and minima: of two tensors, along dimensions, and their positions."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import torch

from privml.dispatch import implements
from privml.encoding import encode_constant, is_never
from privml.engines.base import Engine, Share
from privml.engines.ring import extremes
from privml.errors import InvalidInput
from privml.formats import FixedPoint, Integer
from privml.ops.linear import add_public, count_of, dims_of, neg
from privml.ops.ring_formats import (
    RingFormat,
    interval,
    narrowed,
    nonnegative,
    of_interval,
    plain_format,
    plus,
    promise_of,
    proved,
    rectified,
    rescaled,
    width,
)
from privml.ops.values import (
    align,
    as_number,
    claimed,
    engine_of,
    finish,
    is_secret,
    like,
    result_dtype,
    ring_value,
    signed,
)
from privml.tensor import SecretTensor

aten = torch.ops.aten


def position(engine: Engine, place: Share, numbers: torch.Tensor) -> Share:
    """The number (of [..., n]) at the place of a one-hot Boolean share [..., n], as an integer of 64 bits."""
    ring = engine.multiply_public(engine.bits_to_ring(place, 64), numbers.expand(place[0].shape), 64)
    low, high = extremes(numbers)
    return engine.claim(engine.sum(ring, [place[0].dim() - 1], False, 64), min(low, 0), max(high, 0))


@implements(aten.maximum.default)
def maximum(a: Any, b: Any) -> SecretTensor:
    dtype = result_dtype(a, b)
    if is_secret(a) and is_secret(b):
        sa, sb, fmt, placement, engine = align(a, b, dtype)
        share = engine.maximum(sa, sb, fmt.bits)
        # the larger one is not negative if either is not, where no difference wraps
        positive = width(fmt) < fmt.bits and (nonnegative(a.format) or nonnegative(b.format))
        if positive:
            fmt = rectified(fmt)
            share = engine.claim(share, *interval(fmt))
        return finish(engine, share, fmt, placement, a.session, dtype)
    secret, public = (a, b) if is_secret(a) else (b, a)
    return maximum_public(secret, public, dtype)


def maximum_public(x: SecretTensor, bound: Any, dtype: torch.dtype) -> SecretTensor:
    """max(x, bound) = bound + relu(x - bound). Minus infinity limits nothing; InvalidInput for infinity."""
    bound = as_number(signed(bound))
    free = _unlimited(bound, x)
    if free is not None:
        limited = maximum_public(x, as_number(torch.where(free, 0.0, torch.as_tensor(bound))), dtype)
        return torch.where(free, x, limited)
    shifted = add_public(x, -bound, dtype) if isinstance(bound, torch.Tensor) or bound else x
    share, fmt = ring_value(shifted, dtype)
    positive, _ = rectify(engine_of(x), share, fmt)
    result = like(x, positive, rectified(fmt), dtype)
    result = add_public(result, bound, dtype) if isinstance(bound, torch.Tensor) or bound else result
    return _limited(result, x, bound, max)


def minimum_public(x: SecretTensor, bound: Any, dtype: torch.dtype) -> SecretTensor:
    """min(x, bound) = -max(-x, -bound)."""
    bound = as_number(signed(bound))
    return _limited(neg(maximum_public(neg(x), -bound, dtype)), x, bound, min)


def _unlimited(bound: Any, x: SecretTensor) -> torch.Tensor | None:
    """Where ``bound`` is minus infinity, or what stands for it in the ring of ``x``; None if it is nowhere."""
    value = torch.as_tensor(bound)
    if not isinstance(x.format, FixedPoint) or not value.dtype.is_floating_point or not value.numel():
        return None
    infinite = is_never(value, x.format.bits, x.format.scale)
    if bool((infinite & (value > 0)).any()):
        raise InvalidInput("a maximum with infinity, or a minimum with minus infinity, is infinite: leave it out")
    return infinite if bool(infinite.any()) else None


def _limited(result: SecretTensor, x: SecretTensor, bound: Any, pick: Callable[[int, int], int]) -> SecretTensor:
    """``result``, the larger (smaller) of ``x`` and ``bound``, with what is known of it where their difference fits."""
    fmt = result.format
    if not isinstance(fmt, (FixedPoint, Integer)) or not isinstance(x.format, (FixedPoint, Integer)):
        return result
    value = encode_constant(bound, fmt.bits, fmt.scale, headroom=3)
    least, most = extremes(value) if isinstance(value, torch.Tensor) else (value, value)
    known = rescaled(x.format, plain_format(fmt), engine_of(x).floors)
    low, high = interval(known)
    if -(1 << (fmt.bits - 1)) <= low - most and high - least < 1 << (fmt.bits - 1):
        result = claimed(result, of_interval(fmt, pick(low, least), pick(high, most)))
    return result


def rectify(engine: Engine, share: Share, fmt: RingFormat) -> tuple[Share, Share]:
    """(max(x, 0), Boolean share of [x >= 0]); the sign is looked for in the smallest ring that holds the value."""
    bits = width(fmt)
    if bits == fmt.bits:
        return engine.relu(share, bits)
    positive = engine.logical_not(engine.less_than_zero(engine.reduce(share, fmt.bits, bits), bits))
    return engine.claim(engine.select(positive, share, fmt.bits), *interval(rectified(fmt))), positive


def rectified_in(
    engine: Engine, share: Share, fmt: RingFormat, to: RingFormat, windows: bool = False
) -> tuple[Share, RingFormat] | None:
    """max(x, 0) rounded to the scale of ``to``, in its ring, where an engine finds the sign and the carry of the bits
    that are dropped together: one that floors, and to which narrow rings are worth it. None elsewhere, and if ``to``
    has no smaller scale. A value whose sum with half a unit wraps has the sign of that sum. ``windows``: of the largest
    along the last dimension, None also if the ring of ``to`` may be too small for it."""
    shift = fmt.scale - to.scale
    if engine.stays_wide or not engine.floors or shift <= 0:
        return None
    half = 1 << (shift - 1)
    raised = plus(fmt, 0, half)
    bits = min(width(raised) + (1 if windows else 0), fmt.bits)  # differences take a bit more
    result = of_interval(plain_format(to), 0, interval(raised)[1] >> shift)
    if shift >= bits or (windows and not result.nonnegative):
        return None
    share = engine.add_public(share, half, fmt.bits)
    if bits < fmt.bits:
        share = engine.reduce(share, fmt.bits, bits)
    quotient = engine.rectified_maximum if windows else engine.rectified_quotient
    return engine.claim(quotient(share, bits, shift, to.bits), *interval(result)), result


@implements(aten.minimum.default)
def minimum(a: Any, b: Any) -> SecretTensor:
    dtype = result_dtype(a, b)
    result = neg(maximum(-signed(a), -signed(b)))
    return result if result.dtype is dtype else result.to(dtype)


def last_dims(share: Share, x: SecretTensor, dims: Sequence[int]) -> Share:
    """The share of ``x`` with ``dims`` moved to the end and flattened into one."""
    rest = [d for d in range(x.dim()) if d not in dims]
    order = rest + list(dims)
    shape = [x.shape[d] for d in rest] + [math.prod(x.shape[d] for d in dims)]
    if order == list(range(x.dim())) and len(dims) == 1:
        return share
    return tuple(c.permute(order).reshape(shape) for c in share)


def keep(share: Share, x: SecretTensor, dims: Sequence[int], keepdim: bool) -> Share:
    """The share of a reduction of ``x`` over ``dims``, with these as dimensions of size one on request."""
    if not keepdim:
        return share
    shape = [1 if d in dims else n for d, n in enumerate(x.shape)]
    return tuple(c.reshape(shape) for c in share)


@implements(aten.amax.default)
def amax(x: SecretTensor, dim: Any = (), keepdim: bool = False) -> SecretTensor:
    dims = dims_of(x, dim)
    if not dims:
        return x.clone()
    count_of(x, dims, "maximum or minimum")
    share, fmt = ring_value(x, x.dtype)
    engine = engine_of(x)
    bits = _compared(engine, fmt)
    values, _ = engine.max_last(last_dims(engine.reduce(share, fmt.bits, bits), x, dims), bits)
    if bits < fmt.bits:
        values = engine.extend(values, bits, fmt.bits, True, promise_of(fmt))
    return like(x, keep(values, x, dims, keepdim), fmt)


def _compared(engine: Engine, fmt: RingFormat) -> int:
    """The smallest ring that holds the values with the bit that comparisons need, where going there is worth it."""
    return fmt.bits if engine.stays_wide else narrowed(fmt, 1).bits


@implements(aten.amin.default)
def amin(x: SecretTensor, dim: Any = (), keepdim: bool = False) -> SecretTensor:
    result = neg(amax(neg(x), dim, keepdim))
    if isinstance(x.format, (FixedPoint, Integer)):
        result = claimed(result, rescaled(x.format, plain_format(result.format)))  # it is one of the values
    return result


@implements(aten.max.default)
def max_all(x: SecretTensor) -> SecretTensor:
    return amax(x)


@implements(aten.min.default)
def min_all(x: SecretTensor) -> SecretTensor:
    return amin(x)


@implements(aten.argmax.default)
def argmax(x: SecretTensor, dim: int | None = None, keepdim: bool = False) -> SecretTensor:
    dims = dims_of(x, dim)
    count = count_of(x, dims, "place of the maximum or minimum")
    share, fmt = ring_value(x, x.dtype)
    engine = engine_of(x)
    bits = _compared(engine, fmt)
    index = engine.argmax_last(last_dims(engine.reduce(share, fmt.bits, bits), x, dims), bits)
    return like(x, keep(index, x, dims, keepdim), proved(64, 0, False, 0, count - 1), torch.int64)


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
