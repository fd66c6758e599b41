# SPDX-License-Identifier: Apache-2.0
"""Processes of these tests are told apart although the system uses their numbers again."""

import json
import sys

import fault_parties
from fault_parties import Spawner


def test_a_process_with_the_number_of_an_ended_one_still_runs(tmp_path, monkeypatch):
    reports = [{"pid": 0}, {"pid": 7}, {"pid": 7, "status": 1}, {"pid": 7}]
    text = "\n".join(map(json.dumps, reports))
    spawner = tmp_path / "spawner.py"
    spawner.write_text(f"import sys\nprint({text!r}, flush=True)\nsys.stdin.read()\n")
    popen = fault_parties.subprocess.Popen
    monkeypatch.setattr(
        fault_parties.subprocess, "Popen", lambda words, **more: popen([sys.executable, spawner], **more)
    )
    with Spawner() as started:
        first, second = started.start(["serve"], tmp_path), started.start(["serve"], tmp_path)
        assert first.pid == second.pid == 7
        assert first.wait(10) == 1 and second.status is None
