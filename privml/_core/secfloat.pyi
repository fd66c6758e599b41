# SPDX-License-Identifier: Apache-2.0
"""
Floating-point numbers in words of p + q + 5 bits: <name>(session, words, p, q) on shares, clear_<name>(words, p, q) the same in the clear.
"""

from __future__ import annotations
import numpy
import numpy.typing
import privml._core
import typing

__all__: list[str] = [
    "absolute",
    "add",
    "align",
    "cast",
    "clear_absolute",
    "clear_add",
    "clear_align",
    "clear_cast",
    "clear_cos_pi",
    "clear_divide",
    "clear_equal",
    "clear_erf",
    "clear_exp",
    "clear_exp2",
    "clear_from_fixed",
    "clear_from_sum",
    "clear_gelu",
    "clear_less_equal",
    "clear_less_than",
    "clear_log",
    "clear_log2",
    "clear_maximum",
    "clear_multiply",
    "clear_negate",
    "clear_power",
    "clear_relu",
    "clear_round_to_integer",
    "clear_rsqrt",
    "clear_sigmoid",
    "clear_sin_pi",
    "clear_sqrt",
    "clear_subtract",
    "clear_tan_pi",
    "clear_tanh",
    "clear_to_fixed",
    "cos_pi",
    "divide",
    "equal",
    "erf",
    "exp",
    "exp2",
    "from_fixed",
    "from_sum",
    "gelu",
    "less_equal",
    "less_than",
    "log",
    "log2",
    "maximum",
    "multiply",
    "negate",
    "power",
    "relu",
    "round_to_integer",
    "rsqrt",
    "select",
    "sigmoid",
    "sin_pi",
    "sqrt",
    "subtract",
    "tan_pi",
    "tanh",
    "to_fixed",
]

def absolute(
    session: privml._core.TwoPartySession, x: numpy.ndarray, p: int, q: int
) -> numpy.typing.NDArray[numpy.int64]:
    """
    |x|, local
    """

def add(
    session: privml._core.TwoPartySession, a: numpy.ndarray, b: numpy.ndarray, p: int, q: int
) -> numpy.typing.NDArray[numpy.int64]:
    """
    a + b
    """

def align(
    session: privml._core.TwoPartySession,
    x: numpy.ndarray,
    shifts: numpy.ndarray,
    p: int,
    q: int,
    guard: int,
    bits: int,
) -> numpy.typing.NDArray[numpy.int64]:
    """
    clear_align() on shares, into a ring of `bits` bits
    """

def cast(
    session: privml._core.TwoPartySession, x: numpy.ndarray, p: int, q: int, to_p: int, to_q: int
) -> numpy.typing.NDArray[numpy.int64]:
    """
    to another format, rounded
    """

def clear_absolute(x: numpy.ndarray, p: int, q: int) -> numpy.typing.NDArray[numpy.int64]:
    """
    |x|
    """

def clear_add(a: numpy.ndarray, b: numpy.ndarray, p: int, q: int) -> numpy.typing.NDArray[numpy.int64]:
    """
    a + b
    """

def clear_align(
    x: numpy.ndarray, shifts: numpy.ndarray, p: int, q: int, guard: int
) -> numpy.typing.NDArray[numpy.int64]:
    """
    signed integers x 2^(q + guard - exponent - shift), towards zero
    """

def clear_cast(x: numpy.ndarray, p: int, q: int, to_p: int, to_q: int) -> numpy.typing.NDArray[numpy.int64]:
    """
    to another format, rounded
    """

def clear_cos_pi(x: numpy.ndarray, p: int, q: int) -> numpy.typing.NDArray[numpy.int64]:
    """
    cos(pi x), as the protocol computes it
    """

def clear_divide(a: numpy.ndarray, b: numpy.ndarray, p: int, q: int) -> numpy.typing.NDArray[numpy.int64]:
    """
    a / b; x / 0 is infinity, 0 / 0 is 0
    """

def clear_equal(a: numpy.ndarray, b: numpy.ndarray, p: int, q: int) -> numpy.typing.NDArray[numpy.uint8]:
    """
    [a = b]
    """

def clear_erf(x: numpy.ndarray, p: int, q: int) -> numpy.typing.NDArray[numpy.int64]:
    """
    error function, as the protocol computes it
    """

def clear_exp(x: numpy.ndarray, p: int, q: int) -> numpy.typing.NDArray[numpy.int64]:
    """
    e^x, as the protocol computes it
    """

def clear_exp2(x: numpy.ndarray, p: int, q: int) -> numpy.typing.NDArray[numpy.int64]:
    """
    2^x, as the protocol computes it
    """

def clear_from_fixed(x: numpy.ndarray, bits: int, scale: int, p: int, q: int) -> numpy.typing.NDArray[numpy.int64]:
    """
    signed x / 2^scale to the nearest float
    """

def clear_from_sum(
    sums: numpy.ndarray, exponents: numpy.ndarray, p: int, q: int, bits: int, fraction: int
) -> numpy.typing.NDArray[numpy.int64]:
    """
    sums 2^(exponent - fraction) to the nearest float
    """

