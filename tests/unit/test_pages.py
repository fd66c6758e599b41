# SPDX-License-Identifier: Apache-2.0
"""Generated pages of the documentation can be made, and what the pages name exists."""

import ast
import re
import sys
from functools import cache
from pathlib import Path

import pytest
import yaml

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "scripts")]

from pages import errors, hook, papers  # noqa: E402

from privml.errors import PrivmlError  # noqa: E402


@pytest.mark.parametrize("module", hook.MODULES)
def test_generators_make_their_pages(module):
    if module == "operators":
        pytest.importorskip("privml._core")
    made = hook.made(module)
    assert made
    for name, text in made.items():
        assert len(text) > 500 and text.lstrip().startswith("<svg" if name.endswith(".svg") else ("#", "---"))


def test_every_kind_of_error_is_on_the_page_with_its_remedy():
    text = hook.made("errors")["troubleshooting.md"]
    for kind in errors.kinds():
        meaning, remedy = errors.meaning_and_remedy(kind)
        assert f"| `{kind.__name__}` | {meaning} | {remedy} |" in text and len(remedy) > 20
    silent = type("Silent", (PrivmlError,), {"__doc__": "Something happened."})
    with pytest.raises(ValueError, match="no remedy"):
        errors.meaning_and_remedy(silent)


def test_links_to_notebooks_and_to_onnx_operators_lead_to_pages():
    assert hook.on_page_markdown("[a](howto/inference.ipynb#x)") == "[a](howto/inference.md#x)"
    assert (
        hook.on_page_markdown("[a](../reference/onnx-operators.md)") == "[a](../reference/operators.md#onnx-operators)"
    )


def generated():
    return {name for module in hook.MODULES for name in hook.made(module) if name.endswith(".md")}


ITEMS = [(paper["key"], item) for paper in papers.load() for item in paper["items"]]


@cache
def text_of(file):
    return file.read_text()


@cache
def python_names(file):
    return {n.name for n in ast.walk(ast.parse(text_of(file))) if isinstance(n, (ast.FunctionDef, ast.ClassDef))}


@cache
def gtests_in(file):
    return {
        f"{suite}.{name}" for suite, name in re.findall(r"^(?:TYPED_)?TEST(?:_P)?\((\w+), (\w+)\)", text_of(file), re.M)
    }


@pytest.mark.parametrize(("paper", "item"), ITEMS, ids=lambda value: value if isinstance(value, str) else value["what"])
def test_a_published_protocol_is_where_the_map_says(paper, item):
    assert papers.state(item) in papers.STATES
    for reference in papers.named(item, "code"):
        file, name = papers.split(reference)
        assert file.exists(), reference
        if name and file.suffix == ".py":
            assert name in python_names(file), reference
        elif name:
            assert re.search(rf"^\S.*\b{name}\(", text_of(file), re.M), reference
    for reference in papers.named(item, "test"):
        file, name = papers.split(reference)
        assert file.exists() and "test" in file.name, reference
        if name:
            assert name in (python_names(file) if file.suffix == ".py" else gtests_in(file)), reference
    if papers.state(item) not in ("not used", "replaced"):
        assert papers.named(item, "code") and item["page"], item["what"]
    if papers.state(item) == "changed":
        assert "note" in item or "page" in item
    if "page" in item:
        assert (ROOT / "docs" / item["page"].split("#")[0]).exists()


def test_every_page_is_in_the_navigation():
    loader = type("Loader", (yaml.SafeLoader,), {})
    loader.add_multi_constructor("", lambda loader, suffix, node: None)
    nav = yaml.load((ROOT / "mkdocs.yml").read_text(), loader)["nav"]

    def files(entry):
        if isinstance(entry, str):
            return [entry]
        return [file for part in (entry if isinstance(entry, list) else entry.values()) for file in files(part)]

    named = files(nav)
    assert len(named) == len(set(named)) <= 30
    written = {str(p.relative_to(ROOT / "docs")) for p in (ROOT / "docs").rglob("*.md")}
    part_of_another = {"reference/onnx-operators.md"}
    assert set(named) == (written | generated()) - part_of_another
