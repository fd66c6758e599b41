# SPDX-License-Identifier: Apache-2.0
"""The search for formats: held-out rows decide, it goes on where 32 bits do not do, and it ends in a refusal."""

import math

import pytest
import torch
from torch import nn

import privml
from privml import sharing
from privml.errors import ConfigError, OverflowDetected, PrecisionLost, UnsupportedOperator
from privml.formats import Float
from privml.graph import ir
from privml.graph.export import export
from privml.graph.ir import shape_of
from privml.graph.passes import choose_formats as search
from privml.graph.passes import input_masks
from privml.graph.passes.losses import losses
from privml.graph.passes.precision import Precision
from privml.graph.passes.rows import split_rows


class Density(nn.Module):
    """A logarithm of normal densities, as classifiers have it: squares of small differences by small variances."""

    def __init__(self, spread, offset=30.0):
        super().__init__()
        self.mean = nn.Parameter(offset + torch.arange(6.0).reshape(2, 3))
        self.variance = nn.Parameter(torch.tensor(spread))

    def forward(self, x):
        return -0.5 * ((x.unsqueeze(1) - self.mean) ** 2 / self.variance).sum(-1)


def rows(offset=30.0):
    torch.manual_seed(0)
    return offset + 6 * torch.rand(32, 3)


def run(program, x, engine="plain", **options):
    bits, scale = program.numerics.bits, program.numerics.scale
    with privml.local(engine, bits=bits, scale=scale, **options) as session:
        return privml.reveal(program.run(session, x))


def test_rows_are_split_by_batches_of_the_graph():
    x = torch.arange(10.0).reshape(10, 1)
    graph = export(nn.Linear(1, 1), (x[:1],)).graph
    free = split_rows(graph, [x], 2)
    assert free.held_out == 2 and free.judges[0].flatten().tolist() == [4, 9]
    assert sorted(torch.cat([free.seen[0], free.judges[0]]).flatten().tolist()) == list(range(10))
    more = split_rows(graph, [x], 5)  # few are held out: others judge too
    assert more.held_out == 2 and more.judges[0].flatten().tolist() == [0, 1, 2, 4, 9] and len(more.seen[0]) == 8
    pairs = split_rows(export(nn.Linear(1, 1), (x[:2],), dynamic_batch=False).graph, [x], 2)
    assert pairs.held_out == 2 and pairs.judges[0].flatten().tolist() == [8, 9]
    few = split_rows(graph, [x[:7]], 32)
    assert few.held_out == 0 and len(few.seen[0]) == len(few.judges[0]) == 7
    many = split_rows(graph, [x.repeat(50, 1)], 32)
    assert many.held_out == 32 and len(many.seen[0]) == 468


def test_held_out_rows_decide(monkeypatch):
    """Rows that tell nothing of the precision that others need do not choose a coarse scale."""
    torch.manual_seed(0)
    module = nn.Linear(4, 2).eval()
    x = torch.zeros(400, 4)
    held = split_rows(export(module, (x[:1],)).graph, [torch.arange(400.0).repeat(4, 1).T], 32).judges[0][:, 0].long()
    x[held] = torch.rand(32, 4)
    x[0] = 1.0
    monkeypatch.setattr(search, "_MEASURED_SMALL", 32)
    program = privml.convert(module, calibration=x)
    judges = x[held]
    error = (run(program, judges) - module(judges)).abs().max() / module(judges).abs().max()
    assert program.choice.held_out == 32
    assert float(error) == pytest.approx(program.choice.error, rel=1e-3) and program.choice.error <= 1 / 128


def test_rows_beyond_the_margin_are_told_and_have_room():
    x = torch.rand(32, 4)
    x[3] = 9.0
    program = privml.convert(nn.Linear(4, 2).eval(), calibration=x)
    assert dict(program.choice.unseen)["input_1"] == pytest.approx(9.0 / (2 * float(x[x < 9].max())), rel=0.05)
    assert program.inputs[0].format.bits - 1 - program.inputs[0].format.scale >= 4


