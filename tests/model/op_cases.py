# SPDX-License-Identifier: Apache-2.0
"""One list of operator cases for all engines: a function of tensors, example inputs, and its error bound.

The inputs lie on the grid of the default format, so that comparisons decide alike in float64. ``tolerance``
bounds the absolute error against float64 in units of 2^-16. ``deterministic``: every engine must agree with
``plain`` bit for bit.
"""

from collections.abc import Callable
from dataclasses import dataclass

import torch
import torch.nn.functional as F


@dataclass(frozen=True)
class Case:
    name: str
    function: Callable[..., torch.Tensor]
    inputs: tuple[torch.Tensor, ...]
    tolerance: float = 0.0
    deterministic: bool = True


CASES: list[Case] = []


def case(name, function, *inputs, ulp=0.0):
    CASES.append(Case(name, function, inputs, ulp))


_generator = torch.Generator().manual_seed(2024)


def real(*shape, size=4.0):
    """Uniform in [-size, size] on the grid of 2^-16, with ties and zeros."""
    value = (torch.rand(shape, generator=_generator) * 2 - 1) * size
    value = (value * 2**16).round() / 2**16
    flat = value.view(-1)
    if flat.numel() > 4:
        flat[1], flat[3] = 0.0, flat[2]
    return value


def whole(*shape, low=-9, high=9):
    return torch.randint(low, high, shape, generator=_generator)


def bits(*shape):
    return torch.rand(shape, generator=_generator) < 0.5


X, Y = real(3, 4), real(3, 4)
V = real(2, 3, 4)

# ---- structural
case("view", lambda x: x.view(4, 3), X)
case("reshape_copy", lambda x: x.t().reshape(12), X)
case("flatten", lambda x: x.flatten(1), V)
case("unflatten", lambda x: x.unflatten(1, (2, 2)), X)
case("transpose", lambda x: x.transpose(0, 2), V)
case("permute", lambda x: x.permute(2, 0, 1), V)
case("expand", lambda x: x[:, :1].expand(3, 5), X)
case("slice", lambda x: x[1:, ::2], X)
case("select", lambda x: x[:, -1], X)
case("squeeze", lambda x: x.unsqueeze(0).squeeze(0).unsqueeze(-1).squeeze(), X)
case("split", lambda x: torch.cat(x.split([1, 3], 1)[::-1], 1), X)
case("chunk", lambda x: x.chunk(2, 1)[1], X)
case("unbind", lambda x: x.unbind(0)[2], X)
case("diagonal", lambda x: x.diagonal(), X)
case("unfold", lambda x: x.unfold(1, 2, 1), X)
case("flip", lambda x: x.flip([0, 1]), X)
case("roll", lambda x: x.roll(2, 1), X)
case("repeat", lambda x: x.repeat(2, 3), X)
case("repeat_interleave", lambda x: x.repeat_interleave(2, 1), X)
case("tril", lambda x: x.tril(), X)
case("triu", lambda x: x.triu(1), X)
case("clone", lambda x: x.clone(), X)
case("contiguous", lambda x: x.t().contiguous(), X)
case("pixel_shuffle", lambda x: F.pixel_shuffle(x, 2), real(1, 8, 2, 3))
case("pixel_unshuffle", lambda x: F.pixel_unshuffle(x, 2), real(1, 2, 4, 6))
case("channel_shuffle", lambda x: F.channel_shuffle(x, 2), real(1, 4, 2, 3))
case("cat", lambda x, y: torch.cat([x, y], 1), X, Y)
case("cat_public", lambda x: torch.cat([x, torch.full((3, 1), 1.5)], 1), X)
case("cat_bits", lambda x, y: torch.cat([x, y]), bits(4), bits(3))
case("stack", lambda x, y: torch.stack([x, y], 1), X, Y)
case("pad", lambda x: F.pad(x, (1, 2, 0, 1)), X)
case("pad_value", lambda x: F.pad(x, (1, 2), value=-2.5), X)
case("pad_crop", lambda x: F.pad(x, (-1, 1)), X)
case("pad_reflect", lambda x: F.pad(x, (1, 1, 1, 1), mode="reflect"), real(1, 2, 3, 4))
case("pad_replicate", lambda x: F.pad(x, (1, 1, 1, 1), mode="replicate"), real(1, 2, 3, 4))
case("index_public", lambda x: x[torch.tensor([2, 0]), torch.tensor([1, 3])], X)
case("index_mask_public", lambda x: x[torch.tensor([True, False, True])], X)
case("index_select", lambda x: x.index_select(1, torch.tensor([3, 0])), X)
case("gather", lambda x: x.gather(1, torch.tensor([[0], [3], [1]])), X)
case("embedding", lambda w: F.embedding(torch.tensor([[2, 0], [1, 1]]), w), X)
case("scatter", lambda x, y: x.scatter(1, torch.tensor([[0], [3], [1]]), y), X, Y)
case("scatter_value", lambda x: x.scatter(1, torch.tensor([[0], [3], [1]]), 1.5), X)
case("scatter_add", lambda x, y: x.scatter_add(1, torch.tensor([[0, 0], [3, 2], [1, 1]]), y[:, :2]), X, Y)
case("index_put", lambda x: x.index_put((torch.tensor([0, 2]),), torch.tensor(0.5)), X)
case("slice_scatter", lambda x, y: x.slice_scatter(y[:1], 0, 1, 2), X, Y)
case("select_scatter", lambda x, y: x.select_scatter(y[0], 0, 2), X, Y)
case("upsample_nearest", lambda x: F.interpolate(x, scale_factor=2), real(1, 2, 3, 4))
case("upsample_nearest_size", lambda x: F.interpolate(x, size=(5, 3)), real(1, 2, 3, 4))
case("upsample_nearest_1d", lambda x: F.interpolate(x, size=7), real(1, 2, 4))
case("upsample_nearest_exact", lambda x: F.interpolate(x, size=(5, 3), mode="nearest-exact"), real(1, 2, 3, 4))
case("interpolate_linear", lambda x: F.interpolate(x, size=7, mode="linear"), real(1, 2, 4), ulp=2)
case("interpolate_bilinear", lambda x: F.interpolate(x, scale_factor=2, mode="bilinear"), real(1, 2, 3, 4), ulp=3)
case("interpolate_corners", lambda x: F.interpolate(x, size=(5, 2), mode="bilinear", align_corners=True),
     real(1, 2, 3, 4), ulp=3)  # fmt: skip

