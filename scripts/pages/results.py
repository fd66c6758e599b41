# SPDX-License-Identifier: Apache-2.0
"""Lines of benchmarks/results, and the pages and sections that are made of them."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
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


def measured(suite: str, ot: str, network: str = "loopback") -> list[dict]:
    """The lines of a suite with these transfers over this network."""
    return [line for line in lines_of(suite) if (line["ot"], line["network"]) == (ot, network)]


def by_operation(lines: Iterable[dict]) -> dict[str, dict]:
    """The newest line of each operation."""
    return {line["op"]: line for line in lines}


def span(times: Iterable[str]) -> str:
    """The first and the last day of these times."""
    days = sorted({time[:10] for time in times})
    return " and ".join(dict.fromkeys((days[0], days[-1]))) if days else "date not recorded"


@dataclass(frozen=True)
class Section:
    """A part of a page: its title, its Markdown below the title, and its picture with the file's name if it has one."""

    title: str
    lines: list[str]
    picture: tuple[str, Picture] | None = None


def facts(
    command: str, lines: Iterable[dict], peers: list[str], words: str = "", files: Sequence[str] = ()
) -> list[str]:
    """What was run, when, and the source of the figures that stand beside. ``files``: of the lines, by default those of
    their suites."""
    lines = list(lines)
    files = files or list(dict.fromkeys(line["suite"] for line in lines))
    shown = ", ".join(f"`{file}.jsonl`" for file in files)
    when = span(line["time"] for line in lines if "time" in line)
    beside = [f"- Compared with: {PEERS['sources'][peer]}." for peer in peers]
    return [*([words, ""] if words else []), f"- Command: `{command}`.",
            f"- Measured: {when}. Records in `benchmarks/results/`: {shown}.", *beside, ""]  # fmt: skip


def picture(name: str, words: str) -> list[str]:
    return [f"![{words}](../assets/benchmarks/{name}.svg){{ .plot }}", ""]


def page(name: str, title: str, words: str, sections: Sequence[Section]) -> dict[str, str]:
    """The files of a page of benchmarks and of its pictures."""
    links = " · ".join(f"[{s.title}](#{s.title.lower().replace(' ', '-')})" for s in sections)
    lines = ["---", "hide: [toc]", "---", "", f"# {title}", "", words, "", f"Machine: {PEERS['machine']}.", "", links]
    for section in sections:
        lines += ["", f"## {section.title}", "", "\n".join(section.lines).rstrip()]
    pictures = [section.picture for section in sections if section.picture is not None]
    return {
        f"benchmarks/{name}.md": "\n".join(lines) + "\n",
        **{f"assets/benchmarks/{file}.svg": str(chart) for file, chart in pictures},
    }
