# SPDX-License-Identifier: Apache-2.0
"""How each operator treats the scale of its operands; the choice of formats reads it."""

from __future__ import annotations

import math
from collections.abc import Sequence
from enum import Enum, auto
from typing import Any

import torch
from torch import fx

from privml.encoding import encode_factor
from privml.graph.ir import ARITHMETIC, attribute, tensor_of
from privml.ops.choices import ONE_HOT_ROWS, SELECT_OF_EACH, SELECT_ROWS
from privml.ops.quotients import whole_divisor

aten = torch.ops.aten


class Kind(Enum):
    """PRODUCT: scales add, the result may stay untruncated. SCALED: product with a public factor, or division by one.
    CARRIER: keeps the scale, truncates on request. STRUCTURAL: keeps the scale, cannot truncate. COMPARISON: keeps
    nothing, takes any scale. FUNCTION: takes the working scale in a ring of any width and gives it in the ring asked
    for. SELECTION: sums rows of its second operand, at its scale. OTHER: takes and gives the working format."""

    PRODUCT = auto()
    SCALED = auto()
    CARRIER = auto()
    STRUCTURAL = auto()
    COMPARISON = auto()
    FUNCTION = auto()
    SELECTION = auto()
    OTHER = auto()


_PRODUCTS = {
    aten.conv1d.default, aten.conv2d.default, aten.convolution.default, aten.linear.default, aten.addmm.default,
    aten.mm.default, aten.bmm.default, aten.baddbmm.default, aten.mv.default, aten.dot.default,
}  # fmt: skip
_CARRIERS = {
    aten.relu.default, aten.max_pool1d.default, aten.max_pool2d.default, aten.max_pool3d.default, aten.add.Tensor,
    aten.sub.Tensor, aten.rsub.Tensor, aten.add.Scalar, aten.sub.Scalar, aten.rsub.Scalar, aten.sum.dim_IntList,
    aten.sum.default,
}  # fmt: skip
STRUCTURAL = {
    aten.reshape.default, aten.flatten.using_ints, aten.permute.default, aten.transpose.int, aten.t.default,
    aten.expand.default, aten.slice.Tensor, aten.select.int, aten.unsqueeze.default, aten.squeeze.default,
    aten.squeeze.dim, aten.squeeze.dims, aten.split.Tensor, aten.split_with_sizes.default, aten.unbind.int,
    aten.chunk.default, aten.unfold.default, aten.flip.default, aten.roll.default, aten.repeat.default,
    aten.constant_pad_nd.default, aten.index_select.default, aten.index.Tensor, aten.cat.default,
    aten.stack.default, aten.neg.default, aten.pixel_shuffle.default, aten.pixel_unshuffle.default,
    aten.channel_shuffle.default, aten.upsample_nearest2d.vec, aten.upsample_nearest2d.default,
    aten.maximum.default, aten.minimum.default, aten.amax.default, aten.amin.default,
    aten.max_pool2d_with_indices.default, aten.adaptive_max_pool2d.default, aten.tril.default, aten.triu.default,
    aten.sort.default, aten.sort.stable, aten.topk.default, ONE_HOT_ROWS, SELECT_OF_EACH, ARITHMETIC["getitem"],
    aten.view.default, aten._unsafe_view.default, aten.unflatten.int, aten.movedim.int, aten.swapaxes.default,
    aten.numpy_T.default, aten.contiguous.default, aten.clone.default, aten.diagonal.default,
}  # fmt: skip
COMPARISONS = {
    aten.argmax.default, aten.argmin.default, aten.lt.Tensor, aten.lt.Scalar, aten.le.Tensor, aten.le.Scalar,
    aten.gt.Tensor, aten.gt.Scalar, aten.ge.Tensor, aten.ge.Scalar, aten.eq.Tensor, aten.eq.Scalar,
    aten.ne.Tensor, aten.ne.Scalar,
}  # fmt: skip
# These compare values with each other: the difference needs one bit more than the values.
DIFFERENCES = COMPARISONS | {
    aten.max_pool1d.default, aten.max_pool2d.default, aten.max_pool3d.default, aten.maximum.default,
    aten.minimum.default, aten.amax.default, aten.amin.default, aten.max_pool2d_with_indices.default,
    aten.adaptive_max_pool2d.default, aten.sort.default, aten.sort.stable, aten.topk.default,
}  # fmt: skip
# Functions whose values stay below a bound, and others, of any size.
_BOUNDED = dict.fromkeys(
    (
        aten.sigmoid.default, aten.tanh.default, aten.erf.default, aten.sin.default,
        aten.cos.default, aten._softmax.default, aten._safe_softmax.default,
        aten.softmax.int,
    ),
    1.0,
)  # fmt: skip
# These subtract a maximum, a mean or a limit before they start.
_CENTERED = {
    aten._softmax.default, aten._safe_softmax.default, aten.softmax.int, aten._log_softmax.default,
    aten.log_softmax.int, aten.logsumexp.default, aten.layer_norm.default, aten.native_layer_norm.default,
    aten.group_norm.default, aten.native_group_norm.default, aten.std.correction,
}  # fmt: skip
_FUNCTIONS = _BOUNDED.keys() | _CENTERED | {
    aten.exp.default, aten.exp2.default, aten.expm1.default, aten.pow.Scalar, aten.log.default, aten.log2.default,
    aten.log10.default, aten.log1p.default, aten.sqrt.default, aten.rsqrt.default, aten.reciprocal.default,
    aten.gelu.default, aten.silu.default, aten.softplus.default, aten.elu.default, aten.celu.default,
    aten.mish.default, aten.glu.default, aten.log_sigmoid.default, aten.erfc.default, aten.rms_norm.default,
    aten._fused_rms_norm.default, aten.linalg_vector_norm.default, aten.tan.default, aten.sinh.default,
    aten.cosh.default,
}  # fmt: skip
_QUOTIENTS = {aten.div.Tensor, aten.div.Scalar}
SUMS = {aten.add.Tensor, aten.sub.Tensor, aten.rsub.Tensor, aten.rsub.Scalar, aten.add.Scalar, aten.sub.Scalar}
_BY_NUMBER = {aten.mul.Scalar, aten.mul.Tensor, aten.div.Tensor, aten.div.Scalar}
_MEANS = {aten.mean.dim, aten.mean.default}
_POOLS = {aten.avg_pool1d.default, aten.avg_pool2d.default}
_ADAPTIVE = {aten.adaptive_avg_pool2d.default, aten._adaptive_avg_pool2d.default, aten.adaptive_avg_pool1d.default}


