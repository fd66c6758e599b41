# SPDX-License-Identifier: Apache-2.0
"""The notebooks run, and print what they show; on the site they are pages."""

import re
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
nbformat = pytest.importorskip("nbformat")
pytest.importorskip("nbclient")
pytest.importorskip("ipykernel")
sys.path[:0] = [str(ROOT / "scripts")]

import run_notebooks  # noqa: E402
from pages import hook, notebooks  # noqa: E402

FILES = sorted(run_notebooks.NOTEBOOKS.glob("*.ipynb"))


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_a_notebook_prints_what_it_shows(path, tmp_path):
    pytest.importorskip("sklearn")
    kept = nbformat.read(path, as_version=4)
    nbformat.validate(kept)
    assert sum(1 for text in run_notebooks.printed(kept) if text) >= 2
    found = run_notebooks.executed(path, tmp_path)
    assert run_notebooks.printed(found) == run_notebooks.printed(kept)


def test_there_is_one_for_each_purpose():
    assert {path.stem for path in FILES} == {"inference", "training", "two-hospitals"}


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_the_page_of_a_notebook_has_its_text_code_and_output(path):
    page = notebooks.markdown(path)
    assert page.startswith("# ") and f'href="{path.name}"' in page
    for cell in nbformat.read(path, as_version=4).cells:
        assert cell.source.partition("\n")[0] in page
    for text in filter(None, run_notebooks.printed(nbformat.read(path, as_version=4))):
        assert f"```text\n{text}```" in page
    assert "ipynb" not in re.sub(
        r"<a href.*", "", hook.on_page_markdown("[a](../howto/inference.ipynb#between-machines)")
    )
