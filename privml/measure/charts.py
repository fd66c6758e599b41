# SPDX-License-Identifier: Apache-2.0
"""Places on axes, and pictures as inline SVG whose colours a style sheet gives by class."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from html import escape

from privml.measure import words
from privml.measure.records import Errors


@dataclass(frozen=True)
class LogAxis:
    """From 10^low to 10^high."""

    low: int
    high: int

    @classmethod
    def around(cls, values: Sequence[float]) -> LogAxis:
        """The whole decades that hold all positive values."""
        positive = [value for value in values if value > 0] or [1.0]
        low, high = math.floor(math.log10(min(positive))), math.ceil(math.log10(max(positive)))
        return cls(low, max(high, low + 1))

    def place(self, value: float) -> float:
        """In percent of the axis."""
        return 100 * (math.log10(value) - self.low) / (self.high - self.low)

    def ticks(self, text: Callable[[float], str]) -> list[tuple[float, str]]:
        """(place, label) at the decades, at most six labels."""
        step = -(-(self.high - self.low) // 6)
        return [(self.place(10.0**e), words.tick(text(10.0**e))) for e in range(self.low, self.high + 1, step)]


@dataclass(frozen=True)
class Point:
    """``kind``: its class; ``text``: its tooltip."""

    x: float
    y: float
    kind: str
    text: str


WIDTH, HEIGHT = 360, 300
LEFT, RIGHT, TOP, BOTTOM = 54, 12, 12, 44


def scatter(points: Sequence[Point], across: str, up: str, text: Callable[[float], str]) -> str:
    """Both axes logarithmic with the same range, and the diagonal."""
    axis = LogAxis.around([value for point in points for value in (point.x, point.y)])
    wide, high = WIDTH - LEFT - RIGHT, HEIGHT - TOP - BOTTOM

    def x(value: float) -> float:
        return LEFT + wide * axis.place(value) / 100

    def y(value: float) -> float:
        return TOP + high * (1 - axis.place(value) / 100)

    parts = [
        f'<svg class="chart" viewBox="0 0 {WIDTH} {HEIGHT}" role="img" aria-label="{escape(up)} by {escape(across)}">'
    ]
    for place, label in axis.ticks(text):
        at = LEFT + wide * place / 100, TOP + high * (1 - place / 100)
        parts.append(f'<line class="grid" x1="{at[0]:.1f}" x2="{at[0]:.1f}" y1="{TOP}" y2="{TOP + high}"/>')
        parts.append(f'<line class="grid" x1="{LEFT}" x2="{LEFT + wide}" y1="{at[1]:.1f}" y2="{at[1]:.1f}"/>')
        parts.append(f'<text class="tick" x="{at[0]:.1f}" y="{TOP + high + 16}" text-anchor="middle">{label}</text>')
        parts.append(f'<text class="tick" x="{LEFT - 6}" y="{at[1] + 4:.1f}" text-anchor="end">{label}</text>')
    parts.append(f'<line class="diagonal" x1="{LEFT}" y1="{TOP + high}" x2="{LEFT + wide}" y2="{TOP}"/>')
    parts += [mark(x(p.x), y(p.y), p.kind, p.text) for p in points if p.x > 0 and p.y > 0]
    parts.append(
        f'<text class="label" x="{LEFT + wide / 2}" y="{HEIGHT - 6}" text-anchor="middle">{escape(across)}</text>'
    )
    parts.append(f'<text class="label" x="{LEFT + 8}" y="{TOP + 14}">{escape(up)} ↑</text></svg>')
    return "".join(parts)


def mark(x: float, y: float, kind: str, text: str) -> str:
    """A dot, a square or a diamond by the number at the end of ``kind``."""
    title = f"<title>{escape(text)}</title>"
    shape = int(kind[-1]) % 3 if kind[-1].isdigit() else 0
    if shape == 0:
        return f'<circle class="dot {kind}" cx="{x:.1f}" cy="{y:.1f}" r="4.5">{title}</circle>'
    turn = f' transform="rotate(45 {x:.1f} {y:.1f})"' if shape == 2 else ""
    return f'<rect class="dot {kind}" x="{x - 4:.1f}" y="{y - 4:.1f}" width="8" height="8"{turn}>{title}</rect>'


BARS_WIDTH, BARS_HEIGHT, BARS_BOTTOM, BARS_TOP = 300, 136, 24, 30


def histogram(errors: Errors) -> str:
    """How many errors have which size, from the unit of the last place to beyond what is allowed."""
    exponents = [int(e) for e in errors.counts] or [0]
    marks = [(errors.unit, "unit")] + ([(errors.allowed, "allowed")] if errors.allowed else [])
    low = min(exponents + [math.floor(math.log2(value)) for value, _ in marks]) - 1
    high = max(exponents + [math.ceil(math.log2(value)) for value, _ in marks]) + 1
    count, most = high - low, max([*errors.counts.values(), 1])
    step, tall = BARS_WIDTH / count, BARS_HEIGHT - BARS_BOTTOM - BARS_TOP
    floor = BARS_TOP + tall

    def x(value: float) -> float:
        return (math.log2(value) - low) * step

    parts = [f'<svg class="chart" viewBox="0 0 {BARS_WIDTH} {BARS_HEIGHT}" role="img" aria-label="sizes of errors">']
    for exponent in exponents:
        n = errors.counts.get(str(exponent), 0)
        height = max(tall * n / most, 1.0) if n else 0
        left = (exponent - 1 - low) * step
        ends = " to ".join(words.power(2.0**e) for e in (exponent - 1, exponent))
        title = f"<title>{n} of {errors.total} errors from {ends}</title>"
        parts.append(
            f'<rect class="bar" x="{left + 0.75:.1f}" y="{floor - height:.1f}" width="{max(step - 1.5, 1):.1f}" '
            f'height="{height:.1f}" rx="1.5">{title}</rect>'
        )
    parts.append(f'<line class="axis" x1="0" x2="{BARS_WIDTH}" y1="{floor}" y2="{floor}"/>')
    for row, (value, name) in enumerate(marks):
        at, right = x(value), x(value) > BARS_WIDTH * 0.6
        anchor, shift = ("end", -4) if right else ("start", 4)
        parts.append(f'<line class="limit {name}" x1="{at:.1f}" x2="{at:.1f}" y1="{4 + 12 * row}" y2="{floor}"/>')
        parts.append(
            f'<text class="tick" x="{at + shift:.1f}" y="{12 + 12 * row}" text-anchor="{anchor}">{MARKS[name]}</text>'
        )
    for exponent in _decades(low, high):
        at = (exponent * math.log2(10) - low) * step
        label = f"10<tspan dy='-4' font-size='8'>{exponent}</tspan>"
        parts.append(f'<text class="tick" x="{at:.1f}" y="{BARS_HEIGHT - 6}" text-anchor="middle">{label}</text>')
    return "".join(parts) + "</svg>"


MARKS = {"unit": "unit of the last place", "allowed": "allowed"}


def _decades(low: int, high: int) -> list[int]:
    """Powers of ten within 2^low and 2^high, at most five."""
    first, last = math.ceil(low / math.log2(10) + 0.2), math.floor(high / math.log2(10) - 0.2)
    step = max(1, -(-(last - first + 1) // 5))
    return list(range(first, last + 1, step))
