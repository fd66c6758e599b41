# SPDX-License-Identifier: Apache-2.0
"""What engines compute beyond arithmetic, by name."""

from __future__ import annotations

from functools import lru_cache

from privml.formats import FixedPoint, Float

# Functions that every engine computes, with the domains where their results mean something.
FUNCTIONS = {
    "exp_negative": "x <= 0", "exp": "all", "sigmoid": "all", "tanh": "all", "reciprocal": "x > 0",
    "rsqrt": "x > 0", "sqrt": "x >= 0", "log": "x > 0", "erf": "all", "gelu": "all", "gelu_tanh": "all",
    "silu": "all", "softplus": "all", "sin": "all", "cos": "all",
}  # fmt: skip
# Other forms of some of them, which engines that do not stay wide have (see ``Numerics.exp``).
FORMS = {
    "exp_negative_spline": "x <= 0", "exp_negative_exact": "x <= 0", "exp_negative_product": "x <= 0",
    "sin_product": "all", "cos_product": "all", "rsqrt_significant": "x > 0",
    "rsqrt_significant_14": "x > 0", "reciprocal1p": "x >= 0",
}  # fmt: skip

# Operations on floats: of two values or one, correctly rounded; comparisons of two, which give Boolean shares;
# functions of one value of format FLOAT_FUNCTION_FORMAT, within one unit of the last place.
FLOAT_ARITHMETIC = {"add": 2, "multiply": 2, "divide": 2, "maximum": 2, "sqrt": 1, "relu": 1, "round_to_integer": 1}
FLOAT_COMPARISONS = ("less_than", "less_equal", "equal")
FLOAT_FUNCTIONS = (
    "exp", "log", "exp2", "log2", "sigmoid", "tanh", "erf", "gelu", "rsqrt", "sin_pi", "cos_pi", "tan_pi",
)  # fmt: skip
FLOAT_FUNCTION_FORMAT = Float(8, 23)

LARGEST_DIVISOR = (1 << 26) - 1


def check_divisor(divisor: int) -> None:
    """ValueError unless 1 <= divisor <= LARGEST_DIVISOR."""
    if not 1 <= divisor <= LARGEST_DIVISOR:
        raise ValueError(f"a public divisor must be from 1 to {LARGEST_DIVISOR}, got {divisor}")


@lru_cache(maxsize=4096)
def has_reciprocal1p(source: FixedPoint, target: FixedPoint) -> bool:
    """Whether engines that do not stay wide have 1 / (1 + x), x >= 0, for these formats."""
    import privml._core as _core

    return _core.fixmath.has_reciprocal1p(source.bits, source.scale, target.bits, target.scale)


@lru_cache(maxsize=4096)
def value_at_zero(name: str, source: FixedPoint, target: FixedPoint) -> int:
    """What a function of the library gives for zero, in units of the target's last place."""
    import numpy as np

    import privml._core as _core

    compute = getattr(_core.fixmath, f"clear_{name}")
    return int(compute(np.zeros(1, np.int64), source.bits, source.scale, target.bits, target.scale)[0])


@lru_cache(maxsize=4096)
def exp_negative_function(form: str, source: FixedPoint, target: FixedPoint) -> str:
    """The name of the function that computes e^x for x <= 0 in ``form`` (``privml.formats.EXPONENTIALS``), or where
    these formats have no such form of the cheapest. It depends on formats alone, so that every engine and a cost's
    prediction take the same."""
    import privml._core as _core

    return _core.fixmath.exp_negative_function(form, source.bits, source.scale, target.bits, target.scale)