def test_the_search_goes_on_in_wider_rings():
    module, x = Density(1e-4), rows()
    program = privml.convert(module, calibration=x, numerics={"rescue": None})
    assert program.numerics.bits > 32 and program.choice.error <= 1 / 128 and not program.choice.floats
    with torch.no_grad():
        expected = module(x)
    assert (run(program, x) - expected).abs().max() <= 2 / 128 * expected.abs().max()
    with pytest.raises((PrecisionLost, OverflowDetected)):
        privml.convert(module, calibration=x, numerics={"bits": 32, "rescue": None})


@pytest.mark.parametrize(
    "make, x",
    [(lambda: nn.Linear(3, 2), torch.linspace(-1, 1, 48).view(16, 3)), (lambda: Density(1e-4), rows())],
    ids=["32 bits", "wider rings"],
)
def test_progress_moves_with_every_candidate(make, x):
    torch.manual_seed(0)
    told = []
    privml.convert(make(), calibration=x, numerics={"rescue": None}, progress=lambda *step: told.append(step))
    done, totals, labels = zip(*told, strict=True)
    assert len(set(totals)) == 1 and list(done) == sorted(done) and told[-1] == (totals[0], totals[0], "done")
    tried = [label for label in labels if "fractional, weights of" in label]
    assert len(tried) > 2 and len(set(tried)) == len(tried)
    assert all(0 <= each < totals[0] or label in ("done", tried[-1]) for each, label in zip(done, labels, strict=True))
    first = labels.index(tried[0])
    assert labels[first - 1] == "choose formats" and done[first] == done[first - 1] + 1


def test_weights_are_read_once_for_all_candidates(monkeypatch):
    """Neither passes nor candidates look through a weight again to know how large it is."""
    read, extremes = [], ir.real_extremes
    monkeypatch.setattr(ir, "real_extremes", lambda value: read.append(value) or extremes(value))
    torch.manual_seed(0)
    module, told = nn.Sequential(nn.Linear(6, 5), nn.GELU(), nn.Linear(5, 2)).eval(), []
    privml.convert(module, calibration=torch.randn(64, 6), progress=lambda *step: told.append(step[2]))
    assert len([label for label in told if "fractional, weights of" in label]) > 4
    weights = {value.data_ptr(): value for value in module.parameters()}
    places = [value.data_ptr() for value in read]
    assert sorted(place for place in places if place in weights) == sorted(weights)


def test_weights_are_encoded_once_for_every_format(monkeypatch):
    """Candidates that want a weight in the same format share what was made of it."""
    encoded, encode_input = [], sharing.encode_input
    monkeypatch.setattr(sharing, "encode_input", lambda x, fmt: encoded.append((x, fmt)) or encode_input(x, fmt))
    torch.manual_seed(0)
    module, told = nn.Sequential(nn.Linear(6, 5), nn.GELU(), nn.Linear(5, 2)).eval(), []
    privml.convert(module, calibration=torch.randn(64, 6), progress=lambda *step: told.append(step[2]))
    assert len([label for label in told if "fractional, weights of 20" in label]) > 2
    weight = [fmt for x, fmt in encoded if x.data_ptr() == module[0].weight.data_ptr()]
    repeated = [a == b for a, b in zip(weight, weight[1:], strict=False)]
    assert repeated == [False] * (len(repeated) - 1) + [True]  # the last one for the engine with a dealer


def test_a_weight_that_changes_is_read_again():
    graph_module = export(nn.Linear(2, 1), (torch.randn(1, 2),))
    (node,) = [n for n in graph_module.graph.nodes if n.op == "get_attr" and len(shape_of(n)) == 2]
    value = ir.attribute(graph_module, node.target)
    for number in (1.5, -2.0):
        with torch.no_grad():
            value.fill_(number)
        assert ir.extremes_of(node, value) == (number, number)
    assert ir.extremes_of(node, torch.tensor([[0.0, 3.0]])) == (0.0, 3.0)
    assert all(map(math.isnan, ir.extremes_of(node, torch.tensor([[math.nan, 3.0]]))))


