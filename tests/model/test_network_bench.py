# SPDX-License-Identifier: Apache-2.0
"""The benchmark of networks: what it predicts is what a run costs, and merging keeps its promise."""

import pytest
import torch
from omegaconf import OmegaConf

import privml
from privml.cli.paths import config_directory
from privml.engines.correlations import OtChoice
from privml.measure import networks
from privml.spec import SessionSpec

NUMERICS = {"scale": 10, "weight_bits": 10}
SMALL = {"network": "gated", "inputs": 4, "hidden": 8, "steps": 3, "classes": 3, "numerics": NUMERICS}
IDEAL = SessionSpec("twopc", OtChoice("ideal", 0))


@pytest.mark.parametrize(
    "params",
    [
        SMALL,
        {"network": "sigmoid_lstm", "hidden": 6, "layers": 2, "numerics": NUMERICS},
        {"network": "tangents", "sizes": [6, 4], "numerics": NUMERICS},
        {"network": "encoder", "width": 8, "heads": 2, "hidden": 12, "length": 3, "layers": 1, "numerics": NUMERICS},
    ],
)
def test_networks_compute_in_fixed_point_what_they_do_in_float(params):
    module = networks.network(params)
    program, x = networks.program(module, params), networks.inputs(module, 2)
    results = []
    for engine, settings in (("plain", {}), ("twopc", {"ot": "ideal"})):
        with privml.local(engine, bits=program.numerics.bits, scale=program.numerics.scale, **settings) as session:
            results.append(privml.reveal(program.run(session, x)))
    assert torch.equal(*results)
    with torch.no_grad():
        assert (results[0] - module(x)).abs().max() < 0.05


def test_forecast_grows_with_the_batch_but_not_in_depth():
    module = networks.network(SMALL)
    program = networks.program(module, SMALL)
    one, many = (networks.forecast(program, batch, IDEAL) for batch in (1, 16))
    assert 8 * one.online.bytes < many.online.bytes < 17 * one.online.bytes
    assert many.online.depth <= 1.2 * one.online.depth


def test_depth_of_the_shape_of_google30_is_at_most_half_of_its_operators_one_by_one():
    params = {**SMALL, "inputs": 32, "hidden": 100, "steps": 7, "classes": 30}
    module = networks.network(params)
    program = networks.program(module, params)
    merged = networks.forecast(program, 1, IDEAL).online.depth
    assert merged <= 0.5 * networks.one_by_one(module, program.numerics, 1, IDEAL).online.depth


def test_functions_cost_what_their_calls_cost():
    row = {"function": "sigmoid", "calls": 1, "count": 50, "bits": 16, "scale": 8, "out_scale": 14}
    one = networks.functions([row], 1, IDEAL)
    three = networks.functions([{**row, "calls": 3}], 1, IDEAL)
    assert three.online.bytes == 3 * one.online.bytes and three.online.depth >= 3 * one.online.depth - 3


def test_the_suites_name_networks_that_exist():
    transformers, suite = (
        OmegaConf.load(config_directory() / "suite" / f"{n}.yaml") for n in ("transformers", "recurrent")
    )
    assert transformers.kind == suite.kind == "network"
    for row in [*suite.operators.values(), *transformers.operators.values()]:
        assert row.operator == "network"
        assert "functions" in row.params or row.params.network in networks.NETWORKS
    functions = {r.function: r.calls * r.count for r in suite.operators.heads.params.functions[:1]}
    assert functions == {"sigmoid": 128 * 18096}
