# SPDX-License-Identifier: Apache-2.0
"""Ring formats, and what is proved of the values that have them: whether they are negative, how large they can be.

A *ring format* is FixedPoint or Integer: both have ``bits`` and ``scale``. Nothing here looks at a share.

Protocols that rely on a value's sign or size are cheaper, and of a value for which that does not hold their result
depends on the shares, which reveals something of the value to its recipient. So a format says only what holds for every
element of the ring that can lie there. ``proved`` is the one place where ``nonnegative`` and ``bound`` are set: from
the smallest and the largest integer that a computation can give before it is reduced to its ring. Where these do not
fit the ring, the value may have wrapped around, and nothing is known of it.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache

import torch

from privml.engines.shares import Promise
from privml.formats import FixedPoint, Format, Integer, limit

RingFormat = FixedPoint | Integer
# The smallest and the largest value, both included.
Interval = tuple[int, int]


@lru_cache(maxsize=4096)
def ring_format(bits: int, scale: int, floating: bool) -> RingFormat:
    """FixedPoint of a floating logical dtype, Integer of an integral one, of values of which nothing is known."""
    return FixedPoint(bits, scale) if floating else Integer(bits)


@lru_cache(maxsize=16384)
def proved(bits: int, scale: int, floating: bool, low: int, high: int) -> RingFormat:
    """The format of an integer that lies in [low, high] before it is reduced to the ring."""
    half = 1 << (bits - 1)
    if low < -half or high >= half:
        return ring_format(bits, scale, floating)
    bound: int | None = max(high + 1, -low, 1)
    if bound == half:
        bound = None
    return FixedPoint(bits, scale, low >= 0, bound) if floating else Integer(bits, low >= 0, bound)


def interval(fmt: RingFormat) -> Interval:
    """What a value of the format may be."""
    most = limit(fmt)
    return (0 if fmt.nonnegative else -most), most - 1


def promise_of(fmt: RingFormat) -> Promise:
    """What a format says of its values, for operations of an engine."""
    return Promise(fmt.nonnegative, fmt.bound)


def of_interval(to: RingFormat, low: int, high: int) -> RingFormat:
    """``to`` with what is known of an integer in [low, high] that was reduced to its ring."""
    return proved(to.bits, to.scale, isinstance(to, FixedPoint), low, high)


@lru_cache(maxsize=64)
def bit_value(bits: int) -> RingFormat:
    """The format of a bit as a ring element."""
    return proved(bits, 0, False, 0, 1)


def nonnegative(fmt: Format) -> bool:
    return getattr(fmt, "nonnegative", False)


def plain_format(fmt: RingFormat) -> RingFormat:
    """The format without what is known of the value's sign and size."""
    return ring_format(fmt.bits, fmt.scale, isinstance(fmt, FixedPoint))


def width(fmt: RingFormat) -> int:
    """Bits of the two's complement that the value needs, as far as its bound says: its share is one in this ring."""
    return fmt.bits if fmt.bound is None else min(fmt.bits, max((fmt.bound - 1).bit_length() + 1, 2))


# ---- the same value
def in_ring(fmt: RingFormat, bits: int) -> RingFormat:
    """The format of a value that was extended or reduced to a ring of ``bits`` bits."""
    return proved(bits, fmt.scale, isinstance(fmt, FixedPoint), *interval(fmt))


def narrowed(fmt: RingFormat, spare: int = 0, stays_wide: bool = False) -> RingFormat:
    """The format of the same share in the smallest ring that holds its value with ``spare`` bits left."""
    bits = min(width(fmt) + spare, fmt.bits)
    return fmt if bits == fmt.bits or stays_wide else in_ring(fmt, bits)


def relabelled(fmt: RingFormat, scale: int) -> RingFormat:
    """The format of the same integer at another scale, as fixed point."""
    return proved(fmt.bits, scale, True, *interval(fmt))


def rescaled(fmt: RingFormat, to: RingFormat, floors: bool = True) -> RingFormat:
    """``to`` with what is known of a value of ``fmt`` after ``convert`` on an engine that ``floors`` or not."""
    return of_interval(to, *_shifted(fmt, fmt.scale - to.scale, floors))