# ---- linear
case("add", lambda x, y: x + y, X, Y)
case("add_broadcast", lambda x, y: x + y, X, real(4))
case("add_scalar", lambda x: x + 1.25, X)
case("add_integer", lambda x: 3 + x, X)
case("add_alpha", lambda x, y: torch.add(x, y, alpha=3), X, Y)
case("add_public", lambda x: x + torch.arange(4) / 8, X)
case("add_public_larger", lambda x: x + torch.arange(8.0).view(2, 4), real(4))
case("add_mixed_dtype", lambda x, n: x + n, X, whole(3, 4))
case("add_bits", lambda a, b: a.long() + b, bits(3), bits(3))
case("sub", lambda x, y: x - y, X, Y)
case("sub_scalar", lambda x: x - 0.5, X)
case("rsub", lambda x: 1 - x, X)
case("neg", lambda x: -x, X)
case("sum", lambda x: x.sum(), X)
case("sum_dims", lambda x: x.sum([0, 2], keepdim=True), V)
case("sum_bits", lambda b: b.sum(), bits(9))
case("mean", lambda x: x.mean(), X, ulp=0.5)
case("mean_dims", lambda x: x.mean([1, 2]), V, ulp=0.5)
case("mean_of_nonnegative", lambda x: torch.relu(x).mean(0), real(7, 3), ulp=0.5)
case("mean_power_of_two", lambda x: x.mean(1), X, ulp=1)
case("cumsum", lambda x: x.cumsum(1), X)
case("mul_scalar", lambda x: x * 0.3, X, ulp=2)
case("mul_small_scalar", lambda x: x * 1e-3, X, ulp=2)
case("mul_integer", lambda x: x * -7, X)
case("mul_public", lambda x: x * (torch.arange(4) / 7), X, ulp=3)
case("mul_public_integers", lambda x: x * torch.arange(4), X)
case("div_power_of_two", lambda x: x / 8, X, ulp=1)
case("div_scalar", lambda x: x / 3, X, ulp=0.5)
case("div_negative_whole", lambda x: x / -7, X, ulp=0.5)
case("div_large_whole", lambda x: x / 1000003, X * 2**12, ulp=0.5)
case("div_bits_whole", lambda b: b / 3, bits(6), ulp=0.5)
case("div_negative", lambda x: x / -3.7, X, ulp=2)
case("div_public", lambda x: x / torch.tensor([1.0, 3.0, 7.0, 0.5]), X, ulp=10)
case("div_integers", lambda n: n / 4, whole(7), ulp=1)
case("lerp", lambda x, y: torch.lerp(x, y, 0.25), X, Y, ulp=2)

