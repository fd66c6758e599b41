# SPDX-License-Identifier: Apache-2.0
"""Exact products of int64 tensors modulo 2^64 through float64 kernels, and width helpers.

A product is split into limbs so small that every partial sum is an integer below 2^53, where float64 is
exact. The same partial sums give a float64 estimate of the true integer, from which a wrap is recognised.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import torch
import torch.nn.functional as F

Bilinear = Callable[[torch.Tensor, torch.Tensor], torch.Tensor]
_MANTISSA = 53


def wrap(value: torch.Tensor, bits: int) -> torch.Tensor:
    """The signed representative of ``value`` modulo 2^bits."""
    shift = 64 - bits
    return value if shift == 0 else (value << shift) >> shift


def extremes(value: torch.Tensor) -> tuple[int, int]:
    """Smallest and largest element, (0, 0) for an empty tensor."""
    if value.numel() == 0:
        return 0, 0
    low, high = torch.aminmax(value)
    return int(low), int(high)


def magnitude_bits(value: torch.Tensor) -> int:
    """Smallest w with |value| < 2^w everywhere (0 for an empty or zero tensor)."""
    low, high = extremes(value)
    return max(abs(low), abs(high)).bit_length()


def matmul(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    """[..., n, k] @ [..., k, m] modulo 2^64."""
    return bilinear(torch.matmul, a, b, a.shape[-1])[0]


def conv2d(
    x: torch.Tensor,
    w: torch.Tensor,
    stride: Sequence[int],
    padding: Sequence[int],
    dilation: Sequence[int],
    groups: int,
) -> torch.Tensor:
    """Cross-correlation [n, c, h, w] * [o, c / groups, kh, kw] modulo 2^64, zero padding."""
    return bilinear(convolution(stride, padding, dilation, groups), x, w, w[0].numel())[0]


def convolution(stride: Sequence[int], padding: Sequence[int], dilation: Sequence[int], groups: int) -> Bilinear:
    """The float64 kernel of a 2-D convolution as a function of input and weight."""
    return lambda x, w: F.conv2d(x, w, None, tuple(stride), tuple(padding), tuple(dilation), groups)


def bilinear(
    function: Bilinear, a: torch.Tensor, b: torch.Tensor, terms: int
) -> tuple[torch.Tensor, torch.Tensor | None]:
    """``function(a, b)`` modulo 2^64, where each result sums ``terms`` products.

    The second value is a float64 estimate of the true result, or None when the first is exact.
    """
    budget = _MANTISSA - max(terms, 1).bit_length()
    width_a, width_b = magnitude_bits(a), magnitude_bits(b)
    if width_a + width_b <= budget:
        return function(a.double(), b.double()).long(), None
    half = budget // 2
    limb_a = min(width_a, half) if width_b > half else budget - width_b
    limb_b = min(budget - limb_a, max(width_b, 1))
    total: torch.Tensor | None = None
    estimate: torch.Tensor | None = None
    limbs_b = _limbs(b, width_b, limb_b)
    for shift_a, part_a in _limbs(a, width_a, limb_a):
        for shift_b, part_b in limbs_b:
            partial = function(part_a, part_b)
            shift = shift_a + shift_b
            scaled = partial * 2.0**shift
            estimate = scaled if estimate is None else estimate + scaled
            if shift < 64:
                ring = partial.long() << shift
                total = ring if total is None else total + ring
    assert total is not None  # the first shift is zero
    return total, estimate


def _limbs(value: torch.Tensor, width: int, limb: int) -> list[tuple[int, torch.Tensor]]:
    """``value`` as a sum of float64 limbs times 2^shift; all but the top one are in [0, 2^limb)."""
    parts = []
    for shift in range(0, max(width, 1), limb):
        rest = value >> shift
        last = shift + limb >= width
        parts.append((shift, (rest if last else rest & ((1 << limb) - 1)).double()))
    return parts


def wrapped(result: torch.Tensor, estimate: torch.Tensor) -> torch.Tensor:
    """Where int64 ``result`` differs from the true value, which ``estimate`` approximates to within 2^62."""
    return (estimate - result.double()).abs() > 2.0**63
