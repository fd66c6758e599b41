# SPDX-License-Identifier: Apache-2.0
"""Products of secrets, elementwise and of matrices: scales add, then one truncation to the working scale.

Operands keep their own width and owner on the way to the engine, which picks the cheapest protocol.
"""

from __future__ import annotations

from typing import Any

import torch

from privml.dispatch import dispatch, implements, intercepts
from privml.encoding import encode_constant
from privml.engines.base import Engine, Share
from privml.errors import InvalidInput
from privml.formats import Placement
from privml.ops.linear import is_bits, scale_public
from privml.ops.masks import hidden_by, masked
from privml.ops.rescaling import convert
from privml.ops.ring_formats import RingFormat, added, narrowed, plain_format, product_format, promise_of, ring_format
from privml.ops.unopened import Product, as_share, product
from privml.ops.values import (
    broadcast,
    engine_of,
    expand,
    finish_product,
    is_secret,
    join,
    operand,
    product_bits,
    result_dtype,
    ring_operand,
    ring_value,
    working_format,
)
from privml.tensor import SecretTensor

aten = torch.ops.aten


# ---- elementwise
@implements(aten.mul.Tensor)
def mul(a: Any, b: Any) -> SecretTensor:
    dtype = result_dtype(a, b)
    if not is_secret(a):
        a, b = b, a
    if not is_secret(b):
        return scale_public(a, b, dtype)
    if is_bits(a) or is_bits(b):
        return select(a, b, dtype) if is_bits(a) else select(b, a, dtype)
    return multiply(a, b, dtype)


def multiply(a: SecretTensor, b: SecretTensor, dtype: torch.dtype) -> SecretTensor:
    """Elementwise product of two ring values."""
    session, placement = a.session, join(a.placement, b.placement)
    engine = session.engine_for(placement)
    (sa, fa), (sb, fb) = ring_operand(a, session), ring_operand(b, session)
    shape = broadcast(a, b)
    wanted = bits = product_bits(session, (fa, a.placement), (fb, b.placement))
    if not engine.stays_wide and (
        fa.bound is not None or fb.bound is not None
    ):  # nothing wraps in the ring that holds all products
        fa, fb = narrowed(fa), narrowed(fb)
        bits = min(bits, fa.bits + fb.bits)
    factors = operand(expand(sa, shape), fa, a.placement), operand(expand(sb, shape), fb, b.placement)
    share = product(engine, "multiply", factors, bits)
    fmt = product_format(fa, fb, bits, square=a is b)
    return finish_product(engine, share, fmt, placement, session, dtype, wanted)


def select(bit: SecretTensor, x: SecretTensor, dtype: torch.dtype) -> SecretTensor:
    """``x`` where the secret bit is 1, else 0; no truncation."""
    placement = join(bit.placement, x.placement)
    engine = x.session.engine_for(placement)
    shape = broadcast(bit, x)
    if is_bits(x):
        return SecretTensor(
            engine.logical_and(expand(bit.share, shape), expand(x.share, shape)),
            x.format,
            placement,
            x.session,
            dtype,
        )
    share, fmt = ring_value(x, dtype)
    return SecretTensor(
        engine.select(expand(bit.share, shape), expand(share, shape), fmt.bits),
        fmt,
        placement,
        x.session,
        dtype,
    )


def power(x: SecretTensor, exponent: int) -> SecretTensor:
    """``x`` to a nonnegative whole power, by repeated squaring."""
    remaining, square, result = exponent, x, None
    if remaining == 0:
        return torch.ones_like(x)
    while remaining:
        if remaining & 1:
            result = square if result is None else multiply(result, square, x.dtype)
        remaining >>= 1
        if remaining:
            square = multiply(square, square, x.dtype)
    return result.clone() if result is x else result


# ---- matrices
@implements(aten.mm.default, aten.bmm.default)
def matmul(a: Any, b: Any) -> SecretTensor:
    return affine(a, b, None)


def affine(a: Any, b: Any, bias: Any, beta: float = 1, alpha: float = 1) -> SecretTensor:
    """alpha * (a @ b) + beta * bias with a single truncation; a, b: [..., n, k], [..., k, m]."""
    secret = next(t for t in (a, b) if is_secret(t)) if is_secret(a) or is_secret(b) else None
    if secret is None:  # only the bias is secret
        return bias * beta + torch.matmul(a, b) * alpha
    session = secret.session
    dtype = result_dtype(a, b)
    if bias is not None:
        _fits(bias, (*a.shape[:-1], b.shape[-1]))
    if alpha != 1:
        a = a * alpha
    if bias is not None and beta != 1:
        bias = bias * beta
    engine, share, fmt, placement = raw_matmul(a, b, session)
    hidden = None
    if bias is not None:
        hidden = None if is_secret(bias) else hidden_by(bias, fmt.bits, fmt.scale)
        engine, share, placement = add_bias(engine, share, fmt.bits, fmt.scale, placement, bias, session)
        fmt = plain_format(fmt)
    return masked(finish_product(engine, share, fmt, placement, session, dtype), hidden)


def _fits(bias: Any, shape: tuple[int, ...]) -> None:
    lacking = len(shape) - bias.dim()
    if lacking < 0 or any(n not in (1, wanted) for n, wanted in zip(bias.shape, shape[lacking:], strict=True)):
        raise InvalidInput(f"a bias of shape {tuple(bias.shape)} does not fit a product of shape {shape}")


