# SPDX-License-Identifier: Apache-2.0
"""ReLU and the piecewise linear functions made of it, exact up to the truncation of their products."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch

from privml.context import keeps_byproducts
from privml.dispatch import implements
from privml.engines.base import Share
from privml.formats import FixedPoint, current_node
from privml.ops.linear import divide_public, scale_public, sub
from privml.ops.maximum import maximum_public, minimum_public, rectified_in, rectify
from privml.ops.product import select
from privml.ops.ring_formats import rectified
from privml.ops.values import BOOLEAN, engine_of, finish, is_secret, like, result_dtype, ring_value
from privml.tensor import SecretTensor

aten = torch.ops.aten


@dataclass(frozen=True, slots=True)
class SignBit:
    """Left on a result: Boolean share of [input >= 0], so that its backward operator needs no comparison."""

    share: Share


@implements(aten.relu.default)
def relu(x: SecretTensor) -> SecretTensor:
    share, fmt = ring_value(x, x.dtype)
    engine = engine_of(x)
    if fmt.nonnegative:
        result = finish(engine, tuple(c.clone() for c in share), fmt, x.placement, x.session, x.dtype)
        if keeps_byproducts(x):
            result.aux = SignBit(engine.public(torch.ones(x.shape, dtype=torch.uint8), 1))
        return result
    output = current_node().output
    if isinstance(output, FixedPoint) and isinstance(fmt, FixedPoint) and not keeps_byproducts(x):
        rounded = rectified_in(engine, share, fmt, output)
        if rounded is not None:
            return finish(engine, *rounded, x.placement, x.session, x.dtype)
    positive, bit = rectify(engine, share, fmt)
    result = finish(engine, positive, rectified(fmt), x.placement, x.session, x.dtype)
    result.aux = SignBit(bit)
    return result


@implements(aten.threshold_backward.default)
def threshold_backward(grad: Any, result: Any, threshold: float) -> SecretTensor:
    """The gradient if the input was >= 0 (at 0 itself a subgradient of ReLU other than torch's)."""
    if not is_secret(result):
        return grad * (result > threshold)
    aux = result.aux
    if threshold == 0 and isinstance(aux, SignBit):
        bit = like(result, aux.share, BOOLEAN, torch.bool)
        return select(bit, grad, grad.dtype) if is_secret(grad) else bit * grad
    return (result > threshold) * grad


@implements(aten.threshold.default)
def threshold(x: SecretTensor, bound: float, value: float) -> SecretTensor:
    return torch.where(x > bound, x, torch.tensor(value, dtype=x.dtype))


@implements(aten.clamp.default, aten.clamp.Tensor)
def clamp(x: Any, min: Any = None, max: Any = None) -> SecretTensor:
    if min is not None:
        x = (
            torch.maximum(x, min)
            if is_secret(min) or not is_secret(x)
            else maximum_public(x, min, result_dtype(x, min))
        )
    if max is not None:
        x = (
            torch.minimum(x, max)
            if is_secret(max) or not is_secret(x)
            else minimum_public(x, max, result_dtype(x, max))
        )
    return x


@implements(aten.clamp_min.default, aten.clamp_min.Tensor)
def clamp_min(x: Any, min: Any) -> SecretTensor:
    return clamp(x, min)


@implements(aten.clamp_max.default, aten.clamp_max.Tensor)
def clamp_max(x: Any, max: Any) -> SecretTensor:
    return clamp(x, None, max)


@implements(aten.hardtanh.default)
def hardtanh(x: SecretTensor, min_val: float = -1, max_val: float = 1) -> SecretTensor:
    return clamp(x, min_val, max_val)


@implements(aten.relu6.default)
def relu6(x: SecretTensor) -> SecretTensor:
    return clamp(x, 0, 6)


@implements(aten.hardsigmoid.default)
def hardsigmoid(x: SecretTensor) -> SecretTensor:
    return divide_public(clamp(x + 3, 0, 6), 6, x.dtype)


@implements(aten.hardswish.default)
def hardswish(x: SecretTensor) -> SecretTensor:
    return divide_public(x * clamp(x + 3, 0, 6), 6, x.dtype)


@implements(aten.leaky_relu.default)
def leaky_relu(x: SecretTensor, negative_slope: float = 0.01) -> SecretTensor:
    """relu(x) + slope * (x - relu(x)): one comparison, one truncation."""
    positive = relu(x)
    result = positive + scale_public(sub(x, positive), negative_slope, x.dtype)
    # out of place autograd saves the input, in place the result; both have the sign of the input
    x.aux = result.aux = positive.aux
    return result


@implements(aten.leaky_relu_backward.default)
def leaky_relu_backward(grad: Any, x: Any, negative_slope: float, self_is_result: bool) -> Any:
    if not is_secret(x):
        return torch.where(x > 0, grad, grad * negative_slope)
    aux = x.aux
    positive = like(x, aux.share, BOOLEAN, torch.bool) if isinstance(aux, SignBit) else x > 0
    small = grad * negative_slope
    return small + positive * (grad - small)


@implements(aten._prelu_kernel.default)
def prelu(x: Any, weight: Any) -> SecretTensor:
    positive = torch.relu(x)
    return positive + weight * (x - positive)


@implements(aten.hardtanh_backward.default)
def hardtanh_backward(grad: Any, x: Any, min_val: float, max_val: float) -> SecretTensor:
    return ((x > min_val) & (x < max_val)) * grad


@implements(aten.softshrink.default)
def softshrink(x: SecretTensor, lambd: float = 0.5) -> SecretTensor:
    """x - clamp(x, -lambda, lambda)."""
    return sub(x, clamp(x, -lambd, lambd))


@implements(aten.hardshrink.default)
def hardshrink(x: SecretTensor, lambd: float = 0.5) -> SecretTensor:
    return ((x > lambd) | (x < -lambd)) * x
