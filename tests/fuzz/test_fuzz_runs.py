# SPDX-License-Identifier: Apache-2.0
"""Runs of the fuzzers by scripts/fuzz.py: several targets at a time, what is kept of them, and runs that go on."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

sys.path[:0] = [str(Path(__file__).parents[2] / "scripts")]
import fuzz  # noqa: E402

# Ends when as many of its kind have begun as there are targets; what libFuzzer says at the end, and its status.
TARGET = """#!/bin/sh
touch "{begun}/$(basename "$0")"
while [ "$(ls "{begun}" | wc -l)" -lt {together} ]; do sleep 0.01; done
echo "#1234 DONE   cov: 56 ft: 78 corp: 9/1Kb exec/s: 12 rss: 40Mb" >&2
exit {status}
"""


@pytest.fixture
def place(tmp_path, monkeypatch):
    """Folders of a run of its own, with the compiled targets alpha and beta."""
    for name in ("BUILD", "CORPUS", "FOUND"):
        (tmp_path / name.lower()).mkdir()
        monkeypatch.setattr(fuzz, name, tmp_path / name.lower())
    monkeypatch.setattr(fuzz, "RESULTS", tmp_path / "fuzz.jsonl")
    monkeypatch.setattr(fuzz, "DONE", tmp_path / "done.json")
    monkeypatch.setattr(fuzz, "compiled_targets", lambda: ["alpha", "beta"])
    monkeypatch.setattr(fuzz, "python_targets", lambda: [])
    monkeypatch.setenv("JOBS", "2")
    (tmp_path / "begun").mkdir()
    return tmp_path


def build(place, name, status=0, together=1):
    script = place / "build" / f"fuzz_{name}"
    script.write_text(TARGET.format(begun=place / "begun", together=together, status=status))
    script.chmod(0o755)


def kept():
    return [json.loads(line) for line in fuzz.RESULTS.read_text().splitlines()]


def test_two_targets_run_at_once(place):
    for name in ("alpha", "beta"):
        build(place, name, together=2)
    assert fuzz.main(5, []) == 0
    assert [row["target"] for row in kept()] == ["alpha", "beta"]
    for row in kept():
        assert row["seconds"] >= 0 and row["findings"] == []
        assert (row["executions"], row["coverage"], row["covers"], row["inputs"]) == (1234, 56, "edges", 9)


def test_a_run_goes_on_where_it_was_interrupted(place, capsys):
    build(place, "alpha")
    build(place, "beta", status=72)  # as libFuzzer ends when it is interrupted
    assert fuzz.main(5, []) == 130
    assert [row["target"] for row in kept()] == ["alpha"], "a target that was cut short is not kept"
    build(place, "beta")
    (place / "build" / "fuzz_alpha").unlink()
    assert fuzz.main(5, ["resume"]) == 0
    assert [row["target"] for row in kept()] == ["alpha", "beta"]
    assert "1 of 2 targets for 5 seconds each, 2 at a time" in capsys.readouterr().out
    with pytest.raises(FileNotFoundError):  # longer: all of them anew
        fuzz.main(6, ["resume"])


def test_a_finding_is_kept_and_ends_the_run_with_an_error(place):
    build(place, "alpha", status=77)
    assert fuzz.main(5, ["alpha"]) == 1
    (row,) = kept()
    assert row["findings"] == [f"see {place / 'build' / 'alpha.log'}"]
    build(place, "alpha")
    assert fuzz.main(5, ["alpha"]) == 0
    (row,) = kept()
    assert row["findings"] == [], "the newest outcome of a target"


def test_unknown_targets_are_refused(place):
    with pytest.raises(SystemExit, match="no target gamma"):
        fuzz.main(5, ["gamma"])
