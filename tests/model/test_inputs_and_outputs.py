# SPDX-License-Identifier: Apache-2.0
"""Models with several inputs, states, names and output classes, as users have them; and what is said if they fail."""

import dataclasses

import numpy as np
import pytest
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

import privml
from privml.errors import ConfigError, InvalidInput


def answers(program, *inputs):
    with privml.local("plain", bits=program.numerics.bits, scale=program.numerics.scale) as session:
        found = program.run(session, *inputs)
        return tuple(privml.reveal(x) for x in (found if isinstance(found, tuple) else (found,)))


class Stateful(nn.Module):
    """ids [n, 5] int64, state [1, n, 8]: no common first dimension, and one input is of integers."""

    def __init__(self):
        super().__init__()
        self.table, self.layer, self.head = nn.Embedding(10, 8), nn.Linear(16, 8), nn.Linear(8, 3)

    def forward(self, ids, state):
        hidden = torch.tanh(self.layer(torch.cat([self.table(ids).mean(1), state[0]], 1)))
        return self.head(hidden), hidden.unsqueeze(0)


@pytest.fixture(scope="module")
def stateful():
    torch.manual_seed(0)
    return Stateful().eval(), {"ids": torch.randint(0, 10, (4, 5)), "state": torch.randn(1, 4, 8)}


@pytest.fixture(scope="module")
def program(stateful):
    return privml.convert(stateful[0], calibration=stateful[1])


def test_states_have_their_batch_elsewhere(stateful, program):
    assert [spec.shape for spec in program.inputs] == [(None, 5), (1, None, 8)]
    assert program.inputs[0].dtype is torch.int64
    model, inputs = stateful
    with torch.no_grad():
        for found, clear in zip(answers(program, inputs), model(**inputs), strict=True):
            torch.testing.assert_close(found, clear, atol=0.02, rtol=0)


def test_a_batch_of_another_size(stateful, program):
    model, inputs = stateful
    fewer = inputs["ids"][:2], inputs["state"][:, :2]
    with torch.no_grad():
        torch.testing.assert_close(answers(program, *fewer)[0], model(*fewer)[0], atol=0.02, rtol=0)


def test_inputs_go_by_name(stateful, program):
    _, inputs = stateful
    turned = dict(reversed(inputs.items()))
    assert all(torch.equal(a, b) for a, b in zip(answers(program, turned), answers(program, inputs), strict=True))
    with pytest.raises(InvalidInput, match="without state and with mask: the program takes ids, state"):
        answers(program, {"ids": inputs["ids"], "mask": inputs["ids"]})


def test_cost_is_asked_for_all_inputs(program):
    assert program.shapes(3) == ((3, 5), (1, 3, 8))
    spec = privml.SessionSpec.of(engine="twopc")
    assert program.cost(program.shapes(2), spec).snapshot().total.bytes > 0


class Scores(nn.Module):
    def __init__(self, result):
        super().__init__()
        self.layer, self.result = nn.Linear(4, 3), result

    def forward(self, x, use_cache=True):
        return self.result(self.layer(x), use_cache)


@dataclasses.dataclass
class Result:
    hidden: torch.Tensor
    logits: torch.Tensor
    cache: object = None


RESULTS = {
    "mapping": lambda y, cache: {"hidden": y * 2, "logits": y},
    "data class": lambda y, cache: Result(y * 2, y, object() if cache else None),
    "with None": lambda y, cache: (y, None),
    "with a cache": lambda y, cache: (y, object()) if cache else (y,),
}


@pytest.mark.parametrize("kind", RESULTS)
def test_outputs_are_unwrapped(kind):
    torch.manual_seed(0)
    model, x = Scores(RESULTS[kind]).eval(), torch.randn(8, 4)
    found = answers(privml.convert(model, calibration=x), x)
    assert len(found) == 1
    torch.testing.assert_close(found[0], model.layer(x), atol=0.02, rtol=0)


