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
from collections.abc import Sequence
from typing import NamedTuple

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
from privml.engines.shares import NO_PROMISE, Promise, Share, part, stack
from privml.formats import FixedPoint, limit

# name -> (value above the table: "zero", "one" or "argument"; below it: "zero" or "minus one"; magnitude in bits)
_BETWEEN = {
    "sigmoid": ("one", "zero", 1),
    "erf": ("one", "minus one", 1),
    "gelu": ("argument", "zero", 4),
    "gelu_tanh": ("argument", "zero", 4),
    "silu": ("argument", "zero", 5),
    "softplus": ("argument", "zero", 5),
}
# An exponent of two has this many bits before and after zero.
_EXPONENTS = 32
_LOG2E = 1.0 / math.log(2.0)
_FACTOR_SCALE = 28
# Fractional bits of 1 / (2 pi): arguments of 32 bits have products of 62.
_TURN_SCALE = 33


class _Argument(NamedTuple):
    """x of a function: the integer n = x 2^scale in the ring, of which -size <= n < size is known."""

    share: Share
    scale: int
    size: int

    def bits_with(self, reach: int) -> int:
        """Bits of a ring that holds the sum of n and any number up to ``reach``."""
        return (self.size + reach - 1).bit_length() + 1

    def at_scale(self, engine: Engine, scale: int) -> Share:
        """x at another scale, rounded as the engine does; what leaves the ring wraps."""
        if self.scale <= scale:
            return shifted(engine, self.share, self.scale - scale, 0)
        known = Promise(bound=self.size) if self.size <= 1 << (RING - 2) else NO_PROMISE
        return engine.truncate(self.share, RING, self.scale - scale, known)


def function(engine: Engine, name: str, a: Share, source: FixedPoint, target: FixedPoint) -> Share:
    """``Engine.function``: of values in ``source``, at the scale of ``target``, in a ring of 64 bits. What does not fit
    the bits of ``target`` saturates where the function can get so large."""
    if source.bits < RING:
        a = engine.extend(a, source.bits, RING, True, Promise(bound=source.bound))
    x = _Argument(a, source.scale, limit(source))
    if name in _BETWEEN:
        return _between(engine, name, x, target.scale)
    if name == "tanh":  # 2 sigmoid(2 x) - 1
        twice = _between(engine, "sigmoid", x._replace(scale=x.scale - 1), target.scale + 1)
        return engine.add_public(twice, -(1 << target.scale), RING)
    if name in ("sin", "cos"):
        return _sine(engine, x, target.scale, name == "cos")
    if name in ("exp", "exp_negative"):
        return _exponential(engine, x, target, name == "exp")
    return NORMALIZED[name](engine, a, source.scale, target)


def _below(engine: Engine, x: _Argument, thresholds: Sequence[int]) -> Share:
    """[n < t], where n and t have one sign or their difference is known to fit the ring."""
    bits = x.bits_with(max(map(abs, thresholds)))
    return engine.less_than_many(x.share, thresholds, min(bits, RING))


def _outside(engine: Engine, x: _Argument, low: int, high: int) -> tuple[Share, Share]:
    """([n < low], [n >= high]) for low <= 0 <= high."""
    if not engine.floors:  # values of a full ring leave two bits free then
        x = x._replace(size=min(x.size, 1 << (RING - 2)))
    if x.bits_with(max(-low, high)) <= RING:
        bits = _below(engine, x, [low, high])
        return part(bits, 0), engine.logical_not(part(bits, 1))
    bits = engine.less_than_many(x.share, [low, high, 0], RING)  # a difference from zero fits
    negative, above = part(bits, 2), engine.logical_not(part(bits, 1))
    signs = stack([negative, engine.logical_not(negative)])
    both = engine.logical_and(signs, stack([part(bits, 0), above]))
    return part(both, 0), part(both, 1)


def _between(engine: Engine, name: str, x: _Argument, target: int) -> Share:
    table = spline(name)
    above, below, magnitude = _BETWEEN[name]
    end = 31 << (x.scale + 1) >> (table.fine + 1)
    inside = evaluate(engine, table, x.share, x.scale, target, magnitude)
    low, high = _outside(engine, x, -end, end)
    one = 1 << target
    top = x.at_scale(engine, target) if above == "argument" else constant(engine, one, x.share)
    cases = [(engine.logical_not(engine.xor(low, high)), inside), (high, top)]
    if below == "minus one":
        cases.append((low, constant(engine, -one, x.share)))
    return chosen(engine, cases)


def _sine(engine: Engine, x: _Argument, target: int, cosine: bool) -> Share:
    """The table is one turn, so the index's lost high bits lose nothing. |x| < 2^31 / 2^scale radians; they err by
    2^-31 of themselves, for 1 / (2 pi) is rounded."""
    factor = round(2.0**_TURN_SCALE / (2.0 * math.pi))
    multiple = engine.multiply_public(x.share, factor, RING)
    # as many bits as the distance within a piece may have
    wide = 32
    turns = _Argument(multiple, x.scale + _TURN_SCALE, x.size * factor).at_scale(engine, wide)
    if cosine:
        turns = engine.add_public(turns, 1 << (wide - 2), RING)
    return evaluate(engine, spline("sine"), turns, wide, target, 1)


def _exponential(engine: Engine, x: _Argument, target: FixedPoint, both_signs: bool) -> Share:
    top_exponent = target.bits - 1 - target.scale if both_signs else 0
    power_scale, coefficients = power_polynomial()
    exponent = engine.multiply_public(x.share, round(_LOG2E * 2.0**_FACTOR_SCALE), RING)
    # Where the result counts, this fits, or is off by a multiple of 2^6, which the table's index drops.
    exponent = shifted(engine, exponent, x.scale, RING - 2)
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
    lowest = math.floor(-min(target.scale + 2, _EXPONENTS - 1) / _LOG2E * 2.0**x.scale)
    if not both_signs:
        return engine.select(engine.logical_not(part(_below(engine, x, [lowest]), 0)), value, RING)
    low, high = _outside(engine, x, lowest, math.floor(top_exponent / _LOG2E * 2.0**x.scale))
    largest = constant(engine, (1 << (target.bits - 1)) - 1, x.share)
    return chosen(engine, [(engine.logical_not(engine.xor(low, high)), value), (high, largest)])
