# SPDX-License-Identifier: Apache-2.0
"""Variances, standard deviations and Euclidean norms.

A sum of squares is brought to 32 bits before its root is taken; in a ring too wide to bound its size it has
``VARIANCE_SCALE`` fractional bits: a variance must stay below 2^13 then, a squared norm of n terms below 2^13 sqrt(n).
"""

from __future__ import annotations

import math
from typing import Any

import torch

from privml.dispatch import holds_floats, implements, intercepts
from privml.formats import FixedPoint
from privml.ops.fixed import (
    WIDEST,
    asked,
    averaged,
    cast,
    evaluate,
    integer_bits,
    known,
    less,
    real,
    settled,
    shifted,
    target_of,
    times,
)
from privml.ops.linear import dims_of, mean
from privml.ops.ring_formats import width
from privml.ops.values import engine_of, is_secret
from privml.tensor import SecretTensor

aten = torch.ops.aten

VARIANCE_SCALE = 18


def mean_square(x: SecretTensor, dims: list[int], count: int) -> SecretTensor:
    """sum(x^2) / count in at most 32 bits, with as many fractional bits as its largest possible value leaves."""
    terms = math.prod(x.shape[d] for d in dims)
    more = max(math.ceil(math.log2(max(terms, 1) / max(count, 1))), 0)
    scale = VARIANCE_SCALE - more // 2
    told = WIDEST - 1 - more - 2 * max(integer_bits(x), 0)
    if width(x.format) <= WIDEST and told >= 6:
        scale = told
    scale = max(min(scale, 2 * x.format.scale), 0)
    mean = averaged(times(x, x, 2 * x.format.scale), dims, count, scale)
    return mean if engine_of(mean).stays_wide else cast(mean, min(mean.format.bits, WIDEST), mean.format.scale)


def _root_scale(scale: int, eps: float) -> int:
    """Fractional bits of 1 / sqrt(v + eps) that fit the library's widest result."""
    smallest = max(eps, 2.0**-scale)
    return WIDEST - 2 - max(math.ceil(-0.5 * math.log2(smallest)), 0)


def divided_by_deviation(
    x: SecretTensor, dims: list[int], count: int, eps: float, scale: int
) -> tuple[SecretTensor, SecretTensor]:
    """x / sqrt(sum(x^2) / count + eps) at ``scale``, and the inverse root; an eps below the resolution, or of zero,
    counts as one unit of it."""
    square = mean_square(x, dims, count)
    shift = max(eps, 2.0**-square.format.scale)
    raised = shifted(square, shift)
    # The result is at most sqrt(count), twice that where squares are a few units: 2^-20 of it stays below half a unit.
    # The inverse root, which gradients take, is off by 2^-20 of itself.
    enough = not engine_of(square).stays_wide and scale + 0.5 * math.log2(max(count, 1)) + 2 <= 20
    name = "rsqrt_significant" if enough else "rsqrt"
    inverse = evaluate(raised, name, FixedPoint(WIDEST, _root_scale(square.format.scale, shift)))
    result = times(x, inverse, scale)
    if raised.format.nonnegative:  # no step has wrapped: at most sqrt(count), twice that where squares are a few units
        result = known(result, 2.0 * math.sqrt(count) + 1.0)
    return result, inverse


def centered(x: SecretTensor, dims: list[int]) -> tuple[SecretTensor, SecretTensor]:
    """x - mean over ``dims``, and the mean, for a value with a bit to spare."""
    count = math.prod(x.shape[d] for d in dims)
    center = averaged(x, dims, count, x.format.scale)
    return less(x, cast(center, x.format.bits, x.format.scale)), center


@implements(aten.var_mean.correction)
def var_mean(
    x: SecretTensor, dim: Any = None, *, correction: float | None = None, keepdim: bool = False
) -> tuple[SecretTensor, SecretTensor]:
    dims = dims_of(x, dim)
    count = math.prod(x.shape[d] for d in dims)
    center = mean(x, dims, True)
    total = torch.sum(torch.square(x - center), dims, keepdim)
    divisor = max(count - (1 if correction is None else correction), 0)
    return total / divisor, center if keepdim else center.squeeze(dims)


@implements(aten.var.correction)
def var(x: SecretTensor, dim: Any = None, *, correction: float | None = None, keepdim: bool = False) -> SecretTensor:
    return var_mean(x, dim, correction=correction, keepdim=keepdim)[0]


@implements(aten.std.correction)
def std(x: SecretTensor, dim: Any = None, *, correction: float | None = None, keepdim: bool = False) -> SecretTensor:
    dims = dims_of(x, dim)
    count = math.prod(x.shape[d] for d in dims)
    values, _ = centered(real(x, 1), dims)
    divisor = max(count - (1 if correction is None else correction), 0)
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
