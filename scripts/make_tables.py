#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes the constants that the fixed-point functions build their tables from: csrc/functions/fixed/tables/*.inc.

Every file is a list of 64-bit words made with mpmath; run it again after a change here and commit what it writes. With
``--check`` nothing is written and the exit status says whether the checked-in files are what this script makes.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import mpmath

TABLES = Path(__file__).resolve().parent.parent / "csrc" / "functions" / "fixed" / "tables"
PRECISION = 400  # bits
FITTING_PRECISION = 160  # bits, of what ends in 64 or fewer


def exponential_powers() -> tuple[str, list[int]]:
    """floor(2^64 e^(-2^k)) for k = -62 .. 6."""
    comment = "floor(2^64 e^(-2^k)), k = -62 .. 6"
    return comment, [int(mpmath.floor(mpmath.ldexp(mpmath.exp(-mpmath.ldexp(1, k)), 64))) for k in range(-62, 7)]


def logarithm_of_two() -> tuple[str, list[int]]:
    """floor(2^64 ln 2)."""
    return "floor(2^64 ln 2)", [int(mpmath.floor(mpmath.ldexp(mpmath.log(2), 64)))]


def inverse_two_pi() -> tuple[str, list[int]]:
    """2^64 / (2 pi) to the nearest integer."""
    return "2^64 / (2 pi), to the nearest", [int(mpmath.nint(mpmath.ldexp(1 / (2 * mpmath.pi), 64)))]


# What the piecewise polynomials of other functions are fitted to: (function, domain [0, 2^a), pieces of length 2^-b),
# in the order of the enumeration in csrc/functions/fixed/series.h.
SERIES: list[tuple[Callable[[Any], Any], int, int]] = [
    (lambda t: mpmath.erfc(t), 3, 1),
    (lambda t: t * mpmath.erfc(t / mpmath.sqrt(2)) / 2, 3, 1),
    (lambda t: t / (1 + mpmath.exp(t)), 5, 0),
    (lambda t: mpmath.log1p(mpmath.exp(-t)), 5, 0),
    (lambda t: mpmath.log1p(t), 0, 3),
    (lambda t: 1 / mpmath.sqrt(1 + t), 0, 3),
    (lambda t: mpmath.sqrt(1 + t), 0, 3),
    (lambda t: 1 / (1 + mpmath.exp(t)), 5, 0),
    (lambda t: mpmath.sin(2 * mpmath.pi * t), 0, 3),
    (lambda t: mpmath.exp(-t), 5, 0),
    (lambda t: t / (1 + mpmath.exp(mpmath.sqrt(8 / mpmath.pi) * (t + mpmath.mpf(44715) / 10**6 * t**3))), 3, 2),
]
SERIES_TERMS = 16
DEGREES = range(1, 7)


def nearest(value: Any, scale: int) -> int:
    """value * 2^scale to the nearest integer, as a 64-bit word in two's complement."""
    return int(mpmath.nint(mpmath.ldexp(value, scale))) % 2**64


def series() -> tuple[str, list[int]]:
    """Chebyshev fits of SERIES in v in [-1, 1), which runs over a piece; highest power first, scale 60."""
    words = []
    mpmath.mp.prec = FITTING_PRECISION
    for function, domain, fineness in SERIES:
        length = mpmath.ldexp(1, -fineness)
        for piece in range(2 ** (domain + fineness)):

            def shifted(v: Any, function: Any = function, piece: int = piece, length: Any = length) -> Any:
                return function((piece + (v + 1) / 2) * length)

            words += [nearest(c, 60) for c in mpmath.chebyfit(shifted, [-1, 1], SERIES_TERMS)]
    return "Series of functions/fixed/series.h: 16 coefficients of each piece, highest power first, scale 60", words


def series_errors() -> tuple[str, list[int]]:
    """log2, in sixteenths rounded up, of the error of degree D = 1..6 on an interval of length 1 (h: times h^(D+1)).

    That is 2 M / ((D + 1)! 4^(D+1)) with M the largest (D + 1)-th derivative.
    """
    words = []
    mpmath.mp.prec = FITTING_PRECISION
    for function, domain, _ in SERIES:
        grid = [mpmath.mpf(2**domain) * i / 256 for i in range(256)]
        # All functions are analytic at 0 too, so differences may reach beyond it.
        taylor = [mpmath.taylor(function, point, DEGREES.stop, singular=False) for point in grid]
        for degree in DEGREES:
            largest = max(abs(terms[degree + 1]) for terms in taylor)
            words.append(int(mpmath.ceil(16 * mpmath.log(2 * largest / mpmath.mpf(4) ** (degree + 1), 2))) % 2**64)
    return "Errors of piecewise interpolation: log2 in sixteenths, degrees 1..6, of each series", words


def interpolation() -> tuple[str, list[int]]:
    """Degrees D = 1..6: Chebyshev nodes in [0, 1], scale 48, and the matrix from values there to coefficients."""
    words = []
    for degree in DEGREES:
        n = degree + 1
        nodes = [(1 - mpmath.cos(mpmath.pi * (2 * j + 1) / (2 * n))) / 2 for j in range(n)]
        inverse = mpmath.inverse(mpmath.matrix([[node**i for i in range(n)] for node in nodes]))
        words += [nearest(node, 48) for node in nodes]
        words += [nearest(inverse[i, j], 44) for i in range(n) for j in range(n)]
    return "Degrees 1..6: nodes in [0, 1], scale 48, then rows of the interpolation matrix, scale 44", words


FILES = {
    "exponential_powers.inc": exponential_powers,
    "logarithm_of_two.inc": logarithm_of_two,
    "inverse_two_pi.inc": inverse_two_pi,
    "series.inc": series,
    "series_errors.inc": series_errors,
    "interpolation.inc": interpolation,
}


def text_of(comment: str, words: list[int]) -> str:
    lines = ["// SPDX-License-Identifier: Apache-2.0", f"// {comment}. Written by scripts/make_tables.py."]
    for start in range(0, len(words), 4):
        lines.append(" ".join(f"0x{word:016x}," for word in words[start : start + 4]))
    return "\n".join(lines) + "\n"


def main() -> int:
    stale = []
    for name, make in FILES.items():
        mpmath.mp.prec = PRECISION
        path, text = TABLES / name, text_of(*make())
        if not path.exists() or path.read_text() != text:
            stale.append(name)
            if "--check" not in sys.argv[1:]:
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_text(text)
    print(("differ: " if "--check" in sys.argv[1:] else "written: ") + (", ".join(stale) or "none"))
    return 1 if stale and "--check" in sys.argv[1:] else 0


if __name__ == "__main__":
    sys.exit(main())
