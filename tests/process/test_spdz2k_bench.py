# SPDX-License-Identifier: Apache-2.0
"""The benchmark of the actively secure engine counts what its cost functions say, in processes of their own."""

import numpy as np
import pytest

from privml import _core
from privml.cli.spdz2k import network_record
from privml.measure.runner import BenchmarkFailed
from privml.measure.spdz2k import measure


def task(op, n, ring=64, **params):
    return {
        "suite": "spdz2k", "op": op, "operator": op, "n": n, "params": params, "ring": ring,
        "provider": "softspoken", "k": 4, "network": {"name": "loopback", "delay_ms": 0, "bandwidth_mbps": 0},
        "repeats": 1,
    }  # fmt: skip


@pytest.mark.parametrize("ring", [64, 32])
def test_online_and_preprocessing_apart(ring):
    record = measure(task("multiply", 500, ring))
    meter = _core.ActiveSession.meter(0, ring, "ideal")
    zeros = tuple(np.zeros(500, np.int64) for _ in range(meter.components))
    _core.spdz2k.multiply(meter, zeros, zeros)
    meter.check()
    after = meter.counters()["online"]
    assert record["online"]["sent_per_op"] == after["sent"] / 500
    assert record["online"]["depth"] == after["depth"]
    assert record["made"]["n"] == 500 and record["made"]["sent_per_op"] > 100 and record["made"]["depth"] > 0


@pytest.mark.parametrize("op", ["less_than", "equal", "truncate", "select"])
def test_operations_run(op):
    record = measure(task(op, 30, 32, published={"32": [1, 2]}))
    assert record["online"]["per_second"] > 0 and record["published"] == [1, 2]


@pytest.mark.parametrize("op", ["triple", "bit_triple", "random_bit"])
def test_correlations_alone(op):
    record = measure(task(op, 30, 32))
    assert record["online"] is None and record["made"]["sent_per_op"] > 0


@pytest.mark.slow
def test_a_whole_inference():
    record = network_record({**task("lenet", 1, model="lenet", numerics={"narrow": False}), "operator": "network"})
    assert record["online"]["n"] == 1 and 0 < record["online"]["sent_per_op"] < record["made"]["sent_per_op"]


def test_a_failing_party_is_named():
    with pytest.raises(BenchmarkFailed, match="party 0"):
        measure(task("nonsense", 10))
