# SPDX-License-Identifier: Apache-2.0
"""Models of ``transformers`` as users bring them, converted and compared with the clear model."""

import functools
import warnings

import pytest
import torch

import privml
from privml.graph.passes import choose_formats as search

transformers = pytest.importorskip("transformers")
from families import FAMILIES, built, clear  # noqa: E402 - needs the library

# Long conversions and queries; all others run in every test.
SLOW = {"roberta", "distilbert", "t5", "mobilenet", "efficientnet", "convnext"}
BATCH = 2


@functools.cache
def converted(name):
    model, inputs = built(name)
    with warnings.catch_warnings():
        warnings.simplefilter("error", UserWarning)  # a batch that is fixed would be told by one
        program = privml.convert(model, calibration=inputs)
    return program, {key: value[:BATCH] for key, value in inputs.items()}, clear(model, inputs)[:BATCH]


def answer(program, inputs, engine, **settings):
    formats = {"bits": program.numerics.bits, "scale": program.numerics.scale}
    with privml.local(engine, **formats, **settings) as session:
        return privml.reveal(program.run(session, inputs))


def families(slow):
    return [pytest.param(name, marks=[pytest.mark.slow] if name in slow else []) for name in FAMILIES]


@pytest.mark.parametrize("name", families(SLOW))
def test_answers_are_those_of_the_clear_model(name):
    program, inputs, expected = converted(name)
    error = float((answer(program, inputs, "plain") - expected).abs().max() / expected.abs().max())
    assert error <= 2 * program.choice.precision.tolerance
    assert all(spec.shape[0] is None for spec in program.inputs)


@pytest.mark.parametrize("name", families(set(FAMILIES) - {"bert", "gpt2", "vit"}))
def test_three_parties_give_the_plain_answers(name):
    program, inputs, _ = converted(name)
    expected = answer(program, inputs, "plain", like="threepc")
    assert torch.equal(answer(program, inputs, "threepc", truncation="exact"), expected)


@pytest.mark.parametrize("name", families(set(FAMILIES) - {"bert"}))
def test_two_parties_give_the_plain_answers(name):
    program, inputs, _ = converted(name)
    assert torch.equal(answer(program, inputs, "twopc", ot="ideal"), answer(program, inputs, "plain"))


@pytest.mark.parametrize("name", ["bert", "resnet"])
def test_few_formats_are_tried(name, monkeypatch):
    """Each computes the whole model on all rows that judge, which conversions once took minutes for."""
    tried, attempt = [], search._try
    monkeypatch.setattr(search, "_try", lambda *given: tried.append(given[1]) or attempt(*given))
    model, inputs = built(name)
    program = privml.convert(model, calibration=inputs)
    assert program.choice.precision in tried and len(tried) <= 24
