# SPDX-License-Identifier: Apache-2.0
"""The relevance network at a smaller width: fixed point fails on it at every scale, floats do not."""

import copy

import pytest
import torch

import privml
from models.relevance import Cases, cases, train
from scripts import relevance

WIDTH, HIDDEN = 60, (24, 16, 8)


@pytest.fixture(scope="module")
def model():
    return train(WIDTH, HIDDEN, steps=60, batch=128)


@pytest.fixture(scope="module")
def test_cases():
    return cases(40, WIDTH, seed=-1)


def test_weights_span_eight_decades(model):
    weights = torch.cat([p.detach().abs().flatten() for p in model.parameters() if p.dim() == 2])
    assert weights.kthvalue(len(weights) // 50)[0] < 1e-7 and weights.max() > 10


def test_fixed_point_fails_at_every_scale_and_float_does_not(model, test_cases):
    found = relevance.fixed_errors(model, test_cases.values, range(4, 34, 3))
    assert any(error is None for error in found.values())
    assert all(error is None or error[0] > 0.1 for error in found.values())
    error, equal = relevance.error_of(model, test_cases.values, floating="float32")
    assert error < 1e-5 and equal == 1.0


@pytest.mark.parametrize("dot", ["fused", "exact"])
def test_one_step_of_training(model, test_cases, dot):
    batch = Cases(test_cases.values[:8], test_cases.labels[:8])
    gradient, weight = relevance.step_errors(model, batch, "plain", floating="float32", dot=dot)
    assert gradient < 1e-5 and weight < 1e-6


def test_two_parties_compute_what_plain_does(model, test_cases):
    values, labels = test_cases.values[:2], test_cases.labels[:2]
    results = []
    for engine, settings in (("plain", {}), ("twopc", {"ot": "ideal"})):
        with privml.local(engine, floating="float32", **settings):
            hidden = privml.secret(copy.deepcopy(model))
            loss = relevance.learn(hidden, privml.share(values, owner=1), privml.share(labels, owner=1))
            scores = relevance.infer(hidden, privml.share(values, owner=1))
            results.append([privml.reveal(x) for x in (loss, scores, *(p.detach() for p in hidden.parameters()))])
    for plain, secure in zip(*results, strict=True):
        assert torch.equal(plain, secure)


@pytest.mark.parametrize(
    ("task", "batch", "most"), [("infer", 1, 0.5), ("infer", 32, 12), ("learn", 1, 1.1), ("learn", 32, 26)]
)
@pytest.mark.parametrize("shared", [False, True])
def test_gigabytes_of_the_whole_network(task, batch, most, shared):
    """A tenth of SecFloat's table IV, and less: 4.7, 151.6, 10.9 and 329.6 GB."""
    assert relevance.cost(task, batch, shared)[0] < most * 1e9


def test_cost_is_what_is_sent(model, test_cases):
    session = privml.local("twopc", ot="softspoken", floating="float32")
    with session:
        before = session.ledger.snapshot().online
        hidden = privml.secret(copy.deepcopy(model))
        with torch.no_grad():
            privml.reveal(hidden(privml.share(test_cases.values[:2], owner=1)), to=1)
        online = session.ledger.snapshot().online
    meter = relevance.Session(
        relevance.meter(0, relevance.OtChoice("softspoken")), relevance.Numerics(floating=relevance.Float())
    )
    relevance.cost("infer", 2, False, (WIDTH, *HIDDEN), meter)
    predicted = meter.engine.counters()["online"]
    assert (online.sent - before.sent, online.received - before.received) == (predicted["sent"], predicted["received"])
