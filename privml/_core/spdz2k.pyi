# SPDX-License-Identifier: Apache-2.0
"""
Actively secure protocols: the first argument is an ActiveSession.
"""

from __future__ import annotations
import collections.abc
import numpy
import privml._core
import typing

__all__: list[str] = [
    "add_public",
    "add_public_bits",
    "bit_and",
    "bits_to_ring",
    "equal_zero",
    "input",
    "input_bits",
    "less_than_zero",
    "matmul",
    "multiply",
    "open",
    "public_numbers",
    "random_bits",
    "reveal",
    "reveal_bits",
    "truncate",
]

def add_public(
    session: privml._core.ActiveSession, a: collections.abc.Sequence[numpy.ndarray], constants: numpy.ndarray
) -> tuple: ...
def add_public_bits(
    session: privml._core.ActiveSession, a: collections.abc.Sequence[numpy.ndarray], constants: numpy.ndarray
) -> tuple: ...
def bit_and(
    session: privml._core.ActiveSession,
    a: collections.abc.Sequence[numpy.ndarray],
    b: collections.abc.Sequence[numpy.ndarray],
) -> tuple: ...
def bits_to_ring(session: privml._core.ActiveSession, a: collections.abc.Sequence[numpy.ndarray]) -> tuple:
    """
    Shared bits as numbers.
    """

def equal_zero(session: privml._core.ActiveSession, a: collections.abc.Sequence[numpy.ndarray], bits: int) -> tuple:
    """
    Whether the lowest `bits` bits are zero, as a shared bit.
    """

def input(
    session: privml._core.ActiveSession, value: numpy.ndarray | None, shape: collections.abc.Sequence[int], owner: int
) -> tuple: ...
def input_bits(
    session: privml._core.ActiveSession, value: numpy.ndarray | None, shape: collections.abc.Sequence[int], owner: int
) -> tuple:
    """
    value: int64, of which the lowest bits count
    """

def less_than_zero(session: privml._core.ActiveSession, a: collections.abc.Sequence[numpy.ndarray], bits: int) -> tuple:
    """
    The highest of `bits` bits, as a shared bit.
    """

def matmul(
    session: privml._core.ActiveSession,
    a: collections.abc.Sequence[numpy.ndarray],
    b: collections.abc.Sequence[numpy.ndarray],
) -> tuple:
    """
    Products mod 2^k of matrices, or of batches of them with the same leading dimensions.
    """

def multiply(
    session: privml._core.ActiveSession,
    a: collections.abc.Sequence[numpy.ndarray],
    b: collections.abc.Sequence[numpy.ndarray],
) -> tuple:
    """
    Elementwise products mod 2^k.
    """

def open(session: privml._core.ActiveSession, a: collections.abc.Sequence[numpy.ndarray], bits: int) -> numpy.ndarray:
    """
    The low bits to both parties, without a check: nothing that depends on them may leave the session before the next one.
    """

def public_numbers(session: privml._core.ActiveSession, constants: numpy.ndarray) -> tuple: ...
def random_bits(session: privml._core.ActiveSession, shape: collections.abc.Sequence[int]) -> tuple:
    """
    Random bits as numbers.
    """

def reveal(
    session: privml._core.ActiveSession, a: collections.abc.Sequence[numpy.ndarray], bits: int, to: int = -1
) -> typing.Any:
    """
    Checks everything opened so far first, and the value before it is returned.
    """

def reveal_bits(
    session: privml._core.ActiveSession, a: collections.abc.Sequence[numpy.ndarray], to: int = -1
) -> typing.Any: ...
def truncate(
    session: privml._core.ActiveSession,
    a: collections.abc.Sequence[numpy.ndarray],
    bits: int,
    shift: int,
    kind: str = "exact",
    is_signed: bool = True,
) -> tuple:
    """
    floor(x / 2^shift) of numbers of `bits` bits, up to the error of the kind: probable, exact_low, exact_high, exact, bounded or exact_bounded.
    """
