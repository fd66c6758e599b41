# SPDX-License-Identifier: Apache-2.0
"""Every pass leaves the numbers alone, and the formats that are chosen are the formats that arise."""

import math
import sys
from functools import partial

import pytest
import torch
from torch import nn

import privml
from privml.conversion import PASSES
from privml.errors import ConfigError, InvalidInput, OverflowDetected, UnsupportedOperator
from privml.formats import FixedPoint
from privml.graph.export import export
from privml.graph.ir import attribute, calls, name_of, operators, target_of
from privml.graph.passes import (
    fold_batchnorm,
    fold_factors,
    fold_public,
    masks_last,
    maxpool_before_monotone,
    merge_factors,
    verify,
)
from privml.graph.passes.choose_formats import Precision, choose_formats
from privml.graph.run import in_order, run_graph, share_attributes, share_inputs
from privml.tensor import SecretTensor

aten = torch.ops.aten
torch.set_num_threads(1)


class Residual(nn.Module):
    """Convolutions with and without a norm behind them, a shortcut, average pooling, dropout."""

    def __init__(self, channels=4):
        super().__init__()
        self.conv1 = nn.Conv2d(channels, 8, 3, 2, 1, bias=False)
        self.norm1 = nn.BatchNorm2d(8)
        self.conv2 = nn.Conv2d(8, 8, 3, 1, 1)
        self.norm2 = nn.BatchNorm2d(8, affine=False)
        self.shortcut = nn.Sequential(nn.Conv2d(channels, 8, 1, 2, bias=False), nn.BatchNorm2d(8))
        self.norm3 = nn.BatchNorm2d(8)
        self.linear = nn.Linear(8, 5)
        self.norm4 = nn.BatchNorm1d(5)
        self.dropout = nn.Dropout()

    def forward(self, x):
        y = torch.relu_(self.norm1(self.conv1(x)))
        y = self.norm2(self.conv2(y))
        y += self.shortcut(x)
        y = self.norm3(torch.relu(y))
        y = nn.functional.adaptive_avg_pool2d(y, 1).flatten(1)
        return self.norm4(self.linear(self.dropout(y)))


