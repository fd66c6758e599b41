#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Proof by exhaustion of the fixed-point functions' errors: all 2^16 inputs of 16 bits, every pair of scales stated.

The clear functions are what the protocols compute, bit for bit. Each result is compared with the value that MPFR gives
at 120 bits, rounded once to a double, so that an error is known to 10^-9 units in the last place. Writes one table of
the largest errors, in units in the last place of the output, and fails where one lies above its row's bound.

    python scripts/prove_functions.py [function ...] [--out benchmarks/results/fixed-point-errors.md]
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import gmpy2
import numpy as np

from privml import _core

BITS = 16
PRECISION = 120
RESULTS = Path(__file__).resolve().parent.parent / "build" / "results" / "fixed-point-errors.md"


@dataclass(frozen=True)
class Row:
    """One function: its exact value, the inputs it takes, the scales proved and the bound they must keep."""

    name: str
    exact: Callable[[gmpy2.mpfr], gmpy2.mpfr]
    takes: Callable[[np.ndarray], np.ndarray]  # of the inputs' values
    in_scales: range
    out_scales: range
    bound: float
    # Results beyond the output format: left out (False) or expected at its end (True).
    saturates: bool = False


def every(x: np.ndarray) -> np.ndarray:
    return np.ones_like(x, dtype=bool)


def gelu_tanh(x: gmpy2.mpfr) -> gmpy2.mpfr:
    cubic = x + gmpy2.mpfr(44715) / 1000000 * x**3
    return x / (1 + gmpy2.exp(-gmpy2.sqrt(8 / gmpy2.const_pi()) * cubic))


ROWS = [
    Row("exp_negative", gmpy2.exp, lambda x: x <= 0, range(8, 15), range(8, 15), 1.5),
    Row("exp_negative_spline", gmpy2.exp, lambda x: x <= 0, range(8, 15), range(8, 15), 1),
    Row("exp_negative_exact", gmpy2.exp, lambda x: x <= 0, range(8, 15), range(8, 15), 0.71),
    Row("exp", gmpy2.exp, every, range(8, 15), range(8, 15), 1.5),
    Row("reciprocal", lambda x: 1 / x, lambda x: x > 0, range(4, 15), range(4, 15), 1.5, saturates=True),
    Row("reciprocal1p", lambda x: 1 / (1 + x), lambda x: x >= 0, range(11, 15), range(8, 14), 1),
    Row("sigmoid", lambda x: 1 / (1 + gmpy2.exp(-x)), every, range(8, 15), range(8, 15), 1),
    Row("tanh", gmpy2.tanh, every, range(8, 15), range(8, 15), 1),
    Row("rsqrt_significant", gmpy2.rec_sqrt, lambda x: x > 0, range(4, 14), range(4, 14), 1.1),
    Row("rsqrt_significant_14", gmpy2.rec_sqrt, lambda x: x > 0, range(4, 14), range(4, 14), 1.5),
    Row("rsqrt", gmpy2.rec_sqrt, lambda x: x > 0, range(4, 14), range(4, 14), 1.1),
    Row("sqrt", gmpy2.sqrt, lambda x: x >= 0, range(4, 14), range(4, 14), 1),
    Row("log", gmpy2.log, lambda x: x > 0, range(8, 15), range(8, 15), 1),
    Row("erf", gmpy2.erf, every, range(8, 15), range(8, 15), 1),
    Row("gelu", lambda x: x * gmpy2.erfc(-x / gmpy2.sqrt(gmpy2.mpfr(2))) / 2, every, range(8, 15), range(8, 15), 1),
    Row("gelu_tanh", gelu_tanh, every, range(8, 15), range(8, 15), 1),
    Row("silu", lambda x: x / (1 + gmpy2.exp(-x)), every, range(8, 15), range(8, 15), 1),
    Row("sin", gmpy2.sin, every, range(8, 15), range(8, 15), 1),
    Row("cos", gmpy2.cos, every, range(8, 15), range(8, 15), 1),
    Row("softplus", lambda x: gmpy2.log1p(gmpy2.exp(x)), every, range(8, 15), range(8, 15), 1),
]


def exact_values(row: Row, scale: int) -> tuple[np.ndarray, np.ndarray]:
    """All inputs of the scale that the function takes, and its values as doubles."""
    words = np.arange(-(2 ** (BITS - 1)), 2 ** (BITS - 1), dtype=np.int64)
    words = words[row.takes(np.ldexp(words.astype(float), -scale))]
    unit = gmpy2.mpfr(1) / 2**scale
    return words, np.array([float(row.exact(int(word) * unit)) for word in words])


def errors(row: Row, words: np.ndarray, exact: np.ndarray, in_scale: int, out_scale: int) -> np.ndarray:
    """|result - exact value| in units in the last place, for the inputs that count."""
    result = getattr(_core.fixmath, f"clear_{row.name}")(words, BITS, in_scale, BITS, out_scale)
    target = np.ldexp(exact, out_scale)
    low, high = -(2.0 ** (BITS - 1)), 2.0 ** (BITS - 1) - 1
    if row.saturates:
        target = np.clip(target, low, high)
    else:
        inside = (target >= low) & (target <= high)
        result, target = result[inside], target[inside]
    return np.abs(result - target)


def prove(row: Row) -> tuple[list[str], float]:
    """The row's table as Markdown lines, and its largest error."""
    lines = [
        f"## {row.name}",
        f"Largest error in units in the last place; rows: input scale, columns: output scale. Bound {row.bound:g}.",
        "",
        "| | " + " | ".join(map(str, row.out_scales)) + " |",
        "| --- |" + " --- |" * len(row.out_scales),
    ]
    worst = 0.0
    for in_scale in row.in_scales:
        words, exact = exact_values(row, in_scale)
        largest = [errors(row, words, exact, in_scale, s).max(initial=0.0) for s in row.out_scales]
        worst = max(worst, *largest)
        lines.append(f"| **{in_scale}** | " + " | ".join(f"{value:.3f}" for value in largest) + " |")
    return [*lines, ""], worst


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("functions", nargs="*", help="default: all")
    parser.add_argument("--out", type=Path, default=RESULTS)
    options = parser.parse_args()
    names = {row.name for row in ROWS}
    if unknown := set(options.functions) - names:
        parser.error(f"no function {sorted(unknown)[0]}; there are: {', '.join(sorted(names))}")
    gmpy2.get_context().precision = PRECISION
    rows = [row for row in ROWS if not options.functions or row.name in options.functions]
    tables, summary, failed = [], ["| function | largest error | bound |", "| --- | --- | --- |"], False
    for row in rows:
        lines, worst = prove(row)
        tables += lines
        summary.append(f"| {row.name} | {worst:.3f} | {row.bound:g} |")
        failed |= worst > row.bound
        print(f"{row.name}: {worst:.3f}, bound {row.bound:g}{'  FAILED' if worst > row.bound else ''}", flush=True)
    if len(rows) == len(ROWS):
        heading = ["# Errors of the fixed-point functions", "", "All inputs of 16 bits; written by `make prove`.", ""]
        options.out.parent.mkdir(parents=True, exist_ok=True)
        options.out.write_text("\n".join([*heading, *summary, "", *tables]).rstrip() + "\n")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
