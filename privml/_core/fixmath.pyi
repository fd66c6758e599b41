# SPDX-License-Identifier: Apache-2.0
"""
Functions of fixed-point numbers: <name>(session, x, formats) on shares, clear_<name>(x, formats) the same in the clear.
"""

from __future__ import annotations
import numpy
import numpy.typing
import privml._core
import typing

__all__: list[str] = [
    "clear_cos",
    "clear_cos_product",
    "clear_erf",
    "clear_exp",
    "clear_exp_negative",
    "clear_exp_negative_exact",
    "clear_exp_negative_product",
    "clear_exp_negative_spline",
    "clear_gelu",
    "clear_gelu_tanh",
    "clear_log",
    "clear_reciprocal",
    "clear_reciprocal1p",
    "clear_rsqrt",
    "clear_rsqrt_significant",
    "clear_rsqrt_significant_14",
    "clear_sigmoid",
    "clear_silu",
    "clear_sin",
    "clear_sin_product",
    "clear_softplus",
    "clear_sqrt",
    "clear_tanh",
    "cos",
    "cos_product",
    "erf",
    "exp",
    "exp_negative",
    "exp_negative_exact",
    "exp_negative_function",
    "exp_negative_product",
    "exp_negative_spline",
    "gelu",
    "gelu_tanh",
    "has_reciprocal1p",
    "log",
    "reciprocal",
    "reciprocal1p",
    "rsqrt",
    "rsqrt_significant",
    "rsqrt_significant_14",
    "sigmoid",
    "silu",
    "sin",
    "sin_product",
    "softplus",
    "sqrt",
    "tanh",
]

def clear_cos(
    x: numpy.ndarray, in_bits: int, in_scale: int, out_bits: int, out_scale: int
) -> numpy.typing.NDArray[numpy.int64]:
    """
    cosine of radians; signed words to signed words, as the protocol computes it
    """

def clear_cos_product(
    x: numpy.ndarray, in_bits: int, in_scale: int, out_bits: int, out_scale: int
) -> numpy.typing.NDArray[numpy.int64]:
    """
    cosine of radians by products whose last place may depend on the shares; signed words to signed words, as the protocol computes it
    """

def clear_erf(
    x: numpy.ndarray, in_bits: int, in_scale: int, out_bits: int, out_scale: int
) -> numpy.typing.NDArray[numpy.int64]:
    """
    erf x; signed words to signed words, as the protocol computes it
    """

def clear_exp(
    x: numpy.ndarray, in_bits: int, in_scale: int, out_bits: int, out_scale: int
) -> numpy.typing.NDArray[numpy.int64]:
    """
    e^x, at most the largest of the output's range; signed words to signed words, as the protocol computes it
    """

def clear_exp_negative(
    x: numpy.ndarray, in_bits: int, in_scale: int, out_bits: int, out_scale: int
) -> numpy.typing.NDArray[numpy.int64]:
    """
    e^x for x <= 0; signed words to signed words, as the protocol computes it
    """

def clear_exp_negative_exact(
    x: numpy.ndarray, in_bits: int, in_scale: int, out_bits: int, out_scale: int
) -> numpy.typing.NDArray[numpy.int64]:
    """
    e^x for x <= 0 by a product that no rounding shows in; signed words to signed words, as the protocol computes it
    """

def clear_exp_negative_product(
    x: numpy.ndarray, in_bits: int, in_scale: int, out_bits: int, out_scale: int
) -> numpy.typing.NDArray[numpy.int64]:
    """
    e^x for x <= 0 by a product whose last place may depend on the shares; signed words to signed words, as the protocol computes it
    """

def clear_exp_negative_spline(
    x: numpy.ndarray, in_bits: int, in_scale: int, out_bits: int, out_scale: int
) -> numpy.typing.NDArray[numpy.int64]:
    """
    e^x for x <= 0 by a piecewise polynomial; signed words to signed words, as the protocol computes it
    """

def clear_gelu(
    x: numpy.ndarray, in_bits: int, in_scale: int, out_bits: int, out_scale: int
) -> numpy.typing.NDArray[numpy.int64]:
    """
    x Phi(x); signed words to signed words, as the protocol computes it
    """

