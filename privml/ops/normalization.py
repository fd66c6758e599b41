# SPDX-License-Identifier: Apache-2.0
"""Batch normalization with given statistics, as one product and one sum per element."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

from privml.dispatch import implements
from privml.encoding import encode_factor
from privml.ops.layer_norm import batch_statistics
from privml.ops.owner import in_clear, sole_owner
from privml.ops.product import add_bias
from privml.ops.ring_formats import promise_of, ring_format
from privml.ops.unopened import product
from privml.ops.values import (
    engine_of,
    expand,
    finish_product,
    is_secret,
    join,
    operand,
    product_bits,
    ring_operand,
    working_format,
)
from privml.tensor import SecretTensor

aten = torch.ops.aten


def _gain(weight: torch.Tensor | None, variance: torch.Tensor, eps: float) -> torch.Tensor:
    gain = torch.rsqrt(variance + eps)
    return gain if weight is None else gain * weight


def _offset(
    weight: torch.Tensor | None,
    bias: torch.Tensor | None,
    mean: torch.Tensor,
    variance: torch.Tensor,
    eps: float,
) -> torch.Tensor:
    offset = -mean * _gain(weight, variance, eps)
    return offset if bias is None else offset + bias


def _coefficients(weight: Any, bias: Any, mean: Any, variance: Any, eps: float, x: SecretTensor) -> Any:
    """y = gain * x + offset; computed in clear where the parameters are public or of one owner."""
    fmt = ring_format(x.session.working.bits, working_format(x.session).scale, True)

    def apply(function: Callable[..., Any], *values: Any) -> Any:
        if not any(is_secret(v) for v in values):
            return function(*(None if v is None else v.double() for v in values))
        if sole_owner(values) is not None:
            return in_clear(function, mean.shape, fmt, *values)
        return function(*values)

    gain = apply(lambda w, v: _gain(w, v, eps), weight, variance)
    return gain, apply(lambda *v: _offset(*v, eps), weight, bias, mean, variance)


def affine_per_channel(x: SecretTensor, gain: Any, offset: Any) -> SecretTensor:
    """gain[c] * x[n, c, ...] + offset[c] with a single truncation."""
    session = x.session
    shape = [1, -1] + [1] * (x.dim() - 2)
    gain, offset = gain.view(shape), offset.view(shape)
    share, fmt = ring_operand(x, session)
    if is_secret(gain):
        placement = join(x.placement, gain.placement)
        engine = session.engine_for(placement)
        factor, factor_format = ring_operand(gain, session)
        bits = product_bits(session, (fmt, x.placement), (factor_format, gain.placement))
        factors = (
            operand(share, fmt, x.placement),
            operand(expand(factor, x.shape), factor_format, gain.placement),
        )
        share = product(engine, "multiply", factors, bits)
        scale = fmt.scale + factor_format.scale
    else:
        placement, engine = x.placement, engine_of(x)
        bits = max(fmt.bits, working_format(session).bits)
        if fmt.bits < bits:
            share = engine.extend(share, fmt.bits, bits, True, promise_of(fmt))
        factor, shift = encode_factor(gain, working_format(session).scale, bits)
        share = engine.multiply_public(share, factor.expand(x.shape), bits)
        scale = fmt.scale + shift
    engine, share, placement = add_bias(engine, share, bits, scale, placement, offset, session)
    return finish_product(engine, share, ring_format(bits, scale, True), placement, session, x.dtype)


def normalize(
    x: Any, weight: Any, bias: Any, mean: Any, variance: Any, training: bool, momentum: float, eps: float
) -> Any:
    if not is_secret(x):
        return NotImplemented
    if training or mean is None:
        return batch_statistics(x, weight, bias, mean, variance, momentum, eps)[0]
    return affine_per_channel(x, *_coefficients(weight, bias, mean, variance, eps, x))


@implements(aten.batch_norm.default)
def batch_norm(x: Any, weight: Any, bias: Any, mean: Any, variance: Any, *settings: Any) -> Any:
    training, momentum, eps = settings[:3]
    return normalize(x, weight, bias, mean, variance, training, momentum, eps)


@implements(aten.native_batch_norm.default, aten._native_batch_norm_legit.default)
def native_batch_norm(
    x: Any, weight: Any, bias: Any, mean: Any, variance: Any, training: bool, momentum: float, eps: float
) -> Any:
    """With the statistics empty outside training, as in torch."""
    if is_secret(x) and (training or mean is None):
        return batch_statistics(x, weight, bias, mean, variance, momentum, eps)
    result = normalize(x, weight, bias, mean, variance, training, momentum, eps)
    return result if result is NotImplemented else (result, torch.empty(0), torch.empty(0))


@implements(aten._native_batch_norm_legit_no_training.default)
def native_batch_norm_no_training(
    x: Any, weight: Any, bias: Any, mean: Any, variance: Any, momentum: float, eps: float
) -> Any:
    return native_batch_norm(x, weight, bias, mean, variance, False, momentum, eps)


@implements(aten._batch_norm_no_update.default)
def batch_norm_no_update(x: Any, weight: Any, bias: Any, mean: Any, variance: Any, momentum: float, eps: float) -> Any:
    result = native_batch_norm(x, weight, bias, mean, variance, False, momentum, eps)
    return result if result is NotImplemented else (*result, torch.empty(0, dtype=torch.uint8))
