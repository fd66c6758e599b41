# SPDX-License-Identifier: Apache-2.0
"""The operator cases of functions that are approximated in fixed point: rows of the list in ``op_cases``."""

import torch
import torch.nn.functional as F
from op_cases import CASES, case, real

__all__ = ["CASES"]

X = real(3, 4)

# ---- exponentials
NEGATIVE = torch.cat([-real(9).abs(), torch.tensor([0.0, -10.0, -30.0, -20000.0])])
case("exp", torch.exp, X, ulp=60)
case("exp_negative", torch.exp, NEGATIVE, ulp=4)
case("exp2", torch.exp2, X, ulp=24)
case("expm1", torch.expm1, X, ulp=60)
case("power_of_number", lambda x: 0.5**x, X, ulp=24)
case("exp_product", lambda x, y: torch.exp(x) * y, -real(5).abs(), real(5), ulp=16)

case("sinh", torch.sinh, X, ulp=60)
case("cosh", torch.cosh, X, ulp=60)
case("sinh_of_zero", torch.sinh, torch.zeros(3), ulp=1)
case("hyperbolic_large", lambda x: torch.stack([torch.sinh(x), torch.cosh(x)]), torch.tensor([-7.0, 7.5]), ulp=300)

# ---- trigonometry
case("tan", torch.tan, torch.linspace(-1.4, 1.4, 13).mul(2**16).round() / 2**16, ulp=40)
case("tan_of_large", torch.tan, torch.tensor([3.0, 100.0, -40.0]), ulp=8)
case("sin", torch.sin, X * 4, ulp=2)
case("cos", torch.cos, X * 40, ulp=2)
case("rotation", lambda x, y: torch.cos(x) * y + torch.sin(x) * y, real(5), real(5), ulp=8)

POSITIVE = real(3, 4, size=8.0).abs() + 2**-6
LARGE = torch.tensor([0.002, 0.05, 1.0, 37.5, 700.0, 20000.0])
SIGNED = torch.tensor([-900.0, -1.0, -0.03125, 0.25, 3.0, 5000.0])

# ---- logarithms, roots, powers
case("log", torch.log, POSITIVE, ulp=2)
case("log_large", torch.log, LARGE.mul(2**16).round() / 2**16, ulp=2)
case("log2", torch.log2, POSITIVE, ulp=3)
case("log10", torch.log10, POSITIVE, ulp=3)
case("log1p", torch.log1p, POSITIVE, ulp=2)
case("sqrt", torch.sqrt, POSITIVE, ulp=2)
case("sqrt_large", torch.sqrt, torch.tensor([0.0, 0.25, 100.0, 30000.0]), ulp=2)
case("rsqrt", torch.rsqrt, POSITIVE, ulp=2)
case("rsqrt_large", torch.rsqrt, torch.tensor([2.0**-16, 0.25, 100.0, 30000.0]), ulp=2)
case("reciprocal", torch.reciprocal, torch.cat([POSITIVE, -POSITIVE]), ulp=40)
case("pow_minus_one", lambda x: x**-1, POSITIVE + 0.5, ulp=4)
case("pow_minus_half", lambda x: x**-0.5, POSITIVE, ulp=2)
case("pow_half", lambda x: x**0.5, POSITIVE, ulp=2)
case("pow_three_halves", lambda x: x**1.5, POSITIVE, ulp=20)
case("pow_real", lambda x: x**0.75, POSITIVE, ulp=3)
case("pow_negative_real", lambda x: (1 + x) ** -0.3, POSITIVE, ulp=3)

# ---- division
case("div", lambda x, y: x / y, X, POSITIVE + 0.5, ulp=8)
case("div_signed", lambda x, y: x / y, torch.ones(6), SIGNED, ulp=24)
case("div_small_by_small", lambda x, y: x / y, SIGNED.sign() * 2**-8, torch.full((6,), 2.0**-8), ulp=24)
case("div_large_by_large", lambda x, y: x / y, SIGNED * 2, SIGNED, ulp=4)
case("div_by_fraction_of", lambda x, y: x / y, real(5), torch.relu(real(5)) + 1, ulp=6)
case("div_number", lambda y: 3.5 / y, SIGNED, ulp=50)
case("div_public_tensor", lambda y: torch.arange(6.0) / y, SIGNED, ulp=50)
case("div_integers_secret", lambda a, b: a / b, torch.tensor([7, -9, 4]), torch.tensor([2, 3, -16]), ulp=4)
case("softsign", F.softsign, X, ulp=4)
case("addcdiv", lambda x, y, z: torch.addcdiv(x, y, z, value=0.5), X, real(3, 4), POSITIVE + 0.5, ulp=8)

