# SPDX-License-Identifier: Apache-2.0
"""What `make demo` prints: at most 40 lines, with the digits, the answers, and what each side learns and spends."""

from pathlib import Path

from commands import run

ROOT = Path(__file__).resolve().parents[2]


def test_the_demo_shows_what_the_user_gains(tmp_path):
    lines = run(str(ROOT / "scripts" / "demo.py"), cwd=tmp_path).stdout.splitlines()
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
