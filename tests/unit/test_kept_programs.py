# SPDX-License-Identifier: Apache-2.0
"""Programs of shipped models that are kept: what is converted again, and what is not."""

from __future__ import annotations

import os
import subprocess
import sys
from dataclasses import replace

import numpy as np
import onnx
import pytest
import torch
from onnx import helper, numpy_helper

import privml
from privml.cli import kept as kept_programs
from privml.cli.kept import kept
from privml.measure.machine import cache_folder

DATA = torch.linspace(-1, 1, 12).reshape(3, 4)
SETTINGS = {"numerics": {"bits": 32}}


@pytest.fixture
def model() -> torch.nn.Module:
    torch.manual_seed(0)
    return torch.nn.Sequential(torch.nn.Linear(4, 3), torch.nn.ReLU(), torch.nn.Linear(3, 2)).eval()


@pytest.fixture
def program(model):
    return privml.convert(model, calibration=DATA, **SETTINGS)


@pytest.fixture
def ask(monkeypatch, tmp_path, model, program):
    """ask(...): the kept program of the model or of what is given in its place, and whether it was converted anew."""
    monkeypatch.setenv("PRIVML_CACHE", str(tmp_path / "cache"))

    def ask(model=model, data=DATA, settings=SETTINGS, result=program):
        made = []
        found = kept(model, data, settings, lambda: made.append(1) or result)
        return found, bool(made)

    return ask


def entries():
    return list((cache_folder() / "programs").iterdir())


@pytest.mark.parametrize("other", [torch.nn.Tanh(), torch.nn.ReLU6()])
def test_another_model_with_the_same_weights_is_converted_anew(ask, model, other):
    assert ask()[1] and ask(torch.nn.Sequential(model[0], other, model[2]).eval())[1] and not ask()[1]


def test_another_class_of_the_same_parts_is_converted_anew(ask, model):
    class Other(torch.nn.Sequential):
        def forward(self, x):
            return -super().forward(x)

    assert ask()[1] and ask(Other(*model).eval())[1]


def test_what_was_converted_once_is_read_the_second_time_and_is_the_same(ask, program):
    assert ask() == (program, True)
    found, anew = ask()
    assert not anew and found is not program
    assert found.hash == program.hash and found.formats_hash == program.formats_hash
    assert found.choice == program.choice and found.notes == program.notes
    assert found.weights.keys() == program.weights.keys()
    assert all(torch.equal(value, program.weights[name]) for name, value in found.weights.items())
    assert all(file.stat().st_mode & 0o077 == 0 for file in entries()[0].glob("*.safetensors"))


def test_other_weights_data_and_settings_are_converted_anew(ask, model):
    ask()
    assert ask(data=DATA + 1)[1] and ask(settings={"numerics": {"bits": 40}})[1]
    with torch.no_grad():
        model[0].bias[0] += 1
    assert ask()[1] and not ask()[1]
    assert len(entries()) == 4


def test_files_are_told_apart_by_what_they_hold(ask, tmp_path):
    path = tmp_path / "model.onnx"
    path.write_bytes(b"one")
    assert ask(model=str(path))[1] and not ask(model=str(path))[1]
    path.write_bytes(b"two")
    assert ask(model=str(path))[1]


def test_other_code_and_versions_convert_anew(ask, monkeypatch, tmp_path):
    ask()
    monkeypatch.setattr(kept_programs, "_versions", lambda: {"torch": "0.0"})
    assert ask()[1]
    (tmp_path / "models").mkdir()
    (tmp_path / "models" / "new.py").write_text("LAYERS = 3\n")
    monkeypatch.setattr(kept_programs, "models_folder", lambda: tmp_path / "models")
    assert ask()[1]
    (tmp_path / "models" / "new.py").write_text("LAYERS = 4\n")
    assert ask()[1] and not ask()[1]


@pytest.mark.parametrize("file", ["program", "weights.safetensors", "choice.json"])
@pytest.mark.parametrize("damage", ["truncated", "missing", "other"])
def test_a_damaged_entry_is_made_again(file, damage, ask):
    ask()
    path = entries()[0] / file
    content = path.read_bytes()
    path.unlink()
    if damage != "missing":
        path.write_bytes(content[: len(content) // 2] if damage == "truncated" else b"[]")
    assert ask()[1] and not ask()[1]


def test_an_error_beyond_the_tolerance_is_told_every_time(ask, program):
    program.choice = replace(program.choice, error=0.5)
    assert ask()[1] and ask()[1]


def test_without_a_folder_to_write_to_the_answer_is_the_same(ask, monkeypatch, tmp_path, program):
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("PRIVML_CACHE", str(tmp_path / "file"))
    assert ask() == (program, True)


def test_the_oldest_entries_go_first(ask, monkeypatch):
    ask()
    (first,) = entries()
    os.utime(first, (0, 0))
    size = sum(file.stat().st_size for file in first.iterdir())
    monkeypatch.setattr(kept_programs, "LARGEST", 2 * size + size // 2)
    ask(data=DATA + 1)
    assert len(entries()) == 2
    ask(data=DATA + 2)
    assert first not in entries() and len(entries()) == 2
    assert not ask(data=DATA + 1)[1] and ask()[1]


RUN = """
import sys
from privml.cli import main
sys.argv = ["privml"]
main(["run", "model=lenet", "engine=plain", "count=2"])
print("traced:", "torch._dynamo" in sys.modules)
"""


def test_a_second_run_traces_nothing_and_prints_the_same(tmp_path):
    environment = {**os.environ, "PRIVML_CACHE": str(tmp_path / "cache")}

    def printed():
        done = subprocess.run(
            [sys.executable, "-c", RUN], cwd=tmp_path, env=environment, capture_output=True, text=True, check=True
        )
        return done.stdout.rpartition("traced: ")[::2]

    (first, traced), (second, again) = printed(), printed()
    assert first == second and "same label as the clear model for 2 of 2" in first
    assert (traced.strip(), again.strip()) == ("True", "False")


def test_weights_beside_an_onnx_file_count(ask, tmp_path):
    weight = np.ones((4, 3), np.float32)
    inputs, outputs = ([helper.make_tensor_value_info(*each)] for each in (("x", 1, ["n", 4]), ("y", 1, ["n", 3])))
    graph = helper.make_graph(
        [helper.make_node("MatMul", ["x", "w"], ["y"])], "g", inputs, outputs, [numpy_helper.from_array(weight, "w")]
    )
    path = tmp_path / "m.onnx"
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    onnx.save(model, path, save_as_external_data=True, location="m.data", size_threshold=0)
    assert ask(str(path))[1] and not ask(str(path))[1]
    (tmp_path / "m.data").write_bytes((2 * weight).tobytes())
    assert ask(str(path))[1] and not ask(str(path))[1]