# ---- smooth activations
WIDE = torch.cat([real(12, size=9.0), torch.tensor([0.0, 30.0, -30.0, 20000.0, -20000.0])])
for _name, _function, _ulp in (
    ("sigmoid", torch.sigmoid, 2), ("tanh", torch.tanh, 2), ("erf", torch.erf, 2), ("erfc", torch.erfc, 2),
    ("silu", F.silu, 2), ("gelu", F.gelu, 2), ("softplus", F.softplus, 3), ("logsigmoid", F.logsigmoid, 3),
    ("elu", F.elu, 3), ("selu", F.selu, 6), ("mish", F.mish, 4),
):  # fmt: skip
    case(_name, _function, WIDE, ulp=_ulp)
case("gelu_tanh", lambda x: F.gelu(x, approximate="tanh"), real(12, size=6.0), ulp=2)
case("softplus_beta", lambda x: F.softplus(x, 2.0), WIDE / 2, ulp=4)
case("celu", lambda x: F.celu(x, 0.5), WIDE, ulp=4)
case("elu_scaled", lambda x: F.elu(x, 0.7), WIDE, ulp=4)
case("glu", lambda x: F.glu(x, 1), X, ulp=10)
case("sigmoid_of_sum", lambda x, y: torch.sigmoid(x + y) * torch.tanh(x), X, real(3, 4), ulp=5)
case("sigmoid_of_integers", lambda n: torch.sigmoid(n), torch.arange(-4, 5), ulp=2)

# ---- softmax
case("softmax", lambda x: x.softmax(1), X, ulp=3)
case("softmax_first_dim", lambda x: x.softmax(0), X, ulp=3)
case(
    "softmax_far_apart", lambda x: x.softmax(-1), torch.tensor([[0.0, 9000.0, -9000.0, 8999.0], [1.0, 1, 1, 1]]), ulp=3
)
case("softmax_of_many", lambda x: x.softmax(0), real(200), ulp=3)
case("softmax_single", lambda x: x.softmax(1), real(3, 1), ulp=3)
case("softmax_scalar", lambda x: x[0, 0].softmax(0), X, ulp=1)
case("log_softmax", lambda x: x.log_softmax(1), X, ulp=4)
case("logsumexp", lambda x: x.logsumexp(1), X, ulp=4)
case("logsumexp_dims", lambda x: x.logsumexp([0, 1], keepdim=True), X, ulp=4)
case("softmax_masked", lambda x: x.masked_fill(torch.ones(3, 4).triu(2).bool(), float("-inf")).softmax(1), X, ulp=3)
case("softmax_mask_added", lambda x: (x + torch.where(torch.eye(3, 4).bool(), float("-inf"), 0.0)).softmax(1), X, ulp=3)
case("softmax_mask_large", lambda x: (x + torch.where(torch.eye(3, 4).bool(), -1e9, 0.0)).softmax(1), X, ulp=3)
case(
    "log_softmax_masked", lambda x: x.masked_fill(torch.eye(3, 4).bool(), float("-inf")).log_softmax(1)[:, 3], X, ulp=4
)
case("safe_softmax_all_masked", lambda x: torch.ops.aten._safe_softmax(
    x.masked_fill(torch.tensor([[True], [False], [False]]), float("-inf")), 1), X, ulp=3)  # fmt: skip
QUERY = real(2, 5, 4)
case("attention", lambda q, k, v: F.scaled_dot_product_attention(q, k, v), QUERY, real(2, 5, 4), real(2, 5, 4), ulp=40)
case(
    "attention_causal",
    lambda q, k: F.scaled_dot_product_attention(q, k, k, is_causal=True),
    QUERY,
    real(2, 5, 4),
    ulp=40,
)

