# SPDX-License-Identifier: Apache-2.0
"""Naive Bayes classifiers written by skl2onnx: values and variances of very different sizes within one layer."""

import numpy as np
import onnxruntime
import pytest
import torch
from skl2onnx import to_onnx
from sklearn.datasets import load_breast_cancer, load_wine
from sklearn.naive_bayes import GaussianNB, MultinomialNB

import privml
from privml.errors import OverflowDetected


def from_onnx(estimator, x, y):
    """The file that a package would bring, and onnxruntime's probabilities."""
    x = x.astype(np.float32)
    model = to_onnx(
        estimator.fit(x, y), x[:1], options={"zipmap": False}, target_opset={"": 17, "ai.onnx.ml": 3}
    )  # fmt: skip
    session = onnxruntime.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
    labels, probabilities = session.run(None, {session.get_inputs()[0].name: x})
    return model, torch.from_numpy(x), torch.from_numpy(labels), torch.from_numpy(probabilities)


def shuffled(data, count):
    x, y = data(return_X_y=True)
    rows = np.random.RandomState(0).permutation(len(x))[:count]
    return x[rows], y[rows]


def agree(program, x, labels, probabilities, engine, **options):
    with privml.local(engine, bits=program.numerics.bits, scale=program.numerics.scale, **options) as session:
        found = [privml.reveal(r) for r in program.run(session, x)]
    assert (found[1] - probabilities[: len(x)]).abs().max() < 0.02
    assert (found[0] == labels[: len(x)]).double().mean() > 0.95
    return found


def test_gaussian_naive_bayes():
    model, x, labels, probabilities = from_onnx(GaussianNB(), *shuffled(load_wine, 120))
    program = privml.convert(model, calibration=x)
    assert program.choice.error <= 1 / 128
    assert program.numerics.bits > 32  # proline goes to 1680, its variance to 50,000; another feature's is 0.005
    plain = agree(program, x, labels, probabilities, "plain")
    two = agree(program, x[:3], labels, probabilities, "twopc", ot="ideal")
    assert all(torch.equal(a[:3], b) for a, b in zip(plain, two, strict=True))
    agree(program, x[:3], labels, probabilities, "threepc", truncation="exact")


@pytest.mark.slow
def test_gaussian_naive_bayes_with_floats_in_one_layer():
    model, x, labels, probabilities = from_onnx(GaussianNB(), *shuffled(load_breast_cancer, 200))
    program = privml.convert(model, calibration=x)
    assert program.choice.floats and program.choice.error <= 1 / 128
    agree(program, x[:40], labels, probabilities, "plain")
    agree(program, x[:2], labels, probabilities, "twopc", ot="ideal")
    with pytest.raises(OverflowDetected, match="layer 'Pow': values up to"):
        privml.convert(model, calibration=x, numerics={"bits": 32, "scale": 8, "rescue": None})


def test_text_classifier():
    """Counts of 300 words in four kinds of texts."""
    random = np.random.RandomState(0)
    y = np.arange(200) % 4
    x = random.poisson(random.dirichlet(np.full(300, 0.1), 4)[y] * 30)
    model, x, labels, probabilities = from_onnx(MultinomialNB(), x, y)
    program = privml.convert(model, calibration=x)
    assert program.choice.error <= 1 / 128 and program.choice.held_out == 50
    agree(program, x, labels, probabilities, "plain")
    agree(program, x[:3], labels, probabilities, "twopc", ot="ideal")
