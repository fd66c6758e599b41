# SPDX-License-Identifier: Apache-2.0
"""Correlations made ahead of a run: exactly those it draws, and none during it."""

import pytest
import torch

import privml
from privml.conversion import convert
from privml.engines.correlations import LARGEST_STOCK, Correlations, OtChoice
from privml.session.ledger import Snapshot
from privml.spec import SessionSpec


class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        torch.manual_seed(3)
        self.first, self.second = torch.nn.Conv2d(1, 3, 3), torch.nn.Linear(3 * 6 * 6, 4)

    def forward(self, x):
        x = torch.max_pool2d(torch.relu(self.first(x)), 2, stride=1)[..., :6, :6]
        return self.second(x.flatten(1)).amax(1)


@pytest.fixture(scope="module")
def program():
    torch.manual_seed(4)
    return convert(Net().eval(), torch.randn(1, 1, 9, 9), calibration=torch.randn(16, 1, 9, 9))


def run(program, batch, ot, reserve):
    """(counters of party 0 after the reservation, after the run)."""
    x = torch.randn(batch, 1, 9, 9, generator=torch.Generator().manual_seed(5))
    with privml.local("twopc", ot=ot.provider, k=ot.k) as session:
        if reserve:
            session.reserve(program.correlations(program.shapes(batch), SessionSpec(ot=ot)))
        ahead = session.ledger.snapshot()
        privml.reveal(program.run(session, x), to=1)
        return ahead, session.ledger.snapshot()


@pytest.mark.parametrize("ot", [OtChoice(), OtChoice(k=8), OtChoice("ideal")], ids=str)
@pytest.mark.parametrize("batch", [1, 3])
def test_a_run_draws_exactly_what_was_predicted(program, ot, batch):
    ahead, after = run(program, batch, ot, reserve=True)
    predicted = program.correlations(program.shapes(batch), SessionSpec(ot=ot))
    assert predicted.from0 > 1000 and predicted.from1 > 1000
    assert (after.cots_as_sender, after.cots_as_receiver) == predicted.roles(0)
    assert (ahead.cots_as_sender, ahead.cots_as_receiver) == (0, 0)
    assert after.preprocess == ahead.preprocess, "nothing was made during the run"
    if ot.provider != "ideal":
        assert ahead.preprocess.sent > 0 and ahead.online.bytes == 0


def test_without_a_reservation_they_are_made_on_the_way(program):
    ahead, after = run(program, 1, OtChoice(), reserve=False)
    assert ahead.preprocess.bytes == 0 < after.preprocess.bytes


def test_predicted_cost_equals_the_run(program):
    ahead, after = run(program, 2, OtChoice(), reserve=True)
    ledger = program.cost(program.shapes(2), rank=0)
    predicted = ledger.snapshot()
    for phase in ("setup", "preprocess", "online"):
        mine, real = getattr(predicted, phase), getattr(after, phase)
        assert (mine.sent, mine.received, mine.depth) == (real.sent, real.received, real.depth), phase
    assert predicted.preprocess.depth == ahead.preprocess.depth
    layers = sum((record.cost for record in ledger.records.values()), Snapshot())
    assert (layers.cots_as_sender, layers.cots_as_receiver) == program.correlations(program.shapes(2)).roles(0)


def test_directions_and_limits():
    correlations = Correlations(3, LARGEST_STOCK + 1)
    assert correlations.roles(0) == (3, LARGEST_STOCK + 1) and correlations.roles(1) == (LARGEST_STOCK + 1, 3)
    assert correlations.stock == Correlations(3, LARGEST_STOCK)
    assert correlations.total == LARGEST_STOCK + 4


def test_engines_without_correlations_reserve_nothing():
    with privml.local("plain") as session:
        session.reserve(Correlations(10, 10))
        assert session.ledger.snapshot() == Snapshot()
