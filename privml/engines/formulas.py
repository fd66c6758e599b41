# SPDX-License-Identifier: Apache-2.0
"""Functions with an addition formula, written in numpy: F(u + b) = sum of f_i(u) (c_i + g_i(b)).

The two-party engine makes a protocol of such a formula (``csrc/twopc/product/addition_formula.h``,
docs/fixed-point-math.md): each party computes f_i and g_i of its own share alone. The plain engine computes F(x + 0).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from privml.errors import ConfigError

_GUARD = 6

Real = Callable[[np.ndarray], np.ndarray]


@dataclass(frozen=True, slots=True)
class Term:
    """f(u) (constant + g(b)), or f(u) constant where ``g`` is None. f and g take and give float64 arrays of numbers,
    not of words; they see a party's own share, so what they take must not show in their time."""

    f: Real
    g: Real | None = None
    constant: float = 0.0


@dataclass(frozen=True, slots=True)
class Formula:
    """``bits``, ``scale``: of x; ``place_bits``: low bits that make b. ``scale_of_terms``: fractional bits to which f,
    g and constants are rounded; ``most``: a bound on their sizes and on F's, at least 1. ``out_scale``: fractional
    bits of the result. ``periodic``: F has the period 2^(bits - scale); else x must lie in [0, 2^(bits - scale) -
    2^(place_bits - scale)), and f must serve arguments from -2^(place_bits - scale) on.

    Raises ConfigError for widths that no ring holds.
    """

    terms: tuple[Term, ...]
    bits: int
    scale: int
    place_bits: int
    scale_of_terms: int
    out_scale: int
    most: float = 1.0
    periodic: bool = False

    def __post_init__(self) -> None:
        if not 1 <= self.bits - self.place_bits <= 8 or self.place_bits < 1 or self.bits > 62:
            raise ConfigError("formula: bits - place_bits must lie in 1..8, bits be at most 62")
        if not 0 <= self.out_scale <= 2 * self.scale_of_terms or self.most < 1:
            raise ConfigError("formula: out_scale must lie in 0..2 scale_of_terms, most be at least 1")
        if self.value_bits > 62 or self.result_bits + self.guard_bits > 64:
            raise ConfigError("formula: the terms need more than 62 bits or the result more than 64")

    @property
    def integer_bits(self) -> int:
        return int(np.ceil(np.log2(self.most)))

    @property
    def value_bits(self) -> int:
        return self.scale_of_terms + self.integer_bits + 3

    @property
    def ring_bits(self) -> int:
        return 2 * self.scale_of_terms + self.integer_bits + 2

    @property
    def guard_bits(self) -> int:
        """Bits behind the last place that are kept until the sum is rounded."""
        return min(_GUARD, 2 * self.scale_of_terms - self.out_scale)

    @property
    def dropped(self) -> int:
        return 2 * self.scale_of_terms - self.out_scale - self.guard_bits

    @property
    def result_bits(self) -> int:
        return self.ring_bits - self.dropped - self.guard_bits

    def numbers(self, words: np.ndarray) -> np.ndarray:
        """The numbers that words of ``bits`` bits stand for as arguments of f."""
        words = words & ((1 << self.bits) - 1)
        if not self.periodic:
            words = np.where(words >= (1 << self.bits) - (1 << self.place_bits), words - (1 << self.bits), words)
        return np.ldexp(words.astype(np.float64), -self.scale)

    def encoded(self, values: np.ndarray | float) -> np.ndarray:
        return np.rint(np.ldexp(np.asarray(values, dtype=np.float64), self.scale_of_terms)).astype(np.int64)

    def entries(self, share: np.ndarray) -> np.ndarray:
        """Words of each f at the own share with each high part that the peer's may have, [terms, n, 2^m]."""
        places = np.arange(1 << (self.bits - self.place_bits), dtype=np.int64) << self.place_bits
        u = self.numbers(share.reshape(-1, 1) + places)
        return np.stack([self.encoded(term.f(u)) for term in self.terms])

    def no_entries(self, count: int) -> tuple[np.ndarray, np.ndarray]:
        """``entries`` and ``factors`` of so many words that are not read: zeros that take no memory."""
        return tuple(
            np.zeros((len(self.terms), count, *more), np.int64) for more in ((1 << (self.bits - self.place_bits),), ())
        )

    def factors(self, share: np.ndarray) -> np.ndarray:
        """Words of each g at the low part of the own share, [terms, n]."""
        b = np.ldexp((share.reshape(-1) & ((1 << self.place_bits) - 1)).astype(np.float64), -self.scale)
        return np.stack([self.encoded(np.zeros_like(b) if term.g is None else term.g(b)) for term in self.terms])

    def factor_formats(self) -> list[tuple[int, bool, bool, int]]:
        """(bits, signed, negative, constant) of each term's factor."""
        bits = self.scale_of_terms + self.integer_bits + 2
        return [(0 if term.g is None else bits, True, False, int(self.encoded(term.constant))) for term in self.terms]

    def clear(self, words: np.ndarray) -> np.ndarray:
        """F in words of ``out_scale``, as one party alone would compute it: u = x, b = 0."""
        u, zero, total = self.numbers(words), np.zeros(1), np.zeros(words.shape)
        for term in self.terms:
            total = total + term.f(u) * (term.constant + (0.0 if term.g is None else float(term.g(zero)[0])))
        return np.rint(np.ldexp(total, self.out_scale)).astype(np.int64)
