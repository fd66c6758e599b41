# SPDX-License-Identifier: Apache-2.0
"""Division by public whole numbers, rounded to the nearest (ties upwards): means, average pooling, x / 3.

One protocol divides and drops fractional bits at once. Like what is compared, a number to be divided must leave a bit
of its ring free, which makes finding its sign cheap: beyond that the result is wrong, and ``plain`` says so.
"""

from __future__ import annotations

import math
from typing import Any

import torch

from privml.engines.base import Engine, Share
from privml.engines.catalogue import LARGEST_DIVISOR
from privml.formats import FixedPoint
from privml.ops.ring_formats import RingFormat, ring_format

_LARGEST_MULTIPLE = 1 << 12


def whole_divisor(value: Any) -> int | None:
    """``value`` as a divisor of this module; None for what is none, and for powers of two, which are shifts."""
    if isinstance(value, torch.Tensor) or not float(value).is_integer():
        return None
    divisor = abs(int(value))
    return divisor if 2 < divisor <= LARGEST_DIVISOR and divisor & (divisor - 1) else None


def common_multiple(counts: torch.Tensor) -> int | None:
    """The smallest multiple of all ``counts`` (whole numbers), if it is small: x / count is (x * (m / count)) / m."""
    multiple = math.lcm(*(int(count) for count in torch.unique(counts).tolist()))
    return multiple if multiple <= _LARGEST_MULTIPLE else None


def quotient(engine: Engine, share: Share, fmt: RingFormat, divisor: int, scale: int) -> tuple[Share, RingFormat]:
    """x / divisor in the same ring at ``scale``, at most that of x, or at the next one that takes no divisor above
    LARGEST_DIVISOR."""
    shift = min(fmt.scale - scale, LARGEST_DIVISOR.bit_length() - divisor.bit_length())
    whole = divisor << shift
    half, room = whole // 2, 1 << (fmt.bits - 2)
    most = room if fmt.bound is None else min(fmt.bound + half, 1 << (fmt.bits - 1))
    share = engine.divide_public(engine.add_public(share, half, fmt.bits), fmt.bits, whole, fmt.nonnegative, most)
    bound = None if fmt.bound is None else (fmt.bound - 1 + half) // whole + 2
    return share, ring_format(fmt.bits, fmt.scale - shift, isinstance(fmt, FixedPoint), fmt.nonnegative, bound)
