# SPDX-License-Identifier: Apache-2.0
"""The comparison with SPU: says what it needs, and reads the other side's log; a script stands in for SPU."""

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("privml._core", reason="the C++ core is not built; run `make build`")

FOLDER = Path(__file__).parents[2] / "benchmarks"
SCRIPT = FOLDER / "compare_spu.py"
# Two runs of three parties, of seconds and bytes each; the first one warms up.
RUNS = [(9.5, 99)] * 3 + [(0.5, 1000), (0.25, 2000), (2.5e-1, 3000)]
LOG = "".join(
    f"[info] SPU execution f completed, input processing took 3e-06s, execution took {seconds}s, output\n"
    f"[info] Link details: total send bytes {count}, recv bytes 9, send actions 1\n"
    for seconds, count in RUNS
)


def compare(*arguments):
    return subprocess.run([sys.executable, str(SCRIPT), *arguments], capture_output=True, text=True, timeout=300)


def test_without_spu_it_says_what_to_do(tmp_path):
    done = compare(f"--spu={tmp_path}/python")
    assert done.returncode == 0 and "skipped" in done.stdout and "pip install spu" in done.stdout


def test_unknown_rows_are_refused():
    done = compare("--rows=less+lenet9")
    assert done.returncode == 2 and "no row 'lenet9'" in done.stderr


def test_seconds_and_bytes_of_all_parties(tmp_path):
    stand_in, lines = tmp_path / "python", tmp_path / "rows.jsonl"
    (tmp_path / "log").write_text(LOG + "largest error 0.001\n")
    stand_in.write_text(f'#!/bin/sh\n[ "$1" = -c ] || cat {tmp_path}/log\n')
    stand_in.chmod(0o755)
    done = compare(f"--spu={stand_in}", "--rows=less", f"--out={lines}")
    assert done.returncode == 0, done.stderr
    row = json.loads(lines.read_text())
    assert (row["peer"], row["peer_seconds"], row["peer_bytes"], row["peer_error"]) == ("ABY3", 0.5, 6000, 0.001)
    assert row["numerics"]["bits"] == 64 and row["numerics"]["scale"] == 18 and row["time"].endswith("Z")
    assert (row["ot"], row["linear"], row["tolerance"]) == (None, None, None)  # of two parties, and of networks
    assert row["error"] == 0 and row["bytes"] > 0 and row["times_faster"] == row["peer_seconds"] / row["seconds"]


def test_every_row_exists_on_both_sides():
    peers = re.findall(r'^    "(\w+)": lambda', (FOLDER / "spu_rows.py").read_text(), re.MULTILINE)
    rows = re.findall(r'(?:Row|network)\("\w+", "(\w+)"', SCRIPT.read_text())
    assert len(rows) >= 12 and set(rows) <= set(peers)
