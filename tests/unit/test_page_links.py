# SPDX-License-Identifier: Apache-2.0
"""Every link between pages of the site leads to a page, a file or a heading that there is; so do links of the files
beside the site."""

from __future__ import annotations

import posixpath
import re
import sys
import unicodedata
from collections import Counter
from functools import cache
from pathlib import Path

import pytest

pytest.importorskip("privml._core")
ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "scripts")]

from pages import hook  # noqa: E402

DOCS = ROOT / "docs"
BESIDE = ["README.md", "CONTRIBUTING.md", *(str(p.relative_to(ROOT)) for p in ROOT.glob("models/*/README.md"))]
CODE = re.compile(r"^( *)(`{3,}).*?^\1\2 *$|`[^`\n]+`", re.M | re.S)
LINK = re.compile(r"\]\(<?([^)\s>]+)>?(?: \"[^\"]*\")?\)|\b(?:src|srcset|href)=\"([^\"]+)\"")
OUTSIDE = re.compile(r"[a-z]+:|//")
# Its headings are those of the code, which the site's build looks up.
FROM_CODE = "reference/api.md"


@cache
def site() -> dict[str, str]:
    """The Markdown pages of the site, by path."""
    pages = {str(path.relative_to(DOCS)): path.read_text() for path in DOCS.rglob("*.md")}
    made = {name: text for module in hook.MODULES for name, text in hook.made(module).items() if name.endswith(".md")}
    return {name: hook.on_page_markdown(text) for name, text in {**pages, **made}.items()}


@cache
def pictures() -> set[str]:
    made = {name for module in hook.MODULES for name in hook.made(module)}
    return made | {str(path.relative_to(DOCS)) for path in DOCS.rglob("*") if path.is_file()}


def links(text: str) -> list[str]:
    return [a or b for a, b in LINK.findall(CODE.sub("", text)) if not OUTSIDE.match(a or b)]


@cache
def headings(page: str) -> set[str]:
    """Anchors, named as the site's generator does."""
    text, found, seen = re.sub(r"^( *)(`{3,}).*?^\1\2 *$", "", site()[page], flags=re.M | re.S), set(), Counter()
    for heading in re.findall(r"^#{1,6} +(.+?) *#*$", text, re.M):
        named = re.search(r"\{ *#([\w-]+)[^}]*\}$", heading)
        words = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", heading)
        plain = unicodedata.normalize("NFKD", words).encode("ascii", "ignore").decode()
        slug = re.sub(r"[-\s]+", "-", re.sub(r"[^\w\s-]", "", plain).strip().lower())
        found.add(named[1] if named else f"{slug}_{seen[slug]}" if seen[slug] else slug)
        seen[slug] += 1
    return found | set(re.findall(r"\bid=\"([\w-]+)\"", text))


def broken(page: str) -> list[str]:
    """The links of a page of the site that lead nowhere."""
    wrong = []
    for link in links(site()[page]):
        path, _, anchor = link.partition("#")
        target = posixpath.normpath(posixpath.join(posixpath.dirname(page), path)) if path else page
        if (
            target not in site()
            and target not in pictures()
            or anchor
            and target in site()
            and target != FROM_CODE
            and anchor not in headings(target)
        ):
            wrong.append(link)
    return wrong


def test_links_of_the_site_lead_somewhere():
    wrong = {page: found for page in sorted(site()) if (found := broken(page))}
    assert len(site()) > 20 and sum(len(links(text)) for text in site().values()) > 150
    assert not wrong


@pytest.mark.parametrize("page", BESIDE)
def test_links_of_files_beside_the_site_lead_somewhere(page):
    for link in links((ROOT / page).read_text()):
        path, _, anchor = link.partition("#")
        target = (ROOT / page).parent / path
        assert target.exists(), f"{page} links to {path}"
        if anchor and target.is_relative_to(DOCS):
            assert anchor in headings(str(target.relative_to(DOCS))), f"{page} links to {link}"


def test_what_leads_nowhere_is_found(monkeypatch):
    text = "# A\n[a](#a) [b](#b) [c](c.md) [d](d.md#e)\n```\n[f](f.md)\n```\n`[g](g.md)` [h](https://h.example)\n"
    monkeypatch.setattr(sys.modules[__name__], "site", lambda: {"a.md": text, "d.md": "# D"})
    headings.cache_clear()
    assert broken("a.md") == ["#b", "c.md", "d.md#e"]
    headings.cache_clear()
