# SPDX-License-Identifier: Apache-2.0
"""What a user sees of a query on a terminal: a command whose standard error is a real one."""

import os
import pty
import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
COMMAND = [sys.executable, "-c", "from privml.cli import main; main()"]
ENVIRONMENT = {**os.environ, "OMP_NUM_THREADS": "1", "PYTHONPATH": str(ROOT), "TERM": "xterm", "COLUMNS": "120"}
CONTROLS = re.compile(r"\x1b\[[?0-9;]*[a-zA-Z]")


def seen(*arguments: str, cwd: Path) -> str:
    """Everything that ``privml *arguments`` writes to the terminal, without its control sequences."""
    reading, writing = pty.openpty()
    with subprocess.Popen(
        [*COMMAND, *arguments], cwd=cwd, env=ENVIRONMENT, stdout=subprocess.PIPE, stderr=writing
    ) as run:
        os.close(writing)
        found = b""
        try:
            while part := os.read(reading, 1 << 16):
                found += part
        except OSError:  # EIO: nobody has the other end open any more
            pass
        run.stdout.read()
    os.close(reading)
    assert run.returncode == 0, found
    return CONTROLS.sub("", found.decode())


def test_the_bar_moves_with_the_bytes_of_each_layer(tmp_path):
    text = seen("run", "model=mlp", "count=2", cwd=tmp_path)
    assert "starting the parties, agreeing on keys" in text
    steps = re.findall(r"(\d+)% [0-9:]+ +(?:[-0-9:]+ )?(\w+)", text)
    parts = [int(part) for part, _ in steps]
    labels = list(dict.fromkeys(label for _, label in steps))
    assert parts == sorted(parts) and (parts[0], parts[-1]) == (0, 100) and len(set(parts)) > 3, steps
    assert labels == ["fc1", "relu", "fc2", "relu_2", "fc3", "done"], steps
