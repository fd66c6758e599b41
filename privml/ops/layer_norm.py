# SPDX-License-Identifier: Apache-2.0
"""Normalization by statistics of the secret: layer, group, batch (in training) and root mean square norms.

y = (x - mean) * rsqrt(var + eps), with one inverse root per group of values.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import torch

from privml.dispatch import holds_floats, implements, intercepts
from privml.formats import current_node
from privml.ops.fixed import asked, cast, real, roomy, scaled, settled, times
from privml.ops.linear import count_of
from privml.ops.moments import centered, divided_by_deviation, in_ring_of_squares, var_mean
from privml.ops.ring_formats import limit, says_more
from privml.ops.values import engine_of, is_secret
from privml.tensor import SecretTensor

aten = torch.ops.aten


def standardized(
    x: SecretTensor, dims: list[int], eps: float, whole_root: bool = True
) -> tuple[SecretTensor, SecretTensor, SecretTensor]:
    """(x - mean) / sqrt(var + eps) over ``dims``, the mean, and the inverse root (of ``divided_by_deviation``), keeping
    the dimensions. The variance of numbers of magnitude L is at most L^2, and rounding the mean adds at most the square
    of a unit."""
    wanted, count = asked(x.session), count_of(x, dims, "norm")
    x = roomy(x, (count - 1).bit_length() + 1, current_node().working is not None)
    bits = x.format.bits
    x = in_ring_of_squares(x, count, 1)
    values, mean = centered(x, dims)
    if mean.format.bits > bits:
        mean = cast(mean, bits, mean.format.scale)
    proved = says_more(values.format) and not engine_of(x).stays_wide
    largest = limit(x.format) ** 2 if proved else None
    result, inverse = divided_by_deviation(values, dims, count, eps, wanted.scale, largest, whole_root)
    return result, mean, inverse


def _affine(y: SecretTensor, weight: Any, bias: Any) -> SecretTensor:
    """y * weight + bias in the asked format; the parameters broadcast to ``y``."""
    if weight is not None:
        scale = asked(y.session).scale
        y = times(y, weight, scale) if is_secret(weight) else scaled(y, weight, scale)
    y = settled(y)
    if bias is None:
        return y
    return y + bias


@implements(aten.native_layer_norm.default)
def native_layer_norm(x: Any, shape: Sequence[int], weight: Any, bias: Any, eps: float) -> Any:
    return _layer_norm(x, shape, weight, bias, eps, True)


def _layer_norm(x: Any, shape: Sequence[int], weight: Any, bias: Any, eps: float, whole_root: bool) -> Any:
    if not is_secret(x):
        return NotImplemented
    dims = list(range(x.dim() - len(shape), x.dim()))
    y, mean, inverse = standardized(x, dims, eps, whole_root)
    return _affine(y, weight, bias), mean, inverse


@implements(aten.layer_norm.default)
def layer_norm(
    x: Any, shape: Sequence[int], weight: Any = None, bias: Any = None, eps: float = 1e-5, cudnn_enable: bool = True
) -> Any:
    result = _layer_norm(x, shape, weight, bias, eps, False)
    return result if result is NotImplemented else result[0]


def _per_channel(value: Any, rank: int) -> Any:
    return None if value is None else value.reshape([1, -1] + [1] * (rank - 2))


@implements(aten.native_group_norm.default)
def native_group_norm(
    x: Any, weight: Any, bias: Any, batch: int, channels: int, size: int, groups: int, eps: float
) -> Any:
    if not is_secret(x):
        return NotImplemented
    y, mean, inverse = standardized(x.reshape(batch, groups, channels // groups * size), [2], eps)
    result = _affine(y.reshape(x.shape), _per_channel(weight, x.dim()), _per_channel(bias, x.dim()))
    return result, mean.squeeze(2), inverse.squeeze(2)


@implements(aten.group_norm.default)
def group_norm(
    x: Any, groups: int, weight: Any = None, bias: Any = None, eps: float = 1e-5, cudnn_enabled: bool = True
) -> Any:
    result = native_group_norm(x, weight, bias, x.shape[0], x.shape[1], math.prod(x.shape[2:]), groups, eps)
    return result if result is NotImplemented else result[0]


def batch_statistics(
    x: SecretTensor, weight: Any, bias: Any, mean: Any, variance: Any, momentum: float, eps: float
) -> tuple[SecretTensor, SecretTensor, SecretTensor]:
    """Batch normalization in training: (result, mean, inverse deviation); running statistics are brought up to date."""
    dims = [d for d in range(x.dim()) if d != 1]
    y, center, inverse = standardized(x, dims, eps)
    result = _affine(y, _per_channel(weight, x.dim()), _per_channel(bias, x.dim()))
    center, inverse = center.reshape(-1), inverse.reshape(-1)
    if mean is not None:
        spread, exact = var_mean(x.detach(), dims, correction=1)
        mean.copy_(mean * (1 - momentum) + exact * momentum)
        variance.copy_(variance * (1 - momentum) + spread * momentum)
    return result, center, inverse


@implements(aten._fused_rms_norm.default)
def fused_rms_norm(x: Any, shape: Sequence[int], weight: Any, eps: float | None) -> Any:
    if not is_secret(x):
        return NotImplemented
    dims = list(range(x.dim() - len(shape), x.dim()))
    count = math.prod(shape)
    eps = torch.finfo(x.dtype).eps if eps is None else eps
    y, inverse = divided_by_deviation(real(x), dims, count, eps, asked(x.session).scale)
    return _affine(y, weight, None), inverse


@intercepts(torch.nn.functional.rms_norm, torch.rms_norm, aten.rms_norm.default)
def whole_rms_norm(input: Any, normalized_shape: Sequence[int], weight: Any = None, eps: float | None = None) -> Any:
    """torch would take it apart before it gets here."""
    if not is_secret(input) or torch.is_grad_enabled() or holds_floats((input, weight)):
        return NotImplemented
    return rms_norm(input, normalized_shape, weight, eps)


@implements(aten.rms_norm.default)
def rms_norm(x: Any, shape: Sequence[int], weight: Any = None, eps: float | None = None) -> Any:
    result = fused_rms_norm(x, shape, weight, eps)
    return result if result is NotImplemented else result[0]