case("floor", torch.floor, real(9))
case("ceil", torch.ceil, real(9))
case("trunc", torch.trunc, real(9))
case("index_add", lambda x, y: x.index_add(0, torch.tensor([2, 0, 2]), y, alpha=2), X, Y)
case("index_copy", lambda x, y: x.index_copy(1, torch.tensor([3, 0]), y[:, :2]), X, Y)
case("index_fill", lambda x: x.index_fill(1, torch.tensor([3, 0]), 0.5), X)
case("count_nonzero", lambda x: x.count_nonzero(1), X)
case("one_hot", lambda n: F.one_hot(n, 4), whole(5, low=0, high=4))

# ---- products
case("mul", lambda x, y: x * y, X, Y, ulp=1)
case("mul_self", lambda x: x * x, X, ulp=1)
case("mul_broadcast", lambda x, y: x * y, X, real(4), ulp=1)
case("mul_integers", lambda a, b: a * b, whole(5), whole(5))
case("mul_integer_fixed", lambda x, n: x * n, X, whole(3, 4))
case("mul_bits_fixed", lambda b, x: b * x, bits(3, 4), X)
case("mul_bits", lambda a, b: a * b, bits(6), bits(6))
case("mul_bits_public", lambda b: b * 0.3, bits(6), ulp=2)
case("square", lambda x: x.square(), X, ulp=1)
case("pow", lambda x: x**3, real(5, size=2.0), ulp=6)
case("addcmul", lambda x, y: torch.addcmul(x, x, y, value=0.5), X, Y, ulp=2)
case("mm", lambda x, y: x @ y, real(3, 5), real(5, 2), ulp=1)
case("mm_public_right", lambda x: x @ (torch.arange(8.0).view(4, 2) / 8), X, ulp=1)
case("mm_public_left", lambda x: (torch.arange(6.0).view(2, 3) / 8) @ x, X, ulp=1)
case("mm_public_integers", lambda x: x.long() @ torch.arange(8).view(4, 2), X)
case("mv", lambda x, y: x @ y, X, real(4), ulp=1)
case("dot", lambda x, y: torch.dot(x, y), real(6), real(6), ulp=1)
case("bmm", lambda x, y: torch.bmm(x, y), real(2, 3, 4), real(2, 4, 2), ulp=1)
case("select_rows", lambda bit, rows: torch.ops.privml.select_rows(bit, rows), bits(4, 5), real(5, 3))
case("select_rows_public", lambda bit: torch.ops.privml.select_rows(bit, torch.arange(10.0).view(5, 2) / 8), bits(4, 5))
case("select_of_each", lambda bit, values: torch.ops.privml.select_of_each(bit, values), bits(4, 5), real(4, 5, 3))
case(
    "select_of_each_whole", lambda bit, values: torch.ops.privml.select_of_each(bit, values), bits(4, 5), whole(4, 5, 3)
)
case("one_hot_rows", lambda x: torch.ops.privml.one_hot_rows(x), torch.eye(4).long()[[2, 0, 2]])
case("matmul_broadcast", lambda x, y: x @ y, real(2, 1, 3, 4), real(2, 4, 2), ulp=1)
case("einsum", lambda x, y: torch.einsum("ij,kj->ik", x, y), X, Y, ulp=1)
case("linear", lambda x, w, b: F.linear(x, w, b), X, real(2, 4), real(2), ulp=1)
case("linear_3d", lambda x, w, b: F.linear(x, w, b), V, real(2, 4), real(2), ulp=2)
case("addmm", lambda b, x, y: torch.addmm(b, x, y), real(2), real(3, 5), real(5, 2), ulp=1)
case("addmm_scaled", lambda b, x, y: torch.addmm(b, x, y, beta=2, alpha=3), real(2), X, real(4, 2), ulp=1)
case("baddbmm", lambda b, x, y: torch.baddbmm(b, x, y), real(2, 3, 2), real(2, 3, 4), real(2, 4, 2), ulp=1)
case("addmv", lambda b, x, y: torch.addmv(b, x, y), real(3), X, real(4), ulp=1)

