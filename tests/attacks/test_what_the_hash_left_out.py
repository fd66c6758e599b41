# SPDX-License-Identifier: Apache-2.0
"""Differences between programs that no tag told, each of which opened a mixture of secrets, and programs without a
difference that were told apart."""

from __future__ import annotations

import pytest
from programs import run_programs
from test_programs_differ import OPENED, assert_differ

SHARES = "x = privml.share(torch.tensor([3.0, -2.0]), 0); z = privml.share(torch.tensor([5.0, 6.0]), 1)"
COPIED = "import copy; y = copy.deepcopy({})"
DRAWN = "torch.rand({}, generator=session.public_generator()); y = torch.nn.functional.dropout(x, 0.5)"
SUBCLASS = "y = x * torch.tensor([1.0, {}]).as_subclass(type('Image', (torch.Tensor,), {{}}))"
NUMBER = "y = torch.nn.functional.normalize(x, dim=0, eps=np.float32({}))"
LOADED = (
    "from privml.checkpoint import *; run = new_run(session); save_shares('shares', session, 1, run, {{'x': x * z, "
    "'z': z * z}}); y = load_shares('shares', session, 1, run)['{}']"
)


@pytest.mark.parametrize(
    "body, first, second",
    [(COPIED, "x", "z"), (DRAWN, 3, 4), (SUBCLASS, 2.0, 5.0), (NUMBER, 0.001, 1.0), (LOADED, "x", "z")],
    ids=["a copy", "the public generator", "a subclass of tensors", "a number of numpy", "shares of a file"],
)
def test_differences(tmp_path, body, first, second):
    outcomes = run_programs(tmp_path, *[f"{SHARES}\n{body.format(each)}\n{OPENED}" for each in (first, second)])
    assert_differ(outcomes)


STEP = """
def step(w, x):
    def loss(w):
        z = x @ w
        chosen = (torch.log_softmax(z, 1) * torch.tensor([1.0, 0.0, 0.0])).sum() + (z * torch.tensor(0.3)).sum()
        return chosen + (w * torch.tensor([[2.0]])).sum() + (w * torch.tensor([[3.0, 4.0, 5.0]])).sum()
    return w - 0.1 * torch.func.grad(loss)(w)
w = privml.share(torch.ones(4, 3), 0)
x = privml.share(torch.ones(8, 4), 1)
y = privml.compile_step(step, w, x)(w, x).sum()
"""


def test_a_compiled_step_in_processes_of_their_own(tmp_path):
    """What it computes is named without addresses, and in an order that no set decides."""
    for outcome in run_programs(tmp_path, STEP + OPENED, STEP + OPENED, apart=True):
        assert outcome.status == 0 and "revealed" in outcome.said, outcome


GRADIENT = """
w = privml.share(torch.ones(3, 2), 0)
def loss(w):
    return torch.nn.functional.linear(x, w).sum() + torch.nn.functional.linear(x * w, {factor} * torch.ones(3, 2)).sum()
y = torch.func.grad(loss)(w)
"""


@pytest.mark.parametrize("factor", [1.0, 2.0])
def test_gradients_of_functions(tmp_path, factor):
    """Tensors that torch.func has wrapped are described by what they hold."""
    outcomes = run_programs(tmp_path, *[SHARES + GRADIENT.format(factor=each) + OPENED for each in (1.0, factor)])
    if factor == 1.0:
        assert [outcome.status for outcome in outcomes] == [0, 0], outcomes
    else:
        assert_differ(outcomes)
