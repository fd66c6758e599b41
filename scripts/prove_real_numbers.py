#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Proof by exhaustion of what the protocols for real-number inputs state, run between two parties on random shares.

Errors of e^x, x <= 0, on all inputs of 16 bits, and of sine on all inputs of 21 bits, beside those of Guo et al.
("Real-number functions", tables 5 and 6). Wraps: every bound on every input of rings of up to 12 bits. Quotients: every
divisor of every input, with every bound up to 7 bits and with 1/4, 1/2, 3/4 and the whole of half of the ring above.

    python scripts/prove_real_numbers.py [--out benchmarks/results/real-number-errors.md]
"""

from __future__ import annotations

import argparse
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from privml import _core

RESULTS = Path(__file__).resolve().parent.parent / "build" / "results" / "real-number-errors.md"
ROUNDS = 16  # sharings of every input of an exponential
SMALL_RING, LARGEST_RING = 7, 12

# function, bits, scale, inputs, largest error stated, and the paper's average and largest error
ERRORS = [
    ("exp_negative_exact", 16, 12, "x <= 0", 0.71, "0.353", "1.435"),
    ("exp_negative_product", 16, 12, "x <= 0", 0.75, "0.353", "1.435"),
    ("exp_negative_spline", 16, 12, "x <= 0", 1.0, "0.353", "1.435"),
    ("exp_negative", 16, 12, "x <= 0", 1.5, "0.353", "1.435"),
    ("sin", 21, 12, "all", 1.0, "0.504", "1.308"),
    ("sin_product", 21, 12, "all", 0.85, "0.504", "1.308"),
]


class Parties:
    """Two parties on threads; ``run`` gives the sum of what both return."""

    def __init__(self) -> None:
        channels = _core.memory_pair()
        self.sessions: list[Any] = [None, None]

        def connect(rank: int) -> None:
            self.sessions[rank] = _core.TwoPartySession(channels[rank], rank, "softspoken", 4)

        self.both(connect)

    @staticmethod
    def both(work: Callable[[int], None]) -> None:
        threads = [threading.Thread(target=work, args=(rank,)) for rank in (0, 1)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()

    def run(self, protocol: Callable[..., np.ndarray], x: np.ndarray, bits: int, *parameters: int) -> np.ndarray:
        mask = np.random.default_rng().integers(0, 2**bits, size=x.shape)
        shares, results = (mask, (x - mask) & (2**bits - 1)), [np.zeros(0), np.zeros(0)]

        def work(rank: int) -> None:
            results[rank] = protocol(self.sessions[rank], shares[rank], bits, *parameters)

        self.both(work)
        self.last_sum = shares[0] + shares[1]
        return results[0] + results[1]


def signed(values: np.ndarray, bits: int) -> np.ndarray:
    return ((values + 2 ** (bits - 1)) & (2**bits - 1)) - 2 ** (bits - 1)


def prove_errors(parties: Parties) -> tuple[list[str], bool]:
    lines = ["| function | bits, scale | inputs | average | largest | stated | paper's average | largest |"]
    lines.append("| --- |" + " --- |" * 7)
    good = True
    for name, bits, scale, domain, stated, *paper in ERRORS:
        x = np.arange(-(2 ** (bits - 1)), 2 ** (bits - 1) if domain == "all" else 1)
        total, worst = 0.0, 0.0
        rounds = 1 if domain == "all" else ROUNDS
        for _ in range(rounds):
            y = signed(parties.run(getattr(_core.fixmath, name), x, bits, scale, bits, scale), bits)
            exact = (np.sin if domain == "all" else np.exp)(x / 2.0**scale) * 2.0**scale
            errors = np.abs(y - exact)
            total, worst = total + float(errors.mean()), max(worst, float(errors.max()))
        good &= worst <= stated
        row = [name, f"{bits}, {scale}", f"{domain} ({x.size * rounds:,})", f"{total / rounds:.3f}", f"{worst:.3f}"]
        lines.append("| " + " | ".join([*row, f"{stated:g}", *paper]) + " |")
        print(lines[-1], flush=True)
    return lines, good


def inputs(bits: int, bound: int) -> np.ndarray:
    return np.arange(-bound, bound)


def wraps_are_right(parties: Parties, bits: int, bound: int) -> bool:
    x = inputs(bits, bound)
    wraps = parties.run(_core.twopc.signed_wrap, x, bits, bound, 2) & 3
    return np.array_equal(wraps, ((parties.last_sum - x) >> bits) & 3)


def quotients_are_right(parties: Parties, bits: int, bound: int, divisor: int) -> bool:
    x = inputs(bits, bound)
    return np.array_equal(signed(parties.run(_core.twopc.divide_bounded, x, bits, bound, divisor), bits), x // divisor)


def prove_quotients(parties: Parties) -> tuple[list[str], bool]:
    lines = ["| ring | bounds | divisors | numbers divided | wrong |", "| --- |" + " --- |" * 4]
    good = True
    for bits in range(2, LARGEST_RING + 1):
        half = 2 ** (bits - 1)
        wrong = sum(not wraps_are_right(parties, bits, bound) for bound in range(1, half + 1))
        some = sorted({max(half * part // 4, 1) for part in (1, 2, 3, 4)})
        bounds = list(range(1, half + 1)) if bits <= SMALL_RING else some
        for bound in bounds:
            wrong += sum(not quotients_are_right(parties, bits, bound, d) for d in range(1, half))
        count = sum(2 * bound * (half - 1) for bound in bounds)
        kinds = "all" if bits <= SMALL_RING else "4 (wraps: all)"
        lines.append(f"| {bits} bits | {kinds} | all, 1 to {half - 1} | {count:,} | {wrong} |")
        good &= wrong == 0
        print(lines[-1], flush=True)
    return lines, good


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, default=RESULTS)
    options = parser.parse_args()
    parties = Parties()
    errors, accurate = prove_errors(parties)
    quotients, right = prove_quotients(parties)
    heading = ["# Functions with real-number inputs, by exhaustion", "", "Written by `make prove`.", ""]
    about = ["", "Errors in units in the last place, of protocols on random shares.", ""]
    exact = ["", "Wraps MW(x) and faithful quotients: every input within the bound, on random shares.", ""]
    options.out.parent.mkdir(parents=True, exist_ok=True)
    options.out.write_text("\n".join([*heading, *about[1:], *errors, *exact, *quotients]) + "\n")
    return 0 if accurate and right else 1


if __name__ == "__main__":
    sys.exit(main())
