# SPDX-License-Identifier: Apache-2.0
"""Whole networks, eager and exported, on every engine: close to float and bit for bit as on ``plain``."""

import copy

import pytest
import torch
import torch.nn.functional as F
from test_ops import ring_of
from torch import nn

import privml


def lenet():
    return nn.Sequential(
        nn.Conv2d(1, 4, 5, padding=2), nn.ReLU(), nn.MaxPool2d(2), nn.Conv2d(4, 6, 5), nn.ReLU(), nn.MaxPool2d(2),
        nn.Flatten(), nn.Linear(24, 20), nn.ReLU(), nn.Dropout(), nn.Linear(20, 10),
    )  # fmt: skip


def vgg():
    return nn.Sequential(
        nn.Conv2d(1, 4, 3, padding=1), nn.BatchNorm2d(4), nn.ReLU(inplace=True), nn.Conv2d(4, 4, 3, padding=1),
        nn.BatchNorm2d(4), nn.ReLU(inplace=True), nn.MaxPool2d(2, 2), nn.Conv2d(4, 8, 3, padding=1), nn.ReLU6(),
        nn.AvgPool2d(2), nn.AdaptiveAvgPool2d((2, 2)), nn.Flatten(), nn.Linear(32, 10), nn.Hardswish(),
    )  # fmt: skip


class Block(nn.Module):
    def __init__(self, inputs, outputs, stride):
        super().__init__()
        self.first = nn.Sequential(nn.Conv2d(inputs, outputs, 3, stride, 1, bias=False), nn.BatchNorm2d(outputs))
        self.second = nn.Sequential(nn.Conv2d(outputs, outputs, 3, 1, 1, bias=False), nn.BatchNorm2d(outputs))
        self.shortcut = nn.Sequential(nn.Conv2d(inputs, outputs, 1, stride, bias=False), nn.BatchNorm2d(outputs))

    def forward(self, x):
        return F.relu(self.second(F.relu(self.first(x))) + self.shortcut(x))


def resnet():
    return nn.Sequential(
        nn.Conv2d(1, 4, 7, 2, 3, bias=False), nn.BatchNorm2d(4), nn.ReLU(), nn.MaxPool2d(3, 2, 1), Block(4, 6, 2),
        Block(6, 6, 1), nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(6, 10),
    )  # fmt: skip


NETWORKS = [lenet, vgg, resnet]


@pytest.fixture(scope="module", params=NETWORKS, ids=lambda n: n.__name__)
def network(request):
    torch.manual_seed(3)
    net = request.param()
    x = torch.randn(2, 1, 16, 16) if request.param is not vgg else torch.randn(2, 1, 12, 12)
    for _ in range(5):  # statistics other than 0 and 1
        net(torch.randn(8, *x.shape[1:]) * 1.5 + 0.5)
    return net.eval(), x


def forms(net, x):
    """The network as it is, exported, and exported with the two levels of decomposition."""
    exported = torch.export.export(net, (x,))
    yield "eager", copy.deepcopy(net)
    yield "exported", exported.module()
    yield "functional", exported.run_decompositions({}).module()
    yield "decomposed", exported.run_decompositions().module()


def test_inference(network, open_session, open_oracle):
    net, x = network
    expected = net(x).detach()
    rings = {}
    for name, module in forms(net, x):
        with open_session() as session:
            secret = privml.secret(module, owner=0)
            for mode in (torch.no_grad, torch.inference_mode):
                with mode():
                    y = secret(privml.share(x, owner=1))
                    assert (privml.reveal(y) - expected).abs().max() < 2e-3, (name, mode)
                    rings[name, mode.__name__] = ring_of(y)
    assert len({tuple(r.flatten().tolist()) for r in rings.values()}) == 1  # every form, the same bits
    with open_oracle(), torch.no_grad():
        oracle = privml.secret(copy.deepcopy(net), owner=0)(privml.share(x, owner=1))
    assert torch.equal(rings["eager", "no_grad"], ring_of(oracle)) and session.parties == oracle.session.parties


def test_public_weights(network, open_session):
    net, x = network
    with open_session() as session, torch.no_grad():
        y = net(privml.share(x, owner=1))
        if session.engine.trivial_inputs:
            assert y.placement == privml.formats.Owned(1)  # nobody has to talk
        assert (privml.reveal(y) - net(x)).abs().max() < 2e-3


def test_an_owner_evaluates_its_own_network_alone(network, open_session):
    net, x = network
    with open_session() as session, torch.no_grad():
        y = privml.secret(copy.deepcopy(net), owner=1)(privml.share(x, owner=1))
        if session.engine.trivial_inputs:
            assert y.placement == privml.formats.Owned(1)
        assert (privml.reveal(y) - net(x)).abs().max() < 2e-3
