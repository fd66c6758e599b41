# SPDX-License-Identifier: Apache-2.0
"""Parties that compute different things are told so, with both lines, before anything is revealed."""

from __future__ import annotations

import pytest
from programs import run_programs

SHARE = "x = privml.share(torch.tensor([3.0, -2.0]), 0)"
OPENED = "print('revealed', privml.reveal(y))"
ENGINES = [
    pytest.param({}, id="twopc"),
    pytest.param({"threads": 2}, id="two lanes"),
    pytest.param({"engine": "active"}, id="active"),
]


def assert_differ(outcomes, *told):
    for outcome in outcomes:
        assert outcome.status == 1 and "ProgramsDiffer" in outcome.last, outcome
        assert "revealed" not in outcome.said
        for text in told:
            assert text in outcome.last, outcome.last


@pytest.mark.parametrize("options", ENGINES)
def test_other_operators(tmp_path, options):
    outcomes = run_programs(
        tmp_path, f"{SHARE}\ny = x + 1\n{OPENED}", f"{SHARE}\n\ny = x * x\n{OPENED}", **options
    )
    assert_differ(outcomes, "party 0: aten.add.Tensor at party0.py:9", "party 1: aten.mul.Tensor at party1.py:10")


def test_the_same_program_runs(tmp_path):
    for outcome in run_programs(tmp_path, *[f"{SHARE}\ny = x * x + 1\n{OPENED}"] * 2):
        assert (outcome.status, outcome.said) == (0, "revealed tensor([10.,  5.])\n"), outcome.errors
