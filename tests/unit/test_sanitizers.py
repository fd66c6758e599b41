# SPDX-License-Identifier: Apache-2.0
"""The tests that `make sanitize` leaves out exist, and the others of their suites run."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
LIST = ROOT / "csrc" / "values_only.txt"
LEFT_OUT = [line for line in LIST.read_text().splitlines() if line and not line.startswith("#")]

# Suites that run no protocol: all their tests compare numbers of cost functions.
OF_COSTS = {"PublishedCosts", "RealNumberCosts"}


@pytest.fixture(scope="module")
def tests() -> set[str]:
    """Names of all C++ tests, as Suite.Test."""
    sources = "\n".join(path.read_text() for path in (ROOT / "csrc").rglob("*_test.cpp"))
    return {
        f"{suite}.{name}" for suite, name in re.findall(r"^TEST(?:_[FP])?\((\w+),\s+(\w+)\)", sources, re.MULTILINE)
    }


@pytest.fixture(scope="module")
def expression() -> re.Pattern[str]:
    """What `make sanitize` hands to ctest's -E."""
    planned = subprocess.run(
        ["make", "--dry-run", "sanitize"], cwd=ROOT, capture_output=True, text=True, check=True
    ).stdout
    (command,) = [line for line in planned.replace("\\\n", " ").splitlines() if "ctest" in line]
    script = f'set -- {command[command.index(" -E ") + 4 :]}; printf %s "$1"'
    return re.compile(
        subprocess.run(["bash", "-c", script], cwd=ROOT, capture_output=True, text=True, check=True).stdout
    )


def test_each_name_is_that_of_a_test(tests: set[str]) -> None:
    assert [name for name in LEFT_OUT if ".".join(name.split(".")[:2]) not in tests] == []


def test_names_are_sorted_and_none_is_there_twice() -> None:
    assert sorted(set(LEFT_OUT)) == LEFT_OUT


def test_exactly_the_list_is_left_out(tests: set[str], expression: re.Pattern[str]) -> None:
    everything = tests | set(LEFT_OUT)
    assert {name for name in everything if expression.search(name)} == set(LEFT_OUT)


def test_each_suite_keeps_a_test(tests: set[str]) -> None:
    kept = {name.split(".")[0] for name in tests - set(LEFT_OUT)} | OF_COSTS
    assert [name for name in LEFT_OUT if name.split(".")[0] not in kept] == []


def test_no_test_of_altered_messages_is_left_out() -> None:
    assert [name for name in LEFT_OUT if re.search("Tampering|Malformed|Flipped", name)] == []
