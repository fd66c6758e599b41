# SPDX-License-Identifier: Apache-2.0
"""Served sessions whose products have other weights in each query: factors that the client knows, and what public ids
choose of the tables of the server. Nothing that serves the weights of one query is used for those of another one."""

from __future__ import annotations

from functools import partial

import pytest
import torch
from running import Running
from services import client, serve
from torch import nn

import privml
from privml.service.options import Limits
from privml.spec import SessionSpec, engine

SPEC = SessionSpec(engine("twopc", linear="lattice"))


class Scores(nn.Module):
    """The rows of a table that public ids choose, times a secret input."""

    def __init__(self, rows: int, width: int) -> None:
        super().__init__()
        self.words, self.last = nn.Embedding(rows, width), nn.Linear(4, 3)

    def forward(self, ids: torch.Tensor, x: torch.Tensor) -> torch.Tensor:
        return self.last(x @ self.words(ids).t())


def served(program, queries, **options):
    options = {"linear": "lattice", **options}
    with (
        Running(partial(serve, program, "127.0.0.1:0", **options)) as running,
        client(program, running.address, linear="lattice", ahead="limits" in options) as asking,
    ):
        return [asking.query(inputs) for inputs in queries]


def exact(program, inputs):
    with privml.local("plain", bits=program.numerics.bits, scale=program.numerics.scale) as session:
        session.numerics = program.numerics
        return privml.reveal(program.run(session, *inputs))


def with_ids(width):
    torch.manual_seed(4)
    made = torch.randint(0, 23, (4, 4)), torch.randn(4, 3, width)
    program = privml.convert(
        Scores(23, width).eval(), calibration=(made[0][0], made[1][0]), token_ids={"ids": "public"}
    )
    assert program.public_inputs == ("ids",)
    return program, list(zip(*made, strict=True))


def with_few_bits(batch):
    torch.manual_seed(5)
    made = torch.randn(4, batch, 30)
    program = privml.convert(nn.Linear(30, 4).eval(), calibration=made[0], numerics={"bits": 40, "weight_bits": 28})
    return program, [(x,) for x in made]


CASES = {
    "public ids": (with_ids, 6, {"lattice": 2}),
    "public ids, many": (with_ids, 40, {"lattice": 2}),
    "the client's factor": (with_few_bits, 2, {"lattice": 1}),
    "the client's factor, packed": (with_few_bits, 20, {"packed": 1}),
}


@pytest.mark.parametrize("wide", [False, True])
@pytest.mark.parametrize("case", CASES)
def test_every_query_is_right_and_costs_what_is_predicted(case, wide, request):
    make, size, forms = CASES[case]
    if wide:
        forms = {"wide": sum(forms.values())}
    else:
        request.getfixturevalue("narrow")
    program, queries = make(size)
    predicted = [
        cost.snapshot() for cost, _ in program.session_cost([[tuple(x.shape) for x in each] for each in queries], SPEC)
    ]
    answers = served(program, queries)
    for inputs, got, want in zip(queries, answers, predicted, strict=True):
        assert torch.equal(got.outputs[0], exact(program, inputs))
        spent = got.ledger.snapshot()
        assert (spent.online.sent, spent.online.received) == (want.online.sent, want.online.received)
        assert spent.products == want.products == forms


def test_of_what_public_ids_choose_nothing_is_prepared():
    """Only the last layer's weights are those of every query."""
    program, queries = with_ids(6)
    answers = served(program, queries, limits=Limits(prepare=2))
    for inputs, got in zip(queries, answers, strict=True):
        assert torch.equal(got.outputs[0], exact(program, inputs))
    assert [got.ledger.snapshot().products for got in answers] == [{"wide": 2}] + [{"wide": 1, "prepared": 1}] * 3


def test_of_what_the_client_knows_nothing_is_prepared():
    program, queries = with_few_bits(2)
    for inputs, got in zip(queries, served(program, queries, limits=Limits(prepare=2)), strict=True):
        assert torch.equal(got.outputs[0], exact(program, inputs))
        assert got.ledger.snapshot().products == {"wide": 1}
