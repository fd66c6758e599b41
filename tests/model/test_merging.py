# SPDX-License-Identifier: Apache-2.0
"""The passes that merge independent operations leave the numbers alone and shorten the critical path."""

from collections import Counter

import pytest
import torch
import torch.nn.functional as F
from metering import one_query
from torch import nn

import privml
from privml import conversion
from privml.engines.twopc import backend as twopc
from privml.graph.export import export
from privml.graph.ir import calls
from privml.graph.passes import (
    blend,
    fold_weights,
    fold_zeros,
    merge_elementwise,
    merge_products,
    tanh_by_sigmoid,
    verify,
)

PASSES = (fold_weights, fold_zeros, blend, tanh_by_sigmoid, merge_products, merge_elementwise)


class Gru(nn.Module):
    """A cell by hand, a product for every gate, with piecewise linear gates."""

    def __init__(self, hidden=7):
        super().__init__()
        self.x, self.h = (nn.ModuleList(nn.Linear(n, hidden) for _ in range(3)) for n in (5, hidden))

    def forward(self, x):
        h = x.new_zeros(x.shape[0], self.h[0].in_features)
        for step in x.unbind(1):
            z = F.hardsigmoid(self.x[0](step) + self.h[0](h))
            r = F.hardsigmoid(self.x[1](step) + self.h[1](h))
            n = F.hardtanh(self.x[2](step) + r * self.h[2](h))
            h = (1 - z) * n + z * h
        return h


class Lstm(nn.Module):
    """Both directions, gates as parts of one product, weights as plain matrices."""

    def __init__(self, hidden=4):
        super().__init__()
        self.hidden = hidden
        self.w, self.u = (nn.ParameterList(torch.randn(n, 4 * hidden) * 0.4 for _ in range(2)) for n in (5, hidden))
        self.b = nn.ParameterList(torch.randn(4 * hidden) * 0.4 for _ in range(2))

    def forward(self, x):
        ends = []
        for d in range(2):
            h = c = torch.zeros(x.shape[0], self.hidden)
            steps = range(x.shape[1])
            for t in reversed(steps) if d else steps:
                i, f, g, o = (x[:, t] @ self.w[d] + h @ self.u[d] + self.b[d]).chunk(4, -1)
                c = F.hardsigmoid(f) * c + F.hardsigmoid(i) * F.hardtanh(g)
                h = F.hardsigmoid(o) * F.hardtanh(c)
            ends.append(h)
        return torch.cat(ends, -1)


class Fast(nn.Module):
    """FastGRNN: both gates have the same products and biases of their own."""

    def __init__(self, hidden=6):
        super().__init__()
        self.w, self.u = (nn.Parameter(torch.randn(n, hidden) * 0.4) for n in (5, hidden))
        self.b = nn.ParameterList(torch.randn(hidden) * 0.4 for _ in range(2))

    def forward(self, x):
        h = torch.zeros(x.shape[0], self.u.shape[0])
        for t in range(x.shape[1]):
            both = x[:, t] @ self.w + h @ self.u
            z = F.hardsigmoid(both + self.b[0])
            h = z * h + (0.5 - z) * F.hardsigmoid(both + self.b[1])
        return h


class Blends(nn.Module):
    """Sums of products that are blends, and some that only look like it."""

    def forward(self, x):
        a, b, z = x, torch.relu(x), x * x
        other = 1 - z
        return (
            z * a + (1 - z) * b, b * other + a * z, (1 - z) * (a + b) + z * a, z * a + (2 - z) * b,
            z * a + (1 - a) * b, z * a - (1 - z) * b,
        )  # fmt: skip


class Rnn(nn.Module):
    def __init__(self, **settings):
        super().__init__()
        self.rnn = nn.RNN(5, 6, nonlinearity="relu", batch_first=True, **settings)

    def forward(self, x):
        y, h = self.rnn(x)
        return y, h.sum(0)


class Layer(nn.Module):
    """One of torch's layers, states included."""

    def __init__(self, kind, **settings):
        super().__init__()
        self.layer = kind(5, 6, batch_first=True, **settings)

    def forward(self, x):
        y, state = self.layer(x)
        states = state if isinstance(state, tuple) else (state,)
        return (y, *(part.transpose(0, 1) for part in states))


class LstmCell(nn.Module):
    def __init__(self):
        super().__init__()
        self.cell = nn.LSTMCell(5, 6)

    def forward(self, x):
        state = None
        for t in range(x.shape[1]):
            state = self.cell(x[:, t], state)
        return state


