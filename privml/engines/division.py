# SPDX-License-Identifier: Apache-2.0
"""Quotients by a public number: products with its reciprocal, in pieces of as many bits as leave them exact in 64."""

from __future__ import annotations

from typing import TYPE_CHECKING

from privml.engines.catalogue import check_divisor
from privml.engines.shares import NO_PROMISE, Promise, Share

if TYPE_CHECKING:
    from privml.engines.base import Engine

# Numbers of so many bits are divided by one product in 64 bits.
_EXACT_BITS = 29


def divide_public(engine: Engine, a: Share, bits: int, divisor: int, promise: Promise = NO_PROMISE) -> Share:
    """``Engine.divide_public`` by the engine's other operations."""
    check_divisor(divisor)
    shift = (divisor & -divisor).bit_length() - 1
    if shift:  # floors nest
        a, divisor = engine.truncate(a, bits, shift, promise), divisor >> shift
    if divisor == 1:
        return a
    if bits <= _EXACT_BITS:
        return _divide_narrow(engine, a, bits, divisor)
    low = _EXACT_BITS - 1 - divisor.bit_length()
    high = engine.divide_public(engine.truncate_reduce(a, bits, low), bits - low, divisor)
    high = engine.extend(high, bits - low, bits)
    # The rest is in 0 .. divisor * 2^low - 1.
    rest = engine.subtract(a, engine.multiply_public(high, divisor << low, bits), bits)
    rest = _divide_narrow(engine, engine.reduce(rest, bits, _EXACT_BITS), _EXACT_BITS, divisor)
    rest = engine.extend(rest, _EXACT_BITS, bits, promise=Promise(nonnegative=True))
    return engine.add(engine.multiply_public(high, 1 << low, bits), rest, bits)


def _divide_narrow(engine: Engine, a: Share, bits: int, divisor: int) -> Share:
    """The same for bits <= _EXACT_BITS: with 0 <= x < 2^k and k' = k + bitlength(divisor), floor(x m / 2^k') is the
    quotient for m = floor(2^k' / divisor) + 1."""
    lifted = -(-(1 << (bits - 1)) // divisor)  # makes the number nonnegative
    shift = _EXACT_BITS + 1 + divisor.bit_length()
    wide = engine.add_public(engine.extend(a, bits, 64), lifted * divisor, 64)
    product = engine.multiply_public(wide, (1 << shift) // divisor + 1, 64)
    quotient = engine.add_public(engine.truncate(product, 64, shift, Promise(nonnegative=True)), -lifted, 64)
    return engine.reduce(quotient, 64, bits)
