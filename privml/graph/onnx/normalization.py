# SPDX-License-Identifier: Apache-2.0
"""Normalization layers."""

from __future__ import annotations

from typing import Any

import torch
import torch.nn.functional as F

from privml.graph.onnx.table import Node, Run, operator
from privml.graph.onnx.values import axis_of


@operator("BatchNormalization", buffers=(3, 4))
def batch_norm(node: Node) -> Run:
    epsilon = node.attribute("epsilon", 1e-5)
    node.ignore("momentum")
    if node.flag("training_mode"):
        node.refuse("training_mode: it normalizes by its batch; export the model for inference (model.eval())")
    return lambda x, weight, bias, mean, variance: F.batch_norm(x, mean, variance, weight, bias, False, 0.0, epsilon)


@operator("InstanceNormalization")
def instance_norm(node: Node) -> Run:
    epsilon = node.attribute("epsilon", 1e-5)

    def run(x: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor) -> torch.Tensor:
        if x.dim() < 3 or all(size == 1 for size in x.shape[2:]):  # torch refuses to normalize one number
            return torch.zeros_like(x) + bias.reshape([-1] + [1] * (x.dim() - 2))
        return F.instance_norm(x, weight=weight, bias=bias, eps=epsilon)

    return run


@operator("GroupNormalization")
def group_norm(node: Node) -> Run:
    epsilon, groups = node.attribute("epsilon", 1e-5), node.attribute("num_groups")
    node.ignore("stash_type")
    return lambda x, weight, bias: F.group_norm(x, groups, weight, bias, epsilon)


@operator("LayerNormalization")
def layer_norm(node: Node) -> Run:
    axis, epsilon = node.attribute("axis", -1), node.attribute("epsilon", 1e-5)
    node.ignore("stash_type")
    statistics = node.wants(1) or node.wants(2)

    def run(x: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor | None = None) -> Any:
        sizes = list(x.shape[axis_of(axis, x.dim()) :])
        if list(weight.shape) == sizes and (bias is None or list(bias.shape) == sizes):
            y = F.layer_norm(x, sizes, weight, bias, epsilon)
        else:
            y = F.layer_norm(x, sizes, eps=epsilon) * weight
            y = y if bias is None else y + bias
        if not statistics:
            return y
        axes = list(range(axis_of(axis, x.dim()), x.dim()))
        variance = x.var(axes, correction=0, keepdim=True)
        return y, x.mean(axes, keepdim=True), torch.rsqrt(variance + epsilon)

    return run


@operator("RMSNormalization")
def rms_norm(node: Node) -> Run:
    axis, epsilon = node.attribute("axis", -1), node.attribute("epsilon", 1e-5)
    node.ignore("stash_type")

    def run(x: torch.Tensor, weight: torch.Tensor) -> torch.Tensor:
        axes = list(range(axis_of(axis, x.dim()), x.dim()))
        return x * torch.rsqrt((x * x).mean(axes, keepdim=True) + epsilon) * weight

    return run


@operator("LRN")
def local_response_norm(node: Node) -> Run:
    size, k = node.attribute("size"), node.attribute("bias", 1.0)
    alpha, beta = node.attribute("alpha", 1e-4), node.attribute("beta", 0.75)

    def run(x: torch.Tensor) -> torch.Tensor:
        n, channels = x.shape[:2]
        squares = (x * x).reshape(n, 1, channels, -1)
        squares = F.pad(squares, [0, 0, (size - 1) // 2, size // 2])
        mean = F.avg_pool2d(squares, (size, 1), stride=1).reshape(x.shape)
        return x / torch.pow(alpha * mean + k, beta)

    return run


@operator("LpNormalization")
def lp_norm(node: Node) -> Run:
    axis, p = node.attribute("axis", -1), node.attribute("p", 2)

    def run(x: torch.Tensor) -> torch.Tensor:
        size = (x.abs() if p == 1 else x * x).sum(axis, keepdim=True)
        size = size if p == 1 else size.sqrt()
        return x / torch.where(size == 0, 1.0, size)  # a row of zeros stays one

    return run
