# SPDX-License-Identifier: Apache-2.0
"""The shipped models of series, the transformer encoder and the support vector machine: files, cards and recipes
agree, and secure inference gives the clear models' answers."""

from functools import cache
from pathlib import Path

import numpy as np
import onnxruntime
import pytest
import torch
from safetensors import safe_open

import models
import privml
from models import encoder, motions, power, training, vowels

# Name -> (part of the shipped samples that the clear model gets right, at least; accuracy in the card).
SERIES = {"encoder": (0.98, "98.9%"), "motions": (1.0, "100.0%"), "power": (0.94, "96.9%"), "vowels": (0.95, "97.3%")}
MAKES = {"encoder": encoder.Encoder, "motions": motions.Motions, "power": power.Power, "vowels": vowels.Vowels}
# The package that ships the data.
DATA = {"encoder": "sklearn", "motions": "sktime", "power": "sktime", "vowels": "sktime"}
NAMES = [*SERIES, "tumours"]


def folder(name):
    return Path(models.__file__).parent / name


def clear_labels(model):
    x = model.preprocess(model.samples)
    if isinstance(model.module, str):
        session = onnxruntime.InferenceSession(model.module, providers=["CPUExecutionProvider"])
        return torch.from_numpy(session.run(None, {"x": x.numpy()})[0])
    with torch.no_grad():
        return model.module(x).argmax(1)


@pytest.mark.parametrize("name", NAMES)
def test_files_are_small_and_cards_complete(name):
    assert all(path.stat().st_size < 300_000 for path in folder(name).iterdir() if path.is_file())
    card = (folder(name) / "README.md").read_text()
    for part in ("Accuracy", "Secure accuracy", "**Data.**", "**Recipe.**", "**Files.**", "**Limits.**"):
        assert part in card


@pytest.mark.parametrize("name", NAMES)
def test_shipped_samples_are_answered_well(name):
    model = models.load(name)
    right = (clear_labels(model) == model.labels).float().mean()
    assert right >= (0.95 if name == "tumours" else SERIES[name][0])
    assert len(model.samples) == len(model.labels) >= 40 and len(model.calibration) >= 40
    assert torch.equal(model.example, model.preprocess(model.samples[:1]))


@pytest.mark.parametrize("name", SERIES)
def test_accuracy_on_the_test_split_is_what_the_card_says(name):
    pytest.importorskip(DATA[name])
    recipe = pytest.importorskip(f"models.{name}.train")
    model = models.load(name)
    reached = training.accuracy(model.module, model.preprocess, recipe.split()[1])
    with safe_open(folder(name) / "weights.safetensors", "pt") as file:
        assert abs(float(file.metadata()["test_accuracy"]) - reached) < 0.003
    assert SERIES[name][1] in (folder(name) / "README.md").read_text()
    assert abs(float(SERIES[name][1][:-1]) / 100 - reached) < 0.003


def test_the_machine_is_the_recipe_s():
    """Training is deterministic: the shipped file answers as a machine trained now."""
    pytest.importorskip("sklearn")
    from models.tumours import train

    training_cases, test_cases = train.split()
    machine, mean, deviation = train.train(training_cases)
    x = ((test_cases.values - mean) / deviation).numpy()
    model = models.load("tumours")
    session = onnxruntime.InferenceSession(model.module, providers=["CPUExecutionProvider"])
    assert np.array_equal(session.run(None, {"x": x})[0], machine.predict(x))
    assert machine.score(x, test_cases.labels.numpy()) == pytest.approx(0.9763, abs=1e-3)
    assert torch.equal(model.samples, test_cases.values[:100]) and len(machine.support_) == 69


@pytest.mark.parametrize("name", SERIES)
def test_the_recipe_learns(name):
    pytest.importorskip(DATA[name])
    recipe = pytest.importorskip(f"models.{name}.train")
    settings = training.Recipe(**{**vars_of(recipe.RECIPE), "epochs": 12 if name != "encoder" else 2})
    data, test = recipe.split()
    trained = training.train(MAKES[name], recipe.preprocess, data, settings)
    assert training.accuracy(trained, recipe.preprocess, test) > 0.5


def vars_of(recipe):
    return {name: getattr(recipe, name) for name in recipe.__dataclass_fields__}


@cache
def converted(name):
    """The model and its program, made as ``privml convert`` does."""
    model = models.load(name)
    return model, privml.convert(model.module, calibration=model.preprocess(model.calibration))


def labels_of(outputs):
    outputs = outputs if isinstance(outputs, tuple) else (outputs,)
    first = privml.reveal(outputs[0])
    return first if first.dim() == 1 else first.argmax(1)


@pytest.mark.parametrize("name", NAMES)
def test_fixed_point_answers_as_the_clear_model(name):
    model, program = converted(name)
    assert program.choice.error <= program.choice.precision.tolerance
    with privml.local("plain", bits=program.numerics.bits, scale=program.numerics.scale) as session:
        found = labels_of(program.run(session, model.preprocess(model.samples)))
    assert (found == clear_labels(model)).float().mean() >= 0.98
    assert (found == model.labels).float().mean() >= (clear_labels(model) == model.labels).float().mean() - 0.01


@pytest.mark.parametrize("name", NAMES)
def test_two_parties_compute_what_the_plain_engine_does(name):
    model, program = converted(name)
    x = model.preprocess(model.samples[:3])
    results = []
    for engine, settings in (("plain", {}), ("twopc", {"ot": "ideal"})):
        with privml.local(engine, bits=program.numerics.bits, scale=program.numerics.scale, **settings) as session:
            outputs = program.run(session, x)
            results.append([privml.reveal(y) for y in (outputs if isinstance(outputs, tuple) else (outputs,))])
    for plain, secure in zip(*results, strict=True):
        assert torch.equal(plain, secure)
