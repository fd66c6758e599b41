# SPDX-License-Identifier: Apache-2.0
"""Smooth activation functions and their gradients."""

from __future__ import annotations

import math
from typing import Any

import torch

from privml.dispatch import implements
from privml.formats import FixedPoint
from privml.ops.exponential import decay
from privml.ops.fixed import (
    UNBOUNDED_SCALE,
    WIDEST,
    added,
    asked,
    evaluate,
    integer_bits,
    less,
    real,
    scaled,
    settled,
    shifted,
    target_of,
    times,
)
from privml.ops.linear import scale_public
from privml.ops.maximum import rectify
from privml.ops.ring_formats import interval, nonnegative, of_interval, rectified
from privml.ops.values import claimed, engine_of, is_secret, like
from privml.tensor import SecretTensor

aten = torch.ops.aten


def _function(name: str, x: SecretTensor, size: int | None) -> SecretTensor:
    return settled(evaluate(real(x), name, target_of(size, asked(x.session))))


@implements(aten.sigmoid.default)
def sigmoid(x: SecretTensor) -> SecretTensor:
    return _function("sigmoid", x, 1)


@implements(aten.tanh.default)
def tanh(x: SecretTensor) -> SecretTensor:
    return _function("tanh", x, 1)


def _linear(name: str, x: SecretTensor, more: int = 0) -> SecretTensor:
    """A function that grows like its argument, in a format that holds what the argument's format holds; in the ring of
    the result where that is larger, which costs the function's last step less than an extension."""
    x, wanted = real(x), asked(x.session)
    target = target_of(min(max(integer_bits(x), 0) + more, 20), wanted)
    if target.scale == wanted.scale and not engine_of(x).stays_wide:
        target = FixedPoint(max(target.bits, min(wanted.bits, WIDEST)), target.scale)
    return evaluate(x, name, target)


def _gate(name: str, x: SecretTensor, scale: int) -> SecretTensor:
    """A function of values up to 1 that will be multiplied: with four bits more than the product is to have."""
    return evaluate(x, name, target_of(1, FixedPoint(64, scale + 4)))


@implements(aten.silu.default)
def silu(x: SecretTensor) -> SecretTensor:
    return settled(_linear("silu", x))


@implements(aten.gelu.default)
def gelu(x: SecretTensor, approximate: str = "none") -> SecretTensor:
    return settled(_linear("gelu" if approximate == "none" else "gelu_tanh", x))


@implements(aten.softplus.default)
def softplus(x: SecretTensor, beta: float = 1, threshold: float = 20) -> SecretTensor:
    """log(1 + exp(beta x)) / beta everywhere: beyond torch's threshold it differs from x by less than 1e-8."""
    x = real(x)
    argument = x if beta == 1 else scaled(x, beta, x.format.scale)
    value = _linear("softplus", argument, 1)
    return settled(value if beta == 1 else scaled(value, 1.0 / beta, value.format.scale))


@implements(aten.log_sigmoid_forward.default)
def log_sigmoid_forward(x: SecretTensor) -> tuple[SecretTensor, torch.Tensor]:
    x = real(x)
    value = _linear("softplus", scaled(x, -1.0, x.format.scale), 1)
    return settled(scaled(value, -1.0, value.format.scale)), torch.empty(0)


@implements(aten.log_sigmoid.default)
def log_sigmoid(x: SecretTensor) -> SecretTensor:
    return log_sigmoid_forward(x)[0]


@implements(aten.mish.default)
def mish(x: SecretTensor) -> SecretTensor:
    """x * tanh(softplus(x)), the latter with four bits more than the result, of x cut off at 2^10 in a wide ring."""
    x, scale = real(x), asked(x.session).scale
    size, argument = max(integer_bits(x), 0) + 1, x
    if size > WIDEST - 1 - UNBOUNDED_SCALE:
        fmt, engine, limit = x.format, engine_of(x), 1 << (x.format.scale + 10)
        excess, _ = rectify(engine, engine.add_public(x.share, -limit, fmt.bits), fmt)
        share = engine.subtract(x.share, excess, fmt.bits)
        argument = claimed(like(x, share), of_interval(fmt, interval(fmt)[0], limit))
        size = WIDEST - 1 - UNBOUNDED_SCALE
    inner = evaluate(argument, "softplus", target_of(size, FixedPoint(64, scale + 4)))
    return settled(times(x, _gate("tanh", inner, scale), scale))


