# SPDX-License-Identifier: Apache-2.0
"""The how-to pages do what they say: their Python blocks run one after the other, and print what the text block behind
each of them shows ("..." stands for anything)."""

import contextlib
import doctest
import importlib
import io
import re
from pathlib import Path

import pytest
import torch

from privml import dispatch

DOCS = Path(__file__).parents[2] / "docs"
PAGES = [*sorted((DOCS / "howto").glob("*.md")), *(DOCS / f"{name}.md" for name in ("extending", "numbers", "serving"))]
BLOCK = re.compile(r"^```(python|text)\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def blocks(page):
    """(line, code, expected output or None) of a page."""
    text, found = page.read_text(), []
    for match in BLOCK.finditer(text):
        line = text.count("\n", 0, match.start()) + 1
        if match[1] == "python":
            found.append([line, match[2], None])
        else:
            assert found and found[-1][2] is None, f"{page.name}:{line}: no code printed this"
            found[-1][2] = match[2]
    return found


@pytest.fixture
def table_restored():
    importlib.import_module("privml.ops.rules")  # fills the tables
    tables = (dispatch.TABLE, dispatch._RESOLVED)
    before = [dict(table) for table in tables]
    yield
    for table, old in zip(tables, before, strict=True):
        table.clear()
        table.update(old)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_page(page, tmp_path, monkeypatch, table_restored):
    for package in ("sklearn", "skl2onnx"):
        if package in page.read_text():
            pytest.importorskip(package)
    monkeypatch.chdir(tmp_path)
    torch.set_num_threads(1)
    names, check = {"__name__": "page"}, doctest.OutputChecker()
    for line, code, expected in blocks(page):
        printed = io.StringIO()
        with contextlib.redirect_stdout(printed):
            exec(compile("\n" * line + code, str(page), "exec"), names)
        place = f"{page.name}:{line}"
        if expected is None:
            assert not printed.getvalue(), f"{place} prints what the page does not show: {printed.getvalue()}"
        else:
            same = check.check_output(expected, printed.getvalue(), doctest.ELLIPSIS)
            assert same, f"{place} shows\n{expected}but prints\n{printed.getvalue()}"


def test_there_are_pages_and_each_runs_something():
    assert len(PAGES) >= 4
    for page in PAGES:
        assert sum(1 for _, _, expected in blocks(page) if expected) >= 2, page
