# SPDX-License-Identifier: Apache-2.0
"""Activation functions."""

from __future__ import annotations

import torch
import torch.nn.functional as F

from privml.graph.onnx.table import Node, Run, function, operator

for _name, _run in {
    "HardSwish": F.hardswish,
    "Mish": F.mish,
    "Relu": torch.relu,
    "Sigmoid": torch.sigmoid,
    "Softplus": F.softplus,
    "Softsign": F.softsign,
    "Tanh": torch.tanh,
}.items():
    function(_name, _run)


@operator("LeakyRelu")
def leaky_relu(node: Node) -> Run:
    slope = node.attribute("alpha", 0.01)
    return lambda x: F.leaky_relu(x, slope)


@operator("PRelu")
def prelu(node: Node) -> Run:
    def run(x: torch.Tensor, slope: torch.Tensor) -> torch.Tensor:
        positive = torch.relu(x)
        return positive + slope * (x - positive)

    return run


@operator("Elu")
def elu(node: Node) -> Run:
    alpha = node.attribute("alpha", 1.0)
    return lambda x: F.elu(x, alpha)


@operator("Selu")
def selu(node: Node) -> Run:
    alpha = node.attribute("alpha", 1.67326319217681884765625)
    gamma = node.attribute("gamma", 1.05070102214813232421875)
    return lambda x: gamma * F.elu(x, alpha)


@operator("Celu")
def celu(node: Node) -> Run:
    alpha = node.attribute("alpha", 1.0)
    return lambda x: F.celu(x, alpha)


@operator("HardSigmoid")
def hard_sigmoid(node: Node) -> Run:
    alpha, beta = node.attribute("alpha", 0.2), node.attribute("beta", 0.5)
    return lambda x: torch.clamp(alpha * x + beta, 0.0, 1.0)


@operator("Swish")
def swish(node: Node) -> Run:
    alpha = node.attribute("alpha", 1.0)
    return F.silu if alpha == 1.0 else lambda x: x * torch.sigmoid(alpha * x)


@operator("ThresholdedRelu")
def thresholded_relu(node: Node) -> Run:
    alpha = node.attribute("alpha", 1.0)
    return lambda x: torch.where(x > alpha, x, 0.0)


@operator("Shrink")
def shrink(node: Node) -> Run:
    limit, bias = node.attribute("lambd", 0.5), node.attribute("bias", 0.0)

    def run(x: torch.Tensor) -> torch.Tensor:
        return torch.where(x > limit, x - bias, torch.where(x < -limit, x + bias, 0.0)).to(x.dtype)

    return run


@operator("Gelu")
def gelu(node: Node) -> Run:
    approximate = node.choice("approximate", "none", "none", "tanh")
    return lambda x: F.gelu(x, approximate=approximate)


@operator("Softmax")
def softmax(node: Node) -> Run:
    axis = node.attribute("axis", -1)
    return lambda x: torch.softmax(x, axis)


@operator("LogSoftmax")
def log_softmax(node: Node) -> Run:
    axis = node.attribute("axis", -1)
    return lambda x: torch.log_softmax(x, axis)


@operator("Hardmax")
def hardmax(node: Node) -> Run:
    axis = node.attribute("axis", -1)

    def run(x: torch.Tensor) -> torch.Tensor:
        places = torch.arange(x.shape[axis]).reshape([-1] + [1] * (x.dim() - 1 - axis % x.dim()))
        return (x.argmax(axis, keepdim=True) == places).to(x.dtype)

    return run
