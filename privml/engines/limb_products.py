# SPDX-License-Identifier: Apache-2.0
"""Matrix products and convolutions modulo 2^bits on matrix units that know no wide integers.

A word is a sum of signed limbs, x = sum of d_i 2^(w i) with |d_i| <= 2^(w - 1), and the product modulo 2^bits needs
the pairs of limbs i + j < L = ceil(bits / w) alone: 36 products for 64 bits in limbs of 8, 10 for 32 bits. All pairs
of one i + j = s are one product, with the limbs side by side along the inner dimension:

    [A_0 | A_1 | ... | A_s] @ [B_s ; ... ; B_1 ; B_0]

so that L products do, and Horner's rule adds them up. Nothing overflows: a sum of t products of limbs is at most
t 2^(2 w - 2) in magnitude, which is below 2^31 (int8 limbs, int32 sums) for t < 2^17 and at most 2^53 (float64, where
such integers are exact) for limbs of 22 bits and t <= 2^11; longer inner dimensions are split.

Plain torch operations throughout: tests run the same code on a CPU.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass

import torch
import torch.nn.functional as F

from privml.engines.shares import Window

_BYTES = 1 << 28  # of patches that are written out at once
_ALIGNED = 16  # limbs of the inner dimension and rows come in multiples, as matrix units need them


@dataclass(frozen=True, slots=True)
class Unit:
    """A matrix unit: the width of its limbs and the number of their products that one sum may have."""

    dtype: torch.dtype
    width: int
    terms: int


INT8 = Unit(torch.int8, 8, (1 << 17) - 1)
FLOAT64 = Unit(torch.float64, 22, 1 << 11)


def unit_of(device: torch.device) -> Unit:
    """int8 where the device has tensor cores for it (compute capability 7.5), or is a CPU; float64 elsewhere."""
    if device.type == "cuda" and torch.cuda.get_device_capability(device) < (7, 5):
        return FLOAT64
    return INT8


def limbs(value: torch.Tensor, bits: int, unit: Unit) -> torch.Tensor:
    """The signed limbs of int64 ``value`` modulo 2^bits, lowest first, as a new first dimension."""
    count, width = -(-bits // unit.width), unit.width
    # With half a unit added to every limb, all but the highest become digits without carries from below.
    offset = sum(1 << (width * (i + 1) - 1) for i in range(count) if width * (i + 1) <= 64)
    shifted = value + ((offset + 2**63) % 2**64 - 2**63)
    if unit.dtype == torch.int8:  # the bytes as they lie in memory
        return (shifted.contiguous().unsqueeze(-1).view(torch.int8) ^ -128).movedim(-1, 0)[:count]
    out = torch.empty((count, *value.shape), dtype=unit.dtype, device=value.device)
    for i in range(count):
        part = shifted >> (width * i)
        whole = width * (i + 1) <= 64  # else what the sign shift leaves is the limb
        out[i] = (part & ((1 << width) - 1)) - (1 << (width - 1)) if whole else part
    return out


def matmul(a: torch.Tensor, b: torch.Tensor, bits: int, unit: Unit | None = None) -> torch.Tensor:
    """[..., n, k] @ [..., k, m] modulo 2^bits of int64 tensors with equal leading dimensions; the result is int64,
    its bits above ``bits`` unspecified."""
    unit = unit or unit_of(a.device)
    out = torch.zeros((*a.shape[:-1], b.shape[-1]), dtype=torch.int64, device=a.device)
    if a.numel() == 0 or b.numel() == 0:
        return out
    for index in itertools.product(*map(range, a.shape[:-2])):
        left = _rows(limbs(a[index], bits, unit).movedim(0, 1))
        right = _rows(limbs(b[index].t(), bits, unit).flip(0).movedim(0, 1))
        out[index] = _product(left, right, unit)[: a.shape[-2], : b.shape[-1]]
    return out


def conv2d(x: torch.Tensor, w: torch.Tensor, window: Window, bits: int, unit: Unit | None = None) -> torch.Tensor:
    """Cross-correlation [n, c, h, w] * [o, c / groups, kh, kw] modulo 2^bits, zero padding; otherwise as matmul."""
    stride, padding, dilation, groups = window
    unit = unit or unit_of(x.device)
    x = F.pad(x, (padding[1], padding[1], padding[0], padding[0]))
    (n, _, height, width), (outputs, inner, *kernel) = x.shape, w.shape
    size = [
        (s - d * (k - 1) - 1) // t + 1 for s, k, d, t in zip((height, width), kernel, dilation, stride, strict=True)
    ]
    out = torch.empty((n, outputs, *size), dtype=torch.int64, device=x.device)
    if inner == 1 and outputs == groups:
        return _by_taps(x, w, stride, dilation, out)
    patch = inner * kernel[0] * kernel[1] * -(-bits // unit.width) * unit.dtype.itemsize
    images = max(1, _BYTES // (patch * size[0] * size[1]))
    each = outputs // groups
    for g in range(groups):
        left = _rows(limbs(w[g * each : (g + 1) * each].reshape(each, -1), bits, unit).movedim(0, 1))
        for first in range(0, n, images):
            part = limbs(x[first : first + images, g * inner : (g + 1) * inner], bits, unit).flip(0).contiguous()
            right = _rows(_patches(part, kernel, size, stride, dilation))
            sums = _product(left, right, unit)[:each, : part.shape[1] * size[0] * size[1]]
            out[first : first + images, g * each : (g + 1) * each] = sums.reshape(each, -1, *size).movedim(0, 1)
    return out


def _patches(
    x: torch.Tensor, kernel: Sequence[int], size: Sequence[int], stride: Sequence[int], dilation: Sequence[int]
) -> torch.Tensor:
    """[limbs, n, c, h, w] as [n * oh * ow, limbs, c * kh * kw]: what the kernel meets at each output."""
    count, n, channels = x.shape[:3]
    of_limb, of_image, of_channel, of_row, of_column = x.stride()
    view = x.as_strided(
        (n, *size, count, channels, *kernel),
        (of_image, of_row * stride[0], of_column * stride[1], of_limb, of_channel, of_row * dilation[0])
        + (of_column * dilation[1],),
    )
    return view.reshape(n * size[0] * size[1], count, -1)


def _by_taps(
    x: torch.Tensor, w: torch.Tensor, stride: Sequence[int], dilation: Sequence[int], out: torch.Tensor
) -> torch.Tensor:
    """A convolution of each channel by itself: its few taps one by one, in integer arithmetic."""
    out.zero_()
    spans = [(s - 1) * t + 1 for s, t in zip(out.shape[2:], stride, strict=True)]
    for ky in range(w.shape[2]):
        for kx in range(w.shape[3]):
            top, left = ky * dilation[0], kx * dilation[1]
            window = x[:, :, top : top + spans[0] : stride[0], left : left + spans[1] : stride[1]]
            out.addcmul_(window, w[:, 0, ky, kx].reshape(1, -1, 1, 1))
    return out


def _rows(value: torch.Tensor) -> torch.Tensor:
    """[rows, limbs, inner] with zeros up to multiples of what matrix units need."""
    rows, count, inner = value.shape
    full = [-(-rows // (2 * _ALIGNED)) * 2 * _ALIGNED, count, -(-inner // _ALIGNED) * _ALIGNED]
    if full == [rows, count, inner]:
        return value.contiguous()
    out = torch.zeros(full, dtype=value.dtype, device=value.device)
    out[:rows, :, :inner] = value
    return out


def _product(left: torch.Tensor, right: torch.Tensor, unit: Unit) -> torch.Tensor:
    """[n, m] from limbs [n, limbs, k] and, highest first, [m, limbs, k]."""
    count, inner = left.shape[1:]
    chunk = unit.terms // count // _ALIGNED * _ALIGNED
    total = torch.zeros((), dtype=torch.int64, device=left.device)
    for first in range(0, inner, chunk):
        a = left[:, :, first : first + chunk].reshape(left.shape[0], -1)
        b = right[:, :, first : first + chunk].reshape(right.shape[0], -1)
        width = a.shape[1] // count
        sums: torch.Tensor | None = None
        for s in range(count - 1, -1, -1):
            terms = (s + 1) * width
            part = _multiply(a[:, :terms], b[:, -terms:], unit)
            if sums is not None:
                sums = torch.add(part, sums, alpha=1 << unit.width)
            else:  # int32 may wrap where nothing above 32 bits is asked for
                sums = part if count * unit.width <= 32 else part.long()
        assert sums is not None  # count is positive
        total = total + sums
    return total


def _multiply(a: torch.Tensor, b: torch.Tensor, unit: Unit) -> torch.Tensor:
    """a @ b.T of limbs, exact."""
    if unit.dtype == torch.int8:
        return torch._int_mm(a, b.t())
    return torch.mm(a, b.t()).long()
