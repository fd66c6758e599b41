# SPDX-License-Identifier: Apache-2.0
"""Variances, standard deviations and Euclidean norms.

A sum of squares is brought to 32 bits before its root is taken, with as many fractional bits as the largest value
leaves. Where neither the ring nor the node of a program says how large that is, it has ``VARIANCE_SCALE`` of them: a
variance must stay below 2^13 then, a squared norm of n terms below 2^13 sqrt(n).
"""

from __future__ import annotations

import math
from typing import Any

import torch

from privml.dispatch import holds_floats, implements, intercepts
from privml.errors import InvalidInput
from privml.formats import FixedPoint, current_node
from privml.ops.fixed import (
    WIDEST,
    asked,
    averaged,
    averaged_squares,
    cast,
    evaluate,
    integer_bits,
    less,
    real,
    settled,
    shifted,
    target_of,
    times,
)
from privml.ops.linear import count_of, dims_of, mean
from privml.ops.ring_formats import interval, limit, of_interval, says_more, together, width
from privml.ops.values import claimed, engine_of, is_secret
from privml.tensor import SecretTensor

aten = torch.ops.aten

VARIANCE_SCALE = 18
# Bits of an inverse root at most.
_OF_ROOT = WIDEST + 3
# Sums of magnitude below this do not wrap.
_SUMS_END = 1 << 63


def mean_square(x: SecretTensor, dims: list[int], count: int) -> SecretTensor:
    """sum(x^2) / count in at most 32 bits, with as many fractional bits as its largest possible value leaves."""
    terms = math.prod(x.shape[d] for d in dims)
    more = max(math.ceil(math.log2(max(terms, 1) / max(count, 1))), 0)
    scale = VARIANCE_SCALE - more // 2
    whole = _whole_bits(x)
    fitting = 0 if whole is None else WIDEST - 1 - more - 2 * max(whole, 0)
    if fitting >= 6:
        scale = fitting
    scale = max(min(scale, 2 * x.format.scale), 0)
    mean = averaged_squares(x, dims, count, scale)
    return mean if engine_of(mean).stays_wide else cast(mean, min(mean.format.bits, WIDEST), mean.format.scale)


def _whole_bits(x: SecretTensor) -> int | None:
    """The smallest k known to have |x| < 2^k: by the ring, and, where that remains wide, by that of the program's node,
    which holds its operands and their differences. None if neither tells."""
    working, told = current_node().working, []
    wide = engine_of(x).stays_wide
    if width(x.format) <= WIDEST + int(wide):  # a difference counts as its operands do
        told.append(integer_bits(x))
    if wide and working is not None:
        told.append(working.bits - 1 - working.scale)
    return min(told, default=None)


def in_ring_of_squares(x: SecretTensor, count: int, spare: int = 0) -> SecretTensor:
    """``x`` where rings stay wide in the one of a sum of ``count`` of its squares and of its product with an inverse
    root, so that it is extended once for all of them; with ``spare`` bits for differences."""
    if not engine_of(x).stays_wide:
        return x
    size = width(x.format) + spare
    of_sum = 2 * size + (count - 1).bit_length() + 1  # one is left where the sum is divided by a whole number
    return cast(x, max(min(max(of_sum, size + _OF_ROOT + 1), 64), x.format.bits), x.format.scale)


def _root_scale(scale: int, eps: float) -> int:
    """Fractional bits of 1 / sqrt(v + eps) that fit the library's widest result."""
    smallest = max(eps, 2.0**-scale)
    return WIDEST - 2 - max(math.ceil(-0.5 * math.log2(smallest)), 0)


def _inverse_root(count: int, scale: int, whole_root: bool) -> str:
    """The function for the inverse root of a mean square of ``count`` numbers, by which they are divided at ``scale``.
    A quotient is at most sqrt(count): the function's relative error, 2^-20, takes at most a quarter of its unit; or
    2^-14, 0.18 of it, without ``whole_root``, for gradients take the inverse root."""
    places = scale + 0.5 * math.log2(max(count, 1))
    if not whole_root and places + 2.5 <= 14:
        return "rsqrt_significant_14"
    return "rsqrt_significant" if places + 2 <= 20 else "rsqrt"