def raw_matmul(a: Any, b: Any, session: Any) -> tuple[Engine, Product | Share, RingFormat, Placement]:
    """The product without truncation: engine, share, format, placement."""
    if a.shape[-1] != b.shape[-2] or a.shape[:-2] != b.shape[:-2]:
        raise InvalidInput(f"matmul: shapes {tuple(a.shape)} and {tuple(b.shape)} do not fit")
    if is_secret(a) and is_secret(b):
        placement = join(a.placement, b.placement)
        engine = session.engine_for(placement)
        (sa, fa), (sb, fb) = ring_operand(a, session), ring_operand(b, session)
        bits = product_bits(session, (fa, a.placement), (fb, b.placement))
        share = product(engine, "matmul", (operand(sa, fa, a.placement), operand(sb, fb, b.placement)), bits)
        fmt = added(product_format(fa, fb, bits), a.shape[-1])
        return engine, share, fmt, placement
    secret, public = (a, b) if is_secret(a) else (b, a)
    engine = engine_of(secret)
    share, fmt, bits = widened(secret, session)
    value, scale = public_factor(public, session)
    share = engine.matmul_public(share, value, bits, left=secret is b)
    return engine, share, ring_format(bits, fmt.scale + scale, True), secret.placement


def widened(x: SecretTensor, session: Any) -> tuple[Share, Any, int]:
    """A factor of a product with public values, in the ring of the product."""
    share, fmt = ring_operand(x, session)
    bits = max(fmt.bits, working_format(session).bits)
    if fmt.bits < bits:
        share = engine_of(x).extend(share, fmt.bits, bits, True, promise_of(fmt))
    return share, fmt, bits


def public_factor(public: torch.Tensor, session: Any) -> tuple[torch.Tensor, int]:
    """A public matrix or kernel as integers and their scale (0 for integral tensors)."""
    if not public.dtype.is_floating_point:
        return public.to(torch.int64), 0
    working = working_format(session)
    return encode_constant(public, working.bits, working.scale), working.scale


def add_bias(
    engine: Engine,
    share: Product | Share,
    bits: int,
    scale: int,
    placement: Placement,
    bias: Any,
    session: Any,
) -> tuple[Engine, Product | Share, Placement]:
    """Adds ``bias`` (broadcast) at the scale of an untruncated product."""
    if not is_secret(bias):
        hidden = hidden_by(bias, bits, scale)
        value = encode_constant(bias, bits, scale, headroom=3)
        if hidden is None and isinstance(share, Product):
            return engine, share.plus(engine.public(torch.as_tensor(value), bits)), placement
        share = as_share(engine, share)
        if hidden is not None:  # these elements become the constant, whatever they were
            share = tuple(torch.where(hidden, 0, c) for c in share)
        return engine, engine.add_public(share, value, bits), placement
    raised = convert(engine_of(bias), bias.share, bias.format, ring_format(bits, scale, True))
    placement = join(placement, bias.placement)
    engine = session.engine_for(placement)
    if isinstance(share, Product):
        return engine, share.plus(raised), placement
    return engine, engine.add(share, expand(raised, share[0].shape), bits), placement


@implements(aten.addmm.default, aten.baddbmm.default)
def addmm(bias: Any, a: Any, b: Any, beta: float = 1, alpha: float = 1) -> SecretTensor:
    return affine(a, b, bias, beta, alpha)


@implements(aten.linear.default)
def linear(x: Any, weight: Any, bias: Any = None) -> SecretTensor:
    if x.shape[-1] != weight.shape[-1]:
        raise InvalidInput(
            f"linear: input {tuple(x.shape)} and weight {tuple(weight.shape)} do not fit: their last dimensions differ"
        )
    flat = x if x.dim() == 2 else x.reshape(-1, x.shape[-1])
    result = affine(flat, weight.t(), bias)
    return result if x.dim() == 2 else result.view(*x.shape[:-1], weight.shape[0])


@intercepts(torch.nn.functional.linear, aten.linear.default)
def whole_linear(input: Any, weight: Any, bias: Any = None) -> Any:
    """torch would add the bias of some layouts after the truncation."""
    return NotImplemented if torch.is_grad_enabled() else dispatch(aten.linear.default, (input, weight, bias), {})


@implements(aten.mv.default)
def mv(a: Any, b: Any) -> SecretTensor:
    return affine(a, b.unsqueeze(-1), None).squeeze(-1)


@implements(aten.dot.default, aten.vdot.default)
def dot(a: Any, b: Any) -> SecretTensor:
    return affine(a.unsqueeze(0), b.unsqueeze(-1), None).reshape(())


@implements(aten.addmv.default)
def addmv(bias: Any, a: Any, b: Any, beta: float = 1, alpha: float = 1) -> SecretTensor:
    column = bias.unsqueeze(-1) if bias.dim() else bias
    return affine(a, b.unsqueeze(-1), column, beta, alpha).squeeze(-1)


@implements(aten.addcmul.default)
def addcmul(x: Any, a: Any, b: Any, value: float = 1) -> SecretTensor:
    return x + (a * b) * value


@implements(aten.lerp.Scalar, aten.lerp.Tensor)
def lerp(a: Any, b: Any, weight: Any) -> SecretTensor:
    return a + (b - a) * weight
