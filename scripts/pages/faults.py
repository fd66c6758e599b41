# SPDX-License-Identifier: Apache-2.0
"""Outcomes of faults as a table: fault, points, side hit -> what each other side said and after how many seconds."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

from pages.figures import table

COLUMNS = ("where", "fault", "side hit", "points", "what the other sides said", "seconds until they did")
# One fault: "scenario", "fault", "side", "point", "said" and "seconds" by side.
Row = dict[str, Any]


def subject(row: Row) -> tuple[str, str, str]:
    """What a row is about, whichever the point."""
    return row["scenario"], row["fault"], row["side"]


def outcomes(rows: Sequence[Row]) -> list[str]:
    """Points at which the same was said share a row. Scenarios in the order of their names, kills first."""
    groups: dict[tuple[str, ...], list[Row]] = {}
    for row in sorted(rows, key=lambda row: (row["scenario"], not row["side"], row["fault"])):
        said = "; ".join(f"{side}: {kind(words)}" for side, words in sorted(row["said"].items()))
        groups.setdefault((*subject(row), said), []).append(row)
    lines = [
        (scenario, fault, side or "the connection", points(alike), said, seconds(alike))
        for (scenario, fault, side, said), alike in groups.items()
    ]
    return table(COLUMNS, lines, len(COLUMNS))


def kind(words: str) -> str:
    """The exception's name, or the words where there is none."""
    name = re.match(r"(?:\w+: )?(\w+(?:Error|Disconnected|Mismatch|Abort|Input))\b", words)
    return f"`{name[1]}`" if name else words[:60]


def points(rows: Sequence[Row]) -> str:
    """Names; the shares of the bytes as a count and their range."""
    shares = [row["point"] for row in rows if row["point"].endswith("%")]
    named = list(dict.fromkeys(row["point"] for row in rows if not row["point"].endswith("%")))
    if len(shares) > 3:
        values = sorted(float(share.rstrip(" %")) for share in shares)
        named.append(f"{len(shares)} from {values[0]:g} to {values[-1]:g} % of the bytes")
    else:
        named += [f"{share} of the bytes" for share in shares]
    return ", ".join(named)


def seconds(rows: Sequence[Row]) -> str:
    """The middle and the largest."""
    values = sorted(value for row in rows for value in row["seconds"].values())
    if not values:
        return ""
    return f"{values[len(values) // 2]:.2f}, at most {values[-1]:.2f}" if len(values) > 1 else f"{values[0]:.2f}"
