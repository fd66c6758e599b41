# SPDX-License-Identifier: Apache-2.0
"""docs/extending.md lists the files that an operator, a protocol and an engine touch: those that name an example."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
SUFFIXES = {".py", ".h", ".cpp", ".yaml"}
# What calls a protocol: sources of csrc but its own, its tests, benchmarks, bindings and fuzz targets.
CALLER = re.compile(
    r"csrc/(?!bindings/|fuzz/)(?:\w+/)+(?!multiplex\.|(selection|wire_trace|masking)_test\.|\w+_bench\.)[^/]+$"
)
OWN = re.compile(r"privml/engines/active/|privml/measure/spdz2k|privml/session/active_")
EXAMPLES = {
    "an operator": (r"\bhardswish\b", ("privml", "tests"), None),
    "a protocol": (r"\b(cost_)?multiplex\b", ("csrc", "privml", "configs"), CALLER),
    "an engine": (r'"active"|\bengines\.active\b|\bimport .*\bactive\b|\bActiveEngine\b', ("privml",), OWN),
}


def named(heading):
    """The files in the table below a heading."""
    text = (ROOT / "docs" / "extending.md").read_text().partition(f"### Files of {heading}\n")[2].partition("\n## ")[0]
    return set(re.findall(r"^\| `([\w./]+)` \|", text, re.M))


@pytest.mark.parametrize("heading", EXAMPLES)
def test_the_page_lists_the_files_that_name_the_example(heading):
    pattern, folders, left_out = EXAMPLES[heading]
    files = [
        file for folder in folders for file in (ROOT / folder).rglob("*") if file.suffix in SUFFIXES and file.is_file()
    ]
    found = {str(f.relative_to(ROOT)) for f in files if re.search(pattern, f.read_text())}
    found = {name for name in found if left_out is None or not left_out.match(name)}
    assert named(heading) == found


def test_contributing_counts_the_files():
    text = (ROOT / "CONTRIBUTING.md").read_text()
    counts = dict(re.findall(r"^\| (an operator|a protocol|an engine) \|.*?(\d+) files", text, re.M))
    assert counts == {heading: str(len(named(heading))) for heading in EXAMPLES}
