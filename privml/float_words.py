# SPDX-License-Identifier: Apache-2.0
"""Floating-point values as words (see ``Float.word_bits``), and what can be done to words and their shares locally.

A word's mantissa and exponent are shared by addition, each in its ring, its sign and nonzero bits by exclusive or.
"""

from __future__ import annotations

import torch

from privml.errors import InvalidInput
from privml.formats import Float


def float_words(value: torch.Tensor | float, fmt: Float) -> torch.Tensor:
    """``value`` (any real dtype) rounded to nearest, ties to even, as clear words (int64) of its shape.

    What rounds below the smallest normal number becomes a zero of its sign, what rounds beyond the largest an infinity.
    Raises InvalidInput for NaN, naming the first index but never a value.
    """
    value = torch.as_tensor(value)
    if not value.dtype.is_floating_point and value.dtype is not torch.bool and value.numel():
        return _integer_words(value.detach().to(torch.int64), fmt)
    real = value.detach().double()
    bad = torch.isnan(real)
    if bool(bad.any()):
        index = tuple(torch.nonzero(bad)[0].tolist()) if bad.dim() else ()
        raise InvalidInput(f"input index {index} is NaN; clean the input before sharing it")
    infinite = torch.isinf(real)
    fraction, exponent = torch.frexp(torch.where(infinite, 0.0, real.abs()))
    mantissa = (fraction * 2.0 ** (fmt.mantissa + 1)).round().to(torch.int64)
    return _assembled(mantissa, exponent.to(torch.int64) - 1, torch.signbit(real), infinite, fmt)


def _integer_words(value: torch.Tensor, fmt: Float) -> torch.Tensor:
    """Integers beyond 2^53 are rounded once: their low half only tells on which side of a tie they lie."""
    rest = value & 0x3FF
    high = value - rest
    if fmt.mantissa > 48 or not bool((value.abs() >= 1 << 53).any()):
        return float_words(value.double(), fmt)
    sticky = high.double() + torch.where(rest != 0, 512.0, 0.0)  # exact: 54 bits at most, and the last one is free
    return float_words(torch.where(value.abs() < 1 << 53, value.double(), sticky), fmt)


def _assembled(
    mantissa: torch.Tensor, exponent: torch.Tensor, negative: torch.Tensor, infinite: torch.Tensor, fmt: Float
) -> torch.Tensor:
    q = fmt.mantissa
    carried = mantissa == 1 << (q + 1)
    mantissa, exponent = torch.where(carried, 1 << q, mantissa), exponent + carried + fmt.bias
    top = (1 << fmt.exponent) - 1
    infinite = infinite | (exponent >= top)
    zero = ((mantissa == 0) | (exponent < 1)) & ~infinite
    mantissa = torch.where(infinite, 1 << q, mantissa)
    exponent = torch.where(infinite, top, exponent)
    word = joined(mantissa, exponent, torch.zeros_like(mantissa), torch.ones_like(mantissa), fmt)
    return torch.where(zero, 0, word) | negative.to(torch.int64) << fmt.sign_bit


def float_values(words: torch.Tensor, fmt: Float, dtype: torch.dtype) -> torch.Tensor:
    """Clear words as a tensor of the logical dtype."""
    q = fmt.mantissa
    mantissa, exponent = mantissa_of(words, fmt), exponent_of(words, fmt)
    value = torch.ldexp(mantissa.double(), exponent - fmt.bias - q)
    value = torch.where(exponent == (1 << fmt.exponent) - 1, torch.inf, value)
    value = torch.where(nonzero_of(words, fmt) == 0, 0.0, value)
    return torch.where(sign_of(words, fmt) != 0, -value, value).to(dtype)


# ---- the parts of a word, or of its share
def mantissa_of(words: torch.Tensor, fmt: Float) -> torch.Tensor:
    return words & ((1 << (fmt.mantissa + 1)) - 1)


def exponent_of(words: torch.Tensor, fmt: Float) -> torch.Tensor:
    """The biased exponent (or its share) in Z_2^(exponent + 2)."""
    return (words >> (fmt.mantissa + 1)) & ((1 << (fmt.exponent + 2)) - 1)


def sign_of(words: torch.Tensor, fmt: Float) -> torch.Tensor:
    return ((words >> fmt.sign_bit) & 1).to(torch.uint8)


def nonzero_of(words: torch.Tensor, fmt: Float) -> torch.Tensor:
    return ((words >> (fmt.sign_bit + 1)) & 1).to(torch.uint8)


def joined(
    mantissa: torch.Tensor, exponent: torch.Tensor, sign: torch.Tensor, nonzero: torch.Tensor, fmt: Float
) -> torch.Tensor:
    """Words of these parts; bits of mantissa and exponent beyond their rings are dropped."""
    low = mantissa & ((1 << (fmt.mantissa + 1)) - 1)
    middle = (exponent & ((1 << (fmt.exponent + 2)) - 1)) << (fmt.mantissa + 1)
    return low | middle | sign.to(torch.int64) << fmt.sign_bit | nonzero.to(torch.int64) << (fmt.sign_bit + 1)


# ---- sums of words, part by part: what opens a sharing, and what selects
