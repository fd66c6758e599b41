# SPDX-License-Identifier: Apache-2.0
"""Logarithms, roots and powers of secrets.

Every function takes its argument in at most 32 bits, so with s fractional bits it must stay below 2^(31 - s); one
asked for a wide format gives 32 bits and saturates. Results are right to a few units of the last place of the format
of the result. Logarithms and inverse roots of numbers that are not positive are unspecified: a check would reveal
them. The root of a negative number is 0.
"""

from __future__ import annotations

import math
from typing import Any

import torch

from privml.dispatch import implements
from privml.errors import InvalidInput
from privml.formats import FixedPoint
from privml.ops.division import divide
from privml.ops.exponential import exponential
from privml.ops.fixed import (
    asked,
    evaluate,
    inside,
    integer_bits,
    real,
    scaled,
    settled,
    shifted,
    target_of,
)
from privml.ops.maximum import rectify
from privml.ops.product import multiply, power
from privml.ops.ring_formats import rectified
from privml.ops.values import engine_of, like
from privml.tensor import SecretTensor

aten = torch.ops.aten


def logarithm(x: SecretTensor, scale: int) -> SecretTensor:
    """The natural logarithm at ``scale`` (25 at most)."""
    return evaluate(x, "log", target_of(5, FixedPoint(64, scale)))


@implements(aten.log.default)
def log(x: SecretTensor) -> SecretTensor:
    return settled(logarithm(real(x), asked(x.session).scale))


def _log_of_base(x: SecretTensor, base: float) -> SecretTensor:
    scale = asked(x.session).scale
    return settled(scaled(logarithm(real(x), scale + 2), 1.0 / math.log(base), scale))


@implements(aten.log2.default)
def log2(x: SecretTensor) -> SecretTensor:
    return _log_of_base(x, 2.0)


@implements(aten.log10.default)
def log10(x: SecretTensor) -> SecretTensor:
    return _log_of_base(x, 10.0)


@implements(aten.log1p.default)
def log1p(x: SecretTensor) -> SecretTensor:
    return settled(logarithm(shifted(real(x), 1.0), asked(x.session).scale))


def inverse_root(x: SecretTensor, scale: int) -> SecretTensor:
    """1 / sqrt(x) for x >= 2^-s, s the scale of ``x``, with as many fractional bits up to ``scale`` as fit."""
    return evaluate(x, "rsqrt", target_of((x.format.scale + 1) // 2 + 1, FixedPoint(64, scale)))


def root(x: SecretTensor, scale: int) -> SecretTensor:
    """sqrt(x), with as many fractional bits up to ``scale`` as fit."""
    return evaluate(x, "sqrt", target_of(max((integer_bits(x) + 1) // 2, 0) + 1, FixedPoint(64, scale)))


@implements(aten.rsqrt.default)
def rsqrt(x: SecretTensor) -> SecretTensor:
    return settled(inverse_root(real(x), asked(x.session).scale))


@implements(aten.sqrt.default)
def sqrt(x: SecretTensor) -> SecretTensor:
    return settled(root(_not_negative(real(x)), asked(x.session).scale))


def _not_negative(x: SecretTensor) -> SecretTensor:
    """max(x, 0) where the engine's root of a negative number is not 0: roundings may take a difference below zero."""
    engine = engine_of(x)
    if x.format.nonnegative or engine.stays_wide:
        return x
    share, _ = rectify(engine, x.share, x.format)
    return like(x, share, rectified(x.format))


@implements(aten.erf.default)
def erf(x: SecretTensor) -> SecretTensor:
    return settled(evaluate(real(x), "erf", target_of(1, asked(x.session))))


@implements(aten.erfc.default)
def erfc(x: SecretTensor) -> SecretTensor:
    value = evaluate(real(x), "erf", target_of(1, asked(x.session)))
    return settled(shifted(scaled(value, -1.0, value.format.scale), 1.0))


# ---- powers
@implements(aten.pow.Tensor_Scalar)
def pow_(x: SecretTensor, exponent: float) -> Any:
    """Whole exponents by products, halves by roots, all others as exp(exponent * log(x)), for positive x."""
    if float(exponent).is_integer() and exponent >= 0:
        return power(x, int(exponent))
    if not x.dtype.is_floating_point and exponent < 0 and float(exponent).is_integer():
        raise InvalidInput("Integers to negative integer powers are not allowed.")
    whole, half = divmod(abs(exponent), 1)
    if exponent < 0 and half == 0:
        return _powered(divide(1.0, x, asked(x.session).scale), int(whole))
    if half != 0.5:
        return _general_power(x, exponent)
    if exponent < 0:
        return _powered(inverse_root(real(x), asked(x.session).scale), int(2 * whole + 1))
    if whole == 0:
        return sqrt(x)
    with inside():
        result = multiply(power(x, int(whole)), sqrt(x), x.dtype)
    return settled(result)


def _powered(x: SecretTensor, exponent: int) -> SecretTensor:
    if exponent == 1:
        return settled(x)
    with inside():
        result = power(settled(x), exponent)
    return settled(result)


def _general_power(x: SecretTensor, exponent: float) -> SecretTensor:
    argument = scaled(logarithm(real(x), 24), exponent, 22 - max(math.ceil(math.log2(abs(exponent))), 0))
    return settled(exponential(argument, asked(x.session)))
