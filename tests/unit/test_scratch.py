# SPDX-License-Identifier: Apache-2.0
"""Folders between the processes of a run: gone with it, or at the next run if it was killed."""

from __future__ import annotations

import os
import subprocess
import sys
import time

from privml.measure.scratch import scratch_folder

KILLED = """
import os, pathlib, signal, sys
from privml.measure.scratch import scratch_folder
with scratch_folder(pathlib.Path(sys.argv[1])) as folder:
    (folder / "weights").write_text("secret")
    os.kill(os.getpid(), signal.SIGKILL)
"""


def aged(folder):
    long_ago = time.time() - 3600
    os.utime(folder, (long_ago, long_ago))


def test_a_folder_goes_with_its_run(tmp_path):
    with scratch_folder(tmp_path) as folder:
        assert folder.parent == tmp_path and folder.stat().st_mode & 0o077 == 0
        (folder / "file").write_text("x")
    assert list(tmp_path.iterdir()) == []


def test_the_folder_of_a_killed_run_goes_at_the_next_one_and_no_other(tmp_path):
    subprocess.run([sys.executable, "-c", KILLED, str(tmp_path)], check=False)
    (left,) = tmp_path.iterdir()
    assert (left / "weights").exists()
    (tmp_path / "others").mkdir()
    with scratch_folder(tmp_path) as running:
        assert left.exists(), "so young a folder may not be locked yet"
        aged(left)
        aged(running)
        with scratch_folder(tmp_path):
            assert not left.exists() and running.exists(), "a run that goes on keeps its own"
    assert [path.name for path in tmp_path.iterdir()] == ["others"]
