#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes the polynomials of the floating-point functions: csrc/functions/float/tables/*.inc.

A table is a list of cells; a cell has the coefficients c_0, c_1, ... of a polynomial in t = w / 2^place_bits, integers
at the table's scale. Each polynomial is fitted to its function with every rounding taken into account: the highest
coefficient is fitted and rounded first, the others are fitted to what it leaves over, and the constant is moved to the
middle of the errors that the integer evaluation of csrc/functions/float/spline.h makes at the worst places found. Run
it again after a change here and commit what it writes; with ``--check`` nothing is written and the exit status says
whether the checked-in files are what this script makes.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import mpmath

TABLES = Path(__file__).resolve().parent.parent / "csrc" / "functions" / "float" / "tables"
PRECISION = 140  # bits
PLACES = 48  # of a cell at which the integer evaluation is compared with the function
REFINEMENTS = 3

mpmath.mp.prec = PRECISION
mpf = mpmath.mpf


@dataclass(frozen=True)
class Spline:
    """function(cell, t) for 0 <= t <= 1 is the real value, in units of 2^-scale."""

    comment: str
    cells: int
    place_bits: int
    degree: int
    function: Callable[[int, Any], Any]


def chebyshev_nodes(count: int) -> list[Any]:
    """In (0, 1)."""
    return [(1 - mpmath.cos(mpmath.pi * (2 * j + 1) / (2 * count))) / 2 for j in range(count)]


NODES = {count: chebyshev_nodes(count) for count in range(1, 6)}
INVERSES = {
    count: mpmath.inverse(mpmath.matrix([[node**i for i in range(count)] for node in nodes]))
    for count, nodes in NODES.items()
}


def evaluate(coefficients: list[int], w: int, place_bits: int) -> int:
    """As clear_spline() does."""
    total = coefficients[-1]
    for coefficient in reversed(coefficients[:-1]):
        total = ((total * w) >> place_bits) + coefficient
    return total