def clear_gelu_tanh(
    x: numpy.ndarray, in_bits: int, in_scale: int, out_bits: int, out_scale: int
) -> numpy.typing.NDArray[numpy.int64]:
    """
    x (1 + tanh(sqrt(2 / pi) (x + 0.044715 x^3))) / 2; signed words to signed words, as the protocol computes it
    """

def clear_log(
    x: numpy.ndarray, in_bits: int, in_scale: int, out_bits: int, out_scale: int
) -> numpy.typing.NDArray[numpy.int64]:
    """
    ln x for x > 0; signed words to signed words, as the protocol computes it
    """

def clear_reciprocal(
    x: numpy.ndarray, in_bits: int, in_scale: int, out_bits: int, out_scale: int
) -> numpy.typing.NDArray[numpy.int64]:
    """
    1 / x for x > 0; signed words to signed words, as the protocol computes it
    """

def clear_reciprocal1p(
    x: numpy.ndarray, in_bits: int, in_scale: int, out_bits: int, out_scale: int
) -> numpy.typing.NDArray[numpy.int64]:
    """
    1 / (1 + x) for x >= 0; signed words to signed words, as the protocol computes it
    """

def clear_rsqrt(
    x: numpy.ndarray, in_bits: int, in_scale: int, out_bits: int, out_scale: int
) -> numpy.typing.NDArray[numpy.int64]:
    """
    1 / sqrt(x) for x > 0; signed words to signed words, as the protocol computes it
    """

def clear_rsqrt_significant(
    x: numpy.ndarray, in_bits: int, in_scale: int, out_bits: int, out_scale: int
) -> numpy.typing.NDArray[numpy.int64]:
    """
    1 / sqrt(x) for x > 0, 20 bits of it; signed words to signed words, as the protocol computes it
    """

def clear_rsqrt_significant_14(
    x: numpy.ndarray, in_bits: int, in_scale: int, out_bits: int, out_scale: int
) -> numpy.typing.NDArray[numpy.int64]:
    """
    1 / sqrt(x) for x > 0, 14 bits of it; signed words to signed words, as the protocol computes it
    """

def clear_sigmoid(
    x: numpy.ndarray, in_bits: int, in_scale: int, out_bits: int, out_scale: int
) -> numpy.typing.NDArray[numpy.int64]:
    """
    1 / (1 + e^-x); signed words to signed words, as the protocol computes it
    """

def clear_silu(
    x: numpy.ndarray, in_bits: int, in_scale: int, out_bits: int, out_scale: int
) -> numpy.typing.NDArray[numpy.int64]:
    """
    x / (1 + e^-x); signed words to signed words, as the protocol computes it
    """

def clear_sin(
    x: numpy.ndarray, in_bits: int, in_scale: int, out_bits: int, out_scale: int
) -> numpy.typing.NDArray[numpy.int64]:
    """
    sine of radians; signed words to signed words, as the protocol computes it
    """

def clear_sin_product(
    x: numpy.ndarray, in_bits: int, in_scale: int, out_bits: int, out_scale: int
) -> numpy.typing.NDArray[numpy.int64]:
    """
    sine of radians by products whose last place may depend on the shares; signed words to signed words, as the protocol computes it
    """

def clear_softplus(
    x: numpy.ndarray, in_bits: int, in_scale: int, out_bits: int, out_scale: int
) -> numpy.typing.NDArray[numpy.int64]:
    """
    ln(1 + e^x); signed words to signed words, as the protocol computes it
    """

def clear_sqrt(
    x: numpy.ndarray, in_bits: int, in_scale: int, out_bits: int, out_scale: int
) -> numpy.typing.NDArray[numpy.int64]:
    """
    sqrt(x) for x >= 0; signed words to signed words, as the protocol computes it
    """

def clear_tanh(
    x: numpy.ndarray, in_bits: int, in_scale: int, out_bits: int, out_scale: int
) -> numpy.typing.NDArray[numpy.int64]:
    """
    hyperbolic tangent; signed words to signed words, as the protocol computes it
    """

