# SPDX-License-Identifier: Apache-2.0
"""The suite of trees and support vector machines: its models are what their shapes say, and engines answer alike."""

import onnxruntime
import pytest
import torch
from omegaconf import OmegaConf

from privml.cli import bench
from privml.cli.paths import config_directory
from privml.engines.correlations import OtChoice
from privml.measure import classical
from privml.measure.suites import measure
from privml.session.ledger import PHASES
from privml.spec import SessionSpec, engine

SUITE = OmegaConf.to_container(OmegaConf.load(config_directory() / "suite" / "classical.yaml"))
TREE = {"model": "tree", "depth": 3, "features": 6, "structure": "hidden"}
MACHINE = {"model": "machine", "classes": 5, "features": 12}


def test_the_rows_are_the_published_shapes():
    rows = SUITE["operators"]
    assert SUITE["kind"] == "classical"
    shapes = {name: tuple(v for k, v in row["params"].items() if k not in ("model", "structure"))
              for name, row in rows.items() if "published" in row}  # fmt: skip
    assert shapes == {
        "hill_valley": (3, 100), "spambase": (6, 57), "diabetes": (9, 8),
        "cifar": (10, 2048), "mit": (67, 2048), "aloi": (463, 128),
    }  # fmt: skip
    assert all(set(row["published"]["milliseconds"]) == {"32", "64"} for row in rows.values() if "published" in row)


@pytest.mark.parametrize(
    ("params", "weights"),
    [
        (TREE, {"selection": (7, 6), "thresholds": (7,), "leaf_weights": (8, 1)}),
        ({**TREE, "structure": "public"}, {"thresholds": (7,), "leaf_weights": (8, 1)}),
        (MACHINE, {"coefficients": (5, 12), "intercepts": (5,)}),
    ],
    ids=["hidden tree", "tree", "machine"],
)
def test_a_row_s_model_has_its_shape_and_answers(params, weights):
    program = classical.program(params, 32)
    assert {spec.name.split("label_")[1]: spec.shape for spec in program.weight_specs} == weights
    session = onnxruntime.InferenceSession(classical.model(params).SerializeToString())
    x = classical.inputs(params, 200)
    expected = torch.from_numpy(session.run(None, {"x": x.numpy()})[0])
    found = classical.query(program, x, SessionSpec("plain"), 1)
    assert found["seconds"] > 0 and set(found["phases"]) == set(PHASES) - {"setup"}
    with classical.local("plain", bits=32, scale=program.numerics.scale) as opened:
        label = classical.reveal(program.run(opened, x))
    assert (label == expected).float().mean() > 0.98 and len(label.unique()) > 2


@pytest.mark.parametrize(
    ("name", "ot"), [("twopc", OtChoice("ideal")), ("threepc", None), ("active", OtChoice("ideal", 4, "malicious"))]
)
@pytest.mark.parametrize("params", [TREE, MACHINE], ids=["tree", "machine"])
def test_every_engine_is_measured(params, name, ot):
    program = classical.program(params, 32)
    spec = SessionSpec(engine(name, **({"ring": 32} if name == "active" else {})), ot)
    found = classical.query(program, classical.inputs(params, 2), spec, 2)
    assert found["phases"]["online"]["bytes"] > 0 and found["first_seconds"] > 0


def test_a_record_has_the_published_figure_of_its_ring_and_batch():
    config = OmegaConf.create(
        {"suite": {"name": "classical", "kind": "classical"}, "engine": {"name": "plain"}, "bound": None,
         "link": {"name": "loopback", "delay_ms": 0.0, "bandwidth_mbps": 0.0},
         "ot": {"provider": "softspoken", "k": 4, "security": "semi_honest", "refill": "none"},
         "bits": 64, "batch": 5, "n": None, "threads": 1, "repeats": 1}
    )  # fmt: skip
    row = {"params": TREE, "n": 1, "published": {"milliseconds": {"64": {"5": 7}}}}
    record = measure(bench.task_of(config, "small", row))
    assert (record["published"], record["n"]) == ({"milliseconds": 7}, 5)
    assert record["details"]["parties"] == "threads"
    other = bench.task_of(OmegaConf.merge(config, {"bits": 32}), "small", row)
    assert measure(other)["published"] == {}
    assert bench.summary(config, [record]).row_count == 1