class Pools(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv = nn.Conv2d(1, 3, 3, padding=1)
        self.linear = nn.Linear(27, 4)

    def forward(self, x):
        y = nn.functional.avg_pool2d(torch.relu(self.conv(x)), 2)
        y = nn.functional.max_pool2d(torch.relu(y), 2, 1, padding=1)
        y = torch.cat([y[:, :2], -y[:, 2:]], 1)
        y = nn.functional.avg_pool2d(y * 1.5 - 0.25, 3, 2)
        both = self.linear(torch.nn.functional.pad(y, (0, 1, 0, 1)).flatten(1))
        return both, both.argmax(1)


def randomized(module, seed=1):
    """Statistics as after training, and weights that make them matter."""
    torch.manual_seed(seed)
    for part in module.modules():
        if isinstance(part, nn.modules.batchnorm._BatchNorm):
            part.running_mean.uniform_(-0.5, 0.5)
            part.running_var.uniform_(0.5, 2.0)
            if part.affine:
                nn.init.uniform_(part.weight, 0.5, 1.5)
                nn.init.uniform_(part.bias, -0.5, 0.5)
    return module.eval().requires_grad_(False)


def attributes(graph_module):
    nodes = [n for n in graph_module.graph.nodes if n.op == "get_attr"]
    return {n.target: attribute(graph_module, n.target).detach() for n in nodes}


def run(graph_module, *inputs):
    return run_graph(graph_module.graph, inputs, attributes(graph_module))


def targets(graph_module):
    return [str(node.target) for node in calls(graph_module.graph)]


def cases():
    torch.manual_seed(0)
    return [
        pytest.param(randomized(Residual()), torch.randn(24, 4, 8, 8), id="residual"),
        pytest.param(randomized(Residual()), torch.randn(24, 4, 2, 2), id="residual, a mean of one value"),
        pytest.param(randomized(Pools()), torch.randn(24, 1, 9, 9), id="pools"),
    ]


@pytest.mark.parametrize(("module", "x"), cases())
def test_export_and_every_pass_keep_the_numbers(module, x):
    expected = module(x)
    expected = expected if isinstance(expected, tuple) else (expected,)
    graph = export(module, (x[:1],))
    for rewrite in (lambda g: g, *PASSES):
        graph = verify(rewrite(graph))
        for found, wanted in zip(run(graph, x), expected, strict=True):
            torch.testing.assert_close(found, wanted, rtol=1e-4, atol=1e-5)


class Scores(nn.Module):
    def __init__(self, shared, factors=(0.5, 0.25)):
        super().__init__()
        self.shared, self.factors = shared, factors
        self.query, self.key = nn.Linear(8, 16), nn.Linear(8, 16)

    def forward(self, x):
        q, k = self.query(x) * self.factors[0], self.key(x) * self.factors[1]
        scores = q @ k.transpose(1, 2)
        return scores + k.sum() if self.shared else scores


@pytest.mark.parametrize(("shared", "factors"), [(False, [0.125]), (True, [0.5, 0.25])])
def test_a_matrix_product_has_one_factor(shared, factors):
    module, x = randomized(Scores(shared)), torch.randn(3, 5, 8)
    graph = export(module, (x[:1],))
    assert targets(graph).count("aten.mul.Tensor") == 2
    graph = verify(merge_factors(graph))
    assert [n.args[1] for n in calls(graph.graph) if n.target is aten.mul.Tensor] == factors
    torch.testing.assert_close(run(graph, x)[0], module(x))


@pytest.mark.parametrize("size", [16, 64, 256])
def test_two_fourth_roots_of_a_power_of_two_make_a_power_of_two(size):
    root = size**-0.5
    graph = export(Scores(False, (math.sqrt(root), math.sqrt(root))), (torch.randn(1, 5, 8),))
    graph = verify(merge_factors(graph))
    assert [n.args[1] for n in calls(graph.graph) if n.target is aten.mul.Tensor] == [root]


class Projected(nn.Module):
    """Queries, keys and values as parts of one product; ``read`` has the queries before their factor."""

    def __init__(self, factor=0.42, read=None):
        super().__init__()
        self.project, self.factor, self.read = nn.Linear(8, 24), factor, read

    def forward(self, x):
        q, k, v = self.project(x).unflatten(-1, (3, 2, 4)).permute(2, 0, 3, 1, 4).unbind(0)
        scores = (q * self.factor) @ (k * 0.5).transpose(-2, -1)
        y = scores @ v
        return y + q if self.read else y


class Mixed(nn.Module):
    """A factor behind a view that mixes the rows of a weight with rows that something else reads."""

    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(8, 8)

    def forward(self, x):
        a, b = self.layer(x).chunk(2, 0)
        return a * 0.42 + b


class Transposed(nn.Module):
    """Weights as [in, out], with and without a bias."""

    def __init__(self):
        super().__init__()
        self.first, self.second = nn.Parameter(torch.randn(8, 6)), nn.Parameter(torch.randn(6, 4))
        self.bias = nn.Parameter(torch.randn(6))

    def forward(self, x):
        return (torch.addmm(self.bias, x, self.first) * 0.3).relu() @ self.second * 0.7


class Repeated(nn.Module):
    """One weight for two products, of which one has a factor."""

    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(8, 8)

    def forward(self, x):
        return self.layer(self.layer(x) * 0.42)


def factors_left(graph):
    return [n.args[1] for n in calls(graph.graph) if n.target is aten.mul.Tensor]


@pytest.mark.parametrize(
    ("module", "shape", "left"),
    [
        pytest.param(Projected(), (5, 8), [], id="parts of one product"),
        pytest.param(Projected(read=True), (5, 8), [0.42], id="read without the factor too"),
        pytest.param(Projected(0.2), (5, 8), [0.2], id="takes too many bits"),
        pytest.param(Projected(1.5), (5, 8), [1.5], id="larger than one"),
        pytest.param(Mixed(), (8,), [0.42], id="the same rows elsewhere"),
        pytest.param(Transposed(), (8,), [], id="transposed"),
        pytest.param(Repeated(), (8,), [0.42], id="a weight of two products"),
        pytest.param(Scores(False), (5, 8), [], id="two products"),
        pytest.param(Scores(True), (5, 8), [], id="a product that two read"),
    ],
)
def test_weights_take_factors_of_the_rows_that_only_these_read(module, shape, left):
    module, x = randomized(module), torch.randn(4, *shape)
    graph = verify(fold_factors(export(module, (x,))))
    assert factors_left(graph) == left
    torch.testing.assert_close(run(graph, x)[0], module(x))
    torch.testing.assert_close(run(graph, x[:2])[0], module(x[:2]))


@pytest.mark.parametrize("heads", [2, 4])
def test_attention_keeps_no_factor(heads):
    layer = nn.MultiheadAttention(8 * heads, heads, batch_first=True).eval()
    x = torch.randn(3, 5, 8 * heads)

    class Itself(nn.Module):
        def __init__(self):
            super().__init__()
            self.layer = layer

        def forward(self, x):
            return self.layer(x, x, x, need_weights=False)[0]

    graph = export(Itself(), (x,))
    assert "aten.mul.Scalar" in targets(graph)
    graph = verify(fold_factors(graph))
    assert "aten.mul.Scalar" not in targets(graph)
    torch.testing.assert_close(run(graph, x)[0], Itself()(x))


class Remembering(nn.Module):
    """Scores of queries and keys, each times a number; some keys are those of earlier calls."""

    def __init__(self):
        super().__init__()
        self.queries, self.keys = nn.Linear(4, 6), nn.Linear(4, 6)

    def forward(self, x, cache):
        queries, keys = self.queries(x), torch.cat([cache, self.keys(x)], 1)
        return (queries * 0.35) @ (keys * 0.35).transpose(1, 2)


def test_queries_take_the_factor_of_keys_that_come_in():
    module, x, cache = Remembering(), torch.randn(2, 3, 4), torch.randn(2, 5, 6)
    graph = verify(fold_factors(export(module, (x, cache))))
    multiplied = [node for node in calls(graph.graph) if node.target in (aten.mul.Scalar, aten.mul.Tensor)]
    assert [node.args[1] for node in multiplied] == [0.1225]
    assert multiplied[0].args[0].target is aten.linear.default
    torch.testing.assert_close(run(graph, x, cache)[0], module(x, cache))


class Biased(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer, self.bias = nn.Linear(4, 3), nn.Parameter(torch.randn(3, 3))

    def forward(self, x):
        bias = torch.where(torch.ones(3, 3).tril() > 0, self.bias, torch.finfo(x.dtype).min)
        return torch.softmax(self.layer(x) + bias, -1)


def test_places_are_hidden_after_a_bias_is_added():
    module, x = randomized(Biased()), torch.randn(2, 3, 4)
    graph = verify(masks_last(fold_public(export(module, (x,)))))
    order = [target for target in targets(graph) if target in ("aten.add.Tensor", "aten.where.ScalarOther")]
    assert order == ["aten.add.Tensor", "aten.where.ScalarOther"]
    torch.testing.assert_close(run(graph, x)[0], module(x))


def test_batch_norm_disappears():
    graph = fold_batchnorm(export(randomized(Residual()), (torch.randn(1, 4, 8, 8),)))
    assert not any("batch_norm" in target for target in targets(graph))
    # Only the norm behind ReLU had nothing to go into.
    assert targets(graph).count("aten.mul.Tensor") == 1
    assert targets(graph).count("aten.add.Tensor") == 2


def test_a_convolution_with_two_users_keeps_its_weights():
    class Twice(nn.Module):
        def __init__(self):
            super().__init__()
            self.conv = nn.Conv2d(1, 2, 3)
            self.norm = nn.BatchNorm2d(2)

        def forward(self, x):
            y = self.conv(x)
            return self.norm(y) + y

    module, x = randomized(Twice()), torch.randn(3, 1, 5, 5)
    graph = fold_batchnorm(export(module, (x,)))
    torch.testing.assert_close(run(graph, x)[0], module(x))


def test_a_norm_of_other_channels_than_the_rows_of_a_linear_map_stays_apart():
    module, x = randomized(nn.Sequential(nn.Linear(4, 3), nn.BatchNorm1d(3))), torch.randn(5, 3, 4)
    torch.testing.assert_close(run(fold_batchnorm(export(module, (x,))), x)[0], module(x))


def test_layers_of_zeros_and_of_tiny_weights_have_formats():
    for factor in (0.0, 1e-7, 1e-18):
        module = nn.Sequential(nn.Linear(4, 4), nn.ReLU(), nn.Linear(4, 2)).eval()
        with torch.no_grad():
            module[0].weight.mul_(factor)
            module[0].bias.fill_(-1.0)
        x = torch.randn(8, 4)
        program = privml.convert(module, calibration=x)
        with privml.local("plain", bits=32, scale=program.numerics.scale) as session, torch.no_grad():
            assert (privml.reveal(program.run(session, x)) - module(x)).abs().max() < 0.02


def test_pooling_goes_before_relu_only_where_it_may():
    class Model(nn.Module):
        def forward(self, x):
            a = nn.functional.max_pool2d(torch.relu(nn.functional.hardtanh(x, -2, 1)), 2)
            shared = torch.relu(x)
            falling = nn.functional.max_pool2d(-torch.relu(x), 2)
            return a, nn.functional.max_pool2d(shared, 2), shared, falling

    x = torch.randn(2, 1, 6, 6)
    graph = export(Model(), (x,))
    before = run(graph, x)
    graph = maxpool_before_monotone(graph)
    assert all(torch.equal(a, b) for a, b in zip(run(graph, x), before, strict=True))
    nodes = list(calls(graph.graph))
    pools = [n for n in nodes if n.target is aten.max_pool2d.default]
    assert [n.args[0].op == "placeholder" for n in pools] == [True, False, False]
    assert tuple(nodes[1].meta["val"].shape[1:]) == (1, 3, 3) or nodes[0].target is aten.sym_size.int


# ---- formats
def prepared(module, x):
    graph = export(module, (x[:1],))
    for rewrite in PASSES:
        graph = rewrite(graph)
    return graph


@pytest.mark.parametrize("narrow", [True, False])
@pytest.mark.parametrize(("module", "x"), cases())
def test_chosen_formats_are_those_that_arise(module, x, narrow):
    graph, choice = choose_formats(prepared(module, x), (x,), Precision(narrow=narrow))
    verify(graph, formats=True)
    wrong = []

    def compare(node, value):
        value = value[0] if isinstance(value, (tuple, list)) else value
        if isinstance(value, SecretTensor) and isinstance(value.format, FixedPoint):
            found, planned = value.format, node.meta["format"]
            if (found.bits, found.scale) != (planned.bits, planned.scale):
                wrong.append((node.name, found, planned))

    with privml.local("plain", bits=32, scale=choice.precision.scale) as session:
        shared = share_attributes(graph.graph, session, attributes(graph))
        scheduler = partial(in_order, observe=compare)
        results = run_graph(graph.graph, share_inputs(graph.graph, session, [x]), shared, session, scheduler)
        scores, expected = privml.reveal(results[0]), module(x)
    assert not wrong
    expected = expected[0] if isinstance(expected, tuple) else expected
    assert float((scores - expected).abs().max() / expected.abs().max()) < 2 * Precision().tolerance
    assert choice.error <= Precision().tolerance
    for row in choice.report:
        assert row.headroom_bits >= math.log2(Precision().margin) - 1e-6, row
        assert row.limit == pytest.approx(row.seen * 2**row.headroom_bits, rel=0.01) or row.seen == 0


def test_truncation_waits_for_pooling_and_relu():
    torch.manual_seed(0)
    module = nn.Sequential(nn.Conv2d(1, 2, 3), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten(), nn.Linear(18, 3)).eval()
    x = torch.rand(16, 1, 8, 8)
    graph, _ = choose_formats(prepared(module, x), (x,), Precision(scale=8, weight_bits=10))
    found = {str(n.target).split(".")[1]: n.meta["format"] for n in calls(graph.graph) if n.meta["secret"]}
    weight = next(n.meta["format"] for n in graph.graph.nodes if n.target == "0.weight")
    doubled = 8 + weight.scale
    assert found["conv2d"].scale == found["max_pool2d"].scale == doubled
    assert found["relu"].scale == found["reshape"].scale == 8
    assert found["linear"].scale > 8  # the result is never truncated
    assert weight.bits <= 10


def test_long_chains_of_sums_are_walked():
    class Chain(nn.Module):
        def __init__(self):
            super().__init__()
            self.shift = nn.Parameter(torch.full((4,), 2.0**-10))
            self.first, self.last = nn.Linear(4, 4), nn.Linear(4, 2)

        def forward(self, x):
            for _ in range(sys.getrecursionlimit()):
                x = x + self.shift
            return self.last(self.first(x) + x)

    torch.manual_seed(0)
    module, x = Chain().eval(), torch.rand(8, 4)
    choice = choose_formats(export(module, (x[:1],)), (x,), Precision(scale=12, weight_bits=12))[1]
    assert choice.error <= Precision().tolerance


def test_pixels_are_exact_and_other_inputs_have_a_margin():
    module = nn.Linear(4, 2).eval()

    def input_format(x, **settings):
        graph, _ = choose_formats(prepared(module, x), (x,), Precision(**settings))
        return next(n.meta["format"] for n in graph.graph.nodes if n.op == "placeholder")

    pixels = torch.arange(256).reshape(64, 4) / 256
    assert input_format(pixels) == FixedPoint(9, 8, nonnegative=True)
    assert input_format(pixels - 0.5) == FixedPoint(9, 8) or input_format(pixels - 0.5).bits <= 9
    torch.manual_seed(0)
    noise = torch.randn(64, 4)
    found = input_format(noise, scale=10, margin=4.0)
    assert found.scale == 10 and not found.nonnegative
    assert 2.0 ** (found.bits - 1 - 10) > 4 * noise.abs().max()


def test_a_scale_is_found_by_measurement():
    torch.manual_seed(3)
    module = nn.Sequential(nn.Linear(16, 16), nn.ReLU(), nn.Linear(16, 4)).eval()
    x = torch.randn(64, 16)
    coarse = choose_formats(prepared(module, x), (x,), Precision(tolerance=0.1))[1]
    fine = choose_formats(prepared(module, x), (x,), Precision(tolerance=0.001))[1]
    assert coarse.precision.scale < fine.precision.scale
    assert coarse.precision.weight_bits < fine.precision.weight_bits
    assert fine.error <= 0.001 < coarse.error <= 0.1


def test_a_ring_that_is_too_small_is_named():
    module = nn.Linear(64, 2)
    nn.init.constant_(module.weight, 100.0)
    x = torch.full((2, 64), 100.0)
    with pytest.raises(OverflowDetected, match=r"layer 'linear'.*bits.*bits=64"):
        choose_formats(prepared(module, x), (x,), Precision(bits=16, scale=8))
    choose_formats(prepared(module, x), (x,), Precision(bits=40, scale=8))


def test_values_beyond_the_margin_are_detected_by_the_plain_engine():
    torch.manual_seed(0)
    module = nn.Sequential(nn.Linear(8, 8), nn.ReLU(), nn.Linear(8, 2)).eval()
    x = torch.randn(64, 8) / 4
    program = privml.convert(module, calibration=x, numerics={"scale": 8, "weight_bits": 10})
    limit = 2.0 ** (program.inputs[0].format.bits - 1 - 8) - 0.01
    with privml.local("plain", bits=32, scale=8) as session, pytest.raises(OverflowDetected, match="node '0'"):
        program.run(session, limit * torch.sign(module[0].weight[:1].detach()))


def test_precision_rejects_nonsense():
    for settings in (
        {"bits": 65},
        {"scale": 31},
        {"margin": 0.5},
        {"weight_bits": 1},
        {"tolerance": 0},
        {"scall": 3},
        {"bits": "x"},
        {"bits": 31.5},
        {"scale": 2.5},
        {"margin": "x"},
        {"tolerance": None},
        {"narrow": "no"},
    ):
        with pytest.raises(ConfigError):
            Precision.of(settings)


def test_calibration_data_must_fit():
    graph = prepared(nn.Linear(4, 2), torch.zeros(2, 4))
    for bad in ([torch.zeros(2, 5)], [torch.zeros(0, 4)], [torch.zeros(2, 4).double()], []):
        with pytest.raises(InvalidInput):
            choose_formats(graph, bad, Precision())
    with pytest.raises(InvalidInput, match="NaN or infinity"):
        choose_formats(graph, [torch.full((2, 4), math.nan)], Precision())


# ---- verify and the operator list
def test_verify_names_what_is_wrong():
    graph = export(nn.Sequential(nn.Linear(4, 4), nn.ReLU()), (torch.zeros(2, 4),))
    with pytest.raises(ConfigError, match=r"'relu' after the pass x.*without a format"):
        for node in graph.graph.nodes:
            node.meta["format"] = None if node.name == "relu" else FixedPoint()
        verify(graph, formats=True, after="x")
    relu = next(n for n in calls(graph.graph) if n.name == "relu")
    for target, reason in ((aten.relu_.default, "writes to"), (aten.erfinv.default, "not an operator of the table")):
        relu.target = target
        with pytest.raises(UnsupportedOperator, match=reason):
            verify(graph)
    relu.target = aten.relu.default
    attribute(graph, "0.weight").data[1, 2] = math.inf
    with pytest.raises(ConfigError, match=r"0.weight holds NaN or infinity at index \(1, 2\)"):
        verify(graph)


def test_verify_rejects_shapes_that_depend_on_data():
    class Chosen(nn.Module):
        def forward(self, x):
            return x[x.sum(1) > 0]

    with pytest.raises((UnsupportedOperator, InvalidInput)):
        verify(export(Chosen(), (torch.randn(4, 3),)))


def test_operator_names_are_a_closed_list():
    for name in operators():
        assert name_of(target_of(name)) == name
    for name in ("aten.set_.source_Tensor", "aten.item.default", "os.system", "aten.relu_.default", "__import__"):
        with pytest.raises(KeyError):
            target_of(name)