def cos(
    session: privml._core.TwoPartySession, x: numpy.ndarray, in_bits: int, in_scale: int, out_bits: int, out_scale: int
) -> numpy.typing.NDArray[numpy.int64]:
    """
    cosine of radians; shares in Z_2^in_bits to shares in Z_2^out_bits
    """

def cos_product(
    session: privml._core.TwoPartySession, x: numpy.ndarray, in_bits: int, in_scale: int, out_bits: int, out_scale: int
) -> numpy.typing.NDArray[numpy.int64]:
    """
    cosine of radians by products whose last place may depend on the shares; shares in Z_2^in_bits to shares in Z_2^out_bits
    """

def erf(
    session: privml._core.TwoPartySession, x: numpy.ndarray, in_bits: int, in_scale: int, out_bits: int, out_scale: int
) -> numpy.typing.NDArray[numpy.int64]:
    """
    erf x; shares in Z_2^in_bits to shares in Z_2^out_bits
    """

def exp(
    session: privml._core.TwoPartySession, x: numpy.ndarray, in_bits: int, in_scale: int, out_bits: int, out_scale: int
) -> numpy.typing.NDArray[numpy.int64]:
    """
    e^x, at most the largest of the output's range; shares in Z_2^in_bits to shares in Z_2^out_bits
    """

def exp_negative(
    session: privml._core.TwoPartySession, x: numpy.ndarray, in_bits: int, in_scale: int, out_bits: int, out_scale: int
) -> numpy.typing.NDArray[numpy.int64]:
    """
    e^x for x <= 0; shares in Z_2^in_bits to shares in Z_2^out_bits
    """

def exp_negative_exact(
    session: privml._core.TwoPartySession, x: numpy.ndarray, in_bits: int, in_scale: int, out_bits: int, out_scale: int
) -> numpy.typing.NDArray[numpy.int64]:
    """
    e^x for x <= 0 by a product that no rounding shows in; shares in Z_2^in_bits to shares in Z_2^out_bits
    """

def exp_negative_function(form: str, in_bits: int, in_scale: int, out_bits: int, out_scale: int) -> str:
    """
    Name of the function that computes e^x for x <= 0 in this form, or in the cheapest
    """

def exp_negative_product(
    session: privml._core.TwoPartySession, x: numpy.ndarray, in_bits: int, in_scale: int, out_bits: int, out_scale: int
) -> numpy.typing.NDArray[numpy.int64]:
    """
    e^x for x <= 0 by a product whose last place may depend on the shares; shares in Z_2^in_bits to shares in Z_2^out_bits
    """

def exp_negative_spline(
    session: privml._core.TwoPartySession, x: numpy.ndarray, in_bits: int, in_scale: int, out_bits: int, out_scale: int
) -> numpy.typing.NDArray[numpy.int64]:
    """
    e^x for x <= 0 by a piecewise polynomial; shares in Z_2^in_bits to shares in Z_2^out_bits
    """

def gelu(
    session: privml._core.TwoPartySession, x: numpy.ndarray, in_bits: int, in_scale: int, out_bits: int, out_scale: int
) -> numpy.typing.NDArray[numpy.int64]:
    """
    x Phi(x); shares in Z_2^in_bits to shares in Z_2^out_bits
    """

def gelu_tanh(
    session: privml._core.TwoPartySession, x: numpy.ndarray, in_bits: int, in_scale: int, out_bits: int, out_scale: int
) -> numpy.typing.NDArray[numpy.int64]:
    """
    x (1 + tanh(sqrt(2 / pi) (x + 0.044715 x^3))) / 2; shares in Z_2^in_bits to shares in Z_2^out_bits
    """

def has_reciprocal1p(in_bits: int, in_scale: int, out_bits: int, out_scale: int) -> bool:
    """
    Whether reciprocal1p serves these formats
    """

def log(
    session: privml._core.TwoPartySession, x: numpy.ndarray, in_bits: int, in_scale: int, out_bits: int, out_scale: int
) -> numpy.typing.NDArray[numpy.int64]:
    """
    ln x for x > 0; shares in Z_2^in_bits to shares in Z_2^out_bits
    """