def test_a_model_without_masks_is_not_run_for_what_they_could_be(monkeypatch):
    runs, run_graph = [], input_masks.run_graph
    monkeypatch.setattr(input_masks, "run_graph", lambda *a, **k: runs.append(a) or run_graph(*a, **k))
    privml.convert(nn.Embedding(5, 3).eval(), calibration=torch.arange(10).reshape(5, 2) % 5)
    assert len(runs) == 1  # whose inputs are bits, none of which masks anything

    class Masked(nn.Module):
        def forward(self, x, kept):
            return torch.where(kept, x, 0.0)

    runs.clear()
    privml.convert(Masked().eval(), calibration=(torch.randn(20, 3), torch.ones(20, 3, dtype=torch.bool)))
    assert len(runs) == 4


def test_layers_that_lose_most_become_floats():
    module, x = Density(1e-4), rows()
    program = privml.convert(module, calibration=x, numerics={"bits": 32, "scale": 8})
    assert program.choice.floats and program.choice.error <= 1 / 128
    found = [n.meta["format"] for n in program.graph.nodes if n.op == "call_function"]
    assert any(isinstance(fmt, Float) for fmt in found) and not all(isinstance(fmt, Float) for fmt in found)
    assert torch.equal(run(program, x[:4]), run(program, x[:4], "twopc", ot="ideal"))


class Amplified(nn.Module):
    """Differences of inputs that are close to each other, in which the input's own rounding shows."""

    def __init__(self):
        super().__init__()
        self.near = nn.Parameter(torch.tensor([1.0, 2.0, 3.0]))
        self.last = nn.Linear(3, 2)

    def forward(self, x):
        return self.last((x.view(-1, 3) - self.near) * 512.0)


def test_a_layer_that_reads_an_input_becomes_a_float_with_it():
    torch.manual_seed(0)
    module = Amplified().eval()
    x = module.near.detach() + torch.rand(16, 3) / 512
    program = privml.convert(module, calibration=x, numerics={"bits": 32, "scale": 8})
    assert program.choice.floats and program.choice.error <= 1 / 128
    assert isinstance(program.inputs[0].format, Float)
    with torch.no_grad():
        expected = module(x)
    assert (run(program, x) - expected).abs().max() <= 2 / 128 * expected.abs().max()
    with pytest.raises(PrecisionLost, match=r"most is lost in layers '(sub|reshape)"):
        privml.convert(module, calibration=x, numerics={"bits": 32, "scale": 8, "rescue": None})


def test_an_accepted_error_replaces_no_layers():
    module, x = Density(1e-4), rows()
    asked = {"bits": 32, "scale": 8}
    assert privml.convert(module, calibration=x, numerics=asked).choice.floats
    with pytest.warns(UserWarning, match="numerics.accept=2 allows it"):
        program = privml.convert(module, calibration=x, numerics={**asked, "accept": 2.0})
    assert not program.choice.floats and 1 / 128 < program.choice.error <= 2
    assert privml.convert(module, calibration=x, numerics={**asked, "accept": 1 / 64}).choice.floats


def test_an_error_beyond_the_tolerance_is_refused_and_can_be_accepted():
    torch.manual_seed(0)
    module = nn.Sequential(nn.Linear(8, 8), nn.ReLU(), nn.Linear(8, 2)).eval()
    x = torch.randn(16, 8)
    coarse = {"scale": 1, "weight_bits": 2, "rescue": None}
    with pytest.raises(
        PrecisionLost, match=r"more than tolerance 0.78%; most is lost in layers '.*leave scale and weig"
    ):
        privml.convert(module, calibration=x, numerics=coarse)
    with pytest.raises(PrecisionLost):
        privml.convert(module, calibration=x, numerics={**coarse, "accept": 0.01})
    with pytest.warns(UserWarning, match="more than tolerance 0.78%; numerics.accept=2 allows it"):
        program = privml.convert(module, calibration=x, numerics={**coarse, "accept": 2.0})
    assert 0.01 < program.choice.error <= 2
    with pytest.raises(ConfigError, match="accept"):
        Precision(accept=0)


