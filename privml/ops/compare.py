# SPDX-License-Identifier: Apache-2.0
"""Comparisons, logic, selection, sign: results of comparisons are Boolean shares."""

from __future__ import annotations

from typing import Any

import torch

from privml.dispatch import holds_floats, implements, intercepts
from privml.encoding import encode_exact, encode_threshold
from privml.engines.base import Engine, Share
from privml.engines.ring import extremes
from privml.errors import SecretLeakError
from privml.formats import FixedPoint, Integer, Placement
from privml.ops.linear import dims_of, is_bits, sub
from privml.ops.masks import hidden_by, lowered, mask_of, masked
from privml.ops.maximum import rectify
from privml.ops.product import mul
from privml.ops.ring_formats import (
    RingFormat,
    bit_value,
    interval,
    magnitude_format,
    negated,
    nonnegative,
    plain_format,
    plus,
    public_format,
    rescaled,
    together,
    width,
)
from privml.ops.ring_formats import less as difference
from privml.ops.values import (
    BOOLEAN,
    align,
    as_number,
    broadcast,
    claimed,
    constant,
    engine_of,
    expand,
    is_secret,
    join,
    like,
    result_dtype,
    ring_value,
    unify,
)
from privml.tensor import SecretTensor

aten = torch.ops.aten


def boolean(x: SecretTensor, share: Share, placement: Placement | None = None) -> SecretTensor:
    return SecretTensor(share, BOOLEAN, placement or x.placement, x.session, torch.bool)


# ---- order: everything is [a < b] or its negation
def _difference(a: Any, b: Any, dtype: torch.dtype, round_up: bool) -> tuple[Engine, Share, RingFormat, Placement]:
    """a - b in a ring; a public side is rounded so that the order relation with every ring value is exact."""
    if is_secret(a) and is_secret(b):
        sa, sb, fmt, placement, engine = align(a, b, dtype)
        return engine, engine.subtract(sa, sb, fmt.bits), difference(fmt, fmt), placement
    secret, public = (a, as_number(b)) if is_secret(a) else (b, as_number(a))
    share, fmt = ring_value(secret, dtype)
    engine = engine_of(secret)
    threshold = encode_threshold(public, fmt.bits, fmt.scale, round_up)
    if isinstance(threshold, torch.Tensor):
        share = expand(share, torch.broadcast_shapes(share[0].shape, threshold.shape))
    if secret is a:
        if isinstance(threshold, torch.Tensor) or threshold:
            share = engine.add_public(share, -threshold, fmt.bits)
    else:
        share = engine.add_public(engine.negate(share, fmt.bits), threshold, fmt.bits)
    low, high = extremes(torch.as_tensor(threshold))
    fmt = plus(fmt, -high, -low) if secret is a else plus(negated(fmt), low, high)
    return engine, share, fmt, secret.placement


def _less(a: Any, b: Any, negate: bool) -> SecretTensor:
    """[a < b], or its negation [a >= b]."""
    dtype = result_dtype(a, b)
    # x < c is x < ceil(c) on ring values; c < x is floor(c) < x
    engine, share, fmt, placement = _difference(a, b, dtype, is_secret(a))
    bits = width(fmt)
    bit = engine.less_than_zero(engine.reduce(share, fmt.bits, bits), bits)
    return boolean(a if is_secret(a) else b, engine.logical_not(bit) if negate else bit, placement)


@implements(aten.lt.Tensor, aten.lt.Scalar)
def lt(a: Any, b: Any) -> SecretTensor:
    return _less(a, b, False)


@implements(aten.ge.Tensor, aten.ge.Scalar)
def ge(a: Any, b: Any) -> SecretTensor:
    return _less(a, b, True)


@implements(aten.gt.Tensor, aten.gt.Scalar)
def gt(a: Any, b: Any) -> SecretTensor:
    return _less(b, a, False)


@implements(aten.le.Tensor, aten.le.Scalar)
def le(a: Any, b: Any) -> SecretTensor:
    return _less(b, a, True)


def _equal(a: Any, b: Any, negate: bool) -> SecretTensor:
    if is_bits(a) and is_bits(b):
        return bitwise_xor(a, b) if negate else logical_not(bitwise_xor(a, b))
    secret, dtype, exact = a if is_secret(a) else b, result_dtype(a, b), None
    if is_secret(a) and is_secret(b):
        engine, share, fmt, placement = _difference(a, b, dtype, True)
    else:
        share, fmt = ring_value(secret, dtype)
        engine, placement = engine_of(secret), secret.placement
        value, exact = encode_exact(b if is_secret(a) else a, fmt.bits, fmt.scale)
        low, high = interval(fmt)
        exact = exact & (value >= low) & (value <= high)
        value, fmt = torch.where(exact, value, 0), difference(fmt, fmt)
        share = engine.add_public(expand(share, torch.broadcast_shapes(secret.shape, value.shape)), -value, fmt.bits)
    bits = width(fmt)
    bit = engine.equal_zero(engine.reduce(share, fmt.bits, bits), bits)
    if exact is not None and not bool(exact.all()):  # a constant between two ring values equals none of them
        bit = tuple(c * exact.to(torch.uint8) for c in bit)
    return boolean(secret, engine.logical_not(bit) if negate else bit, placement)