# ---- convolution
IMAGE = real(2, 4, 6, 5)
case("conv2d", lambda x, w, b: F.conv2d(x, w, b), IMAGE, real(3, 4, 3, 2), real(3), ulp=1)
case(
    "conv2d_public_weight",
    lambda x: F.conv2d(x, (torch.arange(72.0) / 32 - 1).view(2, 4, 3, 3)),
    IMAGE,
    ulp=1,
)
case("conv2d_public_input", lambda w: F.conv2d((torch.arange(72.0) / 32 - 1).view(1, 4, 3, 6), w, padding=1),
     real(4, 2, 3, 3).repeat_interleave(2, 1), ulp=1)  # fmt: skip
case(
    "conv2d_stride_padding",
    lambda x, w: F.conv2d(x, w, stride=2, padding=(1, 2)),
    IMAGE,
    real(3, 4, 3, 2),
    ulp=1,
)
case("conv2d_dilation", lambda x, w: F.conv2d(x, w, dilation=2, padding=1), IMAGE, real(3, 4, 2, 2), ulp=1)
case("conv2d_groups", lambda x, w, b: F.conv2d(x, w, b, groups=2), IMAGE, real(6, 2, 3, 3), real(6), ulp=1)
case("conv2d_depthwise", lambda x, w: F.conv2d(x, w, groups=4, padding=1), IMAGE, real(4, 1, 3, 3), ulp=1)
case("conv2d_same", lambda x, w: F.conv2d(x, w, padding="same"), IMAGE, real(3, 4, 3, 3), ulp=1)
case(
    "conv1d",
    lambda x, w, b: F.conv1d(x, w, b, stride=2, padding=1),
    real(2, 4, 7),
    real(3, 4, 3),
    real(3),
    ulp=1,
)
case("conv_transpose2d", lambda x, w, b: F.conv_transpose2d(x, w, b, stride=2, padding=1, output_padding=1),
     IMAGE, real(4, 3, 3, 3), real(3), ulp=1)  # fmt: skip
case("conv_transpose2d_groups", lambda x, w: F.conv_transpose2d(x, w, groups=2), IMAGE, real(4, 3, 2, 2), ulp=1)
case("conv_transpose2d_crop", lambda x, w: F.conv_transpose2d(x, w, padding=2, dilation=1), IMAGE,
     real(4, 3, 2, 2), ulp=1)  # fmt: skip
case("conv_transpose1d", lambda x, w: F.conv_transpose1d(x, w, stride=3), real(2, 4, 5), real(4, 3, 2), ulp=1)

# ---- comparisons and logic
for _name in ("lt", "le", "gt", "ge", "eq", "ne"):
    _compare = getattr(torch, _name)
    case(_name, lambda x, y, f=_compare: f(x, y), real(9), torch.cat([real(5), torch.zeros(4)]))
    case(f"{_name}_scalar", lambda x, f=_compare: f(x, 0), real(9))
    case(f"{_name}_fraction", lambda x, f=_compare: f(x, 0.3), real(9))
    case(f"{_name}_infinity", lambda x, f=_compare: f(x, float("-inf")), real(9))