def truncated(fmt: RingFormat, bits: int, shift: int, floors: bool = True) -> RingFormat:
    """The format in Z_2^bits of a value of ``fmt`` divided by 2^shift, shift > 0, and rounded as ``convert`` does."""
    return proved(bits, fmt.scale - shift, isinstance(fmt, FixedPoint), *_shifted(fmt, shift, floors))


def _shifted(fmt: RingFormat, shift: int, floors: bool) -> Interval:
    low, high = interval(fmt)
    if shift <= 0:
        return low << -shift, high << -shift
    if not floors:
        return low >> shift, (high >> shift) + 1
    half = 1 << (shift - 1) if says_more(fmt) else 0  # else the sum with half a unit is reduced to the ring
    return low >> shift, (high + half) >> shift


def says_more(fmt: RingFormat) -> bool:
    """Whether more is known of the values than their ring."""
    return fmt.nonnegative or fmt.bound is not None


# ---- sums, products and choices, in the ring of ``fmt`` unless another one is said
def plus(fmt: RingFormat, low: int, high: int) -> RingFormat:
    """The format of a sum with a public number in [low, high]."""
    least, most = interval(fmt)
    return of_interval(fmt, least + low, most + high)


def added(fmt: RingFormat, count: int) -> RingFormat:
    """The format of a sum of ``count`` values of ``fmt``."""
    low, high = interval(fmt)
    return of_interval(fmt, low * count, high * count)


def sum_format(fmt: RingFormat, other: RingFormat) -> RingFormat:
    """The format of a sum in the ring of ``fmt``."""
    return plus(fmt, *interval(other))


def less(fmt: RingFormat, other: RingFormat) -> RingFormat:
    """The format of a difference in the ring of ``fmt``."""
    (low, high), (least, most) = interval(fmt), interval(other)
    return of_interval(fmt, low - most, high - least)


def negated(fmt: RingFormat) -> RingFormat:
    low, high = interval(fmt)
    return of_interval(fmt, -high, -low)


def rectified(fmt: RingFormat) -> RingFormat:
    """The format of max(x, 0)."""
    return of_interval(fmt, 0, interval(fmt)[1])


def magnitude_format(fmt: RingFormat) -> RingFormat:
    """The format of |x|: of the smallest number of the ring it is that number itself."""
    low, high = interval(fmt)
    return of_interval(fmt, 0, max(high, -low))


def product_format(a: RingFormat, b: RingFormat, bits: int, square: bool = False) -> RingFormat:
    """The format in Z_2^bits, as fixed point, of a product of two values, or of one with itself."""
    (low, high), (least, most) = interval(a), interval(b)
    ends = [low * least, low * most, high * least, high * most]
    if square:
        ends = [0, low * low, high * high]
    return proved(bits, a.scale + b.scale, True, min(ends), max(ends))


def multiplied(fmt: RingFormat, low: int, high: int, bits: int) -> RingFormat:
    """The format in Z_2^bits of a product with public integers in [low, high]; the scale is that of ``fmt``."""
    least, most = interval(fmt)
    ends = [least * low, least * high, most * low, most * high]
    return proved(bits, fmt.scale, isinstance(fmt, FixedPoint), min(ends), max(ends))


def together(to: RingFormat, formats: Sequence[RingFormat]) -> RingFormat:
    """``to`` with what is known of values that each have one of ``formats``, all of the ring and scale of ``to``."""
    ends = [interval(f) for f in formats]
    return of_interval(to, min(low for low, _ in ends), max(high for _, high in ends))


def public_format(value: torch.Tensor, to: RingFormat) -> RingFormat:
    """``to`` with what everybody knows of a public value."""
    if value.numel() == 0:
        return of_interval(to, 0, 0)
    half = 1 << (to.bits - 1)
    low, high = (_end(float(v), to.scale, half) for v in (value.min(), value.max()))
    return of_interval(to, min(low, 0), max(high, 0))


def _end(value: float, scale: int, half: int) -> int:
    """An integer at least as far from zero as ``value`` at ``scale``; what is too large stays within the ring."""
    size = abs(value) * 2.0**scale
    if not size < 2.0**62:  # constants beyond the ring saturate
        return half - 1 if value > 0 else -half
    most = int(size) + 1 if size else 0
    return most if value > 0 else -most
