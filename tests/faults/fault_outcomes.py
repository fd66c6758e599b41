# SPDX-License-Identifier: Apache-2.0
"""Outcomes of faults, kept as they come.

The records may come of many runs. What a run tells of one fault of one side of a scenario stands in place of all that
earlier runs have told of it; the rest stays as it is.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

from fault_parties import ROOT

sys.path[:0] = [str(ROOT / "scripts")]
from pages.faults import Row, outcomes, subject  # noqa: E402


class Outcomes:
    """Rows of one run as ``Outcome`` has them, also in ``file`` as they come."""

    def __init__(self, file: Path | None = None) -> None:
        self.rows: list[Row] = []
        self._file = file

    def add(self, outcome: Any) -> None:
        row = json.loads(outcome.line())
        if self._file is not None:
            self._keep(self._file, row)
        self.rows.append(row)

    def _keep(self, file: Path, row: Row) -> None:
        file.parent.mkdir(parents=True, exist_ok=True)
        if not any(subject(each) == subject(row) for each in self.rows):
            whole = file.with_suffix(".new")  # the file is whole at every moment
            others = [each for each in read(file) if subject(each) != subject(row)]
            whole.write_text("".join(json.dumps(each) + "\n" for each in others))
            whole.replace(file)
        with file.open("a") as opened:
            opened.write(json.dumps(row) + "\n")

    def table(self) -> str:
        return "\n".join(outcomes(self.rows))


def read(file: Path) -> list[Row]:
    return [json.loads(line) for line in file.read_text().splitlines()] if file.exists() else []