def reciprocal(
    session: privml._core.TwoPartySession, x: numpy.ndarray, in_bits: int, in_scale: int, out_bits: int, out_scale: int
) -> numpy.typing.NDArray[numpy.int64]:
    """
    1 / x for x > 0; shares in Z_2^in_bits to shares in Z_2^out_bits
    """

def reciprocal1p(
    session: privml._core.TwoPartySession, x: numpy.ndarray, in_bits: int, in_scale: int, out_bits: int, out_scale: int
) -> numpy.typing.NDArray[numpy.int64]:
    """
    1 / (1 + x) for x >= 0; shares in Z_2^in_bits to shares in Z_2^out_bits
    """

def rsqrt(
    session: privml._core.TwoPartySession, x: numpy.ndarray, in_bits: int, in_scale: int, out_bits: int, out_scale: int
) -> numpy.typing.NDArray[numpy.int64]:
    """
    1 / sqrt(x) for x > 0; shares in Z_2^in_bits to shares in Z_2^out_bits
    """

def rsqrt_significant(
    session: privml._core.TwoPartySession, x: numpy.ndarray, in_bits: int, in_scale: int, out_bits: int, out_scale: int
) -> numpy.typing.NDArray[numpy.int64]:
    """
    1 / sqrt(x) for x > 0, 20 bits of it; shares in Z_2^in_bits to shares in Z_2^out_bits
    """

def rsqrt_significant_14(
    session: privml._core.TwoPartySession, x: numpy.ndarray, in_bits: int, in_scale: int, out_bits: int, out_scale: int
) -> numpy.typing.NDArray[numpy.int64]:
    """
    1 / sqrt(x) for x > 0, 14 bits of it; shares in Z_2^in_bits to shares in Z_2^out_bits
    """

def sigmoid(
    session: privml._core.TwoPartySession, x: numpy.ndarray, in_bits: int, in_scale: int, out_bits: int, out_scale: int
) -> numpy.typing.NDArray[numpy.int64]:
    """
    1 / (1 + e^-x); shares in Z_2^in_bits to shares in Z_2^out_bits
    """

def silu(
    session: privml._core.TwoPartySession, x: numpy.ndarray, in_bits: int, in_scale: int, out_bits: int, out_scale: int
) -> numpy.typing.NDArray[numpy.int64]:
    """
    x / (1 + e^-x); shares in Z_2^in_bits to shares in Z_2^out_bits
    """

def sin(
    session: privml._core.TwoPartySession, x: numpy.ndarray, in_bits: int, in_scale: int, out_bits: int, out_scale: int
) -> numpy.typing.NDArray[numpy.int64]:
    """
    sine of radians; shares in Z_2^in_bits to shares in Z_2^out_bits
    """

def sin_product(
    session: privml._core.TwoPartySession, x: numpy.ndarray, in_bits: int, in_scale: int, out_bits: int, out_scale: int
) -> numpy.typing.NDArray[numpy.int64]:
    """
    sine of radians by products whose last place may depend on the shares; shares in Z_2^in_bits to shares in Z_2^out_bits
    """

def softplus(
    session: privml._core.TwoPartySession, x: numpy.ndarray, in_bits: int, in_scale: int, out_bits: int, out_scale: int
) -> numpy.typing.NDArray[numpy.int64]:
    """
    ln(1 + e^x); shares in Z_2^in_bits to shares in Z_2^out_bits
    """

def sqrt(
    session: privml._core.TwoPartySession, x: numpy.ndarray, in_bits: int, in_scale: int, out_bits: int, out_scale: int
) -> numpy.typing.NDArray[numpy.int64]:
    """
    sqrt(x) for x >= 0; shares in Z_2^in_bits to shares in Z_2^out_bits
    """

def tanh(
    session: privml._core.TwoPartySession, x: numpy.ndarray, in_bits: int, in_scale: int, out_bits: int, out_scale: int
) -> numpy.typing.NDArray[numpy.int64]:
    """
    hyperbolic tangent; shares in Z_2^in_bits to shares in Z_2^out_bits
    """
