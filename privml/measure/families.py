# SPDX-License-Identifier: Apache-2.0
"""Families of operators, for charts with few colours."""

from __future__ import annotations

PRODUCTS, COMPARISONS, FUNCTIONS, ELEMENTWISE, OTHER = "products", "comparisons", "functions", "elementwise", "other"
# Name -> what it is, in the order of legends.
FAMILIES = {
    PRODUCTS: "matrix products and convolutions",
    COMPARISONS: "ReLU, maxima, comparisons",
    FUNCTIONS: "exponentials, sigmoids, norms",
    ELEMENTWISE: "sums and products by element",
    OTHER: "openings, views, conversions",
}
_WORDS = {
    PRODUCTS: (
        "conv", "convolution", "linear", "mm", "matmul", "bmm", "addmm", "baddbmm", "einsum", "dot", "select_rows",
    ),
    COMPARISONS: (
        "relu", "max", "min", "arg", "gt", "lt", "ge", "le", "eq", "ne", "clamp", "where", "sort", "topk", "abs",
        "sign",
    ),
    FUNCTIONS: (
        "sigmoid", "tanh", "exp", "softmax", "safe_softmax", "gelu", "silu", "erf", "log", "sqrt", "rsqrt", "norm",
        "layer_norm", "native_layer_norm", "reciprocal", "div", "pow", "sin", "cos", "softplus",
    ),
    ELEMENTWISE: ("add", "sub", "mul", "neg", "mean", "avg_pool", "sum", "adaptive_avg_pool", "square", "lerp"),
}  # fmt: skip


def short(operator: str) -> str:
    """aten.conv2d.default -> conv2d"""
    return operator.removeprefix("aten.").removeprefix("privml.").split(".")[0]


def family(operator: str) -> str:
    """The family of an operator, by its name; PRODUCTS before the others, since baddbmm adds as well."""
    name = short(operator).removeprefix("_")
    for kind, words in _WORDS.items():
        if any(name == word or name.startswith((word + "_", word + "2d", word + "1d")) for word in words):
            return kind
    starts = {"arg": COMPARISONS, "max": COMPARISONS, "min": COMPARISONS, "softmax": FUNCTIONS, "log": FUNCTIONS}
    return next((kind for start, kind in starts.items() if name.startswith(start)), OTHER)