class GruCell(nn.Module):
    def __init__(self):
        super().__init__()
        self.cell = nn.GRUCell(5, 6)

    def forward(self, x):
        h = x.new_zeros(x.shape[0], 6)
        for t in range(x.shape[1]):
            h = self.cell(x[:, t], h)
        return h


class Cell(nn.Module):
    def __init__(self):
        super().__init__()
        self.cell = nn.RNNCell(5, 6, nonlinearity="relu")

    def forward(self, x):
        h = None
        for t in range(x.shape[1]):
            h = self.cell(x[:, t], h)
        return h


class Heads(nn.Module):
    """Three projections of one tensor, and products that depend on each other."""

    def __init__(self):
        super().__init__()
        self.parts = nn.ModuleList(nn.Linear(5, n, bias=n != 4) for n in (4, 6, 6))
        self.last = nn.Linear(6, 6)

    def forward(self, x):
        a, b, c = (part(x) for part in self.parts)
        return torch.relu(a), torch.relu(self.last(b)) * torch.relu(self.last(torch.relu(c)))


class Assembled(nn.Module):
    """Weights that are made of others."""

    def __init__(self):
        super().__init__()
        self.w, self.v = nn.Parameter(torch.randn(3, 5)), nn.Parameter(torch.randn(4, 5))
        self.b, self.c = nn.Parameter(torch.randn(7)), nn.Parameter(torch.randn(7))

    def forward(self, x):
        rows = torch.cat([self.w[1:], self.v, self.w[:1] * 0.5])
        return F.linear(x, rows, self.b + self.c)


# Model, and how many calls of which kinds are left.
MODELS = {
    "gru": (Gru, {"linear": 6, "hardsigmoid": 6, "hardtanh": 6, "mul": 12}),
    "lstm": (Lstm, {"linear": 1, "baddbmm": 0, "bmm": 5, "hardsigmoid": 6, "hardtanh": 12, "mul": 12}),
    "fast": (Fast, {"linear": 1, "mm": 5, "hardsigmoid": 6, "mul": 6}),
    "rnn": (Rnn, {"linear": 6, "relu": 6}),
    "rnn2": (lambda: Rnn(num_layers=2, bidirectional=True), {"linear": 2, "baddbmm": 10, "relu": 12}),
    "cell": (Cell, {"linear": 6, "relu": 6}),
    "nn.gru": (lambda: Layer(nn.GRU), {"linear": 6, "sigmoid": 6, "tanh": 6, "mul": 12}),
    "nn.gru2": (
        lambda: Layer(nn.GRU, num_layers=2, bidirectional=True),
        {"linear": 2, "baddbmm": 10, "sigmoid": 12, "tanh": 12, "mul": 24},
    ),
    "nn.lstm": (lambda: Layer(nn.LSTM), {"linear": 6, "sigmoid": 6, "tanh": 6}),
    "nn.lstm2": (
        lambda: Layer(nn.LSTM, bidirectional=True),
        {"linear": 1, "baddbmm": 5, "sigmoid": 6, "tanh": 6},
    ),
    "nn.lstm.proj": (lambda: Layer(nn.LSTM, proj_size=3), {"sigmoid": 6, "tanh": 6}),
    "nn.rnn": (lambda: Layer(nn.RNN), {"linear": 6, "tanh": 6, "sigmoid": 0}),
    "nn.grucell": (GruCell, {"linear": 6, "sigmoid": 6, "tanh": 6}),
    "nn.lstmcell": (LstmCell, {"linear": 6, "sigmoid": 6, "tanh": 6}),
    "heads": (Heads, {"linear": 3}),
    "blends": (Blends, {"mul": 2}),
    "assembled": (Assembled, {"linear": 1, "cat": 0, "add": 0, "slice": 0}),
}


def graph_of(name):
    torch.manual_seed(5)
    model, x = MODELS[name][0]().eval(), torch.randn(3, 6, 5)
    with torch.no_grad():
        results = model(x)
    return export(model, (x,)), x, results if isinstance(results, tuple) else (results,)


def kinds(graph):
    names = Counter(str(node.target).split(".")[1] for node in calls(graph) if "." in str(node.target))
    return names


