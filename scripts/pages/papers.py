# SPDX-License-Identifier: Apache-2.0
"""Where every protocol of the five papers is implemented: the page papers.md, made from docs/papers.yml."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import yaml

ROOT = Path(__file__).resolve().parents[2]
STATES = {"as published", "changed", "replaced", "not used"}
HEAD = """---
hide: [toc]
---

# Papers, code, tests

Every protocol, algorithm, figure and theorem of the five papers that privml implements: its code, its test, the page
that explains it, and the differences.

- *as published*: apart from misprints, which the remarks name;
- *changed*: the same idea, corrected or improved;
- *replaced*: something else serves the same purpose;
- *not used*: neither.

A test checks that every file, function, test and page named here exists. Two-party transfers have other sources, named
in [two-party protocols](protocols.md#oblivious-transfer-csrcot).

| paper | engine | entries | as published | changed | replaced | not used |
| --- | --- | --- | --- | --- | --- | --- |
"""


def load() -> list[dict]:
    return yaml.safe_load((ROOT / "docs" / "papers.yml").read_text())


def named(item: dict, key: str) -> list[str]:
    """What stands under ``key``, one or several, as a list."""
    value = item.get(key, [])
    return [value] if isinstance(value, str) else value


def split(reference: str) -> tuple[Path, str]:
    """FILE:NAME as the file's path and the name, "" where there is none."""
    file, _, name = reference.partition(":")
    return ROOT / file, name


def state(item: dict) -> str:
    return item.get("state", "as published")


def _title(page: str) -> str:
    """Of the page, or of the section whose anchor is behind "#"."""
    name, _, anchor = page.partition("#")
    headings = re.findall("^#+ (.*)$", (ROOT / "docs" / name).read_text(), re.M)
    return next(text for text in headings if not anchor or text.lower().replace(" ", "-") == anchor)


def _references(references: list[str], label: str) -> Iterator[str]:
    for reference in references:
        file, _, name = reference.partition(":")
        yield f"{label} `{file}`" + (f" `{name}`" if name else "")


def _paper(paper: dict) -> Iterator[str]:
    yield from (f"## {paper['title']}", "", f"{paper['by']}. Engine `{paper['engine']}`. {paper['about']}", "")
    yield from ("| published | | remarks | where |", "| --- | --- | --- | --- |")
    for item in paper["items"]:
        page = f"[{_title(item['page'])}]({item['page']})" if "page" in item else ""
        where = [*_references(named(item, "code"), "code"), *_references(named(item, "test"), "test"), page]
        note = item.get("note", "").replace("|x|", "abs(x)")
        yield f"| {item['what']} | {state(item)} | {note} | {'<br>'.join(filter(None, where))} |"
    yield ""


def pages() -> dict[str, str]:
    papers, rows, body = load(), [], []
    for paper in papers:
        counts = [
            sum(state(item) == s for item in paper["items"])
            for s in ("as published", "changed", "replaced", "not used")
        ]
        name = paper["title"].split(":")[0]
        anchor = paper["title"].lower().replace(":", "").replace(" ", "-")
        rows.append(
            f"| [{name}](#{anchor}) | `{paper['engine']}` | {len(paper['items'])} | {' | '.join(map(str, counts))} |"
        )
        body += _paper(paper)
    return {"papers.md": HEAD + "\n".join([*rows, "", *body]).rstrip() + "\n"}
