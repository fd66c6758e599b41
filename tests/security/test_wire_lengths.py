# SPDX-License-Identifier: Apache-2.0
"""Lengths, number and order of messages are the same for all secrets: of every operator, engine, and weights."""

import sys
from pathlib import Path

import pytest
import torch
import wire

import privml
from privml.errors import SecurityAbort

sys.path.insert(0, str(Path(__file__).parents[1] / "model"))
from function_cases import CASES
from op_cases import Case

ENGINES = {
    "twopc": {"ot": "ideal"},
    "threepc": {"truncation": "exact"},
    "threepc, faithful": {"truncation": "auto"},
    "active": {"ot": "ideal"},
}
KINDS = ("zeros", "largest", "least", "random")
# One or two of every family, in `make test`; the others are slow.
COMMON = {
    "cat_bits", "mul", "matmul", "conv2d", "relu", "max_pool2d", "argmax", "where", "div", "exp", "sigmoid", "softmax",
    "log", "sqrt", "gelu", "sin", "layer_norm", "sort", "mean",
}  # fmt: skip


def replaced(value: torch.Tensor, kind: str, least: float = 1.0) -> torch.Tensor:
    """A tensor of the same shape and type with other numbers, up to its largest one or ``least``."""
    if value.dtype is torch.bool:
        chosen = {"zeros": False, "largest": True, "least": False}
        if kind in chosen:
            return torch.full_like(value, chosen[kind])
        return torch.rand(value.shape, generator=torch.Generator().manual_seed(3)) < 0.5
    size = value.abs().max().clamp(min=least)
    if kind == "random":
        noise = torch.rand(value.shape, generator=torch.Generator().manual_seed(4), dtype=torch.float64) * 2 - 1
        return (noise * size.double()).to(value.dtype)
    return torch.full_like(value, {"zeros": 0, "largest": size.item(), "least": -size.item()}[kind])


def passages(engine: str, case: Case, kind: str | None) -> list:
    inputs = case.inputs if kind is None else [replaced(value, kind) for value in case.inputs]
    name = engine.split(",")[0]
    with wire.recorded(name, **ENGINES[engine], **({} if name == "threepc" else {"test_seed": 9})) as (_, seen):
        with torch.no_grad():
            secrets = [privml.share(value, owner=i % 2) for i, value in enumerate(inputs)]
            privml.reveal(case.function(*secrets))
        return seen.passages()


def check(engine: str, case: Case) -> None:
    expected = passages(engine, case, None)
    assert any(sent for end in expected for sent, _ in end) or engine
    for kind in KINDS:
        assert passages(engine, case, kind) == expected, kind


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("case", [c for c in CASES if c.name in COMMON], ids=lambda c: c.name)
def test_messages_of_common_operators_are_those_of_the_shapes(engine, case):
    check(engine, case)


# An actively secure session ends where these inputs are not what they have to be, such as rows with a single one.
CHECKED = {("active", "one_hot_rows")}


@pytest.mark.slow
@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("case", [c for c in CASES if c.name not in COMMON], ids=lambda c: c.name)
def test_messages_of_all_operators_are_those_of_the_shapes(engine, case):
    if (engine, case.name) in CHECKED:
        with pytest.raises(SecurityAbort):
            check(engine, case)
        return
    check(engine, case)


class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        torch.manual_seed(3)
        self.convolution, self.last = torch.nn.Conv2d(1, 2, 3), torch.nn.Linear(8, 3)

    def forward(self, x):
        return torch.softmax(self.last(torch.relu(self.convolution(x)).flatten(1)), 1)


@pytest.fixture(scope="module")
def program():
    return privml.convert(Net().eval(), calibration=torch.randn(16, 1, 4, 4))


@pytest.mark.parametrize("engine", ENGINES)
def test_messages_of_a_model_are_the_same_for_all_weights_and_inputs(engine, program):
    seen = []
    for kind in (None, *KINDS):
        weights = {n: w if kind is None else replaced(w, kind, 0.0) for n, w in program.weights.items()}
        other = privml.Program(program.body, weights)
        assert other.hash == program.hash
        x = torch.ones(2, 1, 4, 4) if kind is None else replaced(torch.full((2, 1, 4, 4), 2.0), kind)
        name, numerics = engine.split(",")[0], program.numerics
        settings = {**ENGINES[engine], **({} if name == "threepc" else {"test_seed": 9})}
        with wire.recorded(name, bits=numerics.bits, scale=numerics.scale, **settings) as (session, wires):
            privml.reveal(other.run(session, x))
            seen.append(wires.passages())
    assert all(passages == seen[0] for passages in seen) and sum(map(len, seen[0])) > 10


@pytest.mark.parametrize("engine", ENGINES)
def test_a_message_whose_length_tells_a_secret_is_noticed(engine):
    def leaking(x, y):
        """Compares once more where the first number is positive."""
        total = x + y
        return torch.relu(total) if privml.reveal(total).flatten()[0] > 0 else total

    value = torch.ones(2, 3)
    with pytest.raises(AssertionError, match="zeros"):
        check(engine, Case("leaking", leaking, (value, value)))
