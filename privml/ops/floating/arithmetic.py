# SPDX-License-Identifier: Apache-2.0
"""Sums, products, quotients and roots of floats, every one correctly rounded."""

from __future__ import annotations

import math
from typing import Any

import torch

from privml.dispatch import MAKE_REALS, implements_floating
from privml.errors import InvalidInput
from privml.formats import Boolean, Float
from privml.ops.floating.values import (
    as_float,
    components,
    elementwise,
    finished,
    operands,
    pairwise,
    real_dtype,
    reduced_last,
)
from privml.ops.linear import dims_of
from privml.ops.maximum import keep, last_dims
from privml.ops.rescaling import convert
from privml.ops.ring_formats import ring_format
from privml.ops.values import as_number, engine_of, is_secret, join, like
from privml.ops.words import magnitude, negated
from privml.tensor import SecretTensor

aten = torch.ops.aten
MAKE_REALS.update(
    (
        aten.add.Tensor, aten.add.Scalar, aten.sub.Tensor, aten.sub.Scalar, aten.rsub.Tensor, aten.rsub.Scalar,
        aten.mul.Tensor, aten.mul.Scalar, aten.div.Tensor, aten.div.Scalar, aten.where.self,
    )
)  # fmt: skip


# ---- sums
@implements_floating(aten.add.Tensor, aten.add.Scalar)
def add(a: Any, b: Any, alpha: float = 1) -> SecretTensor:
    b = b if alpha == 1 else torch.mul(b, alpha) if isinstance(b, torch.Tensor) else b * alpha
    secret, public = (a, b) if is_secret(a) else (b, a)
    if not isinstance(public, torch.Tensor) and public == 0 and not torch.is_grad_enabled():
        return secret.clone()
    return elementwise("add", a, b)


@implements_floating(aten.neg.default)
def neg(x: SecretTensor) -> SecretTensor:
    return like(x, negated(engine_of(x), x.share, x.format))


@implements_floating(aten.sub.Tensor, aten.sub.Scalar)
def sub(a: Any, b: Any, alpha: float = 1) -> SecretTensor:
    """a + (-b), which rounds the same way."""
    b = b if alpha == 1 else torch.mul(b, alpha) if isinstance(b, torch.Tensor) else b * alpha
    return elementwise("add", a, torch.neg(_signed(b)) if isinstance(b, torch.Tensor) else -b)


def _signed(b: torch.Tensor) -> torch.Tensor:
    return b if is_secret(b) or b.dtype is not torch.uint8 else b.long()


@implements_floating(aten.rsub.Tensor, aten.rsub.Scalar)
def rsub(a: Any, b: Any, alpha: float = 1) -> SecretTensor:
    return sub(b, a if alpha == 1 else a * alpha)


@implements_floating(aten.abs.default)
def abs_(x: SecretTensor) -> SecretTensor:
    return like(x, magnitude(x.share, x.format))


def total(x: SecretTensor, dims: list[int], keepdim: bool) -> SecretTensor:
    """The sum over ``dims``: neighbours are added, then neighbouring sums, and so on."""
    if not dims:
        return x.clone()
    engine, fmt = engine_of(x), x.format
    if x.numel() == 0:  # sums of nothing are +0, the word of zeros
        share = components(lambda c: c.sum(dims, keepdim), x.share)
        return finished(share, fmt, x.placement, x.session, x.dtype)
    share = components(lambda c: c.contiguous(), last_dims(x.share, x, dims))
    share = reduced_last(engine, share, lambda a, b: engine.float_operation("add", fmt, a, b))
    return finished(keep(share, x, dims, keepdim), fmt, x.placement, x.session, x.dtype)


@implements_floating(aten.sum.dim_IntList)
def sum_dims(x: SecretTensor, dim: Any = None, keepdim: bool = False, dtype: torch.dtype | None = None) -> SecretTensor:
    return total(x if dtype in (None, x.dtype) else x.to(dtype), dims_of(x, dim), keepdim)


@implements_floating(aten.sum.default)
def sum_all(x: SecretTensor, dtype: torch.dtype | None = None) -> SecretTensor:
    return sum_dims(x, None, False, dtype)


@implements_floating(aten.mean.dim)
def mean(x: SecretTensor, dim: Any, keepdim: bool = False, dtype: torch.dtype | None = None) -> SecretTensor:
    count = math.prod(x.shape[d] for d in dims_of(x, dim))
    summed = sum_dims(x, dim, keepdim, dtype)
    return summed if count == 1 else div(summed, float(count))


