# SPDX-License-Identifier: Apache-2.0
"""Measurements of the three-party engine in three processes: their bytes are what the protocols cost."""

import pytest

from privml.cli import threepc
from privml.engines.threepc.party import packed_bytes
from privml.engines.threepc.sign import prime_for
from privml.measure.runner import BenchmarkFailed
from privml.measure.threepc import measure

LOOPBACK = {"name": "loopback", "delay_ms": 0.0, "bandwidth_mbps": 0.0}


def task(op, operator, n, bits, **params):
    return {
        "suite": "threepc", "op": op, "operator": operator, "n": n, "bits": bits, "params": params, "whole": False,
        "device": "cpu", "truncation": "auto", "network": LOOPBACK, "repeats": 1, "threads": 1,
    }  # fmt: skip


@pytest.mark.parametrize("bits", [32, 64])
def test_sign_costs_what_it_says(bits):
    record = measure(task("sign", "sign", 1000, bits))
    width = prime_for(bits).bit_length()
    assert record["phases"]["preprocess"]["bytes"] == 1000 * packed_bytes(bits - 1, width)
    assert record["phases"]["online"]["bytes"] == 2 * (1000 * packed_bytes(bits, width) + packed_bytes(1000, 1))
    assert record["phases"]["online"]["depth"] == 2
    assert record["seconds"] > 0 and record["of_published"] is None


def test_networks_report_their_layers():
    record = threepc.measure(task("lenet", "network", 1, 64, model="lenet", numerics={"narrow": False}))
    assert {"conv1", "fc3"} <= set(record["layers"])
    assert record["phases"]["online"]["depth"] > 10


def test_a_party_that_fails_is_named():
    with pytest.raises(BenchmarkFailed, match="party 0"):
        measure(task("nothing", "nothing", 10, 64))
