# SPDX-License-Identifier: Apache-2.0
"""Converted models on the three-party engine."""

import pytest
import torch

import models
import models.resnet18
import models.vgg16
import privml

NUMERICS = {"bits": 64, "narrow": False}


def converted(model):
    return privml.convert(model.module, calibration=model.preprocess(model.calibration), numerics=NUMERICS)


def run(program, x, engine, **settings):
    with privml.local(engine, bits=program.numerics.bits, scale=program.numerics.scale, **settings) as session:
        return privml.reveal(program.run(session, x))


def test_a_query_pays_for_outputs_and_not_for_weights():
    model = models.load("lenet")
    program = converted(model)
    x = model.preprocess(model.samples[:2])
    with privml.local("threepc", bits=program.numerics.bits, scale=program.numerics.scale) as session:
        program.prepare(session)
        costs = []
        for _ in range(2):
            session.ledger.reset_nodes()
            program.run(session, x)
            costs.append({name: record.cost for name, record in session.ledger.records.items()})
    for name, outputs in {"fc1": 120, "fc2": 84, "fc3": 10}.items():
        size = 8 * 2 * outputs  # one word for each output: dealt, and each way
        for cost in (costs[0][name], costs[1][name]):
            assert (cost.online.sent, cost.online.received) == (size, size), name
            assert cost.preprocess.sent + cost.preprocess.received == size


@pytest.mark.parametrize("load", [models.vgg16.load, models.resnet18.load], ids=["vgg16", "resnet18"])
def test_narrow_networks_answer_as_in_the_clear(load):
    model = load(width=4)
    program = converted(model)
    x = model.preprocess(model.samples[:1])
    plain, exact = run(program, x, "plain"), run(program, x, "threepc", truncation="exact")
    fast = run(program, x, "threepc")
    clear = model.module(x)
    allowed = 0.05 * clear.abs().max() + 0.02
    for scores in (plain, exact, fast):
        assert (scores - clear).abs().max() < allowed
    assert (exact - plain).abs().max() < allowed / 2


def test_labels_of_digits():
    model = models.load("lenet")
    x = model.preprocess(model.samples[:20])
    assert torch.equal(run(converted(model), x, "threepc").argmax(1), model.module(x).argmax(1))
