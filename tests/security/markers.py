# SPDX-License-Identifier: Apache-2.0
"""Numbers that stand out, and all the ways in which they could be written somewhere."""

from __future__ import annotations

import re
import struct
from collections.abc import Iterable, Iterator
from pathlib import Path

# Exact in float32 and in fixed point with at least 12 bits behind the point.
INPUT, WEIGHT = 1357.2468 // 2**-12 * 2**-12, -247.13579 // 2**-12 * 2**-12
SCALES = range(0, 33)


def encodings(value: float) -> Iterator[tuple[str, bytes]]:
    """(what, bytes): floats, fixed point of every scale in words of 4 and 8 bytes, both byte orders, decimals."""
    for order in "<>":
        yield "float32", struct.pack(order + "f", value)
        yield "float64", struct.pack(order + "d", value)
        for scale in SCALES:
            number = value * 2.0**scale
            if number != int(number):
                continue
            if abs(number) < 2**63:
                yield f"fixed point, scale {scale}", struct.pack(order + "q", int(number))
            if 2**20 < abs(number) < 2**31:  # shorter ones are found by chance
                yield f"fixed point, scale {scale}, 4 bytes", struct.pack(order + "i", int(number))
    text = f"{abs(value):.4f}"
    yield "decimal", text[: text.index(".") + 3].encode()
    yield "hexadecimal", float.hex(value).encode()
    yield "hexadecimal bytes", struct.pack("<f", value).hex().encode()


def occurrences(data: bytes, values: Iterable[float] = (INPUT, WEIGHT)) -> list[str]:
    """How the values occur in ``data``."""
    return [f"{value} as {what}" for value in values for what, code in encodings(value) if code in data]


def occurrences_below(
    folder: Path, beside: Iterable[Path] = (), values: Iterable[float] = (INPUT, WEIGHT)
) -> list[str]:
    """The same in names and contents of all files below ``folder``, ``beside`` excepted."""
    found, left_out = [], {path.resolve() for path in beside}
    for path in folder.rglob("*"):
        found += [f"name {path}: {each}" for each in occurrences(path.name.encode(), values)]
        if path.is_file() and path.resolve() not in left_out:
            found += [f"{path}: {each}" for each in occurrences(path.read_bytes(), values)]
    return found


def readable_by_others(folder: Path, pattern: str) -> list[str]:
    """Files whose name matches and whose mode lets others in."""
    return [
        f"{path}: {path.stat().st_mode & 0o777:o}"
        for path in folder.rglob("*")
        if path.is_file() and re.search(pattern, path.name) and path.stat().st_mode & 0o077
    ]
