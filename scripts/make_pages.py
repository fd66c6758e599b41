# SPDX-License-Identifier: Apache-2.0
"""Writes the generated pages and pictures of the documentation: ``python scripts/make_pages.py [--check] [NAME...]``.

NAME: drawings, settings, operators, papers, benchmarks, runs; all without one. ``--check`` writes nothing, says which
files are not current and ends with 1 if there are any.
"""

from __future__ import annotations

import argparse
import importlib
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
DOCS = ROOT / "docs"
MODULES = {
    "drawings": "pages.drawings",
    "settings": "pages.options",
    "operators": "pages.operators",
    "papers": "pages.papers",
    "benchmarks": "pages.benchmarks",
    "runs": "pages.runs",
}
if str(ROOT / "scripts") not in sys.path:
    sys.path[:0] = [str(ROOT), str(ROOT / "scripts")]


def made(name: str) -> dict[str, str]:
    """The files, below docs/, of one generator and what belongs into them."""
    return importlib.import_module(MODULES[name]).pages()


def stale(files: dict[str, str]) -> list[str]:
    """Those that are missing or say something else."""
    return [name for name, text in files.items() if not (DOCS / name).exists() or (DOCS / name).read_text() != text]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*", choices=[[], *MODULES], metavar="NAME")
    parser.add_argument("--check", action="store_true")
    options = parser.parse_args()
    old = []
    for name in options.names or MODULES:
        files = made(name)
        old += stale(files)
        if not options.check:
            for path, text in files.items():
                (DOCS / path).parent.mkdir(parents=True, exist_ok=True)
                (DOCS / path).write_text(text)
    print("\n".join(old) if old else "all pages are current")
    sys.exit(bool(options.check and old))


if __name__ == "__main__":
    main()
