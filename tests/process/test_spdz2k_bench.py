# SPDX-License-Identifier: Apache-2.0
"""The benchmark of the actively secure engine counts what its cost functions say, in processes of their own."""

import numpy as np
import pytest

from privml import _core
from privml.cli.paths import shipped_models
from privml.measure.launch import PartyFailed
from privml.measure.suites import Task, measure
from privml.spec import SessionSpec, engine


def task(op, n, ring=64, published=None, **params):
    row = {"operator": op, "n": n, "params": params, "published": published or {}}
    spec = SessionSpec(engine("active", ring=ring))
    load = shipped_models().load
    return Task("spdz2k", "active_core", op, row, n, spec, "loopback", ring, repeats=1, load=load)


@pytest.mark.parametrize("ring", [64, 32])
def test_online_and_preprocessing_apart(ring):
    record = measure(task("multiply", 500, ring))
    meter = _core.ActiveSession.meter(0, ring, "ideal")
    zeros = tuple(np.zeros(500, np.int64) for _ in range(meter.components))
    _core.spdz2k.multiply(meter, zeros, zeros)
    meter.check()
    after = meter.counters()["online"]
    online, made = record["phases"]["online"], record["phases"]["preprocess"]
    assert online["sent"] == after["sent"] and online["bytes"] == after["sent"] + after["received"]
    assert online["depth"] == after["depth"]
    assert record["n"] == 500 and made["sent"] > 100 * 500 and made["depth"] > 0
    assert record["bytes_per_op"] == (online["bytes"] + made["bytes"]) / 500


@pytest.mark.parametrize("op", ["less_than", "equal", "truncate", "select"])
def test_operations_run(op):
    record = measure(task(op, 30, 32, {"paper": {"32": [1, 2]}}))
    assert record["ops_per_second"] > 0 and record["phases"]["online"]["seconds"] > 0
    assert record["published"] == {"paper": [1, 2]}


@pytest.mark.parametrize("op", ["triple", "bit_triple", "random_bit"])
def test_correlations_alone(op):
    record = measure(task(op, 30, 32))
    assert "online" not in record["phases"] and record["phases"]["preprocess"]["sent"] > 0


@pytest.mark.slow
def test_a_whole_inference():
    record = measure(task("network", 1, model="lenet", numerics={"narrow": False}))
    assert record["n"] == 1 and 0 < record["phases"]["online"]["sent"] < record["phases"]["preprocess"]["sent"]


def test_a_failing_party_is_named():
    with pytest.raises(PartyFailed, match="party [01]: KeyError: 'nonsense'"):
        measure(task("nonsense", 10))
