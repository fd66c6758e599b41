# SPDX-License-Identifier: Apache-2.0
"""
Protocols: the first argument is a TwoPartySession, both parties call alike.
"""

from __future__ import annotations
import collections.abc
import numpy
import numpy.typing
import privml._core
import typing

__all__: list[str] = [
    "addition_formula",
    "and_bits",
    "argmax_last",
    "bits_to_ring",
    "conv2d",
    "cross_term",
    "digits",
    "divide_bounded",
    "equal",
    "equal_zero",
    "extend_bounded",
    "extend_nonnegative",
    "lookup",
    "matmul",
    "maximum",
    "maximum_last",
    "maximum_last_one_hot",
    "millionaires",
    "most_significant_bit",
    "most_significant_nonzero_bit",
    "multiplex",
    "multiply",
    "multiply_owned",
    "multiply_rows",
    "open_bits",
    "open_ring",
    "or_bits",
    "relu",
    "round_bounded",
    "round_nonnegative",
    "sign_extend",
    "signed_wrap",
    "transfer_one_of_n",
    "truncate_arithmetic",
    "truncate_bounded",
    "truncate_nonnegative",
    "truncate_reduce",
    "wrap",
    "zero_extend",
]

def addition_formula(
    session: privml._core.TwoPartySession,
    x: numpy.ndarray,
    number: tuple[int, int],
    value: tuple[int, bool],
    ring: tuple[int, int],
    entries: numpy.ndarray,
    factors: numpy.ndarray,
    terms: collections.abc.Sequence[tuple[int, bool, bool, int]],
) -> numpy.typing.NDArray[numpy.int64]:
    """
    sum over the terms of f(u) (constant +- g(b)); number (bits, place_bits), value (bits, nonnegative), ring (bits, dropped), a term's factor (bits, signed, negative, constant)
    """

def and_bits(
    session: privml._core.TwoPartySession, a: numpy.ndarray, b: numpy.ndarray
) -> numpy.typing.NDArray[numpy.uint8]: ...
def argmax_last(
    session: privml._core.TwoPartySession, x: numpy.ndarray, bits: int
) -> numpy.typing.NDArray[numpy.int64]:
    """
    x [..., n] to the place of the first maximum, in Z_2^bits
    """

def bits_to_ring(
    session: privml._core.TwoPartySession, bits: numpy.ndarray, width: int
) -> numpy.typing.NDArray[numpy.int64]: ...
def conv2d(
    session: privml._core.TwoPartySession,
    x: numpy.ndarray | None,
    x_format: tuple[int, int, bool],
    w: numpy.ndarray | None,
    w_format: tuple[int, int, bool],
    x_shape: collections.abc.Sequence[int],
    w_shape: collections.abc.Sequence[int],
    stride: collections.abc.Sequence[int],
    padding: collections.abc.Sequence[int],
    dilation: collections.abc.Sequence[int],
    groups: int,
    ell: int,
) -> numpy.typing.NDArray[numpy.int64]:
    """
    x [n, c, h, w], w [o, c / groups, kh, kw]; padding is (top, bottom, left, right)
    """

def cross_term(
    session: privml._core.TwoPartySession,
    left_holder: int,
    mine: numpy.ndarray,
    left: tuple[int, bool],
    right: tuple[int, bool],
    ell: int,
) -> numpy.typing.NDArray[numpy.int64]:
    """
    x of party left_holder times y of the other party; formats are (bits, signed)
    """

def digits(
    session: privml._core.TwoPartySession, x: numpy.ndarray, ell: int, digit_bits: int
) -> numpy.typing.NDArray[numpy.int64]:
    """
    [digits, ...], least significant first
    """

def divide_bounded(
    session: privml._core.TwoPartySession, x: numpy.ndarray, bits: int, bound: int, divisor: int
) -> numpy.typing.NDArray[numpy.int64]:
    """
    floor(x / divisor)
    """

def equal(session: privml._core.TwoPartySession, x: numpy.ndarray, bits: int) -> numpy.typing.NDArray[numpy.uint8]:
    """
    [x of party 0 = x of party 1]
    """

def equal_zero(
    session: privml._core.TwoPartySession, x: numpy.ndarray, bits: int
) -> numpy.typing.NDArray[numpy.uint8]: ...
def extend_bounded(
    session: privml._core.TwoPartySession, x: numpy.ndarray, bits: int, bound: int, to_bits: int
) -> numpy.typing.NDArray[numpy.int64]: ...
def extend_nonnegative(
    session: privml._core.TwoPartySession, x: numpy.ndarray, bits: int, to_bits: int
) -> numpy.typing.NDArray[numpy.int64]: ...
def lookup(
    session: privml._core.TwoPartySession, table: numpy.ndarray, index: numpy.ndarray, index_bits: int, width: int
) -> numpy.typing.NDArray[numpy.int64]: ...
def matmul(
    session: privml._core.TwoPartySession,
    x: numpy.ndarray | None,
    x_format: tuple[int, int, bool],
    y: numpy.ndarray | None,
    y_format: tuple[int, int, bool],
    rows: int,
    inner: int,
    columns: int,
    ell: int,
) -> numpy.typing.NDArray[numpy.int64]: ...
def maximum(
    session: privml._core.TwoPartySession, a: numpy.ndarray, b: numpy.ndarray, bits: int
) -> numpy.typing.NDArray[numpy.int64]: ...
def maximum_last(
    session: privml._core.TwoPartySession, x: numpy.ndarray, bits: int
) -> numpy.typing.NDArray[numpy.int64]:
    """
    x [..., n] to its maxima [...]
    """

