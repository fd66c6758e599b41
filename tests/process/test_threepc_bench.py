# SPDX-License-Identifier: Apache-2.0
"""Measurements of the three-party engine in three processes: their bytes are what the protocols cost."""

import pytest
from threepc_formulas import sign

from privml.cli.paths import shipped_models
from privml.measure.launch import PartyFailed
from privml.measure.suites import Task, measure
from privml.spec import SessionSpec


def task(op, operator, n, bits, **params):
    row = {"operator": operator, "n": 10 * n, "params": params, "published": {"megabytes": {str(bits): [1, 2]}}}
    spec = SessionSpec("threepc")
    load = shipped_models().load
    return Task("threepc", "engine", op, row, n, spec, "loopback", bits, repeats=1, load=load)


@pytest.mark.parametrize(("bits", "depth"), [(32, 2), (64, 3)])
def test_sign_costs_what_it_says(bits, depth):
    record = measure(task("sign", "sign", 1000, bits))
    cost = sign(1000, bits)
    preprocess, online = record["phases"]["preprocess"], record["phases"]["online"]
    assert preprocess["bytes"] == preprocess["party0"] == cost.dealt
    assert online["bytes"] == cost.sent + cost.received  # of party 0, which the dealer hears nothing from
    assert online["depth"] == cost.depth == depth
    assert record["bytes_per_op"] == (preprocess["bytes"] + online["bytes"]) / 1000
    assert record["seconds"] > 0 and record["published"] == {}  # figures of another n


def test_networks_report_their_layers():
    record = measure(task("lenet", "network", 1, 64, model="lenet", numerics={"narrow": False}))
    assert {"conv1", "fc3"} <= set(record["details"]["layers"])
    assert record["phases"]["online"]["depth"] > 10


def test_a_party_that_fails_is_named():
    with pytest.raises(PartyFailed, match="party [012]: KeyError: 'nothing'"):
        measure(task("nothing", "nothing", 10, 64))
