# SPDX-License-Identifier: Apache-2.0
"""What models do with the k nearest and the k best: neighbours of skl2onnx and of PyTorch, and a search of beams."""

import functools

import numpy as np
import pytest
import torch
from skl2onnx import to_onnx
from sklearn.datasets import load_iris
from sklearn.neighbors import KNeighborsClassifier

import privml
from privml.errors import UnsupportedOperator

ROWS, NEIGHBOURS, BEAMS, WORDS = 24, 3, 3, 12


@functools.cache
def flowers():
    x, y = load_iris(return_X_y=True)
    order = np.random.RandomState(0).permutation(len(x))
    return x[order].astype(np.float32), y[order]


class Neighbours(torch.nn.Module):
    """The votes of the nearest rows, looked up at secret places."""

    def __init__(self):
        super().__init__()
        x, y = flowers()
        self.rows = torch.nn.Parameter(torch.from_numpy(x[:ROWS]))
        self.votes = torch.nn.Parameter(torch.eye(3)[y[:ROWS]])

    def forward(self, x):
        distances = (x[:, None] - self.rows).square().sum(2)
        return self.votes[distances.topk(NEIGHBOURS, 1, largest=False).indices].sum(1)


class Beams(torch.nn.Module):
    """Two words after a state, the best of all pairs: as decoders of sequences search."""

    def __init__(self):
        super().__init__()
        self.first, self.after = torch.nn.Linear(6, WORDS), torch.nn.Embedding(WORDS, WORDS)

    def forward(self, state):
        first = torch.log_softmax(self.first(state), -1).topk(BEAMS, -1)
        after = torch.log_softmax(self.after(first.indices), -1)
        best = (first.values[..., None] + after).flatten(1).topk(BEAMS, -1)
        beam, word = best.indices // WORDS, best.indices % WORDS
        return torch.stack([first.indices.gather(1, beam), word], -1), best.values


def neighbours():
    x, _ = flowers()
    model = Neighbours().eval()
    x = torch.from_numpy(x)
    return model, x[ROWS:80], x[80:], model(x[80:]).detach().argmax(1)


def beams():
    torch.manual_seed(0)
    model = Beams().eval()
    states = torch.randn(96, 6)
    return model, states[:64], states[64:], model(states[64:])[0]


def from_onnx():
    x, y = flowers()
    estimator = KNeighborsClassifier(NEIGHBOURS).fit(x[:ROWS], y[:ROWS])
    model = to_onnx(estimator, x[:1], options={"zipmap": False}, target_opset={"": 17, "ai.onnx.ml": 3})
    return model, torch.from_numpy(x[ROWS:80]), torch.from_numpy(x[80:]), torch.from_numpy(estimator.predict(x[80:]))


MODELS = {"PyTorch": neighbours, "skl2onnx": from_onnx, "beams": beams}


@functools.cache
def converted(name):
    model, calibration, x, expected = MODELS[name]()
    return privml.convert(model, calibration=calibration), x, expected


def answer(name, program, x, engine, **options):
    with privml.local(engine, bits=program.numerics.bits, scale=program.numerics.scale, **options) as session:
        before = session.ledger.snapshot()
        results = program.run(session, x)
        first = results[0] if isinstance(results, tuple) else results
        found = privml.reveal(first)
        spent = (session.ledger.snapshot() - before).online.bytes
    return found.argmax(1) if name == "PyTorch" else found, spent


@pytest.mark.parametrize("name", MODELS)
def test_the_k_best_are_those_of_the_clear_model(name):
    program, x, expected = converted(name)
    found, _ = answer(name, program, x, "plain")
    assert (found == expected).reshape(len(x), -1).all(1).double().mean() > 0.95


@pytest.mark.parametrize("name", MODELS)
def test_engines_choose_the_plain_ones(name):
    program, x, _ = converted(name)
    expected = answer(name, program, x[:2], "plain")[0]
    assert torch.equal(answer(name, program, x[:2], "twopc", ot="ideal")[0], expected)
    like = answer(name, program, x[:2], "plain", like="threepc")[0]
    found, spent = answer(name, program, x[:2], "threepc", truncation="exact")
    assert torch.equal(found, like)
    assert answer(name, program, x[2:4], "threepc", truncation="exact")[1] == spent > 0


class Anywhere(Neighbours):
    def forward(self, x):
        return self.votes[(x * self.rows[0]).sum(1).abs().long()]


def test_places_of_unknown_size_are_refused():
    x, _ = flowers()
    with pytest.raises(UnsupportedOperator, match="places that sort, topk or argmax found"):
        privml.convert(Anywhere().eval(), calibration=torch.from_numpy(x[:16]) / 10)
