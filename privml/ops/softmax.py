# SPDX-License-Identifier: Apache-2.0
"""Softmax and similar functions: the maximum subtracted, exponentials of what is not positive, a sum, one reciprocal
per row.

The exponentials of n numbers have 2 + log2(n) / 2 fractional bits more than the result, their sum log2(n) bits more in
front, within the 32 bits that a reciprocal takes.
Elements that a public mask hides count as minus infinity; a row of which nothing is left becomes zeros.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch

from privml.dispatch import implements
from privml.engines.catalogue import has_reciprocal1p
from privml.errors import InvalidInput
from privml.formats import FixedPoint
from privml.ops.elementary import logarithm
from privml.ops.exponential import decay, decay_starts_at_one
from privml.ops.fixed import (
    WIDEST,
    added,
    asked,
    cast,
    evaluate,
    known,
    less,
    real,
    settled,
    shifted,
    source_of,
    times,
    total,
)
from privml.ops.linear import count_of, dims_of
from privml.ops.masks import mask_of
from privml.ops.maximum import keep, last_dims
from privml.ops.ring_formats import interval, of_interval, together, width
from privml.ops.values import claimed, engine_of, is_secret, like
from privml.tensor import SecretTensor

aten = torch.ops.aten

# Of the exponentials, besides half a bit for each doubling of their number: errors of either sign add up to its root.
_GUARD = 2
# Exponentials have at least so many fractional bits; 2^_MOST of them have a sum below 2^31.
_COARSEST = 6
_MOST = WIDEST - 2 - _COARSEST


@dataclass(frozen=True, slots=True)
class Exponentials:
    """Left on a result of log_softmax: the exponentials and their sum, for the backward operator."""

    powers: SecretTensor
    sum: SecretTensor
    proved: bool
    at_least_one: bool


@dataclass(frozen=True, slots=True)
class _Parts:
    """``top``: the maximum over the dimensions, ``below``: x - top, ``powers``: exp(below), ``sum`` of these;
    ``proved``: whether differences fit their ring whatever x is, so that ``below`` is not positive and the sum at
    least 1 but for rounding; ``at_least_one``: that it is 1 or more exactly."""

    top: SecretTensor
    below: SecretTensor
    powers: SecretTensor
    sum: SecretTensor
    proved: bool
    at_least_one: bool


def _parts(x: SecretTensor, dims: list[int], scale: int) -> _Parts:
    count = count_of(x, dims, "softmax or logsumexp")
    more = (count - 1).bit_length()
    if more > _MOST:
        raise InvalidInput(
            f"a softmax or logsumexp of {count} numbers: at most {1 << _MOST} exponentials have a sum within the 32 "
            "bits that a reciprocal or a logarithm takes; split the dimension"
        )
    hidden = mask_of(x)
    if hidden is not None:  # what stands there need not fit the ring of the others
        x = like(x, tuple(c.masked_fill(hidden, 0) for c in x.share))
    x = _with_room(real(x, 1))
    engine, fmt, share = engine_of(x), x.format, x.share
    if hidden is not None:  # as low as a number that can be compared
        least = -(1 << (fmt.bits - 2))
        lowest = engine.public(torch.full((), least).expand(x.shape), fmt.bits)
        share = tuple(torch.where(hidden, low, c) for low, c in zip(lowest, share, strict=True))
        fmt = together(fmt, [fmt, of_interval(fmt, least, least)])
        x = like(x, share, fmt)
    proved = width(fmt) < fmt.bits
    largest, _ = engine.max_last(last_dims(share, x, dims), fmt.bits)
    top = like(x, keep(largest, x, dims, True), fmt)
    below = less(x, top)
    if hidden is not None:
        below = like(below, tuple(c.masked_fill(hidden, 0) for c in below.share))
    power_scale = max(min(scale + _GUARD + (more + 1) // 2, WIDEST - 2 - more), _COARSEST)
    target = FixedPoint(min(max(power_scale + more + 2, 8), WIDEST), power_scale)
    powers = decay(below, target, proved)
    if hidden is not None:
        shown = (~hidden).to(torch.int64)
        powers = like(powers, engine.multiply_public(powers.share, shown, powers.format.bits))
    row = total(powers, dims)
    if hidden is not None:  # nothing to divide by
        row = shifted(row, hidden.all(tuple(dims), keepdim=True).double())
    return _Parts(top, below, powers, row, proved, proved and decay_starts_at_one(below, target))


def _with_room(x: SecretTensor) -> SecretTensor:
    """``x`` in a ring in which differences of its values fit, if there is one."""
    fmt = x.format
    if width(fmt) < fmt.bits or fmt.bits == 64:
        return x
    return cast(x, fmt.bits + 1, fmt.scale)


def _quotient(parts: _Parts | Exponentials, scale: int) -> SecretTensor:
    """powers / row for 0 <= powers <= row, row >= 1, which may be proved."""
    inverse_scale = min(scale + 2, WIDEST - 2)
    inverse = _inverse(parts, FixedPoint(max(inverse_scale + 2, 8), inverse_scale))
    if not parts.proved:
        return times(parts.powers, inverse, scale)
    return known(times(parts.powers, known(inverse, 1.0), scale, 1.0), 1.0)


def _inverse(parts: _Parts | Exponentials, target: FixedPoint) -> SecretTensor:
    """1 / row; of few numbers, whose sum is at least 1, by a function that needs no power of two of it."""
    row = parts.sum
    if parts.at_least_one:
        one, high = 1 << row.format.scale, interval(row.format)[1]
        share = engine_of(row).add_public(row.share, -one, row.format.bits)
        rest = claimed(like(row, share), of_interval(row.format, 0, max(high - one, 0)))
        if has_reciprocal1p(source_of(rest), target):
            return evaluate(rest, "reciprocal1p", target)
    return evaluate(row, "reciprocal", target)


@implements(aten._softmax.default, aten._safe_softmax.default)
def softmax(x: SecretTensor, dim: int, half_to_float: Any = False) -> SecretTensor:
    if x.dim() == 0:
        return torch.ones_like(x)
    if x.numel() == 0:
        return torch.zeros_like(x)
    scale = asked(x.session).scale
    parts = _parts(x, dims_of(x, dim), scale)
    return settled(_quotient(parts, scale))


@implements(aten.softmax.int)
def softmax_int(x: SecretTensor, dim: int, dtype: torch.dtype | None = None) -> SecretTensor:
    return softmax(x, dim)


@implements(aten._log_softmax.default)
def log_softmax(x: SecretTensor, dim: int, half_to_float: bool = False) -> SecretTensor:
    if x.dim() == 0 or x.numel() == 0:
        return torch.zeros_like(x)
    wanted = asked(x.session)
    parts = _parts(x, dims_of(x, dim), wanted.scale)
    result = _logarithm(parts, wanted)
    result.aux = Exponentials(parts.powers, parts.sum, parts.proved, parts.at_least_one)
    return result


def _logarithm(parts: _Parts, wanted: FixedPoint) -> SecretTensor:
    below = cast(parts.below, max(parts.below.format.bits, wanted.bits), wanted.scale)
    row = cast(logarithm(parts.sum, wanted.scale), below.format.bits, wanted.scale)
    return settled(less(below, row))


@implements(aten.log_softmax.int)
def log_softmax_int(x: SecretTensor, dim: int, dtype: torch.dtype | None = None) -> SecretTensor:
    return log_softmax(x, dim)


@implements(aten.logsumexp.default)
def logsumexp(x: SecretTensor, dim: Any, keepdim: bool = False) -> Any:
    wanted, dims = asked(x.session), dims_of(x, dim)
    if not dims:
        return settled(real(x))
    count_of(x, dims, "logsumexp")
    if x.numel() == 0:
        return settled(torch.sum(real(x), dims, keepdim))
    parts = _parts(x, dims, wanted.scale)
    result = added(settled(parts.top), settled(logarithm(parts.sum, wanted.scale)))
    return result if keepdim else result.squeeze(dims)


# ---- gradients
@implements(aten._softmax_backward_data.default)
def softmax_backward(grad: Any, y: Any, dim: int, dtype: torch.dtype) -> SecretTensor:
    weighted = grad * y
    return weighted - y * torch.sum(weighted, [dim], True)


@implements(aten._log_softmax_backward_data.default)
def log_softmax_backward(grad: Any, y: Any, dim: int, dtype: torch.dtype) -> SecretTensor:
    aux = y.aux if is_secret(y) else None
    shares = settled(_quotient(aux, asked(y.session).scale)) if isinstance(aux, Exponentials) else torch.exp(y)
    return grad - shares * torch.sum(grad, [dim], True)


# ---- log_softmax in parts, for graphs in which its gradient need not wait for the logarithm
def softmax_parts(x: Any, dim: int) -> Any:
    """What the logarithm and the gradient have in common; of a public tensor, its log_softmax."""
    if not is_secret(x):
        return torch.log_softmax(x, dim)
    return _parts(x, dims_of(x, dim), asked(x.session).scale)


def softmax_logarithm(parts: Any) -> Any:
    """log_softmax."""
    return _logarithm(parts, asked(parts.top.session)) if isinstance(parts, _Parts) else parts


def softmax_gradient(grad: Any, parts: Any, dim: int) -> Any:
    """The gradient of log_softmax."""
    if isinstance(parts, _Parts):
        scale = asked(parts.top.session).scale
        shares = settled(_quotient(parts, scale))
    else:
        shares = torch.exp(parts)
    return grad - shares * torch.sum(grad, [dim], True)
