# SPDX-License-Identifier: Apache-2.0
"""Stores with convolutions that were prepared with the weights, and the queries that draw from them."""

from __future__ import annotations

import pytest
import torch
from store_pairs import answer, filled

import privml
from privml.engines.twopc.linear import PREPARED
from privml.session.preprocessing import StoreHalf

LATTICE = {"linear": "lattice"}
IMAGE = torch.rand(1, 2, 8, 8, generator=torch.Generator().manual_seed(3))


class Small(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.first = torch.nn.Conv2d(2, 6, 3, padding=1, stride=2)
        self.second = torch.nn.Conv2d(6, 6, 3, groups=6)
        self.last = torch.nn.Linear(24, 3)

    def forward(self, x):
        return self.last(self.second(self.first(x).relu()).relu().flatten(1))


@pytest.fixture(scope="module")
def program():
    torch.manual_seed(1)
    return privml.convert(Small().eval(), calibration=torch.rand(16, 2, 8, 8))


def test_queries_send_their_images_alone_once_masked(program, tmp_path):
    outcomes = filled(program, tmp_path, shapes=[(1, 2, 8, 8)], count=2, batch=1, **LATTICE)
    for outcome in outcomes:
        assert [layer.name for layer in outcome.layers] == ["first", "second", "last"]
        assert all(layer.cost.total.bytes > 0 for layer in outcome.layers)
    _, plain = answer(program, None, None, IMAGE, linear="ot")
    _, direct = answer(program, None, None, IMAGE, **LATTICE)
    halves = [StoreHalf(tmp_path / str(r), r, program.hash, f"{tmp_path}/{r}.key") for r in (0, 1)]
    with halves[0] as ours, halves[1] as theirs:
        assert len(ours.prepared) == 3
        for left in (1, 0):
            served, got = answer(program, ours, theirs, IMAGE, **LATTICE)
            assert torch.equal(got.outputs[0], plain.outputs[0])
            assert torch.equal(direct.outputs[0], plain.outputs[0])
            for each in (served, got):
                cost = each.ledger.snapshot()
                assert cost.products == {PREPARED: 3} and cost.preprocess.bytes == 0
            assert ours.store.queries_left == theirs.store.queries_left == left
        assert got.ledger.snapshot().online.bytes < direct.ledger.snapshot().online.bytes / 2
    assert direct.ledger.snapshot().products == {"convolved": 2, "packed": 1} or direct.ledger.snapshot().products == {
        "convolved": 2,
        "lattice": 1,
    }
