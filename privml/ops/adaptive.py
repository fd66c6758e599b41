# SPDX-License-Identifier: Apache-2.0
"""Steps of Adam, AdamW and RMSprop on secret weights in fixed point.

At the scale of weights and gradients the mean of squared gradients would be zero for all but large gradients, and eps
is zero. So the optimizer's state has scales of its own in rings of 64 bits: the mean of gradients up to 24 fractional
bits, the mean of squares 40, and of every weight what rounding left over is kept and added to the next change. The
quotient m / (sqrt(v) + eps) is m r / (1 + eps r) with r = 1 / sqrt(v), taken in one of two windows of 31 bits: v 2^40
as it is where that is below 2^30, and else without its lowest 24 bits. Root mean squares of gradients must stay below
2^7.5 = 181.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import torch

from privml.encoding import encode_factor
from privml.engines.base import Share
from privml.formats import FixedPoint
from privml.ops.fixed import added, cast, evaluate, less, scaled, shifted, times
from privml.ops.ring_formats import multiplied, relabelled, ring_format
from privml.ops.values import constant, engine_of, ring_value
from privml.tensor import SHARED, SecretTensor

RING = 64
# The ring of changes of weights, at most 32 bits of scale.
CHANGES = 44
# Fractional bits of the mean of gradients (at most), of the mean of squares, and of squares as they are compared to it.
MEAN, SQUARES, FRESH_SQUARES = 24, 40, 32
# How many bits finer than the weights the changes are from which their rounded parts are taken.
FINER = 8
# The upper window: bits dropped, the ring of what is left, and where the lower window ends (in its units).
_DROPPED, _UPPER_RING, _EDGE = 24, RING - 24, 1 << 6
# The inverse root in the units of the upper window, and its scale there: of arguments below 2, at least 2^-30.
_WINDOW_SCALE, _ROOT = 30, FixedPoint(30, 13)
# sqrt(2^_DROPPED): how much larger the inverse root is in the lower window.
_RATIO = 1 << (_DROPPED // 2)
# 2^-_UPPER is the inverse root's factor in the upper window.
_UPPER = (_WINDOW_SCALE - (SQUARES - _DROPPED)) // 2
# Significant bits of public factors: of squares, whose ring is full, of quotients, and of all others.
_FEW, _SOME, _MANY = 8, 10, 20
_RECIPROCAL = FixedPoint(30, 28)


def flat(tensors: Sequence[SecretTensor], bits: int, scale: int) -> SecretTensor:
    """The elements of all tensors in one dimension, in this ring and scale."""
    x = torch.cat([t.detach().reshape(-1) for t in tensors])
    share, fmt = ring_value(x, x.dtype)
    return cast(SecretTensor(share, fmt, x.placement, x.session, x.dtype), bits, scale)


def zeros(like: SecretTensor, bits: int, scale: int) -> SecretTensor:
    """Zeros of the shape of ``like``, as a value that no party knows."""
    fmt = ring_format(bits, scale, True)
    engine = like.session.engine
    share = tuple(c.contiguous() for c in constant(0.0, like.shape, fmt, engine))
    return SecretTensor(share, fmt, SHARED, like.session, like.dtype)


def mean(m: SecretTensor, g: SecretTensor, weight: float) -> SecretTensor:
    """m + weight (g - m) at the scale of ``m``."""
    difference = less(cast(g, RING, m.format.scale), m)
    return added(m, _by(difference, weight, _MANY, m.format.scale))


def mean_of_squares(v: SecretTensor, g: SecretTensor, weight: float) -> SecretTensor:
    """v + weight (g^2 - v); below 2^-33 it decreases no further."""
    fresh = times(g, g, FRESH_SQUARES)
    old = cast(v, RING, FRESH_SQUARES)
    return added(v, _by(less(cast(fresh, RING, FRESH_SQUARES), old), weight, _FEW, SQUARES))


def quotient(m: SecretTensor, v: SecretTensor, eps: float, floor: float) -> SecretTensor:
    """m / (sqrt(v + floor^2) + eps), at 20 fractional bits more than ``m`` has; an eps far below the floor is left
    out."""
    v = shifted(v, floor * floor)
    root, below = _inverse_root(v)
    engine = engine_of(root)
    product = times(m, root, m.format.scale + _ROOT.scale)  # exact
    raised = engine.select(below, engine.multiply_public(product.share, _RATIO - 1, RING), RING)
    share = engine.add(product.share, raised, RING)
    fmt = ring_format(RING, product.format.scale + _UPPER, True)
    result = SecretTensor(share, fmt, product.placement, m.session, m.dtype)
    if eps <= floor / 16:
        return result
    excess = _excess(root, below, eps)
    share_of_root = evaluate(excess, "reciprocal", _RECIPROCAL)
    return times(cast(result, _ring(result, 44), MEAN), share_of_root, fmt.scale)


def _inverse_root(v: SecretTensor) -> tuple[SecretTensor, Share]:
    """1 / sqrt(v) in the units of the window of ``v``, and whether that is the lower one."""
    engine = engine_of(v)
    upper = cast(v, _ring(v, _UPPER_RING), SQUARES - _DROPPED)
    bits, ring = upper.format.bits, _ring(v, 32)
    below = engine.less_than_zero(engine.add_public(upper.share, -_EDGE, bits), bits)
    # The difference matters where it is chosen, and fits the window there.
    lower = engine.select(below, engine.subtract(v.share, upper.share, RING), ring)
    share = engine.add(upper.share, lower, ring)
    fmt = ring_format(ring, _WINDOW_SCALE, True)
    return evaluate(SecretTensor(share, fmt, v.placement, v.session, v.dtype), "rsqrt", _ROOT), below


def _excess(root: SecretTensor, below: Share, eps: float) -> SecretTensor:
    """1 + eps / sqrt(v)."""
    engine, bits = engine_of(root), _ring(root, 54)
    wide = cast(root, bits, _ROOT.scale)
    raised = engine.select(below, engine.multiply_public(wide.share, _RATIO - 1, bits), bits)
    fmt = relabelled(multiplied(wide.format, 1, _RATIO, bits), _ROOT.scale + _UPPER)
    inverse = SecretTensor(engine.add(wide.share, raised, bits), fmt, root.placement, root.session, root.dtype)
    largest = max(math.ceil(math.log2(eps)) + SQUARES // 2, 0) + 1
    return shifted(cast(_by(inverse, eps, _SOME, 30 - largest), _ring(root, 32), 30 - largest), 1.0)


def change(direction: SecretTensor, factor: float, scale: int) -> SecretTensor:
    """``factor`` times a quotient or a mean, at ``scale``, in a ring for changes."""
    return _by(cast(direction, _ring(direction, CHANGES), MEAN), factor, _SOME, scale)


def accumulated(buffer: SecretTensor, direction: SecretTensor, momentum: float) -> SecretTensor:
    """momentum buffer + direction, at the scale of the buffer."""
    scale = buffer.format.scale
    return added(_by(buffer, momentum, _MANY, scale), cast(direction, RING, scale))


def decayed(weights: SecretTensor, factor: float, scale: int, bits: int = RING) -> SecretTensor:
    """``factor`` times the weights, at ``scale``."""
    return cast(scaled(weights, factor, scale), _ring(weights, bits), scale)


def in_parts(residue: SecretTensor, change: SecretTensor, scale: int) -> tuple[SecretTensor, SecretTensor]:
    """residue - change as a multiple of 2^-scale in a ring of 64 bits, and what is left over."""
    exact = less(residue, change)
    whole = cast(cast(exact, _ring(exact, exact.format.bits - exact.format.scale + scale), scale), RING, scale)
    return whole, less(exact, cast(whole, exact.format.bits, exact.format.scale))


def _by(x: SecretTensor, factor: float, significant: int, scale: int) -> SecretTensor:
    """The product with a public number of which so many bits are kept; it must fit the ring of ``x``."""
    engine, fmt = engine_of(x), x.format
    value, shift = encode_factor(factor, significant, 65 - fmt.scale)
    share = engine.multiply_public(x.share, value, fmt.bits)
    exact = relabelled(multiplied(fmt, value, value, fmt.bits), fmt.scale + shift)
    return cast(SecretTensor(share, exact, x.placement, x.session, x.dtype), fmt.bits, scale)


def _ring(x: SecretTensor, bits: int) -> int:
    """The ring of a value of so many bits."""
    return RING if engine_of(x).stays_wide else bits
