# SPDX-License-Identifier: Apache-2.0
"""The same program at two parties, each with its own session, where neither holds the other's data."""

import pytest
import torch
from test_networks import lenet
from test_training import OPTIMIZERS, small_net

import privml

pytest.importorskip("privml._core")

from parties import run_both, succeed

from privml.engines.correlations import OtChoice
from privml.session.connections import Link
from privml.session.session import Settings, open_session
from privml.spec import SessionSpec


def run_parties(program):
    """``program(rank)`` at both parties on threads; their results by rank."""

    def party(rank, channel):
        with open_session(Link(channel), rank, Settings(SessionSpec(ot=OtChoice("ideal"), deadline=20.0))):
            return program(rank)

    return succeed(run_both(party))


def network(rank):
    """The server's network; the client has one of the same shape and other weights."""
    torch.manual_seed(7 + rank)
    return lenet().eval()


def test_inference():
    torch.manual_seed(1)
    image = torch.randn(2, 1, 16, 16)
    models = [network(0), network(1)]

    def program(rank):
        with torch.no_grad():
            model = privml.secret(models[rank], owner=0)
            x = privml.share(image if rank == 1 else None, owner=1, shape=image.shape)
            return privml.reveal(model(x), to=1)

    server, client = run_parties(program)
    assert server is None
    with privml.local("plain"), torch.no_grad():
        oracle = privml.reveal(privml.secret(network(0), owner=0)(privml.share(image, owner=1)))
    assert torch.equal(client, oracle)


def test_training_with_labels_of_the_other_party():
    torch.manual_seed(2)
    images, labels = torch.randn(6, 1, 8, 8), torch.randn(6, 4)
    # Made before the threads start: they share torch's generator.
    networks = [small_net() for _ in range(3)]

    def train(x, y, network):
        net = privml.secret(network, owner=0)
        optimizer = OPTIMIZERS["momentum"](net.parameters())
        for _ in range(2):
            optimizer.zero_grad()
            torch.nn.functional.mse_loss(net(x), y).backward()
            optimizer.step()
        return [privml.reveal(p).detach() for p in net.parameters()]

    def program(rank):
        x = privml.share(images if rank == 0 else None, owner=0, shape=images.shape)
        y = privml.share(labels if rank == 1 else None, owner=1, shape=labels.shape)
        return train(x, y, networks[rank])

    both = run_parties(program)
    with privml.local("plain"):
        oracle = train(privml.share(images, owner=0), privml.share(labels, owner=1), networks[2])
    for first, second, exact in zip(*both, oracle, strict=True):
        assert torch.equal(first, exact) and torch.equal(second, exact)


def test_values_at_the_owner_decide_nothing_at_the_other():
    """Only the owner looks at its value; a wrong one is its own error, before anything is sent, and may be mended."""

    def program(rank):
        good = privml.share(torch.ones(2) if rank == 0 else None, owner=0, shape=(2,))
        try:
            privml.share(torch.tensor([float("nan"), 1.0]), owner=0)
        except privml.errors.InvalidInput:
            privml.share(torch.ones(2), owner=0)
            return "refused", privml.reveal(good).tolist()
        return "ignored", privml.reveal(good).tolist()

    assert run_parties(program) == [("refused", [1.0, 1.0]), ("ignored", [1.0, 1.0])]
