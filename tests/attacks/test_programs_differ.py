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
    outcomes = run_programs(tmp_path, f"{SHARE}\ny = x + 1\n{OPENED}", f"{SHARE}\n\ny = x * x\n{OPENED}", **options)
    assert_differ(outcomes, "party 0: aten.add.Tensor at party0.py:9", "party 1: aten.mul.Tensor at party1.py:10")


EVERYTHING = """
x = privml.share(torch.tensor([3.0, -2.0]), 0)
y = torch.relu(x * x + 1)
y[0] += 1
def step(w, x):
    return w - 0.5 * torch.func.grad(lambda w: ((torch.sigmoid(x) * w) ** 2).sum())(w), torch.tanh(x)
w, h = privml.compile_step(step, x, y)(x, y)
class Model(torch.nn.Module):
    def forward(self, x):
        return sum(torch.relu(x * k).amax(1) + torch.sigmoid(x - k).sum(1) for k in (1.0, 2.0, 3.0))
program = privml.convert(Model(), torch.randn(4, 6))
z = program.run(session, torch.ones(4, 6) if rank == 1 else (4, 6))
print('revealed', privml.reveal(y), privml.reveal(w), privml.reveal(h), privml.reveal(z, to=1) is None)
"""


EXACT = pytest.param({"engine": "threepc", "truncation": "exact"}, id="threepc exact")


@pytest.mark.parametrize(
    ("options", "apart"),
    [
        *[pytest.param(*each.values, False, id=each.id) for each in (*ENGINES, EXACT)],
        pytest.param({"engine": "threepc"}, False, id="threepc"),
        *[pytest.param(*each.values, True, id=f"{each.id}, apart") for each in (*ENGINES[1:], EXACT)],
    ],
)
def test_the_same_program_runs(tmp_path, options, apart):
    parties = 3 if options.get("engine") == "threepc" else 2
    for rank, outcome in enumerate(run_programs(tmp_path, *[EVERYTHING] * parties, apart=apart, **options)):
        assert outcome.status == 0, outcome.errors
        assert outcome.said.startswith("revealed tensor([11.,  5.])") and outcome.said.endswith(f"{rank != 1}\n")


@pytest.mark.parametrize("options", ENGINES)
@pytest.mark.parametrize(
    "first, second",
    [
        ("y = x * torch.tensor([1.0, 2.0])", "y = x * torch.tensor([1.0, 2.5])"),
        ("y = x * 0.5", "y = x * 0.25"),
        ("z = x + 1; y = x + 2; y = z * x", "z = x + 1; y = x + 2; y = y * x"),
        ("y = x.sum(0, keepdim=True)", "y = x[:1]"),
    ],
    ids=["a public tensor", "a number", "another operand", "local operators"],
)
def test_other_arguments(tmp_path, options, first, second):
    outcomes = run_programs(tmp_path, f"{SHARE}\n{first}\n{OPENED}", f"{SHARE}\n{second}\n{OPENED}", **options)
    assert_differ(outcomes, "at party0.py:9", "at party1.py:9")


def test_an_operator_more(tmp_path):
    outcomes = run_programs(tmp_path, f"{SHARE}\ny = x.clone()\ny = x * 2\n{OPENED}", f"{SHARE}\n\ny = x * 2\n{OPENED}")
    assert_differ(outcomes, "party 0: aten.clone.default at party0.py:9", "party 1: aten.mul.Tensor at party1.py:10")


def test_an_opening_to_another_party(tmp_path):
    outcomes = run_programs(
        tmp_path, f"{SHARE}\nprint('revealed', privml.reveal(x, to=0))", f"{SHARE}\nprint('revealed', privml.reveal(x))"
    )
    assert_differ(outcomes, "party 0: reveal at party0.py:9", "with other arguments")


@pytest.mark.parametrize("deviates", range(3))
def test_three_parties(tmp_path, deviates):
    bodies = [f"{SHARE}\ny = x * x\n{OPENED}"] * 3
    bodies[deviates] = f"{SHARE}\n\ny = x + 1\n{OPENED}"
    outcomes = run_programs(tmp_path, *bodies, deadline=8.0)  # the dealer and party 0 may wait for each other
    assert_differ(outcomes, f"party {deviates}: aten.add.Tensor at party{deviates}.py:10", "aten.mul.Tensor")


TRAINING = """
torch.manual_seed(1)
model = privml.secret(torch.nn.Linear(4, 1), owner=0)
optimizer = torch.optim.SGD(model.parameters(), lr={rate})
x = privml.share(torch.ones(8, 4), 1)
for _ in range(2):
    optimizer.zero_grad()
    (model(x) ** 2).mean().backward()
    optimizer.step()
print('revealed', privml.reveal(model.weight))
"""


@pytest.mark.parametrize("options", ENGINES)
def test_learning_rates(tmp_path, options):
    outcomes = run_programs(tmp_path, TRAINING.format(rate=0.1), TRAINING.format(rate=0.2), **options)
    assert_differ(outcomes, "at party0.py:15", "at party1.py:15", "with other arguments")


