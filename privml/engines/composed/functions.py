# SPDX-License-Identifier: Apache-2.0
"""The functions of ``engines.catalogue.FUNCTIONS`` for engines whose comparisons and tables are cheap.

Smooth activations: 64 pieces of degree 4 between two thresholds beyond which they are constant or the argument.
Exponentials: x log2(e) = k + u, 2^k from a table, 2^u by one polynomial.
Roots, logarithms, reciprocals: the argument is brought to [1/2, 1) by comparisons with all powers of two, a spline is
taken there, and the result is scaled back.
A truncation that errs by one unit does no harm: every piece is fitted on both sides of its left end. With exact
truncations the result is the same on every engine, ``plain`` included.
Errors of the splines stand in splines.json (``scripts/make_splines.py``); tests hold the functions to them.
"""

from __future__ import annotations

import math

import torch

from privml.engines.base import Engine
from privml.engines.composed.normalized import FUNCTIONS as NORMALIZED
from privml.engines.composed.steps import (
    RING,
    chosen,
    constant,
    evaluate,
    linear,
    power_polynomial,
    powers,
    product,
    shifted,
    spline,
)
from privml.engines.shares import Promise, Share, part
from privml.formats import FixedPoint

# name -> (value above the table: "zero", "one" or "argument"; below it: "zero" or "minus one"; magnitude in bits)
_BETWEEN = {
    "sigmoid": ("one", "zero", 1),
    "erf": ("one", "minus one", 1),
    "gelu": ("argument", "zero", 4),
    "silu": ("argument", "zero", 5),
    "softplus": ("argument", "zero", 5),
}
# An exponent of two has this many bits before and after zero.
_EXPONENTS = 32
_LOG2E = 1.0 / math.log(2.0)
_FACTOR_SCALE = 28
# Fractional bits of 1 / (2 pi): arguments of 32 bits have products of 62.
_TURN_SCALE = 33


def function(engine: Engine, name: str, a: Share, source: FixedPoint, target: FixedPoint) -> Share:
    """``Engine.function``: of values in ``source``, at the scale of ``target``, in a ring of 64 bits. What does not fit
    the bits of ``target`` saturates where the function can get so large."""
    if source.bits < RING:
        a = engine.extend(a, source.bits, RING, True, Promise(bound=source.bound))
    if name in _BETWEEN:
        return _between(engine, name, a, source.scale, target.scale)
    if name == "tanh":  # 2 sigmoid(2 x) - 1
        double = _between(engine, "sigmoid", engine.multiply_public(a, 2, RING), source.scale, target.scale + 1)
        return engine.add_public(double, -(1 << target.scale), RING)
    if name in ("sin", "cos"):
        return _sine(engine, a, source.scale, target.scale, name == "cos")
    if name in ("exp", "exp_negative"):
        return _exponential(engine, a, source.scale, target, name == "exp")
    return NORMALIZED[name](engine, a, source.scale, target)


def _between(engine: Engine, name: str, x: Share, scale: int, target: int) -> Share:
    table = spline(name)
    above, below, magnitude = _BETWEEN[name]
    limit = 31 << scale >> table.fine
    inside = evaluate(engine, table, x, scale, target, magnitude)
    bits = engine.less_than_many(x, [-limit, limit], RING)
    low, not_high = part(bits, 0), part(bits, 1)
    high = engine.logical_not(not_high)
    one = 1 << target
    top = shifted(engine, x, scale - target, RING - 2) if above == "argument" else constant(engine, one, x)
    cases = [(engine.xor(low, not_high), inside), (high, top)]
    if below == "minus one":
        cases.append((low, constant(engine, -one, x)))
    return chosen(engine, cases)


def _sine(engine: Engine, x: Share, scale: int, target: int, cosine: bool) -> Share:
    """The table is one turn, so the index's lost high bits lose nothing. |x| < 2^31 / 2^scale radians; they err by
    2^-31 of themselves, for 1 / (2 pi) is rounded."""
    turns = engine.multiply_public(x, round(2.0**_TURN_SCALE / (2.0 * math.pi)), RING)
    # as many bits as the distance within a piece may have
    wide = scale + _TURN_SCALE
    turns, wide = shifted(engine, turns, wide - 32, RING - 2), 32
    if cosine:
        turns = engine.add_public(turns, 1 << (wide - 2), RING)
    return evaluate(engine, spline("sine"), turns, wide, target, 1)


def _exponential(engine: Engine, x: Share, scale: int, target: FixedPoint, both_signs: bool) -> Share:
    top_exponent = target.bits - 1 - target.scale if both_signs else 0
    power_scale, coefficients = power_polynomial()
    exponent = engine.multiply_public(x, round(_LOG2E * 2.0**_FACTOR_SCALE), RING)
    exponent = shifted(engine, exponent, scale, RING - 2)
    whole = engine.truncate(exponent, RING, _FACTOR_SCALE)
    fraction = engine.subtract(exponent, engine.multiply_public(whole, 1 << _FACTOR_SCALE, RING), RING)
    terms = powers(engine, fraction, _FACTOR_SCALE, len(coefficients) - 1)
    mantissa = linear(engine, terms, coefficients[1:], coefficients[0] << _FACTOR_SCALE)
    mantissa = shifted(engine, mantissa, power_scale, power_scale + _FACTOR_SCALE + 2)
    # mantissa <= 2^29 and table <= 2^31: an exponent k counts 2^(k + kept), as far as that is whole
    kept = min(target.scale + 2, 30 - top_exponent)
    exponents = torch.arange(2 * _EXPONENTS)
    exponents = torch.where(exponents < _EXPONENTS, exponents, exponents - 2 * _EXPONENTS) + kept
    table = torch.where((exponents >= 0) & (exponents <= 31), 1 << exponents.clamp(0, 31), 0)
    size = engine.lookup(table, whole, 6, RING)
    value = shifted(engine, product(engine, mantissa, size), _FACTOR_SCALE + kept - target.scale, 61)
    lowest = math.floor(-min(target.scale + 2, _EXPONENTS - 1) / _LOG2E * 2.0**scale)
    if not both_signs:
        return engine.select(engine.logical_not(engine.less_than_zero(
            engine.add_public(x, -lowest, RING), RING)), value, RING)  # fmt: skip
    highest = math.floor(top_exponent / _LOG2E * 2.0**scale)
    bits = engine.less_than_many(x, [lowest, highest], RING)
    low, not_high = part(bits, 0), part(bits, 1)
    largest = constant(engine, (1 << (target.bits - 1)) - 1, x)
    return chosen(engine, [(engine.xor(low, not_high), value), (engine.logical_not(not_high), largest)])
