# SPDX-License-Identifier: Apache-2.0
"""Outcomes of faults as a table: fault, points, side hit -> what each other side said and after how many seconds.

python tests/faults/fault_table.py FAULTS.jsonl docs/faults.md     puts the table between the page's marks
"""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

BEGIN, END = "<!-- table of outcomes: made by make faults -->", "<!-- end of the table -->"
COLUMNS = ("where", "fault", "side hit", "points", "what the other sides said", "seconds until they did")


class Outcomes:
    """Rows as ``Outcome`` has them, also in ``file`` as they come."""

    def __init__(self, file: Path | None = None) -> None:
        self.rows: list[dict[str, Any]] = []
        self._file = file

    def add(self, outcome: Any) -> None:
        if self._file is not None:
            self._file.parent.mkdir(parents=True, exist_ok=True)
            with self._file.open("a" if self.rows else "w") as file:
                file.write(outcome.line() + "\n")
        self.rows.append(json.loads(outcome.line()))

    def table(self) -> str:
        return table(self.rows)


def table(rows: Sequence[dict[str, Any]]) -> str:
    """Markdown; points at which the same was said share a row."""
    groups: dict[tuple[str, ...], list[dict[str, Any]]] = {}
    for row in rows:
        said = "; ".join(f"{side}: {kind(words)}" for side, words in sorted(row["said"].items()))
        groups.setdefault((row["scenario"], row["fault"], row["side"], said), []).append(row)
    lines = [COLUMNS, tuple("---" for _ in COLUMNS)]
    for (scenario, fault, side, said), alike in groups.items():
        lines.append((scenario, fault, side or "the connection", points(alike), said, seconds(alike)))
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)


def kind(words: str) -> str:
    """The exception's name, or the words where there is none."""
    name = re.match(r"(?:\w+: )?(\w+(?:Error|Disconnected|Mismatch|Abort|Input))\b", words)
    return f"`{name[1]}`" if name else words[:60]


def points(rows: Sequence[dict[str, Any]]) -> str:
    """Names; the shares of the bytes as a count and their range."""
    shares = [row["point"] for row in rows if row["point"].endswith("%")]
    named = list(dict.fromkeys(row["point"] for row in rows if not row["point"].endswith("%")))
    if len(shares) > 3:
        values = sorted(float(share.rstrip(" %")) for share in shares)
        named.append(f"{len(shares)} from {values[0]:g} to {values[-1]:g} % of the bytes")
    else:
        named += [f"{share} of the bytes" for share in shares]
    return ", ".join(named)


def seconds(rows: Sequence[dict[str, Any]]) -> str:
    """The middle and the largest."""
    values = sorted(value for row in rows for value in row["seconds"].values())
    if not values:
        return ""
    return f"{values[len(values) // 2]:.2f}, at most {values[-1]:.2f}" if len(values) > 1 else f"{values[0]:.2f}"


def main(records: str, page: str) -> None:
    rows = [json.loads(line) for line in Path(records).read_text().splitlines()]
    text = Path(page).read_text()
    before, rest = text.split(BEGIN)
    after = rest.split(END)[1]
    Path(page).write_text(f"{before}{BEGIN}\n{table(rows)}\n{END}{after}")


if __name__ == "__main__":
    main(*sys.argv[1:])