def is_float(node: fx.Node) -> bool:
    tensor = tensor_of(node)
    return tensor is not None and tensor.dtype.is_floating_point


def is_secret(value: Any) -> bool:
    return isinstance(value, fx.Node) and bool(value.meta.get("secret"))


def kind_of(node: fx.Node, module: fx.GraphModule) -> Kind:
    """The kind of a call on secrets."""
    target = node.target
    if target in COMPARISONS:
        return Kind.COMPARISON
    if not is_float(node):
        return Kind.OTHER
    if target is aten.embedding.default:  # at public places a view of the table
        return Kind.OTHER if is_secret(node.args[1]) else Kind.STRUCTURAL
    if target is SELECT_ROWS:
        return Kind.SELECTION if is_secret(node.args[1]) else Kind.OTHER
    if target in _PRODUCTS:
        scaled = any(name in node.kwargs for name in ("alpha", "beta"))
        # A product with a public matrix encodes it at the working scale.
        return Kind.OTHER if scaled or not all(map(is_secret, factors(node))) else Kind.PRODUCT
    if target is aten.mul.Tensor and all(is_secret(a) and is_float(a) for a in node.args[:2]):
        return Kind.PRODUCT
    if target in _FUNCTIONS or target in _QUOTIENTS and is_secret(node.args[1]):
        return Kind.FUNCTION
    if target is aten.pow.Tensor_Scalar and not (float(node.args[1]).is_integer() and node.args[1] >= 0):
        return Kind.FUNCTION
    if target in _BY_NUMBER | _MEANS | _POOLS | _ADAPTIVE:
        return Kind.SCALED if factor_of(node, module) is not None else Kind.OTHER
    if target in _CARRIERS:
        return Kind.CARRIER if node.kwargs.get("alpha", 1) == 1 else Kind.OTHER
    return Kind.STRUCTURAL if target in STRUCTURAL else Kind.OTHER


