# SPDX-License-Identifier: Apache-2.0
"""What `make demo` prints: at most 40 lines, with the digits, the answers, and what each side learns and spends."""

import subprocess
import sys
from pathlib import Path

from patience import PATIENCE

ROOT = Path(__file__).resolve().parents[2]


def test_the_demo_shows_what_the_user_gains(tmp_path):
    # Processes as a shell starts them, for nothing else in the check of a change runs the demo as users do.
    demo = [sys.executable, str(ROOT / "scripts" / "demo.py")]
    done = subprocess.run(demo, cwd=tmp_path, capture_output=True, encoding="utf-8", timeout=PATIENCE)
    assert done.returncode == 0, done.stderr
    lines = done.stdout.splitlines()
    assert len(lines) <= 40 and max(map(len, lines)) <= 120
    assert lines[-1] == "all secure answers equal the clear ones"
    answers = {
        name: [line.split()[-5:] for line in lines if line.startswith(name)]
        for name in ("secure answer", "clear model")
    }
    assert answers["secure answer"] == answers["clear model"] and len(answers["clear model"]) == 2
    digits = [line for line in lines if set(line) <= set(" ▀▄█") and line.strip()]
    assert len(digits) == 10
    table = "\n".join(lines)
    for row in ("the server learns", "the client learns", "right answers", "sent", "seconds"):
        assert row in table[table.index("What privacy gives and costs") :]
