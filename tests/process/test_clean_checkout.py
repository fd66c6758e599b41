# SPDX-License-Identifier: Apache-2.0
"""Commands with their default settings change no tracked file and leave nothing that git would add."""

from __future__ import annotations

import os
import shutil
import subprocess
from dataclasses import fields
from pathlib import Path

import pytest
from commands import run as privml

from privml.cli.schemas import SCHEMAS

ROOT = Path(__file__).resolve().parents[2]
COMMANDS = {
    "bench": ("suite=twopc", "op=relu32", "n=64", "repeats=1"),
    "evaluate": ("zoo", "model=diabetes", "engine=plain"),
    "experiment": ("model=diabetes", "engine=plain", "count=2"),
    "run": ("model=diabetes", "engine=plain"),
    "cost": ("model=diabetes",),
}


def git(folder: Path, *words: str) -> str:
    return subprocess.run(["git", "-C", folder, *words], capture_output=True, text=True, check=True).stdout


def records() -> dict[Path, tuple[int, int]]:
    """Size and time of every file of tracked results and cards."""
    files = [*(ROOT / "benchmarks" / "results").iterdir(), *(ROOT / "models").glob("*/README.md")]
    return {file: (file.stat().st_size, file.stat().st_mtime_ns) for file in files}


@pytest.fixture
def checkout(tmp_path):
    """A repository with what this one ignores, and tracked results of its own."""
    git(tmp_path, "init", "-q")
    shutil.copy(ROOT / ".gitignore", tmp_path)
    (tmp_path / "benchmarks" / "results").mkdir(parents=True)
    for name in ("twopc.jsonl", "zoo.jsonl"):
        (tmp_path / "benchmarks" / "results" / name).write_text("")
    git(tmp_path, "add", "-A")
    git(tmp_path, "-c", "user.name=a", "-c", "user.email=a@b", "commit", "-qm", "first")
    return tmp_path


@pytest.mark.parametrize("verb", COMMANDS)
def test_a_run_leaves_the_checkout_as_it_was(verb, checkout):
    before = records()
    privml(verb, *COMMANDS[verb], cwd=checkout)
    assert git(checkout, "status", "--porcelain") == "" and records() == before
    if verb in ("bench", "evaluate"):
        name = {"bench": "twopc", "evaluate": "zoo"}[verb]
        assert (Path(os.environ["PRIVML_CACHE"]) / "results" / f"{name}.jsonl").read_text()


def test_results_names_the_records_to_update(checkout):
    privml("bench", *COMMANDS["bench"], "results=benchmarks/results", cwd=checkout)
    privml("evaluate", *COMMANDS["evaluate"], "results=benchmarks/results/zoo.jsonl", cwd=checkout)
    changed = {line.split()[-1] for line in git(checkout, "status", "--porcelain").splitlines()}
    assert changed == {"benchmarks/results/twopc.jsonl", "benchmarks/results/zoo.jsonl"}


def test_cards_show_the_records_that_are_named(checkout):
    done = privml("evaluate", "zoo", "measure=false", "cards=true", cwd=checkout, check=False)
    assert done.returncode == 1 and "results=benchmarks/results/zoo.jsonl" in done.stderr


def test_no_setting_is_a_tracked_folder_unless_it_is_given():
    defaults = [(verb, each.name, each.default) for verb, schema in SCHEMAS.items() for each in fields(schema)]
    assert len(defaults) > 100
    assert not [each for each in defaults if str(each[2]).startswith("benchmarks")]