STEP = """
def step(w, x):
    def loss(w):
        return ((x @ w) ** 2).mean()
    return w - {rate} * torch.func.grad(loss)(w)
w = privml.share(torch.ones(4, 1), 0)
x = privml.share(torch.ones(8, 4), 1)
compiled = privml.compile_step(step, w, x)
w = compiled(w, x)
print('revealed', privml.reveal(w))
"""


@pytest.mark.parametrize("options", ENGINES)
def test_learning_rates_of_a_compiled_step(tmp_path, options):
    outcomes = run_programs(tmp_path, STEP.format(rate=0.1), STEP.format(rate=0.2), **options)
    assert_differ(outcomes, "party 0: aten.mul.Tensor at party0.py:1", "party 1: aten.mul.Tensor at party1.py:1")


SHUFFLED = """
rows = torch.arange(32.0)
x, y = (rows if rank == owner else torch.zeros(32) for owner in (0, 1))
total = 0.0
for a, b in DataLoader(TensorDataset(x, y), 8, shuffle=True):
    # rows of the same number belong together
    total = total + ((privml.share(a, 0) - privml.share(b, 1)) ** 2).sum()
print('revealed', privml.reveal(total).item(), random.random(), np.random.rand(), torch.rand(1).item())
"""


def test_a_loader_that_shuffles_joins_the_right_rows(tmp_path):
    outcomes = run_programs(tmp_path, SHUFFLED, SHUFFLED)
    assert all(outcome.status == 0 for outcome in outcomes), outcomes
    assert outcomes[0].said == outcomes[1].said and outcomes[0].said.startswith("revealed 0.0 ")


@pytest.mark.parametrize("draw", ["torch.rand(1)", "random.random()", "np.random.rand()"])
def test_a_party_that_draws_once_more(tmp_path, draw):
    outcomes = run_programs(tmp_path, f"{draw}\n{SHARE}\ny = x\n{OPENED}", f"\n{SHARE}\ny = x\n{OPENED}")
    assert_differ(outcomes, "drawn different numbers", "party0.py:9", "party1.py:8", "session.private_generator()")


def test_private_draws_are_nobody_elses(tmp_path):
    body = f"torch.rand(rank + 1, generator=session.private_generator())\n{SHARE}\ny = x\n{OPENED}"
    for outcome in run_programs(tmp_path, body, body):
        assert outcome.status == 0, outcome.errors


def test_parties_that_wait_for_each_other(tmp_path):
    """One opens to the other, each taking the other for the sender: both wait until the deadline."""
    bodies = (
        f"{SHARE}\nprint('revealed', privml.reveal(x, to=0))",
        f"{SHARE}\nprint('revealed', privml.reveal(x, to=1))",
    )
    outcomes = run_programs(tmp_path, *bodies, deadline=3.0)
    assert_differ(outcomes, "party 0: reveal at party0.py:9", "party 1: reveal at party1.py:9")


ADAM = """
torch.manual_seed(0)
model = privml.secret(torch.nn.Linear(2, 1))
optimizer = torch.optim.Adam(model.parameters(), lr={rate})
model(privml.share(torch.ones(4, 2), 1)).square().sum().backward()
optimizer.step()
y = model.weight.detach()
"""


def test_other_learning_rates_of_adam(tmp_path):
    outcomes = run_programs(tmp_path, *(ADAM.format(rate=rate) + OPENED for rate in (0.01, 0.02)))
    assert_differ(outcomes, "party 0: Adam.step at party0.py:12", "party 1: Adam.step at party1.py:12")


@pytest.mark.parametrize("options", [*ENGINES, pytest.param({"engine": "threepc"}, id="threepc")])
def test_the_peer_gets_the_name_of_the_error_of_a_program_that_fails(tmp_path, options):
    parties = 3 if options.get("engine") == "threepc" else 2
    bodies = [f"{SHARE}\ny = x * x\n{OPENED}"] * parties
    bodies[1] = f"{SHARE}\ny = x * x\n{{}}['the key']"
    outcomes = run_programs(tmp_path, *bodies, **options)
    assert outcomes[1].last == "KeyError: 'the key'"
    # A dealer may have all that it waits for before.
    assert "PeerDisconnected: the program of party 1 ended with KeyError" in outcomes[0].last, outcomes[0]
    assert "the key" not in outcomes[0].errors.split("PeerDisconnected")[-1]


def test_a_mistake_of_one_party_alone_is_no_step(tmp_path):
    mistake = "\ntry:\n    torch.linalg.svd(x)\nexcept privml.errors.UnsupportedOperator:\n    print('refused')\n"
    body = SHARE + "\nx = x.view(1, 2)"
    outcomes = run_programs(tmp_path, f"{body}{mistake}y = x * x\n{OPENED}", f"{body}\ny = x * x\n{OPENED}")
    assert [outcome.status for outcome in outcomes] == [0, 0], outcomes
    assert "refused" in outcomes[0].said and "refused" not in outcomes[1].said
