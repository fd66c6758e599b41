# SPDX-License-Identifier: Apache-2.0
"""The coarse activations of MIZAR, Appendix B: few pieces, cheaper than the splines that programs use.

Sigmoid in three linear pieces (largest error 0.133) and GELU in four (0.0195, where it jumps at 3; 0.025 in rings too
narrow for fine coefficients). |x| < 2^(bits - 2), less the thresholds.
The powers of GELU's polynomials are those of u = x / 4, |u| < 1: they and their products stay within 2 (scale + 2)
bits, whatever x is beyond the pieces, where nothing is chosen.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from privml.engines.base import Engine
from privml.engines.composed.steps import chosen, constant, product, shifted
from privml.engines.shares import Promise, Share, part, stack
from privml.formats import FixedPoint

_LEFT = (-0.5054031199708174, -0.42226581151983866, -0.11807612951181953, -0.011034134030615728)
_MIDDLE = (0.008526321541038084, 0.5, 0.3603292692789629, 0.0, -0.037688200365904236, 0.0, 0.0018067462606141187)
# The values of a polynomial in u times its coefficients stay below 2^5.
_MAGNITUDE = 5
_FINEST = 26


def ring_of(source: FixedPoint) -> int:
    """The ring that ``segmented`` computes in: that of the source where products fit into it, else 64 bits."""
    return source.bits if 2 * (source.scale + 2) <= source.bits - 2 else 64


def segmented(engine: Engine, name: str, a: Share, source: FixedPoint, target: FixedPoint) -> Share:
    """``name`` ("sigmoid", "gelu") of values in ``source``, at the scale of ``target``, in ring ``ring_of(source)``."""
    ring = ring_of(source)
    if source.bits < ring:
        a = engine.extend(a, source.bits, ring, True, Promise(bound=source.bound))
    pieces: dict[str, Callable[[Engine, Share, int, int, int], Share]] = {"sigmoid": _sigmoid, "gelu": _gelu}
    return pieces[name](engine, a, source.scale, target.scale, ring)


def _sigmoid(engine: Engine, x: Share, scale: int, target: int, ring: int) -> Share:
    bits = engine.less_than_many(x, [-(4 << scale), (4 << scale) + 1], ring)
    low, not_high = part(bits, 0), part(bits, 1)
    line = engine.add_public(x, 4 << scale, ring)  # 8 (1/2 + x/8)
    line = shifted(engine, line, 3 + scale - target, ring - 2, ring)
    one = constant(engine, 1 << target, x, ring)
    return chosen(engine, [(engine.xor(low, not_high), line), (engine.logical_not(not_high), one)], ring)


def _gelu(engine: Engine, x: Share, scale: int, target: int, ring: int) -> Share:
    thresholds = [(-4 << scale) + 1, round(-1.95 * 2.0**scale), (3 << scale) + 1]
    bits = engine.less_than_many(x, thresholds, ring)
    terms = _powers(engine, x, scale + 2, ring)
    left, middle = (_polynomial(engine, terms, scale + 2, c, target, ring) for c in (_LEFT, _MIDDLE))
    cases = [
        (engine.xor(part(bits, 0), part(bits, 1)), left),
        (engine.xor(part(bits, 1), part(bits, 2)), middle),
        (engine.logical_not(part(bits, 2)), shifted(engine, x, scale - target, ring - 2, ring)),
    ]
    return chosen(engine, cases, ring)


def _powers(engine: Engine, u: Share, scale: int, ring: int) -> dict[int, Share]:
    """u to its powers 1, 2, 3, 4 and 6 at ``scale``, |u| < 1."""

    def times(a: Share, b: Share) -> Share:
        return shifted(engine, product(engine, a, b, ring), scale, 2 * scale, ring)

    second = times(u, u)
    fresh = times(stack([u, second]), stack([second, second]))
    third, fourth = part(fresh, 0), part(fresh, 1)
    return {1: u, 2: second, 3: third, 4: fourth, 6: times(second, fourth)}


def _polynomial(
    engine: Engine, terms: dict[int, Share], scale: int, coefficients: Sequence[float], target: int, ring: int
) -> Share:
    """Of x = 4 u, by the powers of u."""
    fine = min(_FINEST, ring - 2 - scale - _MAGNITUDE)
    factors = [round(c * 4.0**k * 2.0**fine) for k, c in enumerate(coefficients)]
    total = None
    for power, factor in enumerate(factors):
        if power > 0 and factor:
            term = engine.multiply_public(terms[power], factor, ring)
            total = term if total is None else engine.add(total, term, ring)
    assert total is not None  # all have a linear term
    total = engine.add_public(total, factors[0] << scale, ring)
    return shifted(engine, total, fine + scale - target, fine + scale + _MAGNITUDE, ring)
