# SPDX-License-Identifier: Apache-2.0
"""A module whose state grows from call to call, as a cache of keys and values does."""

import functools
import warnings

import pytest
import torch
from torch import nn

import privml
from privml.errors import ConfigError, InvalidInput
from privml.program import Program

WIDTH, MOST = 8, 12
ENGINES = [
    ("plain", {}), ("twopc", {"ot": "ideal"}), ("threepc", {"truncation": "exact"}), ("active", {"truncation": "exact"})
]  # fmt: skip


class Attending(nn.Module):
    """(x [n, 8], cache [n, t, 16]) -> (y [n, 3], the cache with one more or, if not ``whole``, what is new in it)."""

    def __init__(self, whole=True):
        super().__init__()
        torch.manual_seed(0)
        self.inner, self.head, self.whole = nn.Linear(WIDTH, 3 * WIDTH), nn.Linear(WIDTH, 3), whole

    def forward(self, x, cache):
        query, key, value = self.inner(x).unsqueeze(1).chunk(3, -1)
        new = torch.cat([key, value], -1)
        now = torch.cat([cache, new], 1)
        keys, values = now.chunk(2, -1)
        found = torch.softmax(query @ keys.transpose(-1, -2) / WIDTH**0.5, -1) @ values
        return self.head(found.squeeze(1)), now if self.whole else new


class Blocks(nn.Module):
    """(x [m, 8], cache [t, 8]) -> (mean of all rows so far for each new one, new rows); time comes first."""

    def forward(self, x, cache):
        return x - torch.cat([cache, x]).mean(0), x * 0.5


def steps(count, rows=2):
    return list(torch.randn(count, rows, WIDTH, generator=torch.Generator().manual_seed(1)))


def clear(module, inputs, cache):
    answers = []
    with torch.no_grad():
        for x in inputs:
            y, made = module(x, cache)
            cache = made if getattr(module, "whole", False) else torch.cat([cache, made], cache.dim() - 2)
            answers.append(y)
    return answers


@functools.cache
def converted(whole=True):
    x = torch.randn(24, WIDTH, generator=torch.Generator().manual_seed(2))
    with warnings.catch_warnings():
        warnings.simplefilter("error", UserWarning)  # a batch that is fixed would be told by one
        empty = torch.zeros(24, 0, 2 * WIDTH)
        return privml.convert(Attending(whole).eval(), calibration=(x, empty), state={"kept": ("cache", 1, 1, MOST)})


def fresh(program):
    """A program of its own with the same body."""
    return Program(program.body, program.weights)


@pytest.mark.parametrize(("engine", "options"), ENGINES, ids=[name for name, _ in ENGINES])
@pytest.mark.parametrize("whole", [True, False])
def test_every_step_finds_what_all_before_have_appended(whole, engine, options):
    program, inputs = fresh(converted(whole)), steps(5)
    with privml.local(program, engine=engine, **options) as session:
        answers = [session(x) for x in inputs]
        assert program.held(session).length == 5
    for answer, expected in zip(answers, clear(Attending(whole), inputs, torch.zeros(2, 0, 2 * WIDTH)), strict=True):
        assert (answer - expected).abs().max() < 0.02


def test_the_program_tells_how_its_state_grows(tmp_path):
    program = converted()
    (state,) = program.state
    assert (state.shape, state.grows, state.most, state.by) == ((None, None, 2 * WIDTH), 1, MOST, 1)
    assert program.inputs[0].shape == (None, WIDTH) and program.choice.supposed == 4 * 24
    program.save(tmp_path)
    assert Program.load(tmp_path / "program").state == program.state


def test_a_step_above_the_most_is_refused_and_leaves_the_state():
    program, inputs = fresh(converted()), steps(MOST + 1)
    with privml.local(program, engine="plain") as session:
        answers = [session(x) for x in inputs[:MOST]]
        with pytest.raises(InvalidInput, match=f"state 'kept' holds {MOST} of at most {MOST}: 1 more do not fit"):
            session(inputs[MOST])
        assert program.held(session).length == MOST
    expected = clear(Attending(), inputs[:MOST], torch.zeros(2, 0, 2 * WIDTH))
    assert max((a - b).abs().max() for a, b in zip(answers, expected, strict=True)) < 0.02


