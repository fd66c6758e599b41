# SPDX-License-Identifier: Apache-2.0
"""Exponentials, logarithms, sigmoids, sines, powers and softmax of floats.

The engine's own functions are within one unit of the last place of float32, in which all of them are computed; those
made of several say what they lose.
"""

from __future__ import annotations

import math
from typing import Any

import torch

from privml.dispatch import implements_floating
from privml.errors import InvalidInput
from privml.ops.floating.arithmetic import power, reciprocal, sqrt, total
from privml.ops.floating.compare import amax
from privml.ops.floating.values import function
from privml.ops.linear import dims_of
from privml.tensor import SecretTensor

aten = torch.ops.aten


def _function(operator: Any, name: str) -> None:
    @implements_floating(operator)
    def rule(x: SecretTensor) -> SecretTensor:
        return function(name, x)

    rule.__name__ = name


for _operator, _name in (
    (aten.exp.default, "exp"), (aten.log.default, "log"), (aten.exp2.default, "exp2"), (aten.log2.default, "log2"),
    (aten.sigmoid.default, "sigmoid"), (aten.tanh.default, "tanh"), (aten.erf.default, "erf"),
    (aten.rsqrt.default, "rsqrt"),
):  # fmt: skip
    _function(_operator, _name)


@implements_floating(aten.gelu.default)
def gelu(x: SecretTensor, approximate: str = "none") -> SecretTensor:
    """The engine's function, or its approximation by a hyperbolic tangent, exact to the last place of x."""
    if approximate == "none":
        return function("gelu", x)
    inner = torch.tanh((x + x * x * x * 0.044715) * math.sqrt(2 / math.pi))
    return (x * 0.5) * (1 + inner)


@implements_floating(aten.silu.default)
def silu(x: SecretTensor) -> SecretTensor:
    return x * torch.sigmoid(x)


@implements_floating(aten.log10.default)
def log10(x: SecretTensor) -> SecretTensor:
    return torch.log2(x) * math.log10(2)


@implements_floating(aten.log1p.default)
def log1p(x: SecretTensor) -> SecretTensor:
    """log(1 + x), exact to the last place of 1 + x."""
    return torch.log(x + 1)


@implements_floating(aten.expm1.default)
def expm1(x: SecretTensor) -> SecretTensor:
    """exp(x) - 1, exact to the last place of exp(x)."""
    return torch.exp(x) - 1


@implements_floating(aten.sinh.default)
def sinh(x: SecretTensor) -> SecretTensor:
    """Exact to the last place of the larger exponential."""
    return (torch.exp(x) - torch.exp(-x)) / 2


@implements_floating(aten.cosh.default)
def cosh(x: SecretTensor) -> SecretTensor:
    return (torch.exp(x) + torch.exp(-x)) / 2


@implements_floating(aten.elu.default)
def elu(x: SecretTensor, alpha: float = 1, scale: float = 1, input_scale: float = 1) -> SecretTensor:
    below = expm1(torch.clamp(x, max=0) * input_scale) * alpha
    result = torch.relu(x) + below
    return result if scale == 1 else result * scale


@implements_floating(aten.sin.default)
def sin(x: SecretTensor) -> SecretTensor:
    """The error grows with |x|: that of x / pi in its last place, times pi."""
    return function("sin_pi", x * (1 / math.pi))


@implements_floating(aten.cos.default)
def cos(x: SecretTensor) -> SecretTensor:
    """As exact as ``sin``."""
    return function("cos_pi", x * (1 / math.pi))


@implements_floating(aten.tan.default)
def tan(x: SecretTensor) -> SecretTensor:
    return function("tan_pi", x * (1 / math.pi))


@implements_floating(aten.erfc.default)
def erfc(x: SecretTensor) -> SecretTensor:
    """1 - erf(x), exact to the last place of 1 and not of itself."""
    return 1 - torch.erf(x)


# ---- powers
@implements_floating(aten.pow.Tensor_Scalar)
def pow_(x: SecretTensor, exponent: float) -> Any:
    """Whole exponents by products, halves by roots, others as exp2(exponent * log2(x)), for positive x."""
    if exponent == 0:
        return torch.ones_like(x)
    whole, half = divmod(abs(exponent), 1)
    if half == 0:
        result = power(x, int(whole))
    elif half == 0.5:
        result = sqrt(x) if whole == 0 else power(x, int(whole)) * sqrt(x)
    else:
        return torch.exp2(torch.log2(x) * exponent)
    return result if exponent > 0 else reciprocal(result)


@implements_floating(aten.pow.Scalar)
def pow_scalar(base: float, x: SecretTensor) -> SecretTensor:
    if base <= 0:
        raise InvalidInput("a power of a public base needs a positive base")
    return torch.exp2(x if base == 2 else x * math.log2(base))


# ---- softmax
@implements_floating(aten._softmax.default)
def softmax(x: SecretTensor, dim: int, half_to_float: Any = False) -> SecretTensor:
    if x.dim() == 0:
        return torch.ones_like(x)
    return _shares_of(x, amax(x, [dim], True), dim)


def _shares_of(x: SecretTensor, top: SecretTensor, dim: int) -> SecretTensor:
    powers = torch.exp(x - top)
    return powers / total(powers, dims_of(x, dim), True)


@implements_floating(aten._safe_softmax.default)
def safe_softmax(x: SecretTensor, dim: int, dtype: torch.dtype | None = None) -> SecretTensor:
    """A row of minus infinities alone becomes zeros."""
    top = amax(x, [dim], True)
    return (top != -math.inf) * _shares_of(x, top, dim)


@implements_floating(aten.softmax.int)
def softmax_int(x: SecretTensor, dim: int, dtype: torch.dtype | None = None) -> SecretTensor:
    return softmax(x, dim)


@implements_floating(aten._log_softmax.default)
def log_softmax(x: SecretTensor, dim: int, half_to_float: bool = False) -> SecretTensor:
    if x.dim() == 0:
        return torch.zeros_like(x)
    below = x - amax(x, [dim], True)
    return below - torch.log(total(torch.exp(below), dims_of(x, dim), True))


@implements_floating(aten.log_softmax.int)
def log_softmax_int(x: SecretTensor, dim: int, dtype: torch.dtype | None = None) -> SecretTensor:
    return log_softmax(x, dim)


@implements_floating(aten.logsumexp.default)
def logsumexp(x: SecretTensor, dim: Any, keepdim: bool = False) -> SecretTensor:
    dims = dims_of(x, dim)
    top = amax(x, dims, True)
    result = top + torch.log(total(torch.exp(x - top), dims, True))
    return result if keepdim else result.squeeze(dims)


# ---- gradients
@implements_floating(aten.sigmoid_backward.default)
def sigmoid_backward(grad: Any, y: Any) -> SecretTensor:
    return grad * (y * (1 - y))


@implements_floating(aten.tanh_backward.default)
def tanh_backward(grad: Any, y: Any) -> SecretTensor:
    return grad * (1 - y * y)


@implements_floating(aten._softmax_backward_data.default)
def softmax_backward(grad: Any, y: Any, dim: int, dtype: torch.dtype) -> SecretTensor:
    weighted = grad * y
    return weighted - y * torch.sum(weighted, [dim], True)


@implements_floating(aten._log_softmax_backward_data.default)
def log_softmax_backward(grad: Any, y: Any, dim: int, dtype: torch.dtype) -> SecretTensor:
    return grad - torch.exp(y) * torch.sum(grad, [dim], True)
