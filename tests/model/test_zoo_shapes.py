# SPDX-License-Identifier: Apache-2.0
"""Networks of the literature in shape, with random weights."""

import pytest
import torch

import models
import models.resnet18
import models.vgg16
import privml


def parameters(module):
    return sum(p.numel() for p in module.parameters())


def test_they_have_the_published_sizes():
    vgg, resnet = models.load("vgg16"), models.load("resnet18")
    assert parameters(vgg.module) == 14_914_378 and parameters(resnet.module) == 11_173_962
    for model in (vgg, resnet):
        x = model.preprocess(model.samples)
        assert torch.equal((x * 64).round() / 64, x)
        assert not model.module.training
        scores = model.module(x)
        assert scores.shape == (len(model.samples), 10) and torch.isfinite(scores).all()
        assert torch.equal(scores.argmax(1), model.labels)


def test_weights_are_the_same_every_time():
    first, second = (models.vgg16.load(width=2).module.state_dict() for _ in range(2))
    assert all(torch.equal(first[key], second[key]) for key in first)


@pytest.mark.parametrize("load", [models.vgg16.load, models.resnet18.load], ids=["vgg16", "resnet18"])
def test_narrow_ones_convert_and_run_in_the_clear(load):
    model = load(width=4)
    x = model.preprocess(model.samples[:2])
    program = privml.convert(model.module, calibration=model.preprocess(model.calibration))
    with privml.local("plain", bits=program.numerics.bits, scale=program.numerics.scale) as session:
        scores = privml.reveal(program.run(session, x))
    clear = model.module(x)
    assert (scores - clear).abs().max() < 0.05 * clear.abs().max() + 0.02