def fit(spline: Spline, cell: int) -> list[int]:
    """The coefficients of one cell."""
    fixed: dict[int, int] = {}
    for unknowns in range(spline.degree + 1, 0, -1):
        nodes = NODES[unknowns]
        rest = [spline.function(cell, node) - sum(c * node**power for power, c in fixed.items()) for node in nodes]
        inverse = INVERSES[unknowns]
        highest = sum(inverse[unknowns - 1, j] * rest[j] for j in range(unknowns))
        fixed[unknowns - 1] = int(mpmath.nint(highest))
    coefficients = [fixed[power] for power in range(spline.degree + 1)]
    size = 2**spline.place_bits
    places = sorted({min(size - 1, size * i // (PLACES - 1)) for i in range(PLACES)})
    values = [spline.function(cell, mpf(w) / size) for w in places]
    for _ in range(REFINEMENTS):
        errors = [evaluate(coefficients, w, spline.place_bits) - v for w, v in zip(places, values, strict=True)]
        move = int(mpmath.nint((max(errors) + min(errors)) / 2))
        if move == 0:
            break
        coefficients[0] -= move
    return coefficients


def ldexp(x: Any, e: int) -> Any:
    return mpmath.ldexp(x, e)


# ---------------------------------------------------------------- trigonometry


def sine(cell: int, t: Any) -> Any:
    """2^28 sin(pi d) / d, d in [0, 1/2), 128 cells."""
    d = (cell + t) / 256
    return ldexp(mpmath.sinpi(d) / d if d else +mpmath.pi, 28)


def tangent(cell: int, t: Any) -> Any:
    """2^27 tan(pi d) / d in the first 128 cells, 2^30 d / tan(pi d) in the others; d in [0, 1/4)."""
    d = (cell % 128 + t) / 512
    ratio = mpmath.sinpi(d) / mpmath.cospi(d) / d if d else +mpmath.pi
    return ldexp(ratio, 27) if cell < 128 else ldexp(1 / ratio, 30)


def reciprocal(cell: int, t: Any) -> Any:
    """2^29 / x - 2, x in [1, 2), 256 cells: kept below 2^29."""
    return ldexp(1 / (1 + (cell + t) / 256), 29) - 2


# ---------------------------------------------------------------- exponentials and logarithms


def exponential_of_two(cell: int, t: Any) -> Any:
    """2^28 2^d, d in [0, 1), 64 cells."""
    return ldexp(mpmath.power(2, (cell + t) / 64), 28)


def exponential(cell: int, t: Any) -> Any:
    """2^28 e^d, 128 cells: d in [0, 3/4), then d - 1, of which the last cell is in use."""
    return ldexp(mpmath.exp((cell if cell < 96 else cell - 128) / mpf(128) + t / 128), 28)


def logarithm_ratio(cell: int, t: Any) -> Any:
    """|ln(1 + g) / g|: 128 cells of g = d in [0, 1), then 128 of g = -d, d in [0, 1/2)."""
    g = (cell + t) / 128 if cell < 128 else -(cell - 128 + t) / 256
    return mpmath.log1p(g) / g if g else mpf(1)


def logarithm_of_two(cell: int, t: Any) -> Any:
    """2^28 |log2(1 + g) / g|."""
    return ldexp(logarithm_ratio(cell, t) / mpmath.ln2, 28)


def logarithm(cell: int, t: Any) -> Any:
    """2^29 ln(1 + g) / g, 2^28 for negative g."""
    return ldexp(logarithm_ratio(cell, t), 29 if cell < 128 else 28)


# ---------------------------------------------------------------- roots and sigmoids


def inverse_root(cell: int, t: Any) -> Any:
    """2^29 / sqrt(x): 128 cells of x in [1, 2), then 128 of [2, 4)."""
    x = (1 + (cell % 128 + t) / 128) * (1 if cell < 128 else 2)
    return ldexp(1 / mpmath.sqrt(x), 29)


def in_binades(
    function: Callable[[Any], Any], slope: Any, least: int, most: int, shift: int
) -> Callable[[int, Any], Any]:
    """32 cells a binade, from ``least``; before them one of slope * x, after them 1 (functions/float/saturating.h)."""

    def value(cell: int, t: Any) -> Any:
        exponent, mantissa = least - 1 + cell // 32, 1 + (cell % 32 + t) / 32
        if exponent < least:
            return ldexp(slope * mantissa, 28 + shift)
        if exponent > most:
            return mpf(2**29)
        return ldexp(function(ldexp(mantissa, exponent)), 28 - min(exponent - shift, -1))

    return value


def logistic(cell: int, t: Any) -> Any:
    """2^29 / (1 + e^-d), d in [0, 128), 1024 cells."""
    return ldexp(1 / (1 + mpmath.exp(-(cell + t) / 8)), 29)


def gaussian(cell: int, t: Any) -> Any:
    """512 cells of d in [0, 16) for both signs. Phi the normal distribution function: 2^29 Phi(d); then 2^30 Phi(-d)
    below 1/2 and 2^30 d Phi(-d) e^(d^2 / 2) from there on."""
    d = (cell % 512 + t) / 32
    tail = mpmath.erfc(d / mpmath.sqrt(2)) / 2
    if cell < 512:
        return ldexp(1 - tail, 29)
    return ldexp(tail if cell % 512 < 16 else d * tail * mpmath.exp(d * d / 2), 30)


SPLINES = {
    "sine": Spline("2^28 sin(pi d) / d, d = 0 .. 1/2", 128, 21, 2, sine),
    "tangent": Spline("2^27 tan(pi d) / d, then 2^30 d / tan(pi d), d = 0 .. 1/4", 256, 21, 2, tangent),
    "reciprocal": Spline("2^29 / x - 2, x = 1 .. 2", 256, 20, 2, reciprocal),
    "exponential_of_two": Spline("2^28 2^d, d = 0 .. 1", 64, 22, 2, exponential_of_two),
    "exponential": Spline("2^28 e^d, d = 0 .. 3/4, -1/4 .. 0", 128, 21, 2, exponential),
    "logarithm_of_two": Spline("2^28 log2(1 + g) / g, g = 0 .. 1, then 0 .. -1/2", 256, 16, 2, logarithm_of_two),
    "logarithm": Spline("2^29 ln(1 + g) / g, g = 0 .. 1, then 2^28, g = 0 .. -1/2", 256, 16, 2, logarithm),
    "inverse_root": Spline("2^29 / sqrt(x), x = 1 .. 2, then 2 .. 4", 256, 16, 2, inverse_root),
    "tanh": Spline("tanh, 32 cells a binade", 1024, 18, 3, in_binades(mpmath.tanh, mpf(1), -12, 3, 1)),
    "erf": Spline("erf, 32 cells a binade", 512, 18, 3, in_binades(mpmath.erf, 2 / mpmath.sqrt(mpmath.pi), -12, 1, 0)),
    "logistic": Spline("2^29 / (1 + e^-d), d = 0 .. 128", 1024, 25, 4, logistic),
    "gelu": Spline("Phi(d), Phi(-d) and d Phi(-d) e^(d^2 / 2), d = 0 .. 16", 1024, 23, 3, gaussian),
}


def signed_rows(spline: Spline) -> list[list[int]]:
    return [fit(spline, cell) for cell in range(spline.cells)]


def text_of(comment: str, rows: list[list[int]]) -> str:
    lines = ["// SPDX-License-Identifier: Apache-2.0", f"// {comment}. Written by scripts/make_float_tables.py."]
    lines += [" ".join(f"{c}," for c in row) for row in rows]
    return "\n".join(lines) + "\n"


def texts(names: list[str]) -> dict[str, str]:
    return {f"{name}.inc": text_of(SPLINES[name].comment, signed_rows(SPLINES[name])) for name in names}


def main() -> int:
    names = [a for a in sys.argv[1:] if not a.startswith("-")] or list(SPLINES)
    made = texts(names)
    if "--check" in sys.argv[1:]:
        different = [n for n, text in made.items() if not (TABLES / n).exists() or (TABLES / n).read_text() != text]
        for name in different:
            print(f"{name} differs from what the script makes")
        return 1 if different else 0
    TABLES.mkdir(parents=True, exist_ok=True)
    for name, text in made.items():
        (TABLES / name).write_text(text)
    return 0


if __name__ == "__main__":
    sys.exit(main())