def maximum_last_one_hot(
    session: privml._core.TwoPartySession, x: numpy.ndarray, bits: int
) -> tuple[numpy.typing.NDArray[numpy.int64], numpy.typing.NDArray[numpy.uint8]]:
    """
    (maxima [...], bits [..., n] at the first maximum)
    """

def millionaires(
    session: privml._core.TwoPartySession, x: numpy.ndarray, bits: int
) -> numpy.typing.NDArray[numpy.uint8]:
    """
    [x of party 0 > x of party 1], unsigned
    """

def most_significant_bit(
    session: privml._core.TwoPartySession, x: numpy.ndarray, bits: int
) -> numpy.typing.NDArray[numpy.uint8]: ...
def most_significant_nonzero_bit(
    session: privml._core.TwoPartySession, x: numpy.ndarray, ell: int
) -> numpy.typing.NDArray[numpy.uint8]:
    """
    one-hot bits [..., ell]
    """

def multiplex(
    session: privml._core.TwoPartySession, bits: numpy.ndarray, values: numpy.ndarray, width: int
) -> numpy.typing.NDArray[numpy.int64]: ...
def multiply(
    session: privml._core.TwoPartySession,
    x: numpy.ndarray,
    x_format: tuple[int, bool, bool],
    y: numpy.ndarray,
    y_format: tuple[int, bool, bool],
    ell: int,
) -> numpy.typing.NDArray[numpy.int64]:
    """
    shared x shared; formats are (bits, signed, nonnegative), max(m, n) <= ell <= m + n
    """

def multiply_owned(
    session: privml._core.TwoPartySession,
    owner: int,
    x: numpy.ndarray,
    x_format: tuple[int, bool, bool],
    y: numpy.ndarray | None,
    y_format: tuple[int, bool],
    ell: int,
) -> numpy.typing.NDArray[numpy.int64]:
    """
    shared x times y known to party `owner`; y_format is (bits, signed)
    """

def multiply_rows(
    session: privml._core.TwoPartySession,
    x: numpy.ndarray,
    x_format: tuple[int, bool, bool],
    y: numpy.ndarray,
    y_bits: int,
    ell: int,
) -> numpy.typing.NDArray[numpy.int64]:
    """
    rows of x times one number each, known not to be negative; x's format as in multiply
    """

def open_bits(session: privml._core.TwoPartySession, x: numpy.ndarray, to: int = -1) -> typing.Any: ...
def open_ring(session: privml._core.TwoPartySession, x: numpy.ndarray, bits: int, to: int = -1) -> typing.Any:
    """
    the signed value at party `to` (-1: both), None elsewhere
    """

def or_bits(
    session: privml._core.TwoPartySession, a: numpy.ndarray, b: numpy.ndarray
) -> numpy.typing.NDArray[numpy.uint8]: ...
def relu(
    session: privml._core.TwoPartySession, x: numpy.ndarray, bits: int
) -> tuple[numpy.typing.NDArray[numpy.int64], numpy.typing.NDArray[numpy.uint8]]:
    """
    (max(x, 0), [x >= 0])
    """

def round_bounded(
    session: privml._core.TwoPartySession, x: numpy.ndarray, bits: int, bound: int, shift: int
) -> numpy.typing.NDArray[numpy.int64]: ...
def round_nonnegative(
    session: privml._core.TwoPartySession, x: numpy.ndarray, bits: int, shift: int
) -> numpy.typing.NDArray[numpy.int64]: ...
def sign_extend(
    session: privml._core.TwoPartySession, x: numpy.ndarray, bits: int, to_bits: int
) -> numpy.typing.NDArray[numpy.int64]: ...
def signed_wrap(
    session: privml._core.TwoPartySession, x: numpy.ndarray, bits: int, bound: int, width: int
) -> numpy.typing.NDArray[numpy.int64]:
    """
    MW(x) in Z_2^width: x0 + x1 - 2^bits MW(x) is the signed x, -bound <= x < bound
    """

def transfer_one_of_n(
    session: privml._core.TwoPartySession, sender: int, mine: numpy.ndarray, index_bits: int, width: int
) -> typing.Any:
    """
    mine: messages [count * 2^index_bits] at the sender, uint8 choices [count] at the other
    """

def truncate_arithmetic(
    session: privml._core.TwoPartySession, x: numpy.ndarray, bits: int, shift: int
) -> numpy.typing.NDArray[numpy.int64]: ...
def truncate_bounded(
    session: privml._core.TwoPartySession, x: numpy.ndarray, bits: int, bound: int, shift: int
) -> numpy.typing.NDArray[numpy.int64]: ...
def truncate_nonnegative(
    session: privml._core.TwoPartySession, x: numpy.ndarray, bits: int, shift: int
) -> numpy.typing.NDArray[numpy.int64]: ...
def truncate_reduce(
    session: privml._core.TwoPartySession, x: numpy.ndarray, bits: int, shift: int
) -> numpy.typing.NDArray[numpy.int64]: ...
def wrap(session: privml._core.TwoPartySession, x: numpy.ndarray, bits: int) -> numpy.typing.NDArray[numpy.uint8]: ...
def zero_extend(
    session: privml._core.TwoPartySession, x: numpy.ndarray, bits: int, to_bits: int
) -> numpy.typing.NDArray[numpy.int64]: ...