HEADS = real(2, 4, 5, 4)
SHOWN = torch.tensor([[True, False, True, True, False]]).expand(5, 5) | torch.eye(5, dtype=torch.bool)
case(
    "attention_mask",
    lambda q, k: F.scaled_dot_product_attention(q, k, k, attn_mask=SHOWN),
    QUERY,
    real(2, 5, 4),
    ulp=40,
)
case("attention_float_mask", lambda q, k: F.scaled_dot_product_attention(
    q, k, k, attn_mask=torch.where(SHOWN, 0.25, float("-inf")).to(q.dtype)), QUERY, real(2, 5, 4), ulp=40)  # fmt: skip
case("attention_scale", lambda q, k: F.scaled_dot_product_attention(q, k, k, scale=0.3), QUERY, real(2, 5, 4), ulp=40)
case("attention_causal_window", lambda q, k: F.scaled_dot_product_attention(q, k, k, is_causal=True),
     real(2, 3, 4), real(2, 5, 4), ulp=40)  # fmt: skip
case("attention_grouped", lambda q, k, v: F.scaled_dot_product_attention(q, k, v, enable_gqa=True),
     HEADS, real(2, 2, 5, 4), real(2, 2, 5, 4), ulp=40)  # fmt: skip
case("attention_grouped_causal", lambda q, k: F.scaled_dot_product_attention(q, k, k, is_causal=True, enable_gqa=True),
     HEADS, real(2, 1, 5, 4), ulp=40)  # fmt: skip


def _rotated(x, angle):
    half = x.shape[-1] // 2
    turned = torch.cat([-x[..., half:], x[..., :half]], -1)
    return x * angle.cos() + turned * angle.sin()


ANGLE = torch.outer(torch.arange(5.0), torch.tensor([1.0, 0.1, 1.0, 0.1]))
case("rotary", lambda x: _rotated(x, ANGLE.to(x.dtype)), HEADS, ulp=4)

# ---- normalization
IMAGE = real(2, 4, 3, 2)
case("layer_norm", lambda x: F.layer_norm(x, (4,)), X, ulp=6)
case("layer_norm_affine", lambda x, w, b: F.layer_norm(x, (4,), w, b), X, real(4), real(4), ulp=20)
case("layer_norm_public_weight", lambda x: F.layer_norm(x, (3, 4), torch.full((3, 4), 0.7), torch.ones(3, 4)), X, ulp=8)
case("group_norm", lambda x: F.group_norm(x, 2), IMAGE, ulp=6)
case("group_norm_affine", lambda x, w, b: F.group_norm(x, 2, w, b), IMAGE, real(4), real(4), ulp=20)
case("instance_norm", F.instance_norm, IMAGE, ulp=6)
case("rms_norm", lambda x, w: F.rms_norm(x, (4,), w), X, real(4), ulp=20)
case("batch_norm_training", lambda x, w, b: F.batch_norm(x, None, None, w, b, True), IMAGE, real(4), real(4), ulp=20)
case("std", lambda x: x.std(1), X, ulp=4)
case("std_mean", lambda x: torch.stack(torch.std_mean(x, [0, 1], correction=0)), X, ulp=4)
case("norm", lambda x: x.norm(dim=1), X, ulp=3)
case("norm_of_four", lambda x: x.norm(4, dim=1), X, ulp=60)
case("normalize", lambda x: F.normalize(x, dim=1), X, ulp=4)
case("cosine_similarity", lambda x, y: F.cosine_similarity(x, y), X, real(3, 4), ulp=24)

# ---- losses
CLASSES = torch.tensor([1, 0, 3])
case("cross_entropy", lambda x: F.cross_entropy(x, CLASSES), X, ulp=6)
case("cross_entropy_secret_classes", F.cross_entropy, X, CLASSES, ulp=6)
case("cross_entropy_weighted", lambda x: F.cross_entropy(
    x, CLASSES, torch.tensor([1.0, 2.0, 0.5, 0.25]), ignore_index=0, label_smoothing=0.1), X, ulp=12)  # fmt: skip
case("cross_entropy_none", lambda x: F.cross_entropy(x, CLASSES, reduction="none"), X, ulp=6)
case("cross_entropy_image", lambda x: F.cross_entropy(x, torch.arange(12).reshape(2, 3, 2) % 4), IMAGE, ulp=6)
case("cross_entropy_probabilities", lambda x, y: F.cross_entropy(x, y.softmax(1)), X, real(3, 4), ulp=24)
case(
    "binary_cross_entropy_with_logits", F.binary_cross_entropy_with_logits, X, torch.rand(3, 4).round(decimals=1), ulp=8
)