def test_other_fields_on_demand():
    torch.manual_seed(0)
    model, x = Scores(RESULTS["mapping"]).eval(), torch.randn(8, 4)
    found = answers(privml.convert(model, calibration=x, outputs=("hidden", "logits")), x)
    torch.testing.assert_close(found[0], 2 * found[1], atol=0.05, rtol=0)
    with pytest.raises(ConfigError, match="the model returns the tensors"):
        privml.convert(model, calibration=x, outputs="scores")
    with pytest.raises(ConfigError, match="no option 'output'"):
        privml.convert(model, calibration=x, output="logits")


def test_a_loader_calibrates():
    torch.manual_seed(0)
    model, x = nn.Linear(4, 3).eval(), torch.randn(40, 4)
    loader = DataLoader(TensorDataset(x, torch.zeros(40)), batch_size=16)  # with labels
    whole, batches = privml.convert(model, calibration=x), privml.convert(model, calibration=loader)
    assert batches.hash == whole.hash
    assert privml.convert(model, calibration=x.numpy()).hash == whole.hash
    with pytest.raises(InvalidInput, match="or a DataLoader"):
        privml.convert(model, calibration=3)


# ---- what fails is said in one line, with file and line
class Failing(nn.Module):
    def __init__(self, run):
        super().__init__()
        self.run = run

    def forward(self, x):
        return self.run(x)


def by_value(x):
    if x.sum() > 0:
        return x
    return x * 2


FAILURES = {
    "branch": (by_value, r"depends on a tensor's value at .*test_inputs_and_outputs.py:\d+: if x.sum\(\) > 0.*where"),
    "slice": (lambda x: x[:, : int(x[0, 0])], r"depends on a tensor's value at .*test_inputs_and_outputs.py:\d+"),
    "shape": (lambda x: x @ torch.ones(7, 2), r"fails on example inputs of shapes \(1, 4\): RuntimeError.*py:\d+"),
    "index": (lambda x: x[:, 9], r"fails on example inputs .*IndexError.*test_inputs_and_outputs.py:\d+"),
}


@pytest.mark.parametrize("kind", FAILURES)
def test_errors_name_the_users_line(kind, capfd, logged):
    function, message = FAILURES[kind]
    with pytest.raises(InvalidInput, match=message) as caught:
        privml.convert(Failing(function).eval(), calibration=torch.ones(4, 4))
    assert "\n" not in str(caught.value)
    assert capfd.readouterr().out == "" and not logged


def test_a_batch_that_is_fixed_is_told():
    model = Failing(lambda x: x.reshape(4, 2, 2) * 1.5 if x.shape[0] == 4 else x * 2).eval()
    with pytest.warns(UserWarning, match="the batch is fixed at 4, as in the example inputs"):
        program = privml.convert(model, torch.randn(4, 4), calibration=torch.randn(8, 4))
    assert program.inputs[0].shape == (4, 4) and "fixed at 4" in program.notes[0]


def test_a_batch_that_operators_fix_is_told_as_it_is():
    cell, rows = nn.GRUCell(3, 4).eval(), (torch.randn(1, 3), torch.randn(1, 4))
    with pytest.warns(UserWarning, match="the batch is fixed at 1, as in the example inputs"):
        program = privml.convert(cell, rows, calibration=rows)
    assert program.inputs[0].shape == (1, 3)


def test_arrays_keep_whole_numbers():
    table = nn.Embedding(6, 3).eval()
    program = privml.convert(table, calibration=np.arange(6).reshape(2, 3), token_ids="public")
    assert program.inputs[0].dtype is torch.int64


@pytest.mark.parametrize("way", ["secret", "client", "public"])
def test_numbers_that_are_no_ids_are_refused(way):
    torch.manual_seed(0)
    model, ids = nn.Sequential(nn.Embedding(6, 4), nn.Linear(4, 3)).eval(), torch.randint(0, 6, (16, 2))
    program = privml.convert(model, calibration=ids, token_ids=way)
    for value in (4.5, float("nan")):
        wrong = torch.tensor([[1.0, value]])
        with pytest.raises(InvalidInput, match=r"input .*values must be int64, and input index \(0, 1\) is not"):
            answers(program, wrong)
    assert torch.equal(answers(program, ids[:2].float())[0], answers(program, ids[:2])[0])