def clear_gelu(x: numpy.ndarray, p: int, q: int) -> numpy.typing.NDArray[numpy.int64]:
    """
    x Phi(x), as the protocol computes it
    """

def clear_less_equal(a: numpy.ndarray, b: numpy.ndarray, p: int, q: int) -> numpy.typing.NDArray[numpy.uint8]:
    """
    [a <= b]
    """

def clear_less_than(a: numpy.ndarray, b: numpy.ndarray, p: int, q: int) -> numpy.typing.NDArray[numpy.uint8]:
    """
    [a < b]
    """

def clear_log(x: numpy.ndarray, p: int, q: int) -> numpy.typing.NDArray[numpy.int64]:
    """
    ln |x|, as the protocol computes it
    """

def clear_log2(x: numpy.ndarray, p: int, q: int) -> numpy.typing.NDArray[numpy.int64]:
    """
    log2 |x|, as the protocol computes it
    """

def clear_maximum(a: numpy.ndarray, b: numpy.ndarray, p: int, q: int) -> numpy.typing.NDArray[numpy.int64]:
    """
    the larger one
    """

def clear_multiply(a: numpy.ndarray, b: numpy.ndarray, p: int, q: int) -> numpy.typing.NDArray[numpy.int64]:
    """
    a b
    """

def clear_negate(x: numpy.ndarray, p: int, q: int) -> numpy.typing.NDArray[numpy.int64]:
    """
    -x
    """

def clear_power(x: numpy.ndarray, exponent: int, p: int, q: int) -> numpy.typing.NDArray[numpy.int64]:
    """
    x^exponent, as the protocol computes it
    """

def clear_relu(x: numpy.ndarray, p: int, q: int) -> numpy.typing.NDArray[numpy.int64]:
    """
    max(x, 0)
    """

def clear_round_to_integer(x: numpy.ndarray, p: int, q: int) -> numpy.typing.NDArray[numpy.int64]:
    """
    the nearest integer, ties to even
    """

def clear_rsqrt(x: numpy.ndarray, p: int, q: int) -> numpy.typing.NDArray[numpy.int64]:
    """
    1 / sqrt |x|, as the protocol computes it
    """

def clear_sigmoid(x: numpy.ndarray, p: int, q: int) -> numpy.typing.NDArray[numpy.int64]:
    """
    1 / (1 + e^-x), as the protocol computes it
    """

def clear_sin_pi(x: numpy.ndarray, p: int, q: int) -> numpy.typing.NDArray[numpy.int64]:
    """
    sin(pi x), as the protocol computes it
    """

def clear_sqrt(x: numpy.ndarray, p: int, q: int) -> numpy.typing.NDArray[numpy.int64]:
    """
    square root of the magnitude
    """

def clear_subtract(a: numpy.ndarray, b: numpy.ndarray, p: int, q: int) -> numpy.typing.NDArray[numpy.int64]:
    """
    a - b
    """

def clear_tan_pi(x: numpy.ndarray, p: int, q: int) -> numpy.typing.NDArray[numpy.int64]:
    """
    tan(pi x); infinite at the half-integers, as the protocol computes it
    """

def clear_tanh(x: numpy.ndarray, p: int, q: int) -> numpy.typing.NDArray[numpy.int64]:
    """
    hyperbolic tangent, as the protocol computes it
    """

def clear_to_fixed(x: numpy.ndarray, p: int, q: int, bits: int, scale: int) -> numpy.typing.NDArray[numpy.int64]:
    """
    x 2^scale to the nearest integer, ties to even, at the ends of `bits` bits beyond them
    """

def cos_pi(
    session: privml._core.TwoPartySession, x: numpy.ndarray, p: int, q: int
) -> numpy.typing.NDArray[numpy.int64]:
    """
    cos(pi x); shares to shares
    """

def divide(
    session: privml._core.TwoPartySession, a: numpy.ndarray, b: numpy.ndarray, p: int, q: int
) -> numpy.typing.NDArray[numpy.int64]:
    """
    a / b; x / 0 is infinity, 0 / 0 is 0
    """

def equal(
    session: privml._core.TwoPartySession, a: numpy.ndarray, b: numpy.ndarray, p: int, q: int
) -> numpy.typing.NDArray[numpy.uint8]:
    """
    XOR shares of [a = b]
    """

def erf(session: privml._core.TwoPartySession, x: numpy.ndarray, p: int, q: int) -> numpy.typing.NDArray[numpy.int64]:
    """
    error function; shares to shares
    """

def exp(session: privml._core.TwoPartySession, x: numpy.ndarray, p: int, q: int) -> numpy.typing.NDArray[numpy.int64]:
    """
    e^x; shares to shares
    """

def exp2(session: privml._core.TwoPartySession, x: numpy.ndarray, p: int, q: int) -> numpy.typing.NDArray[numpy.int64]:
    """
    2^x; shares to shares
    """

