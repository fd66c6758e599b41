# SPDX-License-Identifier: Apache-2.0
"""The examples of docs/training.md, as they stand there."""

import contextlib
import io
import re
from pathlib import Path

import pytest
import torch

DOCUMENT = Path(__file__).resolve().parents[2] / "docs" / "training.md"
EXAMPLES = re.findall(r"^```python\n(.*?)^```", DOCUMENT.read_text(), re.M | re.S)


@pytest.mark.parametrize("number", range(len(EXAMPLES)))
def test_example(number, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    torch.set_num_threads(1)
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        exec(compile(EXAMPLES[number], f"example {number}", "exec"), {})
    lines = printed.getvalue().splitlines()
    if number < 2:  # both learn
        losses = [float(line) for line in lines]
        assert len(losses) >= 3 and losses[-1] < losses[0] - 0.02
    else:
        assert lines == ["tensor([1., 2.])"]


def test_the_example_of_the_readme():
    text = (DOCUMENT.parents[1] / "README.md").read_text()
    (example,) = [e for e in re.findall(r"^```python\n(.*?)^```", text, re.M | re.S) if "backward()" in e]
    scope = {"torch": torch, "privml": __import__("privml")}
    exec(compile(example, "README.md", "exec"), scope)
    assert all(parameter.grad is not None for parameter in scope["model"].parameters())


def test_there_is_an_example_for_each_way():
    text = DOCUMENT.read_text()
    assert len(EXAMPLES) == 3 and "loss.backward()" in EXAMPLES[0] and "compile_step" in EXAMPLES[1]
    assert "privml train" in text
