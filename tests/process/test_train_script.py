# SPDX-License-Identifier: Apache-2.0
"""scripts/train.py as users start it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]


@pytest.mark.parametrize("how", [["engine=plain"], ["processes=true"]], ids=["plain", "three processes"])
def test_training_follows_the_clear_loop(how, tmp_path):
    pytest.importorskip("mlxtend")
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "PYTHONPATH": str(ROOT)}
    command = [sys.executable, str(ROOT / "scripts/train.py"), *how, "steps=3", "batch=8", f"out={tmp_path}"]
    done = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=240)
    assert done.returncode == 0, done.stderr
    report, *steps = [json.loads(line) for line in (tmp_path / "losses.jsonl").read_text().splitlines()]
    assert len(steps) == 3 and len({step["clear"] for step in steps}) == 3
    assert max(abs(step["clear"] - step["secret"]) for step in steps) < 0.01
    assert (report["online_bytes_per_step"] > 0) == (how != ["engine=plain"])
    assert (tmp_path / "losses.png").stat().st_size > 1000
