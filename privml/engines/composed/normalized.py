# SPDX-License-Identifier: Apache-2.0
"""Functions of positive numbers of any size: n = t 2^(e + 1) with t in [1/2, 1), found by comparing n with all powers
of two at once. The bits [n < 2^j] are 1 from j = e + 1 on, so that any sequence of e is a public combination of them.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import torch

from privml.engines.base import Engine
from privml.engines.composed.steps import RING, chosen, constant, evaluate, product, shifted, spline
from privml.engines.shares import Promise, Share, part
from privml.formats import FixedPoint

# Arguments are integers of at most this many bits; a comparison has two bits more.
_SIZE = 32
_COMPARED = _SIZE + 2
# t as an integer, and what its functions are computed with.
_MANTISSA, _PRECISION = 32, 28
# Formats of t and of its function where an engine computes that as a whole; sequences fit the first one's ring, too.
_OWN = FixedPoint(36, _MANTISSA), FixedPoint(RING, 26)


def _stairs(values: Sequence[float], at_zero: int | None = None) -> tuple[list[int], int]:
    """Weights of the bits [n < 2^j], j = 0..31, and a constant, whose sum is ``values[e]`` (``at_zero`` for n = 0)."""
    rounded = [round(v) for v in values]
    first = 0 if at_zero is None else at_zero - rounded[0]
    return [first, *(rounded[j - 1] - rounded[j] for j in range(1, _SIZE))], rounded[-1]


def _normalized(
    engine: Engine,
    name: str,
    n: Share,
    further: Sequence[tuple[list[int], int]],
    thresholds: Sequence[int] = (),
    at_least_one: bool = False,
) -> tuple[Share, list[Share], Share]:
    """(the function ``name`` of t at scale ``_PRECISION``, the sequences ``further`` at e, bits of [n < threshold]). If
    n is not positive, t is that of ``at_least_one``, or any number."""
    whole = engine.computes_whole("function", f"{name}_mantissa", n, *_OWN)
    ring = _OWN[0].bits if whole else RING
    bits = engine.less_than_many(n, [1 << j for j in range(_SIZE)] + list(thresholds), _COMPARED)
    compared = tuple(c[:_SIZE] for c in bits)
    factors = _stairs([2.0 ** (_SIZE - 1 - e) for e in range(_SIZE)], 0)
    of_one = [1 << (_SIZE - 1), *[0] * (_SIZE - 1)], 0  # t itself where n < 1
    sequences = [factors, *[of_one] * at_least_one, *further]
    weights = torch.tensor([weights for weights, _ in sequences])
    sums = engine.weighted_bits(compared, weights, ring)
    found = [engine.add_public(part(sums, i), c, ring) for i, (_, c) in enumerate(sequences)]
    t, sizes = product(engine, n, found[0], ring), found[1 + at_least_one :]
    if at_least_one:
        t = engine.add(t, found[1], ring)
    if whole:
        mantissa = engine.function(f"{name}_mantissa", t, *_OWN)
        mantissa = engine.multiply_public(mantissa, 1 << (_PRECISION - _OWN[1].scale), RING)
        sizes = [engine.extend(size, ring, RING, True, Promise(bound=1 << (ring - 2))) for size in sizes]
    else:
        mantissa = evaluate(engine, spline(name), t, _MANTISSA, _PRECISION, 1)
    return mantissa, sizes, tuple(c[_SIZE:] for c in bits)


def reciprocal(engine: Engine, n: Share, scale: int, target: FixedPoint) -> Share:
    """1 / (t 2^(e+1-s)): 2^(s+t'-e-1) / t at scale t', saturating."""
    largest = (1 << (target.bits - 1)) - 1
    reach = scale + target.scale
    smallest = min(max(-(-(1 << reach) // largest), 1), 1 << _SIZE)  # below it the result does not fit
    kept = min(reach, 30)
    sizes = _stairs([min(2.0 ** (kept - e), 2.0**31) for e in range(_SIZE)])
    mantissa, (size,), below = _normalized(engine, "reciprocal", n, [sizes], [smallest])
    value = product(engine, mantissa, size)
    value = shifted(engine, value, _PRECISION + 1 + kept - reach, 61)
    tiny = part(below, 0)
    return chosen(engine, [(engine.logical_not(tiny), value), (tiny, constant(engine, largest, n))])


def rsqrt(engine: Engine, n: Share, scale: int, target: FixedPoint) -> Share:
    """2^((s-e-1)/2) / sqrt(t); that of 2^-s if n is not positive."""
    kept = min(target.scale + 4, 31 - (scale + 1) // 2)
    sizes = _stairs([2.0 ** ((scale - e - 1) / 2 + kept) for e in range(_SIZE)])
    mantissa, (size,), _ = _normalized(engine, "rsqrt", n, [sizes], at_least_one=True)
    value = product(engine, mantissa, size)
    return shifted(engine, value, _PRECISION + kept - target.scale, 61)


def sqrt(engine: Engine, n: Share, scale: int, target: FixedPoint) -> Share:
    """2^((e+1-s)/2) sqrt(t), 0 if n is not positive."""
    kept = min(target.scale + 4, 31 - max(math.ceil((_SIZE - scale) / 2), 0))
    sizes = _stairs([2.0 ** ((e + 1 - scale) / 2 + kept) for e in range(_SIZE)], 0)
    mantissa, (size,), _ = _normalized(engine, "sqrt", n, [sizes])
    value = product(engine, mantissa, size)
    return shifted(engine, value, _PRECISION + kept - target.scale, 61)


def log(engine: Engine, n: Share, scale: int, target: FixedPoint) -> Share:
    """log(t) + (e+1-s) log(2); that of 2^-s if n is not positive."""
    sizes = _stairs([(e + 1 - scale) * math.log(2.0) * 2.0**_PRECISION for e in range(_SIZE)])
    mantissa, (size,), _ = _normalized(engine, "log", n, [sizes], at_least_one=True)
    value = engine.add(mantissa, size, RING)
    return shifted(engine, value, _PRECISION - target.scale, _PRECISION + 6)


FUNCTIONS: dict[str, Callable[[Engine, Share, int, FixedPoint], Share]] = {
    "reciprocal": reciprocal,
    "rsqrt": rsqrt,
    "sqrt": sqrt,
    "log": log,
}
