#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes the tables of the functions that engines compose from comparisons, tables and polynomials.

    python scripts/make_splines.py privml/engines/composed/splines.json

Each function has 64 pieces of width 2^-fine. Piece k holds coefficients, at scale 26, of a polynomial in the distance
from its left end in units of the width; it is fitted on twice the width, [-1, 1], because an index may be one too
large. ``error``: the largest absolute error over what the table is used for, in float64, rounding of coefficients
included.
"""

from __future__ import annotations

import json
import math
import sys
from collections.abc import Callable

import numpy as np
from numpy.polynomial import chebyshev

PIECES, DEGREE, SCALE, SAMPLES = 64, 4, 26, 65


def normal(x: float) -> float:
    return 0.5 * math.erfc(-x / math.sqrt(2.0))


def sigmoid(x: float) -> float:
    return 1.0 / (1.0 + math.exp(-x)) if x > -700 else 0.0


def softplus(x: float) -> float:
    return max(x, 0.0) + math.log1p(math.exp(-abs(x)))


def gelu_tanh(x: float) -> float:
    return x * sigmoid(math.sqrt(8.0 / math.pi) * (x + 0.044715 * x**3))


def positive(function: Callable[[float], float]) -> Callable[[float], float]:
    """Of a mantissa in [1/2, 1]; the tables' other half is never looked up."""
    return lambda x: function(min(max(x, 0.25), 2.0))


# name -> (function, fine, first piece, last piece): the pieces whose error counts
FUNCTIONS = {
    "sigmoid": (sigmoid, 1, -32, 30),
    "erf": (math.erf, 3, -32, 30),
    "gelu": (lambda x: x * normal(x), 2, -32, 30),
    "gelu_tanh": (gelu_tanh, 2, -32, 30),
    "silu": (lambda x: x * sigmoid(x), 1, -32, 30),
    "softplus": (softplus, 1, -32, 30),
    "sine": (lambda x: math.sin(2.0 * math.pi * x), 6, 0, 63),
    "reciprocal": (positive(lambda x: 1.0 / x), 6, 32, 64),
    "rsqrt": (positive(lambda x: 1.0 / math.sqrt(x)), 6, 32, 64),
    "sqrt": (positive(math.sqrt), 6, 32, 64),
    "log": (positive(math.log), 6, 32, 64),
}
# One polynomial of 2^u on [-1, 1], coefficients at scale 30.
POWER_DEGREE, POWER_SCALE = 7, 30


def fit(function: Callable[[float], float], degree: int, scale: int) -> list[int]:
    """Rounded coefficients of the interpolant of ``function`` at the Chebyshev points of [-1, 1]."""
    points = np.cos(np.pi * (np.arange(degree + 1) + 0.5) / (degree + 1))
    values = np.array([function(float(p)) for p in points])
    return [round(c * 2.0**scale) for c in chebyshev.cheb2poly(chebyshev.chebfit(points, values, degree))]


def piece(function: Callable[[float], float], k: int, fine: int) -> list[int]:
    return fit(lambda u: function((k + u) * 2.0**-fine), DEGREE, SCALE)


def deviation(function: Callable[[float], float], k: int, fine: int, coefficients: list[int]) -> float:
    u = np.linspace(-1.0, 1.0, SAMPLES)
    value = sum(c * 2.0**-SCALE * u**i for i, c in enumerate(coefficients))
    return max(abs(v - function((k + p) * 2.0**-fine)) for p, v in zip(u, value, strict=True))


def table(name: str) -> dict[str, object]:
    function, fine, first, last = FUNCTIONS[name]
    pieces = {k % PIECES: piece(function, k, fine) for k in range(first, first + PIECES)}
    error = max(deviation(function, k, fine, pieces[k % PIECES]) for k in range(first, last + 1))
    columns = [[pieces[k][i] for k in range(PIECES)] for i in range(DEGREE + 1)]
    return {"fine": fine, "error": float(f"{error:.3g}"), "coefficients": columns}


def main() -> None:
    power = fit(lambda u: 2.0**u, POWER_DEGREE, POWER_SCALE)
    tables: dict[str, object] = {name: table(name) for name in FUNCTIONS}
    tables["power"] = {"scale": POWER_SCALE, "coefficients": power}
    with open(sys.argv[1], "w") as file:
        json.dump(tables, file, indent=None, separators=(",", ":"))
        file.write("\n")


if __name__ == "__main__":
    main()
