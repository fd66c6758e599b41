# SPDX-License-Identifier: Apache-2.0
"""Activations of floats, and their gradients."""

from __future__ import annotations

from typing import Any

import torch

from privml.dispatch import implements_floating
from privml.ops.floating.arithmetic import chosen
from privml.ops.floating.compare import clamp, where
from privml.ops.floating.values import elementwise
from privml.ops.values import BOOLEAN, is_secret, like
from privml.ops.words import nonzeros
from privml.tensor import SecretTensor

aten = torch.ops.aten


@implements_floating(aten.relu.default)
def relu(x: SecretTensor) -> SecretTensor:
    return elementwise("relu", x)


@implements_floating(aten.threshold_backward.default)
def threshold_backward(grad: Any, result: Any, threshold: float) -> SecretTensor:
    """Autograd saves ReLU's result: the gradient passes if the result's word is not zero."""
    if not is_secret(result):
        return grad * (result > threshold)
    if threshold == 0 and result.format == grad.format:
        positive = like(result, nonzeros(result.share, result.format), BOOLEAN, torch.bool)
        return chosen(positive, grad)
    return (result > threshold) * grad


@implements_floating(aten.threshold.default)
def threshold(x: SecretTensor, bound: float, value: float) -> SecretTensor:
    return where(x > bound, x, torch.tensor(value, dtype=x.dtype))


@implements_floating(aten.hardtanh.default)
def hardtanh(x: SecretTensor, min_val: float = -1, max_val: float = 1) -> SecretTensor:
    return clamp(x, min_val, max_val)


@implements_floating(aten.relu6.default)
def relu6(x: SecretTensor) -> SecretTensor:
    return clamp(x, 0, 6)


@implements_floating(aten.hardsigmoid.default)
def hardsigmoid(x: SecretTensor) -> SecretTensor:
    return clamp(x + 3, 0, 6) / 6


@implements_floating(aten.hardswish.default)
def hardswish(x: SecretTensor) -> SecretTensor:
    return x * hardsigmoid(x)


@implements_floating(aten.leaky_relu.default)
def leaky_relu(x: SecretTensor, negative_slope: float = 0.01) -> SecretTensor:
    return where(x > 0, x, x * negative_slope)


@implements_floating(aten.leaky_relu_backward.default)
def leaky_relu_backward(grad: Any, x: Any, negative_slope: float, self_is_result: bool) -> SecretTensor:
    return torch.where(x > 0, grad, grad * negative_slope)


@implements_floating(aten._prelu_kernel.default)
def prelu(x: Any, weight: Any) -> SecretTensor:
    return torch.where(x > 0, x, weight * x)


@implements_floating(aten.hardtanh_backward.default)
def hardtanh_backward(grad: Any, x: Any, min_val: float, max_val: float) -> SecretTensor:
    return ((x > min_val) & (x < max_val)) * grad


@implements_floating(aten.softshrink.default)
def softshrink(x: SecretTensor, lambd: float = 0.5) -> SecretTensor:
    return x - clamp(x, -lambd, lambd)


@implements_floating(aten.hardshrink.default)
def hardshrink(x: SecretTensor, lambd: float = 0.5) -> SecretTensor:
    return ((x > lambd) | (x < -lambd)) * x
