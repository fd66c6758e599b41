#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes the tables of the smooth functions that three parties compute from the mask of one opened value.

    python scripts/make_pieces.py privml/engines/threepc/pieces.json

Each function has 2^index_bits pieces of width h = 2^width / factor. Piece k, of which those above half of them stand
for k - 2^index_bits, holds coefficients, at scale 30, of a polynomial in u for the arguments (k - 1/2 + u) h; it is
fitted on -1 <= u <= 1, because an index may be one too large. The function is what it is ``above`` and ``below`` beyond
``reach``, (2^index_bits - 1) h / 2. The polynomials are the function less its ``middle``, from which it is less than
2^magnitude away within reach; its slope times h is at most 2^steepness. ``error``: the largest absolute error within
reach and beyond, in float64, rounding of coefficients included. There are two tables of each function: one for results
of up to 17 fractional bits, and a finer one; and one of functions of [1/2, 1), whose pieces start at 1/2.
"""

from __future__ import annotations

import json
import math
import sys
from collections.abc import Callable
from itertools import pairwise

from make_splines import FUNCTIONS, SCALE, deviation, fit

COEFFICIENT_SCALE = 30
# How far within reach a function may already be what it is beyond.
EARLIER = 2.0**-3
# name -> what it is above and below
BEYOND = {
    "sigmoid": ("one", "zero"),
    "tanh": ("one", "minus one"),
    "erf": ("one", "minus one"),
    "gelu": ("argument", "zero"),
    "gelu_tanh": ("argument", "zero"),
    "silu": ("argument", "zero"),
    "softplus": ("argument", "zero"),
}
# name -> for each table (index bits, width, factor, degree)
TABLES = {
    "sigmoid": ((4, 4, 11, 7), (5, 4, 17, 7)),
    "tanh": ((4, 4, 21, 7), (5, 3, 17, 8)),
    "erf": ((4, 3, 19, 5), (5, 2, 17, 6)),
    "gelu": ((4, 3, 13, 5), (5, 3, 23, 6)),
    "gelu_tanh": ((4, 3, 13, 5), (5, 3, 23, 6)),
    "silu": ((4, 4, 9, 8), (5, 5, 29, 9)),
    "softplus": ((4, 4, 11, 6), (5, 4, 17, 7)),
}
# Of functions of [1/2, 1): index bits, width, factor, degree.
MANTISSA = (4, -2, 7, 5)
MANTISSAS = ("reciprocal", "rsqrt", "sqrt", "log")
VALUES: dict[str, Callable[[float], float]] = {
    "zero": lambda x: 0.0,
    "one": lambda x: 1.0,
    "minus one": lambda x: -1.0,
    "argument": lambda x: x,
}


def function_of(name: str) -> Callable[[float], float]:
    return math.tanh if name == "tanh" else FUNCTIONS[name][0]


def table(name: str, index_bits: int, width: int, factor: int, degree: int) -> dict[str, object]:
    function, pieces = function_of(name), 1 << index_bits
    step = 2.0**width / factor
    reach = (pieces - 1) * step / 2.0
    first = 1 - pieces // 2
    result = polynomials(function, (-reach, reach), first, (index_bits, step, degree))
    error = result["error"]
    for side, sign in zip(BEYOND[name], (1.0, -1.0), strict=True):
        end = sign * (reach - EARLIER)
        error = max(error, abs(function(end) - VALUES[side](end)))
    above, below = BEYOND[name]
    settings = {"index_bits": index_bits, "width": width, "factor": factor, "above": above, "below": below}
    return {**settings, **result, "error": float(f"{error:.3g}")}


def mantissa(name: str) -> dict[str, object]:
    index_bits, width, factor, degree = MANTISSA
    step = 2.0**width / factor
    first = math.floor((0.5 + step / 2) / step)
    result = polynomials(function_of(name), (0.5, 1.0), first, (index_bits, step, degree))
    return {"index_bits": index_bits, "width": width, "factor": factor, "above": "", "below": "", **result}


def polynomials(
    function: Callable[[float], float], ends: tuple[float, float], first: int, form: tuple[int, float, int]
) -> dict[str, object]:
    """The pieces from number ``first`` on, and what is said of them, for arguments between ``ends``; ``form``: index
    bits, width of a piece, degree."""
    index_bits, step, degree = form
    pieces, (start, end) = 1 << index_bits, ends
    values = [function(start + (end - start) * i / 512) for i in range(513)]
    middle = round((max(values) + min(values)) * 2**7) / 2**8
    steepest = max(abs(b - a) for a, b in pairwise(values)) * 512 / (end - start) * step
    columns, error = [[0] * pieces for _ in range(degree + 1)], 0.0
    for k in range(first, first + pieces):

        def local(u: float, k: int = k) -> float:
            return function((k - 0.5 + u) * step) - middle

        coefficients = fit(local, degree, COEFFICIENT_SCALE)
        # deviation() takes coefficients at the splines' scale, a piece of width 1 and its function
        scaled = [c * 2.0 ** (SCALE - COEFFICIENT_SCALE) for c in coefficients]
        error = max(error, deviation(local, 0, 0, scaled))
        for i, c in enumerate(coefficients):
            columns[i][k % pieces] = c
    most = max(abs(value - middle) for value in values) + 2.0**-6
    return {
        "middle": middle, "magnitude": math.ceil(math.log2(most)), "steepness": math.ceil(math.log2(steepest)),
        "error": float(f"{error:.3g}"), "coefficients": columns,
    }  # fmt: skip


def main() -> None:
    tables = {name: [table(name, *each) for each in of_name] for name, of_name in TABLES.items()}
    tables |= {f"{name}_mantissa": [mantissa(name)] for name in MANTISSAS}
    with open(sys.argv[1], "w") as file:
        json.dump(tables, file, indent=None, separators=(",", ":"))
        file.write("\n")


if __name__ == "__main__":
    main()