def test_losses_name_the_layer_that_loses():
    torch.manual_seed(0)
    module = nn.Sequential(nn.Linear(4, 4), nn.ReLU(), nn.Linear(4, 2)).eval()
    with torch.no_grad():
        module[0].weight.copy_(torch.eye(4))
        module[2].weight.copy_(torch.tensor([[0.501, -0.2503, 0.1257, 0.3751], [0.2501, 0.5003, -0.1251, 0.2509]]))
    x = torch.rand(8, 4)
    graph = export(module, (x[:1],))
    numerics = Precision(bits=32, scale=12, weight_bits=5)
    search.choose_formats(graph, [x], Precision(bits=32, scale=12, weight_bits=5, accept=1.0, rescue=None))
    found = losses(graph, numerics.numerics, [x])
    assert found[0][0] == "2" and found[0][1] > 10 * dict(found).get("1", 0.0)


def test_one_bad_candidate_does_not_end_the_search(monkeypatch):
    module, x = nn.Sequential(nn.Linear(4, 4), nn.Sigmoid()).eval(), torch.rand(16, 4)
    measure = search._measure

    def only_fine_ones(judged, precision):
        if precision.scale < 11:
            raise ValueError("sigmoid, input format: scale must lie in 0..bits-2")
        return measure(judged, precision)

    monkeypatch.setattr(search, "_measure", only_fine_ones)
    assert privml.convert(module, calibration=x).choice.precision.scale == 11


def test_an_operator_that_there_is_not_is_told_before_overflows(monkeypatch):
    module, x = nn.Sequential(nn.Linear(4, 4), nn.Sigmoid()).eval(), torch.rand(16, 4)
    failures = iter([OverflowDetected("too large"), *[UnsupportedOperator("no such operator")] * 1000])

    def refuse(*args):
        raise next(failures)

    monkeypatch.setattr(search, "_measure", refuse)
    with pytest.raises(UnsupportedOperator, match="no such operator"):
        privml.convert(module, calibration=x)


def test_if_no_candidate_can_be_computed_the_layer_is_named(monkeypatch):
    module, x = nn.Sequential(nn.Linear(4, 4), nn.Sigmoid()).eval(), torch.rand(16, 4)

    def refuse(*args):
        raise ValueError("no such format")

    monkeypatch.setattr("privml.ops.smooth.evaluate", refuse)
    with pytest.raises(PrecisionLost, match="no such format.*in layer '1'"):
        privml.convert(module, calibration=x)


def test_formats_keep_the_tolerance_on_the_engine_that_is_named():
    torch.manual_seed(3)
    module, x = nn.Sequential(nn.Linear(8, 16), nn.Tanh(), nn.Linear(16, 4)).eval(), torch.randn(32, 8)
    there = privml.convert(module, calibration=x, numerics={"engine": "threepc"}).choice
    here = privml.convert(module, calibration=x)
    elsewhere = dict(here.choice.elsewhere)
    assert there.error <= there.precision.tolerance and "twopc" in dict(there.elsewhere)
    assert here.choice.error <= here.choice.precision.tolerance < elsewhere["threepc"]
    (note,) = here.notes
    assert "on engine threepc" in note and "numerics.engine=threepc" in note


def test_the_named_engine_fits_the_numbers():
    with pytest.raises(ConfigError, match="engine must be one of twopc, threepc, active"):
        Precision(engine="plain")
    with pytest.raises(ConfigError, match="engine=threepc does not compute with floats; leave floating out"):
        Precision(engine="threepc", floating="float32")
    with pytest.raises(ConfigError, match="leave layers out"):
        Precision(engine="active", layers={"a": "float32"})
