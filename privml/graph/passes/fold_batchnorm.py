# SPDX-License-Identifier: Apache-2.0
"""Batch normalization with fixed statistics disappears into the convolution or linear map before it."""

from __future__ import annotations

import operator

import torch
from torch import fx

from privml.graph.ir import attribute, calls, copy_meta, tensor_of
from privml.graph.passes.rewriting import new_weight

aten = torch.ops.aten

_NORMS = (aten._native_batch_norm_legit_no_training.default, aten.batch_norm.default)
_LINEAR = (aten.conv1d.default, aten.conv2d.default, aten.convolution.default, aten.linear.default)


def fold_batchnorm(module: fx.GraphModule) -> fx.GraphModule:
    """gain * (W x + b) + offset = (gain W) x + (gain b + offset), with gain = weight / sqrt(variance + eps).

    Where nothing before it can take the gain, one product and one sum with precomputed weights remain. Norms
    whose parameters are not fixed attributes stay as they are. Changes and returns ``module``.
    """
    for node in list(calls(module.graph)):
        if node.target in _NORMS and all(p is None or p.op == "get_attr" for p in node.args[1:5]):
            _fold(module, node)
    module.graph.eliminate_dead_code()
    module.delete_all_unused_submodules()
    module.recompile()
    return module


def _fold(module: fx.GraphModule, norm: fx.Node) -> None:
    x = norm.args[0]
    gain, offset = _gain_and_offset(module, norm)
    if norm.target is _NORMS[0]:  # (result, saved mean, saved deviation)
        users = [user for user in norm.users if user.target is operator.getitem and user.args[1] == 0]
        if len(users) != len(norm.users):
            return
    else:
        users = [norm]
    replacement = _scaled(module, x, gain, offset) if _can_take_gain(x) else _affine(module, norm, x, gain, offset)
    for result in users:
        result.replace_all_uses_with(replacement)
        if result is not norm:
            module.graph.erase_node(result)
    module.graph.erase_node(norm)


def _gain_and_offset(module: fx.GraphModule, norm: fx.Node) -> tuple[torch.Tensor, torch.Tensor]:
    weight, bias, mean, variance = (
        None if p is None else attribute(module, p.target).detach().double() for p in norm.args[1:5]
    )
    eps = norm.args[6] if norm.target is _NORMS[0] else norm.args[7]
    gain = torch.rsqrt(variance + eps)
    gain = gain if weight is None else gain * weight
    offset = -mean * gain
    return gain, offset if bias is None else offset + bias


def _can_take_gain(x: fx.Node) -> bool:
    fixed = x.target in _LINEAR and len(x.users) == 1
    if not fixed or (x.target is aten.convolution.default and x.args[6]):
        return False
    parameters = [*x.args[1:3]]
    if tensor_of(x).dim() != tensor_of(parameters[0]).dim():
        return False  # the channels of the norm, dimension 1, are not the rows of the weight
    return parameters[0].op == "get_attr" and (
        len(parameters) < 2 or parameters[1] is None or parameters[1].op == "get_attr"
    )


def _scaled(module: fx.GraphModule, x: fx.Node, gain: torch.Tensor, offset: torch.Tensor) -> fx.Node:
    """``x`` with its output channels multiplied by ``gain`` and moved by ``offset``."""
    weight_node = x.args[1]
    weight = attribute(module, weight_node.target).detach()
    old = x.args[2] if len(x.args) > 2 else None
    bias = 0.0 if old is None else attribute(module, old.target).detach().double()
    shape = [-1] + [1] * (weight.dim() - 1)
    scaled = new_weight(
        module, x, f"{weight_node.target}_folded", (weight.double() * gain.view(shape)).to(weight.dtype)
    )
    new_bias = new_weight(module, x, _bias_name(weight_node.target), (bias * gain + offset).to(weight.dtype))
    args = list(x.args) + [None] * (3 - len(x.args))
    args[1], args[2] = scaled, new_bias
    x.args = tuple(args)
    return x


def _bias_name(weight: str) -> str:
    return f"{weight.removesuffix('weight')}bias_folded"


def _affine(module: fx.GraphModule, norm: fx.Node, x: fx.Node, gain: torch.Tensor, offset: torch.Tensor) -> fx.Node:
    """x * gain + offset per channel."""
    like = tensor_of(x)
    shape = [-1] + [1] * (like.dim() - 2)
    name = norm.args[3].target.removesuffix("running_mean")
    gain_node = new_weight(module, norm, f"{name}gain", gain.view(shape).to(like.dtype))
    offset_node = new_weight(module, norm, f"{name}offset", offset.view(shape).to(like.dtype))
    with module.graph.inserting_before(norm):
        product = copy_meta(module.graph.call_function(aten.mul.Tensor, (x, gain_node)), norm)
        result = copy_meta(module.graph.call_function(aten.add.Tensor, (product, offset_node)), norm)
    layer = name.rstrip("._") or norm.meta.get("layer", norm.name)
    for node, suffix in ((product, ""), (result, ".offset")):
        node.meta.update(val=like, secret=True, layer=f"{layer}{suffix}")
    return result