@implements(aten.elu.default)
def elu(x: SecretTensor, alpha: float = 1, scale: float = 1, input_scale: float = 1) -> SecretTensor:
    """scale * (relu(x) + alpha * (exp(input_scale * min(x, 0)) - 1)): one comparison, one exponential."""
    x, wanted = real(x), asked(x.session)
    positive = SecretTensor(
        rectify(engine_of(x), x.share, x.format)[0], rectified(x.format), x.placement, x.session, x.dtype
    )
    negative = less(x, positive)
    if input_scale != 1:
        negative = scaled(negative, input_scale, negative.format.scale)
    power = shifted(decay(negative, target_of(1, wanted), input_scale == 1), -1.0)
    power = scaled(power, alpha * scale, power.format.scale)
    positive = positive if scale == 1 else scaled(positive, scale, positive.format.scale)
    return added(settled(positive), settled(power))


@implements(aten.celu.default)
def celu(x: SecretTensor, alpha: float = 1.0) -> SecretTensor:
    return elu(x, alpha, 1.0, 1.0 / alpha)


@implements(aten.glu.default)
def glu(x: SecretTensor, dim: int = -1) -> SecretTensor:
    (value, gate), scale = x.chunk(2, dim), asked(x.session).scale
    return settled(times(real(value), _gate("sigmoid", real(gate), scale), scale))


# ---- gradients
@implements(aten.sigmoid_backward.default)
def sigmoid_backward(grad: Any, y: Any) -> SecretTensor:
    return grad * (y * (1 - y))


@implements(aten.tanh_backward.default)
def tanh_backward(grad: Any, y: Any) -> SecretTensor:
    return grad * (1 - y * y)


@implements(aten.silu_backward.default)
def silu_backward(grad: Any, x: Any) -> SecretTensor:
    gate = torch.sigmoid(x)
    return grad * (gate + x * (gate * (1 - gate)))


@implements(aten.softplus_backward.default)
def softplus_backward(grad: Any, x: Any, beta: float, threshold: float) -> SecretTensor:
    return grad * torch.sigmoid(x * beta)


@implements(aten.log_sigmoid_backward.default)
def log_sigmoid_backward(grad: Any, x: Any, buffer: Any) -> SecretTensor:
    return grad * torch.sigmoid(-x)


@implements(aten.gelu_backward.default)
def gelu_backward(grad: Any, x: Any, approximate: str = "none") -> SecretTensor:
    if approximate == "tanh":
        factor = 2.0 * math.sqrt(2.0 / math.pi)
        square = x * x
        gate = torch.sigmoid(x * (square * (0.044715 * factor) + factor))
        slope = square * (3 * 0.044715 * factor) + factor
        return grad * (gate + (x * gate) * (slope * (1 - gate)))
    distribution = torch.erf(x * math.sqrt(0.5)) * 0.5 + 0.5
    if not is_secret(x):
        return grad * (distribution + x * torch.exp(-0.5 * x * x) * (0.5 * math.sqrt(2 / math.pi)))
    square = x * x
    density = settled(decay(square * -0.5, target_of(1, asked(x.session)), nonnegative(square.format)))
    return grad * (distribution + x * scale_public(density, 1.0 / math.sqrt(2 * math.pi), x.dtype))


@implements(aten.mish_backward.default)
def mish_backward(grad: Any, x: Any) -> SecretTensor:
    gate, slope = torch.tanh(torch.nn.functional.softplus(x)), torch.sigmoid(x)
    return grad * (gate + x * (slope * (1 - gate * gate)))


@implements(aten.elu_backward.default)
def elu_backward(
    grad: Any, alpha: float, scale: float, input_scale: float, is_result: bool, value: Any
) -> SecretTensor:
    positive = value > 0
    if is_result:
        slope = (value + alpha * scale) * input_scale
    else:
        slope = torch.exp(torch.clamp(value, max=0) * input_scale) * (alpha * scale * input_scale)
    return torch.where(positive, grad * scale, grad * slope)