def test_what_a_step_costs_is_foretold():
    program, inputs = fresh(converted()), steps(4)
    spec = privml.SessionSpec.of("threepc", truncation="exact", numerics=program.numerics)
    told = [ledger.snapshot().online.bytes for ledger, _ in program.session_cost([[(2, WIDTH)]] * 4, spec)]
    with privml.local(program, engine="threepc", truncation="exact") as session:
        found, before = [], 0
        for x in inputs:
            session(x)
            total = session.ledger.snapshot().online.bytes
            found.append(total - before)
            before = total
    assert found[1:] == told[1:] and told[1] < told[2] < told[3]


def test_steps_of_different_sizes_along_the_time():
    data = torch.randn(16, WIDTH), torch.zeros(0, WIDTH)
    program = privml.convert(Blocks(), calibration=data, state={"rows": ("cache", 1, 0, 200)})
    inputs = [torch.randn(n, WIDTH) for n in (3, 1, 4)]
    with privml.local(program, engine="plain") as session:
        answers = [session(x) for x in inputs]
        assert program.held(session).length == 8
    for answer, expected in zip(answers, clear(Blocks(), inputs, torch.zeros(0, WIDTH)), strict=True):
        assert (answer - expected).abs().max() < 0.05


def test_rows_with_shorter_states_decide():
    """The larger the state the smaller the outputs: only the first steps have the numbers that need room."""

    class Mean(nn.Module):
        def forward(self, x, cache):
            now = torch.cat([cache, x[:, None]], 1)
            return now.sum(1) / (now.abs().sum(1) + 0.05) ** 2, x[:, None]

    x, empty = torch.rand(16, WIDTH) * 0.1, torch.zeros(16, 0, WIDTH)
    program = privml.convert(Mean(), calibration=(x, empty), state={"kept": ("cache", 1, 1, 64)})
    with privml.local(program, engine="plain") as session:
        found = session(x[:4])
    expected = Mean()(x[:4], empty[:4])[0]
    assert (found - expected).abs().max() <= 2 / 128 * expected.abs().max()


@pytest.mark.parametrize(
    ("state", "error", "text"),
    [
        ({"kept": ("cache", 1, 1)}, ConfigError, "nor .INPUT, OUTPUT, DIMENSION, MOST."),
        ({"kept": ("cache", 1, 1, 0)}, ConfigError, "greatest length 0 must be"),
        ({"kept": ("cache", 1, 3, 9)}, InvalidInput, "have no dimension 3"),
        ({"kept": ("cash", 1, 1, 9)}, ConfigError, "no input 'cash'; there are x, cache"),
        ({"kept": ("cache", 0, 1, 9)}, InvalidInput, "neither what a call appends .* nor torch.cat"),
        ({"kept": ("cache", 1, 2, 9)}, InvalidInput, "cannot trace the model on inputs of shapes"),
    ],
)
def test_what_is_no_growing_state_is_refused(state, error, text):
    data = torch.randn(4, WIDTH), torch.zeros(4, 0, 2 * WIDTH)
    with pytest.raises(error, match=text):
        privml.convert(Attending().eval(), calibration=data, state=state)


def test_an_output_that_rewrites_the_state_is_refused():
    class Scaled(nn.Module):
        def forward(self, x, cache):
            return x, torch.cat([cache, x[:, None]], 1) * 0.5

    data = torch.randn(4, WIDTH), torch.zeros(4, 0, WIDTH)
    with pytest.raises(InvalidInput, match="neither what a call appends"):
        privml.convert(Scaled(), calibration=data, state={"kept": ("cache", 1, 1, 9)})


def test_state_is_kept_in_the_ring_of_its_products():
    """Products then extend nothing of what earlier calls have appended."""
    x, empty = torch.randn(24, WIDTH, generator=torch.Generator().manual_seed(2)), torch.zeros(24, 0, 2 * WIDTH)
    state = {"kept": ("cache", 1, 1, MOST)}
    narrow = {"scale": 12, "weight_bits": 6, "tolerance": 0.1}
    program = privml.convert(Attending().eval(), calibration=(x, empty), state=state, numerics=narrow)
    (kept,) = (node for node in program.graph.nodes if node.op == "placeholder" and node.name == "cache")
    products = [node for node in program.graph.nodes if "bmm" in str(node.target)]
    assert len(products) == 2
    for product in products:
        assert product.args[1].meta["format"].bits == kept.meta["format"].bits >= product.meta["working"].bits