@implements(aten.eq.Tensor, aten.eq.Scalar)
def eq(a: Any, b: Any) -> SecretTensor:
    return _equal(a, b, False)


@implements(aten.ne.Tensor, aten.ne.Scalar)
def ne(a: Any, b: Any) -> SecretTensor:
    return _equal(a, b, True)


@implements(aten.isnan.default, aten.isinf.default)
def never(x: SecretTensor) -> torch.Tensor:
    return torch.zeros(x.shape, dtype=torch.bool)


@intercepts(torch.isfinite, torch.Tensor.isfinite, aten.isfinite.default)
def always(x: SecretTensor) -> torch.Tensor:
    """Ring elements are finite; torch would compare every element with infinity to find out."""
    if holds_floats((x,)):
        return torch.logical_not(torch.isinf(x))
    return torch.ones(x.shape, dtype=torch.bool)


@intercepts(torch.nn.functional.one_hot, aten.one_hot.default)
def one_hot(x: SecretTensor, num_classes: int = -1) -> SecretTensor:
    """Compares with every class; the number of classes has to be given, the largest one is secret."""
    if num_classes < 0:
        raise SecretLeakError("one_hot of a secret needs num_classes: the largest class is secret")
    return (x.unsqueeze(-1) == torch.arange(num_classes)).to(torch.int64)


# ---- logic
def as_bits(x: Any) -> Any:
    """``x`` as a Boolean: nonzero values count as true."""
    return x if x.dtype is torch.bool else x != 0


def _bit_operands(a: Any, b: Any) -> tuple[Share, Share, Placement, Engine, SecretTensor]:
    secret = a if is_secret(a) else b
    placement = join(a.placement, b.placement) if is_secret(a) and is_secret(b) else secret.placement
    engine = secret.session.engine_for(placement)
    a, b = (torch.as_tensor(v) if not isinstance(v, torch.Tensor) else v for v in (a, b))
    shape = broadcast(a, b)
    sa, sb = (expand(v.share, shape) if is_secret(v) else constant(v, shape, BOOLEAN, engine) for v in (a, b))
    return sa, sb, placement, engine, secret


def _both_bool(a: Any, b: Any) -> bool:
    return all(isinstance(v, bool) or getattr(v, "dtype", None) is torch.bool for v in (a, b))


@implements(aten.bitwise_xor.Tensor, aten.bitwise_xor.Scalar)
def bitwise_xor(a: Any, b: Any) -> Any:
    if not _both_bool(a, b):
        return NotImplemented
    sa, sb, placement, engine, secret = _bit_operands(a, b)
    return boolean(secret, engine.xor(sa, sb), placement)


@implements(aten.bitwise_and.Tensor, aten.bitwise_and.Scalar)
def bitwise_and(a: Any, b: Any) -> Any:
    if not _both_bool(a, b):
        return NotImplemented
    if is_secret(a) and is_secret(b):
        sa, sb, placement, engine, secret = _bit_operands(a, b)
        return boolean(secret, engine.logical_and(sa, sb), placement)
    secret, public = (a, b) if is_secret(a) else (b, a)
    mask = torch.as_tensor(public).to(torch.uint8)
    return boolean(secret, tuple(c * mask for c in secret.share))


@implements(aten.bitwise_or.Tensor, aten.bitwise_or.Scalar)
def bitwise_or(a: Any, b: Any) -> Any:
    if not _both_bool(a, b):
        return NotImplemented
    if is_secret(a) and is_secret(b):
        sa, sb, placement, engine, secret = _bit_operands(a, b)
        return boolean(secret, engine.logical_or(sa, sb), placement)
    secret, public = (a, b) if is_secret(a) else (b, a)
    return logical_not(bitwise_and(logical_not(secret), torch.logical_not(torch.as_tensor(public))))


@implements(aten.logical_and.default)
def logical_and(a: Any, b: Any) -> SecretTensor:
    return bitwise_and(as_bits(a), as_bits(b))


@implements(aten.logical_or.default)
def logical_or(a: Any, b: Any) -> SecretTensor:
    return bitwise_or(as_bits(a), as_bits(b))


@implements(aten.logical_xor.default)
def logical_xor(a: Any, b: Any) -> SecretTensor:
    return bitwise_xor(as_bits(a), as_bits(b))


@implements(aten.logical_not.default)
def logical_not(x: SecretTensor) -> SecretTensor:
    if not is_bits(x):
        return _equal(x, 0, False)
    return boolean(x, engine_of(x).logical_not(x.share))