def divided_by_deviation(
    x: SecretTensor,
    dims: list[int],
    count: int,
    eps: float,
    scale: int,
    largest: int | None = None,
    whole_root: bool = True,
) -> tuple[SecretTensor, SecretTensor]:
    """x / sqrt(sum(x^2) / count + eps) at ``scale``, and the inverse root; an eps below the resolution, or of zero,
    counts as one unit of it. ``largest``: it is proved that the mean square is at most this, in units of x^2, and one
    more, but for its rounding. Without ``whole_root`` the inverse root is as fine as the quotient needs it."""
    x = in_ring_of_squares(x, math.prod(x.shape[d] for d in dims))
    square = mean_square(x, dims, count)
    if largest is not None:
        most = (largest >> max(2 * x.format.scale - square.format.scale, 0)) + 2
        terms = math.prod(x.shape[d] for d in dims)
        if terms * (largest + 1) < _SUMS_END and most <= interval(square.format)[1]:
            square = claimed(square, of_interval(square.format, 0, most))
    shift = max(eps, 2.0**-square.format.scale)
    raised = shifted(square, shift)
    name = "rsqrt" if engine_of(square).stays_wide else _inverse_root(count, scale, whole_root)
    root_scale = _root_scale(square.format.scale, shift)
    needed = root_scale
    if not whole_root and not engine_of(square).stays_wide:
        # Of the unit its rounding takes an eighth for the largest number, a quarter where the rest takes no more than
        # 0.18 beside the half of the last rounding.
        guard = 3 if name == "rsqrt_significant" else 2
        needed = min(root_scale, scale + guard + max(integer_bits(x), 0))
    inverse = evaluate(raised, name, FixedPoint(WIDEST - root_scale + needed, needed), x.format.bits)
    # If no step has wrapped: x^2 <= count * (the mean square), and that is at most ``raised``, which has the unit more
    # that rounding may take away. 2^-9 of it covers the constant 1 / count and the root, whose last place may be off.
    off = limit(x.format) * 2.0 ** -(x.format.scale + needed)
    most = (1.0 + 2.0**-9) * math.sqrt(count) + off if raised.format.nonnegative else None
    return times(x, inverse, scale, most, 1), inverse


def centered(x: SecretTensor, dims: list[int]) -> tuple[SecretTensor, SecretTensor]:
    """x - mean over ``dims``, and the mean, for a value with a bit to spare."""
    count = math.prod(x.shape[d] for d in dims)
    center = averaged(x, dims, count, x.format.scale, x.format.bits)
    if says_more(center.format) and count * limit(x.format) < _SUMS_END:  # nothing wraps: it lies between the values
        center = claimed(center, together(center.format, [x.format]))
    return less(x, center), center


def _degrees(x: SecretTensor, dims: list[int], correction: float | None) -> float:
    """The divisor of a variance. InvalidInput if it is not positive: torch answers NaN, which no format has."""
    count = count_of(x, dims, "variance")
    taken = 1 if correction is None else correction
    if count <= taken:
        raise InvalidInput(
            f"variance of {count} number(s) with correction={taken:g}: there must be more numbers than that"
        )
    return count - taken


@implements(aten.var_mean.correction)
def var_mean(
    x: SecretTensor, dim: Any = None, *, correction: float | None = None, keepdim: bool = False
) -> tuple[SecretTensor, SecretTensor]:
    dims = dims_of(x, dim)
    divisor = _degrees(x, dims, correction)
    center = mean(x, dims, True)
    total = torch.sum(torch.square(x - center), dims, keepdim)
    return total / divisor, center if keepdim else center.squeeze(dims)


@implements(aten.var.correction)
def var(x: SecretTensor, dim: Any = None, *, correction: float | None = None, keepdim: bool = False) -> SecretTensor:
    return var_mean(x, dim, correction=correction, keepdim=keepdim)[0]


@implements(aten.std.correction)
def std(x: SecretTensor, dim: Any = None, *, correction: float | None = None, keepdim: bool = False) -> SecretTensor:
    dims = dims_of(x, dim)
    divisor = _degrees(x, dims, correction)
    values, _ = centered(real(x, 1), dims)
    result = settled(_root(mean_square(values, dims, divisor), asked(x.session)))
    return result if keepdim else result.squeeze(dims)


@implements(aten.std_mean.correction)
def std_mean(
    x: SecretTensor, dim: Any = None, *, correction: float | None = None, keepdim: bool = False
) -> tuple[SecretTensor, SecretTensor]:
    center = torch.mean(x, dims_of(x, dim), keepdim)
    return std(x, dim, correction=correction, keepdim=keepdim), center


def _root(x: SecretTensor, wanted: FixedPoint) -> SecretTensor:
    return evaluate(x, "sqrt", target_of(max((integer_bits(x) + 1) // 2, 0) + 1, FixedPoint(64, wanted.scale)))


@implements(aten.linalg_vector_norm.default)
def vector_norm(
    x: SecretTensor, ord: Any = 2, dim: Any = None, keepdim: bool = False, dtype: torch.dtype | None = None
) -> Any:
    dims = dims_of(x, dim)
    if ord == 2:
        result = settled(_root(mean_square(real(x), dims, 1), asked(x.session)))
        return result if keepdim else result.squeeze(dims)
    if ord == 1:
        return torch.sum(torch.abs(x), dims, keepdim)
    if ord in (float("inf"), float("-inf")):
        return (torch.amax if ord > 0 else torch.amin)(torch.abs(x), dims, keepdim)
    if ord == 0:
        return torch.sum(x != 0, dims, keepdim).to(x.dtype)
    return torch.sum(torch.abs(x) ** ord, dims, keepdim) ** (1.0 / ord)


@intercepts(torch.nn.functional.normalize)
def normalize(input: Any, p: float = 2.0, dim: int = 1, eps: float = 1e-12, out: Any = None) -> Any:
    """x times the inverse root of its squared norm: no division."""
    if not is_secret(input) or holds_floats((input,)) or p != 2 or out is not None or not isinstance(dim, int):
        return NotImplemented
    if torch.is_grad_enabled() and input.requires_grad:
        return NotImplemented
    scale = asked(input.session).scale
    return settled(divided_by_deviation(real(input), dims_of(input, dim), 1, eps * eps, scale)[0])