case("gt_public", lambda x: x > torch.tensor([0.1, -3.0, 0.0, 9e9]), X)
case("lt_integers", lambda a, b: a < b, whole(9), whole(9))
case("eq_large_integers", lambda n: n == torch.tensor([2**62, 2**63 - 1]), torch.tensor([[2**62, 2**62], [0, 5]]))
case("eq_integers", lambda a, b: a == b, whole(9, low=0, high=3), whole(9, low=0, high=3))
case("eq_bits", lambda a, b: a == b, bits(6), bits(6))
case("logical_not", lambda a: ~a, bits(6))
case("logical_not_fixed", lambda x: torch.logical_not(x), real(6))
case("logical_and", lambda a, b: a & b, bits(6), bits(6))
case("logical_or", lambda a, b: a | b, bits(6), bits(6))
case("logical_xor", lambda a, b: a ^ b, bits(6), bits(6))
case("logical_and_public", lambda a: a & torch.tensor([True, False]), bits(2))
case("logical_or_public", lambda a: a | torch.tensor([True, False]), bits(2))
case("logical_or_fixed", lambda x, y: torch.logical_or(x, y), real(6), torch.zeros(6))
case("any", lambda a: a.any(0), bits(3, 4))
case("all", lambda a: a.all(), bits(3, 4))
case("where", lambda c, x, y: torch.where(c, x, y), bits(3, 4), X, Y)
case("where_public_condition", lambda x, y: torch.where(torch.tensor([True, False, True, True]), x, y), X, Y)
case("where_scalars", lambda c: torch.where(c, 2.5, -1.0), bits(6))
case(
    "where_bytes",
    lambda c: torch.where(c, torch.tensor(3, dtype=torch.uint8), torch.tensor(200, dtype=torch.uint8)).long(),
    bits(6),
)
case(
    "where_narrow",
    lambda c: torch.where(c, torch.full((6,), 100, dtype=torch.int8), torch.full((6,), -100, dtype=torch.int8)).float(),
    bits(6),
)
case("where_bits", lambda c, a, b: torch.where(c, a, b), bits(6), bits(6), bits(6))
case("where_public_value", lambda c, x: torch.where(c, x, torch.tensor(0.25)), bits(3, 4), X)
case("masked_fill", lambda x: x.masked_fill(torch.eye(3, 4).bool(), -2.0), X)
case("masked_fill_infinity", lambda x: x.masked_fill(torch.eye(3, 4).bool(), float("-inf")).amax(1), X)
case("mask_twice", lambda x: (x + torch.tensor([0.0, float("-inf"), 0.0, -3e38]) + torch.tensor([float("-inf"), float(
    "-inf"), 1.0, 1.0])).amax(1), X)  # fmt: skip
case("masked_view", lambda x: x.masked_fill(torch.eye(3, 4).bool(), float("-inf")).t().reshape(2, 6).amax(1), X)
case("mask_added", lambda x: (x + torch.tensor([0.0, float("-inf"), 0.0, -3e38])).amax(1), X)
case("to_bool", lambda x: x.bool(), real(9))
case("bits_to_float", lambda b: b.float(), bits(5))
case("to_bytes", lambda n: n.to(torch.int8).long(), torch.tensor([0, 127, 128, -129, 300, 70000]))
case("to_unsigned_bytes", lambda n: n.to(torch.uint8).long(), torch.tensor([0, 127, 128, -129, 300, 70000]))
case("to_long", lambda x: x.long(), real(9))
case("long_to_float", lambda n: n.float(), whole(5))

# ---- maxima
case("maximum", lambda x, y: torch.maximum(x, y), X, Y)
case("minimum", lambda x, y: torch.minimum(x, y), X, Y)
case("maximum_public", lambda x: torch.maximum(x, torch.tensor([0.5, -0.5, 3.0, 0.0])), X)
case("amax", lambda x: x.amax(1), X)
case("amax_dims", lambda x: x.amax([0, 2], keepdim=True), V)
case("amin", lambda x: x.amin(0), X)
case("max", lambda x: x.max(), X)
case("max_dim", lambda x: x.max(1).values, X)
case("max_dim_index", lambda x: x.max(0)[1], V)
case("min_dim_index", lambda x: x.min(1, keepdim=True).indices, X)
case("argmax", lambda x: x.argmax(1), X)
case("argmax_all", lambda x: x.argmax(), X)
case("sort", lambda x: x.sort(1).values, V)
case("sort_places", lambda x: x.sort(0, descending=True).indices, real(7, 2) + torch.arange(7)[:, None] / 2**10)
case("sort_ties", lambda x: x.sort(dim=-1, stable=True).indices, torch.tensor([[1.0, 3.0, 1.0, 3.0, 3.0], [2.0] * 5]))
case("topk", lambda x: x.topk(3, 1).values, real(2, 9))
case("topk_smallest", lambda x: x.topk(2, 0, largest=False).indices, torch.tensor([5.0, -1.0, 3.0, -2.0, 4.0]))
case("gather_places", lambda x: x.gather(1, x.topk(2, 1).indices), real(3, 5))
case("gather_places_of_some_rows", lambda x, y: y.gather(0, x.sort(1).indices[:, :2]), real(2, 4), Y.repeat(2, 1))
case(
    "index_places",
    lambda x, y: y[x.topk(2, 1, largest=False).indices],
    real(3, 7) + torch.arange(7) / 2**10,
    real(7, 2),
)
case("index_places_of_columns", lambda x, y: y[:, x.topk(3).indices], torch.tensor([1.5, -2.0, 7.0, 0.25]), Y)
case("index_select_places", lambda x, y: y.index_select(1, x.sort().indices), torch.tensor([1.5, -2.0, 7.0, 0.25]), Y)
case("index_place_of_maximum", lambda x, y: y[x.argmax(1)], X, real(5, 2))
case("index_whole_numbers", lambda x, y: y[x.argmax(1)], X, whole(4, 3))
case("argmax_ties", lambda x: x.argmax(-1), torch.tensor([[1.0, 3.0, 3.0], [2.0, 2.0, 2.0]]))
case("argmin", lambda x: x.argmin(0), X)