@implements(aten.bitwise_not.default)
def bitwise_not(x: SecretTensor) -> Any:
    return logical_not(x) if is_bits(x) else NotImplemented


@implements(aten.any.default, aten.any.dim, aten.any.dims)
def any_(x: SecretTensor, dim: Any = None, keepdim: bool = False) -> SecretTensor:
    return torch.sum(as_bits(x), dims_of(x, dim), keepdim) != 0


@implements(aten.all.default, aten.all.dim, aten.all.dims)
def all_(x: SecretTensor, dim: Any = None, keepdim: bool = False) -> SecretTensor:
    return logical_not(any_(logical_not(as_bits(x)), dim, keepdim))


@implements(aten.count_nonzero.default, aten.count_nonzero.dim_IntList)
def count_nonzero(x: SecretTensor, dim: Any = None) -> SecretTensor:
    return torch.sum(as_bits(x), dims_of(x, dim))


# ---- selection
@implements(aten.where.self)
def where(condition: Any, a: Any, b: Any) -> SecretTensor:
    dtype = result_dtype(a, b)
    if not is_secret(condition):
        return _where_public(condition, a, b, dtype)
    if not is_secret(a) and not is_secret(b):
        if dtype is torch.bool:
            return _where_bits(condition, a, b)
        kind = dtype if dtype.is_floating_point else torch.int64  # a narrow difference wraps
        a, b = lowered(a).to(kind), lowered(b).to(kind)
        result = _either(mul(condition, a - b) + b, a, b)
        return result if result.dtype is dtype else result.to(dtype)
    if dtype is torch.bool:
        return _where_bits(condition, a, b)
    return _either(mul(condition, sub(a, b)) + b, a, b)


def _either(result: SecretTensor, a: Any, b: Any) -> SecretTensor:
    """``result``, which is one of two values everywhere, with what is known of both."""
    to, formats = plain_format(result.format), []
    for value in (a, b):
        if not is_secret(value):
            formats.append(public_format(value, to))
        elif isinstance(value.format, (FixedPoint, Integer)):
            formats.append(rescaled(value.format, to, engine_of(value).floors))
        else:  # a bit
            formats.append(rescaled(bit_value(to.bits), to))
    return claimed(result, together(to, formats))


def _where_bits(condition: SecretTensor, a: Any, b: Any) -> SecretTensor:
    difference = torch.logical_xor(a, b)
    return bitwise_xor(bitwise_and(condition, difference), b)


def _where_public(condition: torch.Tensor, a: Any, b: Any, dtype: torch.dtype) -> SecretTensor:
    """A public choice between values is made on every component alike."""
    (sa, sb), fmt, placement, session = unify((a, b), dtype)
    share = tuple(torch.where(condition, x, y) for x, y in zip(sa, sb, strict=True))
    result = SecretTensor(share, fmt, placement, session, dtype)
    if dtype is torch.bool:
        return result
    hidden = [mask_of(v) if is_secret(v) else hidden_by(v, fmt.bits, fmt.scale) for v in (a, b)]
    if hidden[0] is None and hidden[1] is None:
        return result
    shown = [torch.zeros((), dtype=torch.bool) if mask is None else mask for mask in hidden]
    return masked(result, torch.where(condition, *shown))


@implements(aten.where.ScalarOther, aten.where.ScalarSelf, aten.where.Scalar)
def where_scalar(condition: Any, a: Any, b: Any) -> SecretTensor:
    kind = next((v.dtype for v in (a, b) if isinstance(v, torch.Tensor)), torch.get_default_dtype())
    return where(condition, *(v if isinstance(v, torch.Tensor) else torch.tensor(v, dtype=kind) for v in (a, b)))


@implements(aten.masked_fill.Scalar, aten.masked_fill.Tensor)
def masked_fill(x: Any, mask: Any, value: Any) -> SecretTensor:
    filling = value if isinstance(value, torch.Tensor) else torch.tensor(value, dtype=x.dtype)
    return where(mask, filling.to(x.dtype), x)


# ---- sign
@implements(aten.sign.default, aten.sgn.default)
def sign(x: SecretTensor) -> SecretTensor:
    positive, negative = gt(x, 0), lt(x, 0)
    return (positive.to(torch.int64) - negative.to(torch.int64)).to(x.dtype)


@implements(aten.abs.default)
def abs_(x: SecretTensor) -> SecretTensor:
    """2 relu(x) - x."""
    if nonnegative(x.format):
        return x.clone()
    engine = engine_of(x)
    share, fmt = ring_value(x, x.dtype)
    positive, _ = rectify(engine, share, fmt)
    result = engine.subtract(engine.multiply_public(positive, 2, fmt.bits), share, fmt.bits)
    return claimed(like(x, result), magnitude_format(fmt))