def from_fixed(
    session: privml._core.TwoPartySession, x: numpy.ndarray, bits: int, scale: int, p: int, q: int
) -> numpy.typing.NDArray[numpy.int64]:
    """
    x / 2^scale to the nearest float; shares in Z_2^bits to shares of words
    """

def from_sum(
    session: privml._core.TwoPartySession,
    sums: numpy.ndarray,
    exponents: numpy.ndarray,
    p: int,
    q: int,
    bits: int,
    fraction: int,
) -> numpy.typing.NDArray[numpy.int64]:
    """
    clear_from_sum() on shares
    """

def gelu(session: privml._core.TwoPartySession, x: numpy.ndarray, p: int, q: int) -> numpy.typing.NDArray[numpy.int64]:
    """
    x Phi(x); shares to shares
    """

def less_equal(
    session: privml._core.TwoPartySession, a: numpy.ndarray, b: numpy.ndarray, p: int, q: int
) -> numpy.typing.NDArray[numpy.uint8]:
    """
    XOR shares of [a <= b]
    """

def less_than(
    session: privml._core.TwoPartySession, a: numpy.ndarray, b: numpy.ndarray, p: int, q: int
) -> numpy.typing.NDArray[numpy.uint8]:
    """
    XOR shares of [a < b]
    """

def log(session: privml._core.TwoPartySession, x: numpy.ndarray, p: int, q: int) -> numpy.typing.NDArray[numpy.int64]:
    """
    ln |x|; shares to shares
    """

def log2(session: privml._core.TwoPartySession, x: numpy.ndarray, p: int, q: int) -> numpy.typing.NDArray[numpy.int64]:
    """
    log2 |x|; shares to shares
    """

def maximum(
    session: privml._core.TwoPartySession, a: numpy.ndarray, b: numpy.ndarray, p: int, q: int
) -> numpy.typing.NDArray[numpy.int64]:
    """
    the larger one
    """

def multiply(
    session: privml._core.TwoPartySession, a: numpy.ndarray, b: numpy.ndarray, p: int, q: int
) -> numpy.typing.NDArray[numpy.int64]:
    """
    a b
    """

def negate(
    session: privml._core.TwoPartySession, x: numpy.ndarray, p: int, q: int
) -> numpy.typing.NDArray[numpy.int64]:
    """
    -x, local
    """

def power(
    session: privml._core.TwoPartySession, x: numpy.ndarray, exponent: int, p: int, q: int
) -> numpy.typing.NDArray[numpy.int64]:
    """
    x^exponent for whole exponents from -64 to 64; shares to shares
    """

def relu(session: privml._core.TwoPartySession, x: numpy.ndarray, p: int, q: int) -> numpy.typing.NDArray[numpy.int64]:
    """
    max(x, 0)
    """

def round_to_integer(
    session: privml._core.TwoPartySession, x: numpy.ndarray, p: int, q: int
) -> numpy.typing.NDArray[numpy.int64]:
    """
    the nearest integer, ties to even
    """

def rsqrt(session: privml._core.TwoPartySession, x: numpy.ndarray, p: int, q: int) -> numpy.typing.NDArray[numpy.int64]:
    """
    1 / sqrt |x|; shares to shares
    """

def select(
    session: privml._core.TwoPartySession, bits: numpy.ndarray, x: numpy.ndarray, p: int, q: int
) -> numpy.typing.NDArray[numpy.int64]:
    """
    x where the XOR-shared bit is 1, else +0
    """

def sigmoid(
    session: privml._core.TwoPartySession, x: numpy.ndarray, p: int, q: int
) -> numpy.typing.NDArray[numpy.int64]:
    """
    1 / (1 + e^-x); shares to shares
    """

def sin_pi(
    session: privml._core.TwoPartySession, x: numpy.ndarray, p: int, q: int
) -> numpy.typing.NDArray[numpy.int64]:
    """
    sin(pi x); shares to shares
    """

def sqrt(session: privml._core.TwoPartySession, x: numpy.ndarray, p: int, q: int) -> numpy.typing.NDArray[numpy.int64]:
    """
    square root of the magnitude
    """

def subtract(
    session: privml._core.TwoPartySession, a: numpy.ndarray, b: numpy.ndarray, p: int, q: int
) -> numpy.typing.NDArray[numpy.int64]:
    """
    a - b
    """

def tan_pi(
    session: privml._core.TwoPartySession, x: numpy.ndarray, p: int, q: int
) -> numpy.typing.NDArray[numpy.int64]:
    """
    tan(pi x); infinite at the half-integers; shares to shares
    """

def tanh(session: privml._core.TwoPartySession, x: numpy.ndarray, p: int, q: int) -> numpy.typing.NDArray[numpy.int64]:
    """
    hyperbolic tangent; shares to shares
    """

def to_fixed(
    session: privml._core.TwoPartySession, x: numpy.ndarray, p: int, q: int, bits: int, scale: int
) -> numpy.typing.NDArray[numpy.int64]:
    """
    x 2^scale to the nearest integer, the ends of `bits` bits beyond them
    """
