# SPDX-License-Identifier: Apache-2.0
"""Lines of benchmarks/results, and what every page of them begins with."""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path

import yaml

from pages.svg import Picture

ROOT = Path(__file__).resolve().parents[2]
RESULTS = ROOT / "benchmarks" / "results"
PEERS = yaml.safe_load((ROOT / "benchmarks" / "peers.yml").read_text())


def lines_of(name: str) -> list[dict]:
    """The lines of a file of results; none where it is not there."""
    file = RESULTS / f"{name}.jsonl"
    return [json.loads(line) for line in file.read_text().splitlines()] if file.exists() else []


def by_operation(name: str) -> dict[str, dict]:
    """The newest line of each operation."""
    return {line["op"]: line for line in lines_of(name)}


def when(*names: str) -> str:
    """The days on which the lines were taken."""
    return span(line["time"] for name in names for line in lines_of(name) if "time" in line)


def span(times: Iterable[str]) -> str:
    """The first and the last day of these times."""
    days = sorted({time[:10] for time in times})
    return " and ".join(dict.fromkeys((days[0], days[-1]))) if days else "an unknown day"


def opening(title: str, command: str, files: list[str], peers: list[str], words: str = "") -> list[str]:
    """Heading, what was run, where, when, and whose figures stand beside it."""
    shown = ", ".join(f"`{file}`" for file in files)
    beside = [f"- Beside it: {PEERS['sources'][peer]}." for peer in peers]
    return [*heading(title, f"`{command}`", words), f"- When: {when(*files)}. Lines: `benchmarks/results/`, {shown}.",
            *beside, ""]  # fmt: skip


def heading(title: str, run: str, words: str = "") -> list[str]:
    """Heading, what was run and where."""
    return [
        "---", "hide: [toc]", "---", "", f"# {title}", "", *([words, ""] if words else []),
        f"- Run: {run}.", f"- Where: {PEERS['machine']}.",
    ]  # fmt: skip


def picture(name: str, words: str) -> list[str]:
    return [f"![{words}](../assets/benchmarks/{name}.svg){{ .plot }}", ""]


def page(name: str, lines: list[str], chart: Picture | None = None) -> dict[str, str]:
    """The files of a page of benchmarks and of its picture."""
    made = {f"benchmarks/{name}.md": "\n".join(lines).rstrip() + "\n"}
    return made if chart is None else {**made, f"assets/benchmarks/{name}.svg": str(chart)}
