# SPDX-License-Identifier: Apache-2.0
"""Ring formats, and what is known of the values that have them: whether they are negative, how large they can be.

A *ring format* is FixedPoint or Integer: both have ``bits`` and ``scale``. Nothing here looks at a share.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache

import torch

from privml.formats import FixedPoint, Format, Integer

RingFormat = FixedPoint | Integer


@lru_cache(maxsize=64)
def bit_value(bits: int) -> Integer:
    """The format of a bit as a ring element."""
    return Integer(bits, True, 2 if bits > 2 else None)


@lru_cache(maxsize=4096)
def ring_format(
    bits: int, scale: int, floating: bool, nonnegative: bool = False, bound: int | None = None
) -> RingFormat:
    """FixedPoint of a floating logical dtype, Integer of an integral one; a bound beyond the ring is dropped."""
    if bound is not None and bound >> (bits - 1):
        bound = None
    if floating:
        return FixedPoint(bits, scale, nonnegative, bound)
    return Integer(bits, nonnegative, bound)


def nonnegative(fmt: Format) -> bool:
    return getattr(fmt, "nonnegative", False)


def plain_format(fmt: RingFormat) -> RingFormat:
    """The format without what is known of the value's sign and size."""
    if not fmt.nonnegative and fmt.bound is None:
        return fmt
    return ring_format(fmt.bits, fmt.scale, isinstance(fmt, FixedPoint))


def width(fmt: RingFormat) -> int:
    """Bits of the two's complement that the value needs, as far as its bound tells: its share is one in this ring."""
    return fmt.bits if fmt.bound is None else min(fmt.bits, max((fmt.bound - 1).bit_length() + 1, 2))


def narrowed(fmt: RingFormat, spare: int = 0, stays_wide: bool = False) -> RingFormat:
    """The format of the same share in the smallest ring that holds its value with ``spare`` bits left."""
    bits = min(width(fmt) + spare, fmt.bits)
    if bits == fmt.bits or stays_wide:
        return fmt
    return ring_format(bits, fmt.scale, isinstance(fmt, FixedPoint), fmt.nonnegative, fmt.bound)


def limit(fmt: RingFormat) -> int:
    """A bound of the magnitude: the known one, else the ring's."""
    return (1 << (fmt.bits - 1)) + 1 if fmt.bound is None else fmt.bound


def shifted(bound: int, shift: int) -> int:
    """The bound of a value shifted right (left where ``shift`` < 0); a negative one is truncated away from zero."""
    return bound << -shift if shift <= 0 else ((bound - 1 + (1 << shift) - 1) >> shift) + 1


def rescaled(fmt: RingFormat, to: RingFormat) -> RingFormat:
    """``to`` with what is known of a value of ``fmt`` after ``convert``."""
    if not fmt.nonnegative and fmt.bound is None:
        return to
    bound = None if fmt.bound is None else shifted(fmt.bound, fmt.scale - to.scale)
    return ring_format(to.bits, to.scale, isinstance(to, FixedPoint), fmt.nonnegative, bound)


def together(to: RingFormat, formats: Sequence[RingFormat]) -> RingFormat:
    """``to`` with what is known of values that each have one of ``formats``, all of the scale of ``to``."""
    bounds = [f.bound for f in formats]
    bound = None if None in bounds else max(bounds)
    return ring_format(to.bits, to.scale, isinstance(to, FixedPoint), all(f.nonnegative for f in formats), bound)


def public_format(value: torch.Tensor, to: RingFormat) -> RingFormat:
    """``to`` with what everybody knows of a public value."""
    if value.numel() == 0:
        return ring_format(to.bits, to.scale, isinstance(to, FixedPoint), True, 1)
    low, high = float(value.min()), float(value.max())
    size = max(abs(low), abs(high)) * 2.0**to.scale
    bound = int(size) + 2 if size < 2.0**62 else None
    return ring_format(to.bits, to.scale, isinstance(to, FixedPoint), low >= 0, bound)


def added(fmt: RingFormat, count: int) -> RingFormat:
    """The format of a sum of ``count`` values of ``fmt``."""
    if fmt.bound is None:
        return fmt
    return ring_format(fmt.bits, fmt.scale, isinstance(fmt, FixedPoint), fmt.nonnegative, fmt.bound * count)


def signless(fmt: RingFormat) -> RingFormat:
    """The format of a value of either sign and the same magnitude."""
    if not fmt.nonnegative:
        return fmt
    return ring_format(fmt.bits, fmt.scale, isinstance(fmt, FixedPoint), False, fmt.bound)
