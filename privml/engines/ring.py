# SPDX-License-Identifier: Apache-2.0
"""Exact products of int64 tensors modulo 2^bits, width helpers, and sums of shared words of floats.

On the CPU the compiled core multiplies (csrc/linear), on a device the limbs of ``limb_products``. Where the true
integer is of interest, float64 arithmetic gives it if it is small enough, else an estimate, from which a wrap is
recognised.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
import torch.nn.functional as F

from privml.engines import limb_products
from privml.engines.shape_tensor import ShapeTensor
from privml.engines.shares import Window
from privml.formats import Float

Product = Callable[[torch.Tensor, torch.Tensor], torch.Tensor]
Estimated = tuple[torch.Tensor, torch.Tensor | None]
# float64 holds whole numbers below 2^53, so sums that stay below it are exact in any order.
FLOAT64_BITS = 53
# A matrix with at most one element in so many that is not 0 is multiplied by these alone.
_SPARSE = 64


def _linear() -> Any:
    """The compiled products; everything else here does without."""
    import privml._core as _core

    return _core.linear


def wrap(value: torch.Tensor, bits: int) -> torch.Tensor:
    """The signed representative of ``value`` modulo 2^bits."""
    shift = 64 - bits
    return value if shift == 0 else (value << shift) >> shift


def word(number: int) -> int:
    """``number`` modulo 2^64 as int64 holds it."""
    return (number + 2**63) % 2**64 - 2**63


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


def matmul(a: torch.Tensor, b: torch.Tensor, bits: int = 64) -> torch.Tensor:
    """[..., n, k] @ [..., k, m] modulo 2^bits for 2 dimensions and more, leading ones broadcast; bits of the result
    above ``bits`` are unspecified. On the CPU up to torch.get_num_threads() threads."""
    leading = torch.broadcast_shapes(a.shape[:-2], b.shape[:-2])
    a, b = a.expand(*leading, *a.shape[-2:]), b.expand(*leading, *b.shape[-2:])
    if isinstance(a, ShapeTensor) or isinstance(b, ShapeTensor):
        return torch.matmul(a, b)
    if a.device.type != "cpu":
        return limb_products.matmul(a, b, bits)
    return torch.from_numpy(_linear().matmul(a.numpy(), b.numpy(), bits, torch.get_num_threads()))


def conv2d(x: torch.Tensor, w: torch.Tensor, window: Window, bits: int = 64) -> torch.Tensor:
    """Cross-correlation [n, c, h, w] * [o, c / groups, kh, kw] modulo 2^bits, zero padding; otherwise as matmul."""
    if isinstance(x, ShapeTensor) or isinstance(w, ShapeTensor):
        return convolution(window)(x.double(), w.double()).long()
    if x.device.type != "cpu":
        return limb_products.conv2d(x, w, window, bits)
    arrays = x.contiguous().numpy(), w.contiguous().numpy()
    return torch.from_numpy(_linear().conv2d(*arrays, *window, bits, torch.get_num_threads()))


def estimated_matmul(a: torch.Tensor, b: torch.Tensor) -> Estimated:
    """``matmul`` modulo 2^64, and a float64 estimate of the true result or None where the first is exact. Its time
    depends on the values: not for secrets."""
    if a.device.type == "cpu" and a.dim() == b.dim() == 2 and _is_sparse(a, b.shape[0] + a.shape[0]):
        row, place = a.nonzero(as_tuple=True)
        chosen, factor = b[place], a[row, place].unsqueeze(1)
        if _sum_bits(factor, chosen, a.shape[1]) <= 63:
            return torch.zeros(a.shape[0], b.shape[1], dtype=torch.int64).index_add_(0, row, factor * chosen), None
    return _estimated(a, b, a.shape[-1], torch.matmul, matmul)


def estimated_conv2d(x: torch.Tensor, w: torch.Tensor, window: Window) -> Estimated:
    """``conv2d`` modulo 2^64, and a float64 estimate of the true result or None where the first is exact. Its time
    depends on the values: not for secrets."""
    return _estimated(x, w, w[0].numel(), convolution(window), lambda x, w: conv2d(x, w, window))


def _is_sparse(a: torch.Tensor, rows: int) -> bool:
    """Whether few elements of ``a`` are not 0, and at most ``rows``, so that a row for each takes little memory."""
    if isinstance(a, ShapeTensor):
        return False
    count = int(a.count_nonzero())
    return count <= rows and count * _SPARSE <= a.numel()


def _estimated(a: torch.Tensor, b: torch.Tensor, terms: int, real: Product, exact: Product) -> Estimated:
    """A product, each element of which is a sum of ``terms`` products, by a function of floats or one of integers."""
    size = _sum_bits(a, b, terms)
    if size <= FLOAT64_BITS and a.device.type == "cpu":
        return real(a.double(), b.double()).long(), None
    return exact(a, b), real(a.double(), b.double()) if size > 63 else None


def convolution(window: Window) -> Callable[[torch.Tensor, torch.Tensor], torch.Tensor]:
    """The 2-D convolution of torch as a function of input and weight, of the types that torch has it for."""
    return lambda x, w: F.conv2d(x, w, None, *window)


def _sum_bits(a: torch.Tensor, b: torch.Tensor, terms: int) -> int:
    """A w, not always the smallest, with |s| < 2^w for all sums s of up to ``terms`` products of an element of a and
    one of b."""
    return magnitude_bits(a) + magnitude_bits(b) + max(terms - 1, 0).bit_length()


def wrapped(result: torch.Tensor, estimate: torch.Tensor) -> torch.Tensor:
    """Where int64 ``result`` differs from the true value, which ``estimate`` approximates to within 2^62."""
    return (estimate - result.double()).abs() > 2.0**63


def add_words(a: torch.Tensor, b: torch.Tensor, fmt: Float) -> torch.Tensor:
    """The word of which ``a`` and ``b`` are shares."""
    return _combined(a, b, fmt, False)


def subtract_words(a: torch.Tensor, b: torch.Tensor, fmt: Float) -> torch.Tensor:
    """The word that ``add_words`` with ``b`` makes ``a``."""
    return _combined(a, b, fmt, True)


def _combined(a: torch.Tensor, b: torch.Tensor, fmt: Float, subtract: bool) -> torch.Tensor:
    cut = fmt.mantissa + 1
    low, middle, bits = (1 << cut) - 1, ((1 << (fmt.exponent + 2)) - 1) << cut, 3 << fmt.sign_bit
    if fmt.sign_bit == 62:
        bits -= 1 << 64
    if subtract:
        return (((a & low) - (b & low)) & low) | (((a & middle) - (b & middle)) & middle) | ((a ^ b) & bits)
    return (((a & low) + (b & low)) & low) | (((a & middle) + (b & middle)) & middle) | ((a ^ b) & bits)
