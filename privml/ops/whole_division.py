# SPDX-License-Identifier: Apache-2.0
"""Quotients and remainders of whole numbers by public positive ones, exactly: ``//``, ``%``, ``div`` with a rounding
mode."""

from __future__ import annotations

from typing import Any

import torch

from privml.dispatch import implements
from privml.engines.base import Engine, Share
from privml.engines.catalogue import LARGEST_DIVISOR
from privml.engines.shares import Promise
from privml.ops.ring_formats import RingFormat, interval, narrowed, promise_of, proved
from privml.ops.values import as_number, engine_of, is_secret, like, result_dtype, ring_value
from privml.tensor import SecretTensor

aten = torch.ops.aten


def _divisor(x: Any, divisor: Any) -> int | None:
    """A public divisor of whole numbers that is one; None: there is no rule."""
    if not is_secret(x) or is_secret(divisor):
        return None
    divisor = as_number(divisor)
    whole = not isinstance(divisor, torch.Tensor) and not result_dtype(x, divisor).is_floating_point
    return int(divisor) if whole and 1 <= divisor <= LARGEST_DIVISOR else None


def _divided(x: SecretTensor, divisor: int) -> tuple[Engine, Share, RingFormat, Share]:
    """The number in the smallest ring that holds it, and its quotient, rounded down."""
    engine, (share, fmt) = engine_of(x), ring_value(x, torch.int64)
    small = narrowed(fmt, 0, engine.stays_wide)
    share = engine.reduce(share, fmt.bits, small.bits)
    return engine, share, small, engine.divide_public(share, small.bits, divisor, promise_of(small))


def _whole(x: SecretTensor, share: Share, bits: int, ends: tuple[int, int], dtype: torch.dtype) -> SecretTensor:
    """A share in a ring of ``bits``, of a number in ``ends``, in the ring of ``x``."""
    engine, to = engine_of(x), max(bits, ring_value(x, torch.int64)[1].bits)
    share = engine.claim(share, *ends)
    if bits < to:
        share = engine.extend(share, bits, to, True, Promise(nonnegative=ends[0] >= 0))
    return like(x, engine.claim(share, *ends), proved(to, 0, False, *ends), dtype)


@implements(aten.floor_divide.default, aten.floor_divide.Scalar)
def floor_divide(x: Any, divisor: Any) -> Any:
    return divide(x, divisor, rounding_mode="floor")


@implements(aten.div.Tensor_mode, aten.div.Scalar_mode)
def divide(x: Any, divisor: Any, *, rounding_mode: str | None) -> Any:
    number = _divisor(x, divisor)
    if rounding_mode is None:
        return aten.div.Tensor(x, divisor) if isinstance(divisor, torch.Tensor) else aten.div.Scalar(x, divisor)
    if number is None:
        return NotImplemented
    engine, _, fmt, quotient = _divided(x, number)
    low, high = interval(fmt)
    if rounding_mode == "trunc" and low < 0:
        return NotImplemented
    return _whole(x, quotient, fmt.bits, (low // number, high // number), result_dtype(x, divisor))


@implements(aten.remainder.Scalar, aten.remainder.Tensor)
def remainder(x: Any, divisor: Any) -> Any:
    number = _divisor(x, divisor)
    if number is None:
        return NotImplemented
    engine, share, fmt, quotient = _divided(x, number)
    rest = engine.subtract(share, engine.multiply_public(quotient, number, fmt.bits), fmt.bits)
    low, high = interval(fmt)
    most = min(number - 1, high) if low >= 0 else number - 1
    return _whole(x, rest, fmt.bits, (0, most), result_dtype(x, divisor))