@pytest.mark.parametrize("name", MODELS)
def test_numbers_stay_and_calls_go_for_good(name):
    module, x, expected = graph_of(name)
    for rewrite in PASSES:
        module = verify(rewrite(module), after=rewrite.__name__)
        for result, wanted in zip(module(x), expected, strict=True):
            torch.testing.assert_close(result, wanted, rtol=1e-4, atol=1e-5)
        for result, wanted in zip(module(x[:1]), expected, strict=True):
            torch.testing.assert_close(result[:1], wanted[:1], rtol=1e-4, atol=1e-5)
    found = kinds(module.graph)
    wanted = MODELS[name][1]
    assert {kind: found[kind] for kind in wanted} == wanted
    for rewrite in PASSES:
        module = rewrite(module)
    again = len(list(module.graph.nodes))
    for rewrite in PASSES:
        module = rewrite(module)
    assert len(list(module.graph.nodes)) == again, "the passes are idempotent"
    torch.testing.assert_close(module(x)[0], expected[0], rtol=1e-4, atol=1e-5)


def test_blends_take_one_product():
    module, x, expected = graph_of("blends")
    assert kinds(module.graph)["mul"] == 13
    module = verify(blend(module), after="blend")
    assert kinds(module.graph)["mul"] == 9
    for result, wanted in zip(module(x), expected, strict=True):
        torch.testing.assert_close(result, wanted)


def depth_and_bytes(program):
    ledger = one_query(program, twopc.meter(0))
    return ledger.snapshot().total.depth, ledger.snapshot().total.bytes


@pytest.mark.parametrize(
    ("name", "part"), [("gru", 0.65), ("lstm", 0.45), ("fast", 0.75), ("rnn2", 0.55), ("nn.lstm2", 0.4)]
)
def test_the_critical_path_is_shorter(name, part, monkeypatch):
    torch.manual_seed(5)
    model, x = MODELS[name][0]().eval(), torch.randn(8, 6, 5)
    merged, _ = depth_and_bytes(privml.convert(model, calibration=x, numerics={"scale": 10, "weight_bits": 12}))
    monkeypatch.setattr(conversion, "PASSES", ())
    plain, _ = depth_and_bytes(privml.convert(model, calibration=x, numerics={"scale": 10, "weight_bits": 12}))
    assert merged <= part * plain, (merged, plain)


@pytest.mark.parametrize("name", ["gru", "lstm", "fast", "rnn2", "nn.gru2", "nn.lstm2", "nn.lstm.proj"])
def test_merged_programs_run(name):
    torch.manual_seed(5)
    model, x = MODELS[name][0]().eval(), torch.randn(8, 6, 5)
    program = privml.convert(model, calibration=x)
    with torch.no_grad():
        expected = model(x[:2])
    results = {}
    for engine, settings in (("plain", {}), ("twopc", {"ot": "ideal"})):
        with privml.local(engine, bits=program.numerics.bits, scale=program.numerics.scale, **settings) as session:
            outputs = program.run(session, x[:2])
            results[engine] = privml.reveal(outputs[0] if isinstance(outputs, tuple) else outputs)
    assert torch.equal(results["plain"], results["twopc"])
    expected = expected[0] if isinstance(expected, tuple) else expected
    assert (results["plain"] - expected).abs().max() < 0.03 * max(1.0, float(expected.abs().max()))


def test_weights_of_many_products_are_narrowed_together():
    """A weight that every step uses takes the widest format with which no step overflows its ring."""
    torch.manual_seed(5)
    model, x = Rnn().eval(), torch.randn(8, 6, 5)
    program = privml.convert(model, calibration=x, numerics={"scale": 12, "weight_bits": 20})
    assert program.choice.error < 0.01
    assert {spec.format.bits for spec in program.weight_specs if "weight" in spec.name} <= set(range(12, 21))


def test_products_of_transposed_inputs_take_their_bias_at_the_product_s_scale():
    torch.manual_seed(5)
    model, x = Rnn(num_layers=2).eval(), torch.randn(8, 6, 5)
    program = privml.convert(model, calibration=x, numerics={"scale": 8, "weight_bits": 16})
    with privml.local("plain", bits=program.numerics.bits, scale=program.numerics.scale) as session:
        y, _ = program.run(session, x)
        with torch.no_grad():
            assert (privml.reveal(y) - model(x)[0]).abs().max() < 0.05


def test_a_hoisted_product_is_truncated_once():
    """Its slices are added to states that were truncated for the reset gate; no sum of gates is truncated again."""
    torch.manual_seed(5)
    model, x = Gru().eval(), torch.randn(8, 6, 5)
    program = privml.convert(model, calibration=x, numerics={"scale": 10, "weight_bits": 12})
    (hoisted,) = [n for n in calls(program.graph) if "linear" in str(n.target) and len(n.meta["shape"]) == 3]
    assert hoisted.meta["format"].scale == 10
