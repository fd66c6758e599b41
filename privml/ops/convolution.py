# SPDX-License-Identifier: Apache-2.0
"""Convolution in one and two dimensions, transposed, grouped, dilated, and its gradients, by conv2d."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch

from privml.dispatch import implements
from privml.engines.base import Engine, Share
from privml.engines.shares import Window
from privml.errors import InvalidInput
from privml.formats import Placement
from privml.ops.product import add_bias, public_factor, widened
from privml.ops.ring_formats import ring_format
from privml.ops.unopened import Product, product
from privml.ops.values import (
    engine_of,
    finish_product,
    is_secret,
    join,
    operand,
    product_bits,
    result_dtype,
    ring_operand,
)
from privml.tensor import SecretTensor

aten = torch.ops.aten


def pairs(value: Sequence[int] | int, rank: int = 2) -> list[int]:
    values = [value] if isinstance(value, int) else list(value)
    return values * rank if len(values) == 1 else values


@implements(aten.convolution.default)
def convolution(x: Any, weight: Any, bias: Any, *geometry: Any) -> Any:
    return two_dimensional(convolve, x, weight, bias, *geometry)


def two_dimensional(convolve: Callable[..., Any], x: Any, weight: Any, bias: Any, *geometry: Any) -> Any:
    """aten.convolution in one and two dimensions by ``convolve``; ``geometry``: its other arguments."""
    stride, padding, dilation, transposed, output_padding, groups = geometry
    rank = weight.dim() - 2
    if rank not in (1, 2):
        return NotImplemented
    stride, padding, dilation = (pairs(v, rank) for v in (stride, padding, dilation))
    output_padding = pairs(output_padding, rank)
    if min((*stride, *dilation)) < 1:
        raise InvalidInput(f"convolution: stride {list(stride)} and dilation {list(dilation)} must be positive")
    channels = weight.shape[0] if transposed else weight.shape[1] * groups
    if x.dim() != rank + 2 or x.shape[1] != channels:
        raise InvalidInput(
            f"convolution: input {tuple(x.shape)} and weight {tuple(weight.shape)} in {groups} group(s) do not fit: "
            f"the weight takes {channels} channels"
        )
    outputs = weight.shape[1] * groups if transposed else weight.shape[0]
    if bias is not None and tuple(bias.shape) != (outputs,):
        raise InvalidInput(f"convolution: bias {tuple(bias.shape)} does not fit {outputs} output channel(s)")
    if rank == 1:
        x, weight = x.unsqueeze(2), weight.unsqueeze(2)
        stride, dilation = [1, *stride], [1, *dilation]
        padding, output_padding = [0, *padding], [0, *output_padding]
    if transposed:
        x, weight, padding = as_convolution(x, weight, Window(stride, padding, dilation, groups), output_padding)
        stride = [1, 1]
    for size, kernel, pad, apart in zip(x.shape[2:], weight.shape[2:], padding, dilation, strict=True):
        if weight.numel() > 0 and size + 2 * pad < apart * (kernel - 1) + 1:
            raise InvalidInput(
                f"convolution: its result has no elements: a kernel of {kernel} with dilation {apart} does not fit an "
                f"input of {size} with padding {pad}"
            )
    result = convolve(x, weight, bias, Window(tuple(stride), tuple(padding), tuple(dilation), groups))
    return result.squeeze(2) if rank == 1 else result


def convolve(
    x: Any,
    weight: Any,
    bias: Any,
    window: Window,
) -> SecretTensor:
    """2-D convolution plus bias [o], with a single truncation."""
    if not is_secret(x) and not is_secret(weight):  # only the bias is secret
        clear = torch.conv2d(x, weight, None, *window)
        return bias.view(1, -1, 1, 1) + clear
    session = (x if is_secret(x) else weight).session
    engine, share, bits, scale, placement = _raw(x, weight, window, session)
    if bias is not None:
        engine, share, placement = add_bias(engine, share, bits, scale, placement, bias.view(1, -1, 1, 1), session)
    dtype = result_dtype(x, weight)
    return finish_product(engine, share, ring_format(bits, scale, True), placement, session, dtype)


def _raw(
    x: Any,
    weight: Any,
    window: Window,
    session: Any,
) -> tuple[Engine, Product | Share, int, int, Placement]:
    if not is_secret(x):
        return _public_input(x, weight, window, session)
    if not is_secret(weight):
        share, fmt, bits = widened(x, session)
        kernel, scale = public_factor(weight, session)
        engine = engine_of(x)
        share = engine.conv2d_public(share, kernel, window, bits)
        return engine, share, bits, fmt.scale + scale, x.placement
    placement = join(x.placement, weight.placement)
    engine = session.engine_for(placement)
    (sx, fx), (sw, fw) = ring_operand(x, session), ring_operand(weight, session)
    bits = product_bits(session, (fx, x.placement), (fw, weight.placement))
    factors = operand(sx, fx, x.placement), operand(sw, fw, weight.placement)
    share = product(engine, "conv2d", factors, bits, window)
    return engine, share, bits, fx.scale + fw.scale, placement


def _public_input(
    x: torch.Tensor,
    weight: SecretTensor,
    window: Window,
    session: Any,
) -> tuple[Engine, Share, int, int, Placement]:
    """A public image and a secret kernel: the unfolded image is the public matrix of a product."""
    stride, padding, dilation, groups = window
    image, scale = public_factor(x, session)
    share, fmt, bits = widened(weight, session)
    kernel = list(weight.shape[2:])
    columns = torch.nn.functional.unfold(image.double(), kernel, list(dilation), list(padding), list(stride)).long()
    out = [(x.shape[2 + i] + 2 * padding[i] - dilation[i] * (kernel[i] - 1) - 1) // stride[i] + 1 for i in range(2)]
    batch, channels = x.shape[0], weight.shape[0]
    columns = columns.view(batch, groups, -1, columns.shape[-1])
    rows = tuple(c.reshape(1, groups, channels // groups, -1).expand(batch, -1, -1, -1) for c in share)
    engine = engine_of(weight)
    share = engine.matmul_public(rows, columns, bits)
    share = tuple(c.reshape(batch, channels, *out) for c in share)
    return engine, share, bits, fmt.scale + scale, weight.placement


def as_convolution(
    x: Any, weight: Any, window: Window, output_padding: Sequence[int]
) -> tuple[Any, Any, tuple[int, int]]:
    """A transposed convolution as a plain one with stride 1: zeros between the pixels, the kernel flipped."""
    stride, padding, dilation, groups = window
    kernel = weight.shape[2:]
    batch, channels = x.shape[:2]
    spread = x
    if tuple(stride) != (1, 1):
        height, width = ((x.shape[2 + i] - 1) * stride[i] + 1 for i in range(2))
        spread = x.unsqueeze(3).unsqueeze(5)
        spread = aten.constant_pad_nd(spread, [0, stride[1] - 1, 0, 0, 0, stride[0] - 1])
        spread = spread.reshape(batch, channels, x.shape[2] * stride[0], x.shape[3] * stride[1])
        spread = spread[:, :, :height, :width]
    top, left = (dilation[i] * (kernel[i] - 1) - padding[i] for i in range(2))
    low, high = (top, left), (top + output_padding[0], left + output_padding[1])
    if low != high or min(low) < 0:
        spread = aten.constant_pad_nd(spread, [low[1], high[1], low[0], high[0]])
        low = (0, 0)
    inputs, outputs = weight.shape[0], weight.shape[1]
    flipped = weight.reshape(groups, inputs // groups, outputs, *kernel).transpose(1, 2)
    flipped = flipped.reshape(groups * outputs, inputs // groups, *kernel).flip([2, 3])
    return spread, flipped, low


@implements(aten.convolution_backward.default)
def convolution_backward(*arguments: Any) -> Any:
    return gradients(convolve, *arguments)


def gradients(convolve: Callable[..., SecretTensor], grad: Any, x: Any, weight: Any, *others: Any) -> Any:
    """Those of input, weight and bias that are asked for, by convolutions of the given kind; ``others``: the other
    arguments of aten.convolution_backward."""
    _, stride, padding, dilation, transposed, _, groups, mask = others
    rank = weight.dim() - 2
    if rank not in (1, 2) or transposed:
        return NotImplemented
    stride, padding, dilation = (pairs(v, rank) for v in (stride, padding, dilation))
    grad_bias = grad.sum([0, *range(2, grad.dim())]) if mask[2] else None
    if rank == 1:
        grad, x, weight = grad.unsqueeze(2), x.unsqueeze(2), weight.unsqueeze(2)
        stride, padding, dilation = [1, *stride], [0, *padding], [1, *dilation]
    geometry = (grad, x, weight, Window(tuple(stride), tuple(padding), tuple(dilation), groups))
    grad_input = input_gradient(convolve, *geometry) if mask[0] else None
    grad_weight = weight_gradient(convolve, *geometry) if mask[1] else None
    if rank == 1:
        grad_input, grad_weight = (None if g is None else g.squeeze(2) for g in (grad_input, grad_weight))
    return grad_input, grad_weight, grad_bias


def input_gradient(
    convolve: Callable[..., SecretTensor],
    grad: Any,
    x: Any,
    weight: Any,
    window: Window,
) -> SecretTensor:
    stride, padding, dilation, groups = window
    missing = [
        x.shape[2 + i]
        - ((grad.shape[2 + i] - 1) * stride[i] - 2 * padding[i] + dilation[i] * (weight.shape[2 + i] - 1) + 1)
        for i in range(2)
    ]
    spread, flipped, low = as_convolution(grad, weight, window, missing)
    return convolve(spread, flipped, None, Window((1, 1), low, dilation, groups))


def weight_gradient(
    convolve: Callable[..., SecretTensor],
    grad: Any,
    x: Any,
    weight: Any,
    window: Window,
) -> SecretTensor:
    """Batch and channels change places; the groups become the groups of a wider convolution."""
    stride, padding, dilation, groups = window
    batch, height, width = x.shape[0], x.shape[2], x.shape[3]
    inputs, outputs = weight.shape[1], weight.shape[0] // groups
    image = x.reshape(batch, groups, inputs, height, width).permute(2, 1, 0, 3, 4)
    image = image.reshape(inputs, groups * batch, height, width)
    kernel = grad.reshape(batch, groups, outputs, *grad.shape[2:]).permute(1, 2, 0, 3, 4)
    kernel = kernel.reshape(groups * outputs, batch, *grad.shape[2:])
    result = convolve(image, kernel, None, Window(dilation, padding, stride, groups))
    result = result[:, :, : weight.shape[2], : weight.shape[3]]
    return result.transpose(0, 1).contiguous()


@implements(aten.conv2d.default, aten.conv1d.default)
def conv(
    x: Any,
    weight: Any,
    bias: Any = None,
    stride: Any = 1,
    padding: Any = 0,
    dilation: Any = 1,
    groups: int = 1,
) -> SecretTensor:
    rank = weight.dim() - 2
    batched = x if x.dim() == rank + 2 else x.unsqueeze(0)
    rest = pairs(stride, rank), pairs(padding, rank), pairs(dilation, rank)
    result = convolution(batched, weight, bias, *rest, False, [0] * rank, groups)
    return result if x.dim() == rank + 2 else result.squeeze(0)
