# SPDX-License-Identifier: Apache-2.0
"""
Local products of ring elements.
"""

from __future__ import annotations
import collections.abc
import numpy
import typing

__all__: list[str] = [
    "conv2d",
    "matmul",
    "wide_add",
    "wide_matmul",
    "wide_multiply",
    "wide_negate",
    "wide_subtract",
    "wide_sum",
]

def conv2d(
    x: numpy.ndarray,
    w: numpy.ndarray,
    stride: collections.abc.Sequence[int],
    padding: collections.abc.Sequence[int],
    dilation: collections.abc.Sequence[int],
    groups: int,
    bits: int = 64,
    threads: int = 1,
) -> numpy.ndarray:
    """
    [n, c, h, w] with [o, c / groups, kh, kw] mod 2^bits, zero padding at both ends
    """

def matmul(a: numpy.ndarray, b: numpy.ndarray, bits: int = 64, threads: int = 1) -> numpy.ndarray:
    """
    [..., n, k] @ [..., k, m] mod 2^bits, equal leading dimensions, any strides
    """

def wide_add(a: tuple[numpy.ndarray, numpy.ndarray], b: tuple[numpy.ndarray, numpy.ndarray]) -> tuple:
    """
    a + b mod 2^128 for pairs (low words, high words) of arrays of one shape
    """

def wide_matmul(a: tuple[numpy.ndarray, numpy.ndarray], b: numpy.ndarray, left: bool = False) -> tuple:
    """
    [n, r, k] @ [n, k, c], or b @ a if `left`, with b of words
    """

def wide_multiply(a: tuple[numpy.ndarray, numpy.ndarray], factors: numpy.ndarray) -> tuple:
    """
    times words from 0 to 2^64 - 1: an array of the same shape, or one without dimensions
    """

def wide_negate(a: tuple[numpy.ndarray, numpy.ndarray]) -> tuple: ...
def wide_subtract(a: tuple[numpy.ndarray, numpy.ndarray], b: tuple[numpy.ndarray, numpy.ndarray]) -> tuple: ...
def wide_sum(a: tuple[numpy.ndarray, numpy.ndarray]) -> tuple:
    """
    over the middle one of three dimensions
    """
