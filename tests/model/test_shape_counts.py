# SPDX-License-Identifier: Apache-2.0
"""Every operator case books the same on shapes alone as on zeros."""

import pytest
import torch
from function_cases import CASES
from test_ops import PLACEMENTS, run

from privml.context import Session
from privml.engines.active import backend as active
from privml.engines.active import lookup
from privml.engines.correlations import OtChoice
from privml.engines.shape_tensor import zeros
from privml.engines.threepc import backend as threepc
from privml.engines.twopc import backend as twopc
from privml.formats import Numerics
from privml.session.ledger import PHASES, Snapshot

METERS = {
    "twopc 0": lambda counts_only: twopc.meter(0, OtChoice(), 1, counts_only),
    "twopc 1": lambda counts_only: twopc.meter(1, OtChoice(), 1, counts_only),
    "threepc 0": lambda counts_only: threepc.meter(0, threepc.Config("auto"), counts_only),
    "threepc 2": lambda counts_only: threepc.meter(2, threepc.Config("exact"), counts_only),
    "active": lambda counts_only: active.meter(1, OtChoice("ideal"), 64, "auto", counts_only),
}


def booked(case, placement, engine):
    with Session(engine, Numerics()):
        run(case, placement)
    counted = Snapshot.of(engine.counters())
    phases = [getattr(counted, phase) for phase in PHASES]
    return [(p.sent, p.received, p.depth) for p in phases], counted.cots_as_sender, counted.cots_as_receiver


@pytest.mark.parametrize("engine", METERS)
@pytest.mark.parametrize("case", CASES, ids=lambda c: c.name)
def test_shapes_are_enough(case, engine):
    for placement in PLACEMENTS:
        assert booked(case, placement, METERS[engine](True)) == booked(case, placement, METERS[engine](False))


def test_a_table_at_a_secret_index_is_counted_without_its_unit_vector(monkeypatch):
    def computed(*_):
        raise AssertionError("only what is drawn and sent counts")

    monkeypatch.setattr(lookup, "unit_vectors", computed)
    engine = METERS["active"](True)
    index = tuple(zeros((3,), torch.int64, True) for _ in range(engine.components))
    assert engine.lookup_many(torch.zeros(2, 64, dtype=torch.int64), index, 6, 32)[0].shape == (2, 3)
    assert engine.drawn()["bits"] == 18
