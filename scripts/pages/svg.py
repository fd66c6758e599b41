# SPDX-License-Identifier: Apache-2.0
"""Small pictures as SVG files: on a plate of their own, in light or dark as the reader's page is."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape

# Colours by role: (light, dark). The first four tell parties and series apart.
COLOURS = {
    "plate": ("#ffffff", "#1e2129"),
    "ink": ("#1f2430", "#e4e7ee"),
    "soft": ("#5b6475", "#a5adbd"),
    "line": ("#c3c9d4", "#4a5160"),
    "fill": ("#eef1f7", "#2a2f3b"),
    "a": ("#3f51b5", "#8c9eff"),
    "b": ("#00796b", "#4db6ac"),
    "c": ("#b26a00", "#ffb74d"),
    "d": ("#8e3b6f", "#f48fb1"),
}
FONT = "system-ui, -apple-system, 'Segoe UI', Roboto, 'Noto Sans', 'DejaVu Sans', sans-serif"
MONO = "ui-monospace, 'DejaVu Sans Mono', Menlo, Consolas, monospace"


def _rules(shade: int) -> str:
    rules = []
    for role, pair in COLOURS.items():
        rules.append(f".{role}{{fill:{pair[shade]}}}.{role}-s{{stroke:{pair[shade]}}}")
    return "".join(rules)


def _style() -> str:
    return (
        f"text{{font-family:{FONT};font-size:13px}}.mono{{font-family:{MONO}}}.small{{font-size:11px}}"
        f".large{{font-size:15px;font-weight:600}}.bold{{font-weight:600}}{_rules(0)}"
        f"@media (prefers-color-scheme: dark){{{_rules(1)}}}"
    )


class Picture:
    """A plate of ``width`` x ``height``; ``title`` is what is read aloud."""

    def __init__(self, width: int, height: int, title: str) -> None:
        self.width, self.height, self.title = width, height, title
        self.parts: list[str] = []

    def text(self, x: float, y: float, words: str, kind: str = "ink", anchor: str = "start") -> None:
        place = "" if anchor == "start" else f' text-anchor="{anchor}"'
        self.parts.append(f'<text class="{kind}" x="{x:g}" y="{y:g}"{place}>{escape(words)}</text>')

    def lines(self, x: float, y: float, lines: Sequence[str], kind: str = "ink", step: float = 17) -> None:
        for i, line in enumerate(lines):
            self.text(x, y + i * step, line, kind)

    def box(self, x: float, y: float, w: float, h: float, kind: str = "fill", edge: str = "line", r: float = 6) -> None:
        self.parts.append(
            f'<rect class="{kind} {edge}-s" x="{x:g}" y="{y:g}" width="{w:g}" height="{h:g}" rx="{r:g}"/>'
        )

    def bar(self, x: float, y: float, w: float, h: float, kind: str) -> None:
        self.parts.append(f'<rect class="{kind}" x="{x:g}" y="{y:g}" width="{w:.1f}" height="{h:g}"/>')

    def headed_box(self, x: float, y: float, w: float, h: float, kind: str) -> None:
        """A box with a bar of ``kind`` along its upper edge."""
        self.box(x, y, w, h)
        self.bar(x, y, w, 5, kind)

    def line(self, x1: float, y1: float, x2: float, y2: float, kind: str = "line", dashed: bool = False) -> None:
        dash = ' stroke-dasharray="5 4"' if dashed else ""
        self.parts.append(f'<line class="{kind}-s" x1="{x1:g}" y1="{y1:g}" x2="{x2:g}" y2="{y2:g}"{dash}/>')

    def arrow(self, x1: float, y1: float, x2: float, y2: float, kind: str = "soft", both: bool = False) -> None:
        """A straight arrow with a head at its end, or at both."""
        self.line(x1, y1, x2, y2, kind)
        self._head(x1, y1, x2, y2, kind)
        if both:
            self._head(x2, y2, x1, y1, kind)

    def _head(self, x1: float, y1: float, x2: float, y2: float, kind: str) -> None:
        length = ((x2 - x1) ** 2 + (y2 - y1) ** 2) ** 0.5
        ux, uy = (x2 - x1) / length, (y2 - y1) / length
        bx, by = x2 - 9 * ux, y2 - 9 * uy
        points = f"{x2:.1f},{y2:.1f} {bx - 4 * uy:.1f},{by + 4 * ux:.1f} {bx + 4 * uy:.1f},{by - 4 * ux:.1f}"
        self.parts.append(f'<polygon class="{kind}" points="{points}"/>')

    def __str__(self) -> str:
        head = (
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {self.width} {self.height}" '
            f'width="{self.width}" height="{self.height}" role="img" aria-label="{escape(self.title)}">'
        )
        plate = f'<rect class="plate" width="{self.width}" height="{self.height}" rx="8"/>'
        return "\n".join([head, f"<style>{_style()}</style>", plate, *self.parts, "</svg>", ""])
