# SPDX-License-Identifier: Apache-2.0
"""numerics.bounds: what calibration saw decides rings; a value beyond it wraps around, whatever its shares are."""

import pytest
import torch
from metering import one_query
from torch import nn

import privml
from privml.errors import ConfigError, OverflowDetected

pytest.importorskip("privml._core", reason="the C++ core is not built; run `make build`")

from rich.console import Console

from privml.cli.ledgers import layer_table, reliance
from privml.engines.twopc.backend import meter


@pytest.fixture(scope="module")
def model():
    torch.manual_seed(3)
    return nn.Sequential(nn.Linear(6, 8), nn.Linear(8, 8), nn.Hardtanh(), nn.Linear(8, 3)).eval()


@pytest.fixture(scope="module")
def data():
    return torch.randn(64, 6, generator=torch.Generator().manual_seed(4))


def converted(model, data, bounds, narrow=True):
    numerics = {"bounds": bounds, "scale": 12, "weight_bits": 12, "margin": 2.0, "narrow": narrow}
    return privml.convert(model, calibration=data, numerics=numerics)


def sent(program):
    engine = meter(0)
    total = one_query(program, engine, batch=8).snapshot()
    return total.preprocess.bytes + total.online.bytes


def test_calibrated_bounds_never_cost_more_and_change_nothing(model, data):
    proved, calibrated = (converted(model, data, bounds) for bounds in ("proved", "calibrated"))
    assert sent(calibrated) <= sent(proved)
    results = []
    for program in (proved, calibrated):
        for engine in ("plain", "twopc"):
            with privml.local(engine) as session:
                results.append(privml.reveal(program.run(session, data[:8])))
    assert all(torch.equal(result, results[0]) for result in results[1:])


def test_a_value_beyond_a_calibrated_bound_names_its_layer_and_wraps_around_alike_everywhere(model, data):
    program = converted(model, data, "calibrated")
    limit = 2.0 ** (program.inputs[0].format.bits - 1 - program.inputs[0].format.scale) - 0.01
    x = (data[:8] * 9).clamp(-limit, limit)
    with privml.local("plain") as session, pytest.raises(OverflowDetected, match="node '0'"):
        program.run(session, x)
    results = []
    for engine, settings in (("plain", {"check_overflow": False}), ("twopc", {}), ("twopc", {})):
        with privml.local(engine, **settings) as session:
            results.append(privml.reveal(program.run(session, x)))
    assert all(torch.equal(result, results[0]) for result in results[1:])


def test_the_bounds_travel_in_the_program_file(model, data, tmp_path):
    program = converted(model, data, "calibrated")
    program.save(tmp_path)
    loaded = privml.load(tmp_path / "program", tmp_path / "weights.safetensors")
    assert sent(loaded) == sent(program)


def test_reports_say_which_layers_rely_on_what(model, data):
    program = converted(model, data, "calibrated")
    assert program.calibrated_layers == ("0", "1", "3") and not converted(model, data, "proved").calibrated_layers
    with Console(record=True, width=200) as console:
        table = layer_table("Cost", program.cost([[8, 6]]).as_dict(), False, program.calibrated_layers)
        console.print(table, reliance(program))
    text = console.export_text()
    assert "these layers rely on 2 times the calibrated range, all others on proved bounds: 0, 1, 3" in text
    cells = [[cell.strip() for cell in line.split("│")] for line in text.splitlines()]
    assert {c[1]: c[3] for c in cells if len(c) > 4} == {
        "0": "calibrated", "1": "calibrated", "2": "proved", "3": "calibrated", "reveal": "proved",
    }  # fmt: skip


def test_other_words_are_refused(model, data):
    with pytest.raises(ConfigError, match="proved or calibrated"):
        converted(model, data, "guessed")


class Difference(nn.Module):
    """A small difference of large numbers."""

    def __init__(self):
        super().__init__()
        self.a, self.b, self.c = nn.Linear(8, 8), nn.Linear(8, 8), nn.Linear(8, 2)
        with torch.no_grad():
            self.a.bias.fill_(3000.0)
            self.b.bias.fill_(2999.0)

    def forward(self, x):
        return self.c(self.a(x) - torch.relu(self.b(x)))


@pytest.mark.parametrize("like", ["threepc", "active"])
def test_terms_of_a_small_difference_may_be_larger_than_its_ring(like):
    torch.manual_seed(0)
    module, x = Difference().eval(), torch.randn(64, 8)
    program = privml.convert(module, calibration=x)
    with torch.no_grad(), privml.local(program, engine="plain", like=like):
        clear = program(x[:4])
    assert (clear - module(x[:4])).abs().max() < 0.05
    with privml.local(like, truncation="exact") as session:
        assert torch.equal(privml.reveal(program.run(session, x[:4])), clear)
