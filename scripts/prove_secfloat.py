#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Proof by exhaustion of the floating-point functions' errors: all 2^32 single-precision inputs.

The compiled prove_functions runs the clear function, which the protocol equals bit for bit, on every input and compares
with the exact value (csrc/functions/float/prove_functions.cpp). Here MPFR confirms the largest error that it reports,
at 500 bits, and the results are written, one JSON object per function.

    python scripts/prove_secfloat.py [function ...] [--threads 2] [--out benchmarks/results/secfloat-errors.jsonl]
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import gmpy2
import numpy as np
import torch

from privml import _core
from privml.float_words import float_values, float_words
from privml.formats import Float

ROOT = Path(__file__).resolve().parent.parent
PROVER = ROOT / "build" / "release" / "prove_functions"
RESULTS = ROOT / "build" / "results" / "secfloat-errors.jsonl"
PRECISION = 500  # bits
FLOAT32 = Float(8, 23)

Real = gmpy2.mpfr


def times_pi(function: Callable[[Real], Real]) -> Callable[[Real], Real]:
    return lambda x: function(gmpy2.const_pi() * x)


EXACT: dict[str, Callable[[Real], Real]] = {
    "sin_pi": times_pi(gmpy2.sin),
    "cos_pi": times_pi(gmpy2.cos),
    "tan_pi": times_pi(gmpy2.tan),
    "exp2": gmpy2.exp2,
    "exp": gmpy2.exp,
    "log2": gmpy2.log2,
    "log": gmpy2.log,
    "rsqrt": gmpy2.rec_sqrt,
    "sigmoid": lambda x: 1 / (1 + gmpy2.exp(-x)),
    "tanh": gmpy2.tanh,
    "erf": gmpy2.erf,
    "gelu": lambda x: x * gmpy2.erfc(-x / gmpy2.sqrt(gmpy2.mpfr(2))) / 2,
}


def error_at(function: str, bits: int) -> float:
    """Units in the last place between the clear function and the exact value at one float32."""
    x = torch.from_numpy(np.array([bits], dtype=np.uint32).view(np.float32))
    word = getattr(_core.secfloat, f"clear_{function}")(float_words(x, FLOAT32).numpy(), 8, 23)
    result = float_values(torch.from_numpy(word), FLOAT32, torch.float64).item()
    exact = EXACT[function](gmpy2.mpfr(x.item()))
    exponent = gmpy2.get_exp(exact) - 1
    return float(abs(gmpy2.mpfr(result) - exact) / gmpy2.exp2(exponent - 23))


def prove(function: str, threads: int) -> dict:
    start = time.monotonic()
    done = subprocess.run([PROVER, function, str(threads)], capture_output=True, text=True, check=False)
    if done.returncode == 2:
        raise SystemExit(done.stderr)
    return json.loads(done.stdout) | {"threads": threads, "seconds": round(time.monotonic() - start, 1)}


def confirmed(row: dict) -> dict:
    """The row with MPFR's error at the worst input; raises where the two disagree."""
    error = error_at(row["function"], int(row["at"], 16))
    if abs(error - row["largest_error"]) > 1e-5:
        raise AssertionError(f"{row['function']} at {row['at']}: {row['largest_error']} against MPFR's {error}")
    return row | {"mpfr_at_worst": round(error, 6)}


def save(rows: list[dict], path: Path) -> None:
    """Replaces the rows of these functions."""
    kept = [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []
    path.parent.mkdir(parents=True, exist_ok=True)
    named = {row["function"] for row in rows}
    every = [row for row in kept if row["function"] not in named] + rows
    path.write_text("".join(json.dumps(row) + "\n" for row in sorted(every, key=lambda row: row["function"])))


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("functions", nargs="*", help="default: all")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--rows", type=Path, help="results of prove_functions instead of runs: JSON lines")
    parser.add_argument("--out", type=Path, default=RESULTS)
    arguments = parser.parse_args()
    gmpy2.get_context().precision = PRECISION
    if arguments.rows:
        rows = [json.loads(line) for line in arguments.rows.read_text().splitlines()]
    else:
        rows = [prove(name, arguments.threads) for name in arguments.functions or EXACT]
    rows = [confirmed(row) for row in rows]
    save(rows, arguments.out)
    for row in rows:
        print(f"{row['function']:8} {row['inputs']} inputs, largest error {row['largest_error']:.4f} at {row['at']}")
    return 1 if any(row["wrong"] for row in rows) else 0


if __name__ == "__main__":
    sys.exit(main())
