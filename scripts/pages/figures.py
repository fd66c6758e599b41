# SPDX-License-Identifier: Apache-2.0
"""Numbers as words, tables in Markdown, and bars on a logarithmic axis."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from pages.svg import Picture

SERIES = ("a", "b", "c", "d")
SPACE = "\N{NO-BREAK SPACE}"  # a number and its unit stay in one line


def rounded(value: float) -> str:
    """Three significant digits without an exponent."""
    if value == 0:
        return "0"
    places = max(0, 2 - math.floor(math.log10(abs(value))))
    text = f"{round(value, places):,.{places}f}"
    return text.rstrip("0").rstrip(".") if "." in text else text


def rate(value: float) -> str:
    """Per second: 1.63 M, 164 k."""
    for unit, size in (("M", 1e6), ("k", 1e3)):
        if value >= size:
            return f"{rounded(value / size)}{SPACE}{unit}"
    return rounded(value)


def size(value: float) -> str:
    """Bytes: 1.5 MB, 33 kB, 229.8 B."""
    for unit, step in (("GB", 1e9), ("MB", 1e6), ("kB", 1e3)):
        if value >= step:
            return f"{rounded(value / step)}{SPACE}{unit}"
    return f"{rounded(value)}{SPACE}B"


def seconds(value: float) -> str:
    return f"{rounded(value)}{SPACE}s" if value >= 1 else f"{rounded(value * 1e3)}{SPACE}ms"


def table(head: Sequence[str], rows: Iterable[Sequence[str]], words: int = 1) -> list[str]:
    """``words``: how many columns hold words; the others are set to the right."""
    lines = ["| " + " | ".join(head) + " |"]
    lines.append("| " + " | ".join("---" if i < words else "---:" for i in range(len(head))) + " |")
    return [*lines, *("| " + " | ".join(row) + " |" for row in rows), ""]


@dataclass(frozen=True)
class Bars:
    """One group of bars per row: ``values[i]`` belongs to ``series[i]``, None where there is none."""

    label: str
    values: Sequence[float | None]


def bars(title: str, series: Sequence[str], rows: Sequence[Bars], words: object) -> Picture:
    """Horizontal bars on a logarithmic axis; ``words`` says what a value is called."""
    named = max(len(row.label) for row in rows)
    left, right, bar = 24 + 7.2 * named, 90, 12
    height = 78 + sum(10 + bar * sum(v is not None for v in row.values) for row in rows) + 12
    picture = Picture(760, height, title)
    picture.text(20, 28, title, "ink bold")
    at = 20.0
    for i, name in enumerate(series):
        picture.bar(at, 42, 11, 11, SERIES[i])
        picture.text(at + 16, 52, name, "soft small")
        at += 32 + 6.3 * len(name)
    known = [v for row in rows for v in row.values if v]
    low, high = math.floor(math.log10(min(known))), math.log10(max(known))
    wide = 760 - left - right
    top = 70
    for decade in range(low, math.ceil(high) + 1):
        x = left + wide * (decade - low) / max(high - low, 1)
        if x <= 760 - right + 1:
            picture.line(x, top - 6, x, height - 12)
    for row in rows:
        present = [(i, v) for i, v in enumerate(row.values) if v is not None]
        picture.text(left - 8, top + bar * len(present) / 2 + 4, row.label, "ink small", "end")
        for i, value in present:
            length = wide * (math.log10(value) - low) / max(high - low, 1) if value else 0
            picture.bar(left, top, max(length, 1), bar - 2, SERIES[i])
            picture.text(left + max(length, 1) + 5, top + 9, words(value), "soft small")
            top += bar
        top += 10
    return picture
