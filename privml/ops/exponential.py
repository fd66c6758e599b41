# SPDX-License-Identifier: Apache-2.0
"""Exponentials of secrets.

The argument is taken in at most 32 bits, so with s fractional bits it must stay below 2^(31 - s); one that is not
positive may have any width. Results are right
to a few units of the last place of the format they are asked in; one of unknown size gets 32 bits, and saturates.
"""

from __future__ import annotations

import math

import torch

from privml.dispatch import implements
from privml.engines.catalogue import exp_negative_function, value_at_zero
from privml.errors import InvalidInput
from privml.formats import FixedPoint
from privml.ops.fixed import (
    WIDEST,
    WIDEST_EXPONENT,
    added,
    asked,
    cast,
    evaluate,
    integer_bits,
    less,
    real,
    scaled,
    settled,
    shifted,
    source_of,
    target_of,
)
from privml.ops.maximum import rectify
from privml.ops.ring_formats import negated, of_interval, rectified, relabelled, together, width
from privml.ops.values import claimed, engine_of, like
from privml.tensor import SecretTensor

aten = torch.ops.aten


def decay(z: SecretTensor, target: FixedPoint, proved: bool) -> SecretTensor:
    """exp(z) of z <= 0 in format ``target``. In a ring wider than the table's, z is cut off where exp(z) < 2^-43.

    ``proved``: whether z <= 0 holds for whatever lies in the rings that z comes from. If not, min(z, 0) takes its
    place, for above zero the results of the library's forms depend on the shares.
    """
    engine = engine_of(z)
    if not proved and engine.floors:
        z = _clipped(z)
    name = exponential_of(z, target)
    if name == "exp_negative" and width(z.format) > WIDEST and not engine.stays_wide:
        fmt, floor = z.format, 32 << z.format.scale
        share, _ = rectify(engine, engine.add_public(z.share, floor, fmt.bits), fmt)
        z = claimed(like(z, engine.add_public(share, -floor, fmt.bits)), of_interval(fmt, -floor, 0))
        name = exponential_of(z, target)
    return evaluate(z, name, target)


def decay_starts_at_one(z: SecretTensor, target: FixedPoint) -> bool:
    """Whether ``decay`` is known to give no less than 1 for z = 0 where it is proved that z <= 0."""
    if engine_of(z).stays_wide or width(z.format) > WIDEST:
        return False
    source = source_of(z, WIDEST_EXPONENT)
    return value_at_zero(exponential_of(z, target), source, target) >= 1 << target.scale


def _clipped(z: SecretTensor) -> SecretTensor:
    """min(z, 0)."""
    engine, fmt = engine_of(z), negated(z.format)
    share, _ = rectify(engine, engine.negate(z.share, fmt.bits), fmt)
    return like(z, engine.negate(share, fmt.bits), negated(rectified(fmt)))


def exponential_of(z: SecretTensor, target: FixedPoint) -> str:
    """The library's function that computes exp(z), z <= 0: the form that the session's numerics ask for, where the
    engine has forms."""
    if engine_of(z).stays_wide:
        return "exp_negative"
    source = source_of(z, WIDEST_EXPONENT)
    return exp_negative_function(z.session.numerics.exp, source, target)


def exponential(x: SecretTensor, wanted: FixedPoint) -> SecretTensor:
    """exp(x) for x of either sign, saturating at ``wanted``."""
    return evaluate(x, "exp", target_of(None, wanted))


@implements(aten.exp.default)
def exp(x: SecretTensor) -> SecretTensor:
    return settled(exponential(real(x), asked(x.session)))


def _exp_of_multiple(x: SecretTensor, factor: float) -> SecretTensor:
    """exp(factor * x), the product with as many fractional bits as fit."""
    x = real(x)
    room = WIDEST - 2 - math.ceil(math.log2(max(abs(factor), 1))) - max(integer_bits(x), 0)
    argument = scaled(x, factor, max(min(x.format.scale + 6, room), x.format.scale))
    return settled(exponential(argument, asked(x.session)))


@implements(aten.exp2.default)
def exp2(x: SecretTensor) -> SecretTensor:
    return _exp_of_multiple(x, math.log(2.0))


@implements(aten.pow.Scalar)
def power_of_number(base: float, x: SecretTensor) -> SecretTensor:
    if base <= 0:
        raise InvalidInput(f"a secret power of {base}: the base must be positive")
    return torch.ones_like(x) if base == 1 else _exp_of_multiple(x, math.log(base))


@implements(aten.expm1.default)
def expm1(x: SecretTensor) -> SecretTensor:
    wanted = asked(x.session)
    # The exponential is larger by 1, which a format with one more bit holds.
    room = FixedPoint(wanted.bits + 1, wanted.scale) if wanted.bits < WIDEST else wanted
    return settled(shifted(exponential(real(x), room), -1.0))


# ---- hyperbolic functions
def _both(x: SecretTensor) -> tuple[SecretTensor, SecretTensor]:
    """exp(x) and exp(-x), by one call of the function, with room for twice what the current node wants: results are
    halved."""
    x = real(x, 1)
    engine, bits = engine_of(x), x.format.bits
    share = tuple(torch.stack(pair) for pair in zip(x.share, engine.negate(x.share, bits), strict=True))
    fmt = together(x.format, [x.format, negated(x.format)])
    wanted = asked(x.session)
    room = FixedPoint(wanted.bits, wanted.scale - 1) if wanted.scale else wanted
    powers = exponential(like(x, share, fmt), room)
    first, second = (like(powers, tuple(c[i] for c in powers.share)) for i in range(2))
    return first, second


def _halved(x: SecretTensor) -> SecretTensor:
    return like(x, x.share, relabelled(x.format, x.format.scale + 1))


@implements(aten.sinh.default)
def sinh(x: SecretTensor) -> SecretTensor:
    rising, falling = _both(x)
    return settled(_halved(less(rising, falling)))


@implements(aten.cosh.default)
def cosh(x: SecretTensor) -> SecretTensor:
    rising, falling = _both(x)
    return settled(_halved(added(*(cast(p, min(p.format.bits + 1, 64), p.format.scale) for p in (rising, falling)))))
