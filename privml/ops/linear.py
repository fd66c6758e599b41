# SPDX-License-Identifier: Apache-2.0
"""Sums and differences, products with and division by public numbers: no communication but for rounding."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import torch

from privml.dispatch import implements
from privml.encoding import encode_constant, encode_factor
from privml.engines.base import Engine, Share
from privml.engines.ring import extremes
from privml.errors import InvalidInput
from privml.formats import Boolean, FixedPoint, current_node
from privml.ops.masks import hidden_by, mask_of, masked
from privml.ops.quotients import quotient, whole_divisor
from privml.ops.rescaling import calibrated, convert
from privml.ops.ring_formats import (
    RingFormat,
    added,
    less,
    multiplied,
    negated,
    of_interval,
    plus,
    promise_of,
    relabelled,
    rescaled,
    ring_format,
    sum_format,
    together,
)
from privml.ops.values import (
    align,
    as_number,
    engine_of,
    expand,
    finish,
    finish_product,
    is_secret,
    like,
    result_dtype,
    ring_operand,
    ring_value,
    settle,
    signed,
    working_format,
)
from privml.tensor import SecretTensor

aten = torch.ops.aten
Number = float | int


# ---- sums
@implements(aten.add.Tensor, aten.add.Scalar)
def add(a: Any, b: Any, alpha: Number = 1) -> SecretTensor:
    if alpha != 1:
        b = b * alpha
    if not is_secret(a):
        a, b = b, a
    dtype = result_dtype(a, b)
    if is_secret(b):
        sa, sb, fmt, placement, engine = align(a, b, dtype, sums=True)
        hidden = [mask_of(x) for x in (a, b)]
        if any(mask is not None for mask in hidden):  # what a mask hides stays hidden, whatever is added to it
            sa, sb = _shown(sa, *hidden), _shown(sb, *hidden)
        sum_fmt = sum_format(_own(a, fmt, engine), _own(b, fmt, engine))
        result = finish(engine, engine.add(sa, sb, fmt.bits), sum_fmt, placement, a.session, dtype)
        return masked(result, *hidden)
    return add_public(a, b, dtype)


def _own(x: SecretTensor, fmt: RingFormat, engine: Engine) -> RingFormat:
    """``fmt``, the common format of ``x`` and another value, with what is known of ``x`` alone."""
    return rescaled(x.format, fmt, engine.floors) if type(x.format) is type(fmt) else fmt


def _shown(share: Share, *masks: torch.Tensor | None) -> Share:
    """Zero at the places that some mask hides."""
    for mask in masks:
        share = share if mask is None else tuple(torch.where(mask, 0, c) for c in share)
    return share


def add_public(a: SecretTensor, b: torch.Tensor | Number, dtype: torch.dtype) -> SecretTensor:
    """Secret plus public; infinities (additive masks) saturate to a quarter of what comparisons allow."""
    b = as_number(b)
    share, fmt = ring_value(a, dtype)
    engine = engine_of(a)
    working = working_format(a.session)
    carried = mask_of(a)
    if fmt.scale < working.scale and dtype.is_floating_point:  # a coarse tensor must not coarsen the constant
        fine = rescaled(fmt, ring_format(max(fmt.bits, working.bits), working.scale, True))
        share, fmt = convert(engine, share, fmt, fine), fine
    value = encode_constant(b, fmt.bits, fmt.scale, headroom=3)
    if isinstance(value, torch.Tensor):
        share = expand(share, torch.broadcast_shapes(share[0].shape, value.shape))
    hidden = hidden_by(b, fmt.bits, fmt.scale)
    if carried is not None and isinstance(value, torch.Tensor):  # hidden elements stay what they are
        value = torch.where(carried, 0, value)
        hidden = None if hidden is None else hidden & ~carried
    if hidden is not None:  # these become the constant, whatever they were
        share = tuple(torch.where(hidden, 0, c) for c in share)
        value = torch.where(hidden, value.clamp(min=-_lowest(fmt)), value)
    fmt = _sum_format(fmt, value, hidden)
    result = finish(engine, engine.add_public(share, value, fmt.bits), fmt, a.placement, a.session, dtype)
    return masked(result, carried, hidden)


def _lowest(fmt: RingFormat) -> int:
    """The size of what stands for minus infinity at the scale of ``fmt``; the ring that the node asks for has it."""
    output = current_node().output
    room = output.bits - 3 - output.scale + fmt.scale if isinstance(output, FixedPoint) else fmt.bits
    return 1 << max(min(room, 62), 0)


@implements(aten.sub.Tensor, aten.sub.Scalar)
def sub(a: Any, b: Any, alpha: Number = 1) -> SecretTensor:
    if alpha != 1:
        b = b * alpha
    dtype = result_dtype(a, b)
    if is_secret(a) and is_secret(b):
        sa, sb, fmt, placement, engine = align(a, b, dtype, sums=True)
        difference = less(_own(a, fmt, engine), _own(b, fmt, engine))
        return finish(engine, engine.subtract(sa, sb, fmt.bits), difference, placement, a.session, dtype)
    if is_secret(a):
        return add_public(a, -signed(b), dtype)
    return add_public(neg(b), a, dtype)


@implements(aten.rsub.Tensor, aten.rsub.Scalar)
def rsub(a: Any, b: Any, alpha: Number = 1) -> SecretTensor:
    return sub(b, a if alpha == 1 else a * alpha)


@implements(aten.neg.default)
def neg(x: SecretTensor) -> SecretTensor:
    share, fmt = ring_value(x, x.dtype)
    return like(x, engine_of(x).negate(share, fmt.bits), negated(fmt))


def dims_of(x: torch.Tensor, dim: Sequence[int] | int | None) -> list[int]:
    """The reduced dimensions as nonnegative numbers; all for None or an empty list. IndexError and RuntimeError as in
    torch for a dimension that does not exist or stands there twice."""
    if dim is None or (not isinstance(dim, int) and not dim):
        return list(range(x.dim()))
    rank = max(x.dim(), 1)
    found = []
    for d in [dim] if isinstance(dim, int) else dim:
        if not -rank <= d < rank:
            raise IndexError(f"Dimension out of range (expected to be in range of [{-rank}, {rank - 1}], but got {d})")
        if d % rank in found:
            raise RuntimeError(f"dim {d % rank} appears multiple times in the list of dims")
        found.append(d % rank)
    return found if x.dim() else []


def count_of(x: torch.Tensor, dims: Sequence[int], what: str) -> int:
    """How many numbers of ``x`` a reduction over ``dims`` takes together. InvalidInput if there are none: torch raises
    an error too, or answers NaN or infinity, which no format has. ``what`` names the result."""
    count = math.prod(x.shape[d] for d in dims)
    if count == 0:
        raise InvalidInput(f"{what} of no numbers, over dimension(s) {list(dims)} of a tensor of shape {list(x.shape)}")
    return count


def sum_share(x: SecretTensor, dims: Sequence[int], keepdim: bool, dtype: torch.dtype) -> tuple[Share, Any]:
    share, fmt = ring_value(x, dtype)
    if not dims:
        return tuple(c.clone() for c in share), fmt
    count = math.prod(x.shape[d] for d in dims)
    return engine_of(x).sum(share, dims, keepdim, fmt.bits), added(fmt, count)


def _sum_dtype(x: torch.Tensor, dtype: torch.dtype | None) -> torch.dtype:
    return dtype or (x.dtype if x.dtype.is_floating_point else torch.int64)


@implements(aten.sum.dim_IntList)
def sum_dims(
    x: SecretTensor, dim: Sequence[int] | None = None, keepdim: bool = False, dtype: torch.dtype | None = None
) -> SecretTensor:
    dtype = _sum_dtype(x, dtype)
    share, fmt = sum_share(x, dims_of(x, dim), keepdim, dtype)
    return finish(engine_of(x), share, fmt, x.placement, x.session, dtype)


@implements(aten.sum.default)
def sum_all(x: SecretTensor, dtype: torch.dtype | None = None) -> SecretTensor:
    return sum_dims(x, None, False, dtype)


@implements(aten.mean.dim)
def mean(
    x: SecretTensor, dim: Sequence[int] | None = None, keepdim: bool = False, dtype: torch.dtype | None = None
) -> SecretTensor:
    if not (dtype or x.dtype).is_floating_point:
        raise InvalidInput(f"mean of a {dtype or x.dtype} tensor; use x.float() or mean(..., dtype=torch.float32)")
    dims = dims_of(x, dim)
    count = count_of(x, dims, "mean")
    share, fmt = sum_share(x, dims, keepdim, dtype or x.dtype)
    return divide_public(like(x, share, fmt, dtype or x.dtype), count, dtype or x.dtype)


@implements(aten.mean.default)
def mean_all(x: SecretTensor, dtype: torch.dtype | None = None) -> SecretTensor:
    return mean(x, None, False, dtype)


@implements(aten.cumsum.default)
def cumsum(x: SecretTensor, dim: int, dtype: torch.dtype | None = None) -> SecretTensor:
    dtype = _sum_dtype(x, dtype)
    share, fmt = ring_value(x, dtype)
    total = settle(engine_of(x), engine_of(x).additive(lambda c: torch.cumsum(c, dim), share), fmt)
    return like(x, total, added(fmt, x.shape[dim] if x.dim() else 1), dtype)


# ---- products with public values
def scale_public(x: SecretTensor, factor: torch.Tensor | Number, dtype: torch.dtype) -> SecretTensor:
    """Product with a public number or tensor: exact for integers, one truncation otherwise."""
    factor = as_number(factor)
    session = x.session
    working = working_format(session)
    engine = engine_of(x)
    value, shift = encode_factor(factor, working.scale, working.bits)
    if shift == 0:  # the scale of x stays
        share, fmt = ring_value(x, dtype)
        share, value = _broadcast_factor(share, value)
        if isinstance(value, int) and value == 1:
            share = tuple(c.clone() for c in share)
        else:
            share = engine.multiply_public(share, value, fmt.bits)
        return finish(engine, share, _multiplied(fmt, value, fmt.bits), x.placement, session, dtype)
    power_of_two = not isinstance(value, torch.Tensor) and abs(value) == 1
    share, fmt = ring_value(x, dtype) if power_of_two else ring_operand(x, session)
    bits = max(fmt.bits, working.bits)
    if fmt.bits < bits:
        share = engine.extend(share, fmt.bits, bits, True, promise_of(fmt))
    share, value = _broadcast_factor(share, value)
    share = engine.multiply_public(share, value, bits)
    known = relabelled(_multiplied(fmt, value, bits), fmt.scale + shift)
    return finish_product(engine, share, known, x.placement, session, dtype)


def divide_public(x: SecretTensor, divisor: Number, dtype: torch.dtype) -> SecretTensor:
    """x / divisor: rounded to the nearest for whole divisors that are no powers of two, which are shifts."""
    count, working = whole_divisor(divisor), working_format(x.session)
    share, fmt = ring_value(x, dtype)
    if count is None or fmt.scale < working.scale:
        return scale_public(x, 1.0 / divisor, dtype)
    engine, output = engine_of(x), current_node().output
    if divisor < 0:
        share, fmt = engine.negate(share, fmt.bits), negated(fmt)
    target = output if isinstance(output, FixedPoint) else ring_format(fmt.bits, working.scale, True)
    share, fmt = quotient(engine, share, fmt, count, min(target.scale, fmt.scale))
    share, fmt = calibrated(engine, share, fmt, target)
    to = rescaled(fmt, ring_format(target.bits, target.scale, True), engine.floors)
    return SecretTensor(convert(engine, share, fmt, to), to, x.placement, x.session, dtype)


def _multiplied(fmt: RingFormat, value: torch.Tensor | int, bits: int) -> RingFormat:
    """What is known of a product with public integers, in a ring of ``bits``; the scale is that of ``fmt``."""
    return multiplied(fmt, *_ends(value), bits)


def _sum_format(fmt: RingFormat, value: torch.Tensor | int, hidden: torch.Tensor | None) -> RingFormat:
    """What is known of a sum with public integers, which takes the place of what is ``hidden``."""
    if hidden is None:
        return plus(fmt, *_ends(value))
    total = plus(fmt, *_ends(torch.where(hidden, 0, value)))
    return together(total, [total, of_interval(total, *_ends(torch.where(hidden, value, 0)))])


def _ends(value: torch.Tensor | int) -> tuple[int, int]:
    return extremes(value) if isinstance(value, torch.Tensor) else (value, value)


def _broadcast_factor(share: Share, value: torch.Tensor | int) -> tuple[Share, torch.Tensor | int]:
    if isinstance(value, torch.Tensor):
        shape = torch.broadcast_shapes(share[0].shape, value.shape)
        return expand(share, shape), value.expand(shape)
    return share, value


@implements(aten.mul.Scalar)
def mul_scalar(x: SecretTensor, factor: Number) -> SecretTensor:
    return scale_public(x, factor, result_dtype(x, factor))


def is_bits(x: Any) -> bool:
    return is_secret(x) and isinstance(x.format, Boolean)
