# SPDX-License-Identifier: Apache-2.0
"""Division by public whole numbers, rounded to the nearest (ties upwards): means, average pooling, x / 3.

One protocol divides and drops fractional bits at once. A number that is known to leave a bit of its ring free is
cheaper to divide, for its sign is then found without a comparison.
"""

from __future__ import annotations

import math
from typing import Any

import torch

from privml.engines.base import Engine, Share
from privml.engines.catalogue import LARGEST_DIVISOR
from privml.engines.shares import Promise
from privml.formats import FixedPoint
from privml.ops.ring_formats import RingFormat, interval, limit, plus, proved

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
    half = whole // 2
    share, raised = engine.add_public(share, half, fmt.bits), plus(fmt, half, half)
    share = engine.divide_public(share, fmt.bits, whole, Promise(raised.nonnegative, limit(raised)))
    low, high = interval(raised)
    return share, proved(fmt.bits, fmt.scale - shift, isinstance(fmt, FixedPoint), low // whole, high // whole)
