#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes the constants that the fixed-point functions build their tables from: csrc/fixmath/tables/*.inc.

Every file is a list of 64-bit words made with mpmath; run it again after a change here and commit what it writes. With
``--check`` nothing is written and the exit status says whether the checked-in files are what this script makes.
"""

from __future__ import annotations

import sys
from pathlib import Path

import mpmath

TABLES = Path(__file__).resolve().parent.parent / "csrc" / "fixmath" / "tables"
PRECISION = 400  # bits


def exponential_powers() -> tuple[str, list[int]]:
    """floor(2^64 e^(-2^k)) for k = -62 .. 6."""
    comment = "floor(2^64 e^(-2^k)), k = -62 .. 6"
    return comment, [int(mpmath.floor(mpmath.ldexp(mpmath.exp(-mpmath.ldexp(1, k)), 64))) for k in range(-62, 7)]


def logarithm_of_two() -> tuple[str, list[int]]:
    """floor(2^64 ln 2)."""
    return "floor(2^64 ln 2)", [int(mpmath.floor(mpmath.ldexp(mpmath.log(2), 64)))]


FILES = {"exponential_powers.inc": exponential_powers, "logarithm_of_two.inc": logarithm_of_two}


def text_of(comment: str, words: list[int]) -> str:
    lines = ["// SPDX-License-Identifier: Apache-2.0", f"// {comment}. Written by scripts/make_tables.py."]
    for start in range(0, len(words), 4):
        lines.append(" ".join(f"0x{word:016x}," for word in words[start : start + 4]))
    return "\n".join(lines) + "\n"


def main() -> int:
    mpmath.mp.prec = PRECISION
    stale = []
    for name, make in FILES.items():
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
