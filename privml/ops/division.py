# SPDX-License-Identifier: Apache-2.0
"""Division by a secret.

a / b = a * r * r * sign(b) with r = 1 / sqrt(|b|): the inverse root of a number of 2k bits has k bits before and
after the point, so 32 bits hold it with good relative precision for small and for large divisors alike, where a
reciprocal in fixed point would be zero or overflow. With s fractional bits of the divisor the quotient's relative
error is at most about sqrt(|b|) * 2^(s/2 - 27), besides a / sqrt(|b|) and the quotient being rounded to the scale
asked for. A divisor of zero gives an unspecified number. Numerator and quotient must fit the ring.
"""

from __future__ import annotations

from typing import Any

import torch

from privml.dispatch import implements
from privml.engines.base import Share
from privml.errors import InvalidInput
from privml.formats import FixedPoint
from privml.ops.fixed import WIDEST, asked, evaluate, real, scaled, settled, times
from privml.ops.linear import divide_public, scale_public
from privml.ops.maximum import rectify
from privml.ops.ring_formats import magnitude_format, ring_format
from privml.ops.values import as_number, claimed, engine_of, is_secret, like, result_dtype
from privml.tensor import SecretTensor

aten = torch.ops.aten


def magnitude(x: SecretTensor) -> tuple[SecretTensor, Share | None]:
    """|x| and the Boolean share of [x >= 0], None if that is known."""
    if x.format.nonnegative:
        return x, None
    engine, fmt = engine_of(x), x.format
    positive, bit = rectify(engine, x.share, fmt)
    double = engine.multiply_public(positive, 2, min(fmt.bits + 1, 64))
    share = engine.subtract(double, x.share, fmt.bits)
    return claimed(like(x, share), magnitude_format(fmt)), bit


def divide(a: Any, b: SecretTensor, scale: int) -> SecretTensor:
    """a / b at ``scale``, for a secret, a public tensor or a number a."""
    divisor, positive = magnitude(real(b))
    root_scale = WIDEST - 2 - (divisor.format.scale + 1) // 2
    root = evaluate(divisor, "rsqrt", FixedPoint(WIDEST, root_scale))
    signed = root
    if positive is not None:
        engine, bits = engine_of(root), root.format.bits
        chosen = engine.multiply_public(engine.select(positive, root.share, bits), 2, bits + 1)  # may wrap
        share = engine.subtract(chosen, root.share, bits)
        signed = SecretTensor(share, ring_format(bits, root_scale, True), root.placement, root.session, root.dtype)
    if is_secret(a):
        return times(times(real(a), signed, scale), root, scale)
    return times(scaled(signed, as_number(a), root_scale), root, scale)


@implements(aten.div.Tensor, aten.div.Scalar)
def div(a: Any, b: Any) -> Any:
    dtype = result_dtype(a, b)
    dtype = dtype if dtype.is_floating_point else torch.get_default_dtype()
    if is_secret(b):
        return settled(divide(a, b, asked(b.session).scale), dtype)
    b = as_number(b)
    if isinstance(b, torch.Tensor):
        return scale_public(a, 1.0 / b.double(), dtype)
    if b == 0:
        raise InvalidInput("division of a secret tensor by the public number 0")
    return divide_public(a, b, dtype)


@implements(aten.reciprocal.default)
def reciprocal(x: SecretTensor) -> SecretTensor:
    return settled(divide(1.0, x, asked(x.session).scale))
