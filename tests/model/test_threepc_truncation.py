# SPDX-License-Identifier: Apache-2.0
"""The three-party engine as it is by default, with truncations that may be one unit too large: every operator case
stays within its bound and a few units, and a network's outputs within a few units of the plain engine's."""

import copy

import pytest
import torch
from function_cases import CASES
from test_ops import exact_result, run

import privml

# What products may make of a unit of the last place: the largest factor in the cases.
UNITS = 12


@pytest.fixture(scope="module")
def session():
    with privml.local("threepc") as made:
        yield made


@pytest.mark.parametrize("case", CASES, ids=lambda c: c.name)
def test_operator(case, session):
    value = privml.reveal(run(case, "shared"))
    exact = exact_result(case)
    allowed = (2 * case.tolerance + UNITS) * 2.0**-16 + 2e-6 * exact.abs().max() if exact.numel() else 0
    assert exact.numel() == 0 or (value.double() - exact).abs().max() <= allowed


def test_lenet():
    torch.manual_seed(3)
    net = torch.nn.Sequential(
        torch.nn.Conv2d(1, 6, 5, padding=2), torch.nn.ReLU(), torch.nn.MaxPool2d(2),
        torch.nn.Conv2d(6, 16, 5), torch.nn.ReLU(), torch.nn.MaxPool2d(2), torch.nn.Flatten(),
        torch.nn.Linear(400, 120), torch.nn.ReLU(), torch.nn.Linear(120, 84), torch.nn.ReLU(), torch.nn.Linear(84, 10),
    ).eval()  # fmt: skip
    x = torch.randn(2, 1, 28, 28)
    module = torch.export.export(net, (x,)).module()
    results = []
    for engine, settings in (("plain", {"like": "threepc"}), ("threepc", {})):
        with privml.local(engine, **settings), torch.no_grad():
            results.append(privml.reveal(privml.secret(copy.deepcopy(module), owner=0)(privml.share(x, owner=1))))
    assert (results[0] - results[1]).abs().max() <= 8 * 2.0**-16
    assert (results[1] - net(x)).abs().max() < 2e-3
