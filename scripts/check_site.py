# SPDX-License-Identifier: Apache-2.0
"""Ends with 1 if a built page loads anything from another host: ``python scripts/check_site.py build/site``."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path

# What a browser fetches without being asked to; links (a href) are not.
FETCHED = {
    "script": "src",
    "link": "href",
    "img": "src",
    "iframe": "src",
    "source": "srcset",
    "object": "data",
    "use": "href",
}
ELSEWHERE = re.compile(r"^(https?:)?//", re.I)
IN_STYLE = re.compile(r"(?:url\(|@import)\s*['\"]?((?:https?:)?//[^'\")]+)", re.I)
# Tells where a page is, and fetches nothing.
QUIET = {"canonical", "alternate", "next", "prev"}


class Page(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.found: list[str] = []

    def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        known = dict(attributes)
        address = known.get(FETCHED.get(tag, ""))
        if address and ELSEWHERE.match(address) and not (tag == "link" and known.get("rel") in QUIET):
            self.found.append(f"<{tag}> {address}")


def fetched_from_elsewhere(site: Path) -> Iterator[str]:
    """ "FILE: what" for everything that the site's pages and style sheets fetch from other hosts."""
    for file in sorted(site.rglob("*.html")):
        page = Page()
        page.feed(file.read_text())
        yield from (f"{file.relative_to(site)}: {what}" for what in page.found)
    for file in sorted(site.rglob("*.css")):
        yield from (f"{file.relative_to(site)}: {address}" for address in IN_STYLE.findall(file.read_text()))


def main() -> None:
    site = Path(sys.argv[1])
    found = list(fetched_from_elsewhere(site))
    print("\n".join(found) or f"{site}: nothing is fetched from other hosts")
    sys.exit(bool(found))


if __name__ == "__main__":
    main()