# ---- whole numbers divided
case("floor_divide", lambda x: x // 3, whole(4, 5, low=-40, high=40))
case("floor_divide_by_power", lambda x: torch.floor_divide(x, 8), whole(4, 5, low=-40, high=40))
case("divide_floor", lambda x: torch.div(x.argsort(1), 2, rounding_mode="floor"), real(3, 5) + torch.arange(5) / 2**10)
case("divide_trunc", lambda x: torch.div(x.argmax(1), 3, rounding_mode="trunc"), V)
case("remainder", lambda x: x % 7, whole(4, 5, low=-40, high=40))
case("remainder_by_power", lambda x: torch.remainder(x, 4), whole(4, 5, low=-40, high=40))
case("remainder_of_large", lambda x: x % 1000003, whole(4, 5, low=-(2**40), high=2**40))

# ---- activations
case("relu", torch.relu, X)
case("relu_of_relu", lambda x: torch.relu(torch.relu(x) * 0.5), X, ulp=1)
case("relu6", F.relu6, real(9, size=9.0))
case("hardtanh", lambda x: F.hardtanh(x, -0.7, 1.3), real(9), ulp=1)
case("clamp", lambda x: x.clamp(-1, 0.5), real(9))
case("clamp_min", lambda x: x.clamp(min=0.25), real(9))
case("clamp_max", lambda x: x.clamp(max=-0.25), real(9))
case("clamp_integers_by_fractions", lambda x: x.clamp(0.5, 1.5), torch.arange(-2, 4))
case("clamp_by_bytes", lambda x: x.clamp(max=torch.tensor([3, 0, 9], dtype=torch.uint8)), torch.tensor([5, -9, 4]))
case("clamp_tensor", lambda x, y: torch.clamp(x, min=y), real(9), real(9))
case("leaky_relu", lambda x: F.leaky_relu(x, 0.1), real(9), ulp=2)
case("prelu", lambda x, w: F.prelu(x, w), real(2, 3, 4), real(3), ulp=2)
case("abs", torch.abs, X)
case("sign", torch.sign, X)
case("threshold", lambda x: F.threshold(x, 0.5, -1.0), real(9))
case("hardsigmoid", F.hardsigmoid, real(9, size=5.0), ulp=2)
case("hardswish", F.hardswish, real(9, size=5.0), ulp=5)
case("softshrink", F.softshrink, real(9))
case("hardshrink", F.hardshrink, real(9))

# ---- pooling
PICTURE = real(2, 3, 7, 6)
case("max_pool2d", lambda x: F.max_pool2d(x, 2), PICTURE)
case("max_pool2d_overlap", lambda x: F.max_pool2d(x, 3, 2, 1), PICTURE)
case("max_pool2d_ceil", lambda x: F.max_pool2d(x, (3, 2), 2, 1, ceil_mode=True), PICTURE)
case("max_pool2d_dilation", lambda x: F.max_pool2d(x, 2, 1, dilation=(2, 3)), PICTURE)
case("max_pool2d_indices", lambda x: F.max_pool2d(x, 3, 2, 1, return_indices=True)[1], PICTURE)
case("max_pool2d_unbatched", lambda x: F.max_pool2d(x, 2), PICTURE[0].clone())
case("max_pool1d", lambda x: F.max_pool1d(x, 3, 2, 1), real(2, 3, 9))
case("max_pool3d", lambda x: F.max_pool3d(x, 2), real(1, 2, 4, 4, 2))
case("adaptive_max_pool2d", lambda x: F.adaptive_max_pool2d(x, (2, 3)), real(1, 2, 6, 6))
case("avg_pool2d", lambda x: F.avg_pool2d(x, 2), PICTURE, ulp=1)
case("avg_pool2d_padding", lambda x: F.avg_pool2d(x, 3, 2, 1), PICTURE, ulp=0.5)
case("avg_pool2d_no_pad_count", lambda x: F.avg_pool2d(x, 3, 2, 1, count_include_pad=False), PICTURE, ulp=0.5)
case("avg_pool2d_ceil", lambda x: F.avg_pool2d(x, 3, 2, 1, ceil_mode=True), real(1, 2, 6, 7), ulp=0.5)
case("avg_pool2d_divisor", lambda x: F.avg_pool2d(x, 2, divisor_override=3), PICTURE, ulp=0.5)
case("avg_pool1d", lambda x: F.avg_pool1d(x, 3, 2, 1), real(2, 3, 9), ulp=0.5)
case("adaptive_avg_pool2d", lambda x: F.adaptive_avg_pool2d(x, 1), PICTURE, ulp=0.5)
case("adaptive_avg_pool2d_divides", lambda x: F.adaptive_avg_pool2d(x, (7, 2)), PICTURE, ulp=0.5)
case("adaptive_avg_pool2d_uneven", lambda x: F.adaptive_avg_pool2d(x, (3, 4)), PICTURE, ulp=0.5)
case("adaptive_avg_pool1d", lambda x: F.adaptive_avg_pool1d(x, 3), real(2, 3, 7), ulp=0.5)
case("avg_pool3d", lambda x: F.avg_pool3d(x, (3, 2, 1), 2, (1, 0, 0)), real(1, 2, 4, 5, 3), ulp=0.5)
case("avg_pool3d_no_pad_count", lambda x: F.avg_pool3d(x, 3, 2, 1, count_include_pad=False), real(2, 4, 5, 3), ulp=0.5)

# ---- normalization
case("batch_norm_public", lambda x: F.batch_norm(
    x, torch.tensor([0.1, -0.2, 0.3]), torch.tensor([0.5, 1.0, 2.0]), torch.tensor([1.0, 2.0, 0.5]),
    torch.tensor([0.0, 1.0, -1.0])), PICTURE, ulp=16)  # fmt: skip
case("batch_norm_no_affine", lambda x: F.batch_norm(x, torch.zeros(4), torch.full((4,), 0.5)), X, ulp=12)
case("dropout_eval", lambda x: F.dropout(x, 0.5, training=False), X)

case("var", lambda x: x.var(1), X, ulp=12)
case("var_mean", lambda x: torch.stack(torch.var_mean(x, [0, 2], correction=0)), V, ulp=12)

# ---- losses
case("mse_loss", lambda x, y: F.mse_loss(x, y), X, Y, ulp=4)
case("l1_loss", lambda x, y: F.l1_loss(x, y), X, Y, ulp=2)
case("smooth_l1_loss", lambda x, y: F.smooth_l1_loss(x, y), X, Y, ulp=4)
case("huber_loss", lambda x, y: F.huber_loss(x, y, delta=0.5), X, Y, ulp=4)


# ---- writes
def _write(x, y):
    z = x.clone()
    z[0] = y[0]
    z[:, 1:2] += 1
    z.view(-1)[4:6].mul_(2)
    z.t()[3].fill_(0.5)
    return z


case("writes_through_views", _write, X, Y)
case("relu_in_place", lambda x: F.relu(x.clone(), inplace=True), X)
case("masked_write", lambda x: x.clone().masked_fill_(x > 0, 9.0), X)
case("secret_mask_write", lambda x: _mask_write(x.clone()), X)
case("out", lambda x, y: torch.add(x, y, out=torch.empty_like(x)), X, Y)
case("new_zeros", lambda x: x.new_zeros(2, 2) + 1.5, X)
case("full_like", lambda x: torch.full_like(x, 0.75), X)
case("ones_like_mul", lambda x: torch.ones_like(x) * x, X)


def _mask_write(x):
    x[x > 0] = 9.0
    return x
