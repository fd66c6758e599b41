# SPDX-License-Identifier: Apache-2.0
"""``model.torch=``: functions, files of weights, and what is refused."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from safetensors.torch import save_file

from privml.cli.own_models import own_module
from privml.errors import ConfigError

CODE = """\
import torch
from neighbour import WIDTH

def fresh():
    torch.manual_seed(1)
    return torch.nn.Linear(WIDTH, 2)

class Net(torch.nn.Sequential):
    def __init__(self):
        super().__init__(torch.nn.Linear(WIDTH, 2))

made = fresh()

def broken():
    return torch.zeros(3) @ torch.zeros(4)

def number():
    return 3
"""


@pytest.fixture
def hospital(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "code").mkdir()
    (tmp_path / "code" / "neighbour.py").write_text("WIDTH = 3\n")
    (tmp_path / "code" / "own_hospital.py").write_text(CODE)
    (tmp_path / "own_package.py").write_text("import torch\n\ndef trained():\n    return torch.nn.Linear(3, 2)\n")
    return "code/own_hospital.py"


@pytest.mark.parametrize("name", ["fresh", "Net", "made"])
def test_a_function_a_class_and_a_module_of_a_file(name, hospital):
    module = own_module(f"{hospital}:{name}", None)
    assert isinstance(module, torch.nn.Module) and not module.training and module(torch.zeros(1, 3)).shape == (1, 2)


def test_a_function_of_a_module_beside_the_call(hospital):
    assert isinstance(own_module("own_package:trained", None), torch.nn.Linear)


@pytest.mark.parametrize("form", ["safetensors", "pt", "within"])
def test_weights_go_into_the_module_that_the_factory_makes(form, hospital):
    weights = torch.nn.Linear(3, 2).state_dict()
    file = f"weights.{'safetensors' if form == 'safetensors' else 'pt'}"
    if form == "safetensors":
        save_file(weights, file)
    else:
        torch.save({"state_dict": weights, "epoch": 3} if form == "within" else weights, file)
    module = own_module(file, f"{hospital}:fresh")
    assert torch.equal(module.weight, weights["weight"]) and torch.equal(module.bias, weights["bias"])


class Executed:
    def __reduce__(self):
        return (exec, ("raise AssertionError('ran')",))


@pytest.mark.parametrize("factory", [True, False])
@pytest.mark.parametrize("what", ["module", "code"])
def test_pickled_objects_are_refused_with_the_remedy_and_not_run(what, factory, hospital):
    torch.save(torch.nn.Linear(3, 2) if what == "module" else Executed(), "whole.pt")
    with pytest.raises(ConfigError, match="holds pickled objects") as error:
        own_module("whole.pt", f"{hospital}:fresh" if factory else None)
    assert "torch.save(module.state_dict(), FILE)" in str(error.value) and "model.factory=" in str(error.value)


@pytest.mark.parametrize(
    "name, factory, words",
    [
        ("{}:fres", None, "has no fres; did you mean fresh?"),
        ("{}", None, "write MODULE:FUNCTION or FILE.py:FUNCTION"),
        ("absent.py:f", None, "no file absent.py"),
        ("absent_module:f", None, "ModuleNotFoundError"),
        ("{}:number", None, "int is not a torch.nn.Module"),
        ("{}:broken", None, r"RuntimeError: .*own_hospital.py, line 15: return torch.zeros\(3\) @ torch.zeros\(4\)"),
        ("{}:fresh", "{}:fresh", "is for a file of weights"),
        ("absent.pt", "{}:fresh", "absent.pt: no such file"),
        ("empty.pt", "{}:fresh", "not a file of weights that torch.save wrote"),
        ("text.pt", "{}:fresh", "not a file of weights that torch.save wrote"),
        ("list.pt", "{}:fresh", "holds no weights by name"),
        ("wide.pt", "{}:fresh", "the weights do not fit the module of .*size mismatch for weight"),
        ("wide.pt", None, "holds weights alone: add model.factory="),
    ],
)
def test_what_cannot_be_a_model_is_one_message_that_names_the_setting(name, factory, words, hospital):
    for file, text in (("empty.pt", ""), ("text.pt", "weights")):
        Path(file).write_text(text)
    torch.save([1, 2], "list.pt")
    torch.save(torch.nn.Linear(5, 2).state_dict(), "wide.pt")
    with pytest.raises(ConfigError, match=words) as error:
        own_module(name.format(hospital), factory and factory.format(hospital))
    assert "model." in str(error.value) and len(str(error.value).splitlines()) == 1


def test_a_slip_in_the_users_file_is_told_with_its_line(hospital, tmp_path):
    (tmp_path / "slip.py").write_text("import torch\n\ndef f(:\n")
    with pytest.raises(ConfigError, match=r"SyntaxError: .*slip.py, line 3\)"):
        own_module("slip.py:f", None)
