# SPDX-License-Identifier: Apache-2.0
"""The commands of README and the guides work as they are written, in an empty folder; `scripts/follow_guides.py`
measures how long each takes."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "scripts")]

import follow_guides  # noqa: E402


def test_commands_are_taken_from_the_blocks_of_a_page():
    page = """
```
privml serve program=a/program \\
  weights=w listen=127.0.0.1:9000       # waits
privml query program=a/program server=127.0.0.1:9000
make demo
```
```python
privml run model=python
```
    privml cost model=lenet link=wan         # bytes
    privml cost model=lenet calibrate=all

```
privml convert model.onnx=net.onnx out=net
```
"""
    assert list(follow_guides.blocks(page)) == [
        [
            "privml serve program=a/program    weights=w listen=127.0.0.1:9000",
            "privml query program=a/program server=127.0.0.1:9000",
        ],
        ["privml cost model=lenet link=wan"],
    ]


def test_each_page_has_commands_to_run():
    found = {page: sum(map(len, follow_guides.blocks((ROOT / page).read_text()))) for page in follow_guides.PAGES}
    assert min(found.values()) >= 4 and sum(found.values()) >= 18


def test_a_command_that_fails_is_reported(monkeypatch, tmp_path, capsys):
    (tmp_path / "page.md").write_text("```\nprivml certs init folder=made\nprivml certs show file=missing.pem\n```\n")
    monkeypatch.setattr(follow_guides, "ROOT", tmp_path)
    monkeypatch.setenv("PYTHONPATH", str(ROOT))
    reader = follow_guides.Reader(tmp_path)
    reader._environment["PYTHONPATH"] = str(ROOT)
    first, second = reader.follow("page.md")
    assert first.right and not second.right and "missing.pem" in second.output


def test_a_page_alone_begins_with_the_commands_that_make_its_files(tmp_path):
    reader = follow_guides.Reader(tmp_path)
    assert [line.split()[0] for line in reader._missing()] == ["privml", "python"]
    for name in follow_guides.MADE:
        assert any(name.split("/")[0].split(".")[0] in line for line in reader._missing())
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).touch()
    assert reader._missing() == []


@pytest.mark.slow
@pytest.mark.parametrize("page", follow_guides.PAGES)
def test_a_new_user_can_follow_a_guide(page):
    command = [sys.executable, ROOT / "scripts" / "follow_guides.py", page]
    done = subprocess.run(command, capture_output=True, text=True)
    print(done.stdout)
    assert done.returncode == 0, done.stderr
