# SPDX-License-Identifier: Apache-2.0
"""Tables that ``print`` shows as text and a notebook as HTML, and a progress bar in notebooks."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from html import escape
from typing import Any

# Called with (steps done, steps in all, what comes next).
Progress = Callable[[int, int, str], None]
_SECONDS_BETWEEN = 0.1


@dataclass(frozen=True, slots=True)
class Table:
    """``rows`` of texts below ``columns``: the first column left, the others right; ``notes``: lines below it."""

    title: str
    columns: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    notes: tuple[str, ...] = ()

    def __str__(self) -> str:
        lines = [self.columns, *self.rows] if self.rows else []
        widths = [max(len(line[column]) for line in lines) for column in range(len(self.columns))] if lines else []
        text = [self.title]
        for line in lines:
            first, *others = (
                cell.rjust(width) if column else cell.ljust(width)
                for column, (cell, width) in enumerate(zip(line, widths, strict=True))
            )
            text.append("  ".join((first, *others)).rstrip())
        return "\n".join((*text, *self.notes))

    __repr__ = __str__

    def _repr_html_(self) -> str:
        def line(tag: str, cells: tuple[str, ...]) -> str:
            sides = ["left", *["right"] * (len(cells) - 1)]
            return "".join(
                f'<{tag} style="text-align:{side}">{escape(cell)}</{tag}>'
                for side, cell in zip(sides, cells, strict=True)
            )

        head = f"<thead><tr>{line('th', self.columns)}</tr></thead>" if self.rows else ""
        body = "".join(f"<tr>{line('td', row)}</tr>" for row in self.rows)
        notes = "".join(f"<p>{escape(note)}</p>" for note in self.notes)
        return f"<p><b>{escape(self.title)}</b></p><table>{head}<tbody>{body}</tbody></table>{notes}"


def size_text(count: float) -> str:
    """Bytes for people: 1.23 MB (powers of ten)."""
    for unit in ("B", "kB", "MB"):
        if count < 1000:
            return f"{count:.0f} {unit}" if unit == "B" else f"{count:.2f} {unit}"
        count /= 1000
    return f"{count:.2f} GB"


# ---- progress
def notebook_bar(title: str) -> Progress:
    """A bar below the notebook's cell, which disappears once all steps are done; nothing elsewhere."""
    shell = sys.modules["IPython"].get_ipython() if "IPython" in sys.modules else None
    if not hasattr(shell, "kernel"):
        return lambda done, total, label: None
    from IPython.display import HTML, display

    bar: Any = display(HTML(""), display_id=True)
    shown = 0.0

    def show(done: int, total: int, label: str) -> None:
        nonlocal shown
        if done >= total:
            bar.update(HTML(""))
        elif (now := time.monotonic()) - shown >= _SECONDS_BETWEEN:
            shown = now
            bar.update(HTML(f'{escape(title)} <progress value="{done}" max="{total}"></progress> {escape(label)}'))

    return show