def factors(node: fx.Node) -> list[Any]:
    """The two operands that a PRODUCT multiplies."""
    start = 1 if node.target in (aten.addmm.default, aten.baddbmm.default) else 0
    return list(node.args[start : start + 2])


def bias_of(node: fx.Node) -> Any:
    """What a PRODUCT adds at the scale of its result, or None."""
    if node.target in (aten.addmm.default, aten.baddbmm.default):
        return node.args[0]
    takes_bias = node.target in _PRODUCTS and len(node.args) > 2
    return node.args[2] if takes_bias else node.kwargs.get("bias")


def summands(node: fx.Node) -> list[Any]:
    """What a sum adds, numbers included."""
    return list(node.args[:2]) if node.target in SUMS else []


def takes_differences(node: fx.Node) -> bool:
    return node.target in DIFFERENCES or node.target in _CENTERED


def bound_of(node: fx.Node) -> float:
    """What the absolute values of a FUNCTION never exceed (infinity for most)."""
    return _BOUNDED.get(node.target, math.inf)


def factor_of(node: fx.Node, module: fx.GraphModule) -> tuple[Any, int] | None:
    """(public factor, number of values summed before it) of a SCALED call; None if it is not known beforehand."""
    target = node.target
    if target in _BY_NUMBER:
        return _number_of(node, module)
    x = tensor_of(node.args[0])
    if target in _MEANS:
        dims = node.args[1] if target is aten.mean.dim and len(node.args) > 1 and node.args[1] else range(x.dim())
        sizes = [x.shape[d] for d in ([dims] if isinstance(dims, int) else dims)]
    elif target in _POOLS:
        padded = len(node.args) > 3 and any(_sequence(node.args[3])) or len(node.args) > 4
        if padded or node.kwargs:
            return None
        sizes = _sequence(node.args[1])
        sizes = sizes * (x.dim() - 2) if len(sizes) == 1 else sizes
    else:
        wanted = node.args[1]
        spatial = x.shape[-len(wanted) :]
        if not all(isinstance(n, int) and n % w == 0 for n, w in zip(spatial, wanted, strict=True)):
            return None
        sizes = [n // w for n, w in zip(spatial, wanted, strict=True)]
    if not all(isinstance(size, int) for size in sizes):
        return None
    count = math.prod(sizes)
    return 1.0 / count, count


def divisor_of(node: fx.Node, module: fx.GraphModule) -> int | None:
    """The whole number that a SCALED call divides by, in the ring of its operand and at any scale; None if it is a
    product with a public factor."""
    if node.target in _QUOTIENTS:
        number = _public_of(node, module)
        return None if isinstance(number, torch.Tensor) and number.dim() else whole_divisor(float(number))
    if node.target in _BY_NUMBER:
        return None
    found = factor_of(node, module)
    return None if found is None else whole_divisor(found[1])


def _sequence(value: int | Sequence[int]) -> list[int]:
    return [value] if isinstance(value, int) else list(value)


def _number_of(node: fx.Node, module: fx.GraphModule) -> tuple[Any, int] | None:
    divides = node.target in _QUOTIENTS
    public = _public_of(node, module)
    if public is None or (divides and not is_secret(node.args[0])):
        return None
    return (1.0 / public if divides else public), 1


def _public_of(node: fx.Node, module: fx.GraphModule) -> Any:
    """The public operand of a product or quotient: a number or a tensor in float64; None if it is not known."""
    public = node.args[1] if is_secret(node.args[0]) else node.args[0]
    if isinstance(public, fx.Node):
        return attribute(module, public.target).detach().double() if public.op == "get_attr" else None
    return public


def factor_shift(factor: Any, scale: int, bits: int) -> int:
    """Fractional bits that a public factor adds to the scale, as the rules encode it."""
    return encode_factor(factor, scale, bits)[1]