@implements_floating(aten.mean.default)
def mean_all(x: SecretTensor, dtype: torch.dtype | None = None) -> SecretTensor:
    return mean(x, None, False, dtype)


@implements_floating(aten.cumsum.default)
def cumsum(x: SecretTensor, dim: int, dtype: torch.dtype | None = None) -> SecretTensor:
    """From left to right."""
    x = x if dtype is None else x.to(dtype)
    if x.dim() == 0 or x.shape[dim] == 0:
        return x.clone()
    sums = [x.select(dim, 0)]
    for i in range(1, x.shape[dim]):
        sums.append(sums[-1] + x.select(dim, i))
    return torch.stack(sums, dim)


# ---- products
@implements_floating(aten.mul.Tensor, aten.mul.Scalar)
def mul(a: Any, b: Any) -> SecretTensor:
    for bit, x in ((a, b), (b, a)):
        if is_secret(bit) and isinstance(bit.format, Boolean):
            return chosen(bit, x if is_secret(x) else as_float(torch.as_tensor(x), bit.session))
    return elementwise("multiply", as_number(a), as_number(b))


def chosen(bit: SecretTensor, x: SecretTensor) -> SecretTensor:
    """``x`` if the secret bit is 1, else 0."""
    placement, session = join(bit.placement, x.placement), x.session
    shape = torch.broadcast_shapes(bit.shape, x.shape)
    bits, words = (components(lambda c: c.expand(shape), s) for s in (bit.share, x.share))
    share = session.engine_for(placement).float_select(bits, words, x.format)
    return finished(share, x.format, placement, session, x.dtype)


@implements_floating(aten.div.Tensor, aten.div.Scalar)
def div(a: Any, b: Any) -> SecretTensor:
    b = as_number(b)
    if is_secret(b):
        return elementwise("divide", a, b)
    if isinstance(b, torch.Tensor):
        return elementwise("divide", a, b)
    if b == 0:
        raise InvalidInput("division of a secret tensor by the public number 0")
    fraction, exponent = math.frexp(b)
    fmt = a.format if isinstance(a.format, Float) else a.session.real
    if abs(fraction) == 0.5 and abs(exponent) < fmt.bias:  # the product with its inverse is the same
        return elementwise("multiply", a, 1.0 / b)
    return elementwise("divide", a, b)


@implements_floating(aten.reciprocal.default)
def reciprocal(x: SecretTensor) -> SecretTensor:
    return elementwise("divide", 1.0, x)


@implements_floating(aten.sqrt.default)
def sqrt(x: SecretTensor) -> SecretTensor:
    return elementwise("sqrt", x)


@implements_floating(aten.square.default)
def square(x: SecretTensor) -> SecretTensor:
    return elementwise("multiply", x, x)


def power(x: SecretTensor, exponent: int) -> SecretTensor:
    """``x`` to a whole power >= 1, by repeated squaring."""
    parts, squared = [], x
    while exponent:
        if exponent & 1:
            parts.append(squared)
        exponent >>= 1
        if exponent:
            squared = square(squared)
    return pairwise(mul, parts) if len(parts) > 1 else parts[0].clone()


# ---- rounding to whole numbers
@implements_floating(aten.round.default)
def round_(x: SecretTensor) -> SecretTensor:
    return elementwise("round_to_integer", x)


@implements_floating(aten.floor.default)
def floor(x: SecretTensor) -> SecretTensor:
    nearest = round_(x)
    return nearest - (nearest > x).to(x.dtype)


@implements_floating(aten.ceil.default)
def ceil(x: SecretTensor) -> SecretTensor:
    return neg(floor(neg(x)))


@implements_floating(aten.trunc.default)
def trunc(x: SecretTensor) -> SecretTensor:
    """The floor of the magnitude, with the sign of x."""
    size = floor(abs_(x))
    shares, fmt, placement, session = operands(size, x)
    mask = 1 << fmt.sign_bit
    share = components(lambda s, c: (s & ~mask) | (c & mask), *shares)
    return finished(share, fmt, placement, session, real_dtype(x))


def to_ring(x: SecretTensor, dtype: torch.dtype) -> SecretTensor:
    """Toward zero, as torch converts; values must fit 64 bits."""
    fmt = ring_format(64, 0, False)
    return like(x, convert(engine_of(x), trunc(x).share, x.format, fmt), fmt, dtype)
