# SPDX-License-Identifier: Apache-2.0
"""Every operator case books the same on shapes alone as on zeros."""

import itertools
import subprocess
import sys

import pytest
import torch
from function_cases import CASES
from test_ops import PLACEMENTS, run

import privml
from privml.context import Session
from privml.engines.active import backend as active
from privml.engines.active import lookup
from privml.engines.correlations import OtChoice
from privml.engines.shape_tensor import zeros
from privml.engines.threepc import backend as threepc
from privml.engines.twopc import backend as twopc
from privml.formats import Numerics
from privml.session.ledger import PHASES, Snapshot

METERS = {
    "twopc 0": lambda counts_only: twopc.meter(0, OtChoice(), 1, counts_only),
    "twopc 1": lambda counts_only: twopc.meter(1, OtChoice(), 1, counts_only),
    "threepc 0": lambda counts_only: threepc.meter(0, threepc.Config("auto"), counts_only),
    "threepc 2": lambda counts_only: threepc.meter(2, threepc.Config("exact"), counts_only),
    "active": lambda counts_only: active.meter(1, OtChoice("ideal"), 64, "auto", counts_only),
}


def booked(case, placement, engine):
    with Session(engine, Numerics()):
        run(case, placement)
    counted = Snapshot.of(engine.counters())
    phases = [getattr(counted, phase) for phase in PHASES]
    return [(p.sent, p.received, p.depth) for p in phases], counted.cots_as_sender, counted.cots_as_receiver


@pytest.mark.parametrize("case", CASES, ids=lambda c: c.name)
def test_shapes_are_enough(case):
    for name, placement in itertools.product(METERS, PLACEMENTS):
        on_shapes, on_zeros = (booked(case, placement, METERS[name](counts_only)) for counts_only in (True, False))
        assert on_shapes == on_zeros, (name, placement)


def test_a_table_at_a_secret_index_is_counted_without_its_unit_vector(monkeypatch):
    def computed(*_):
        raise AssertionError("only what is drawn and sent counts")

    monkeypatch.setattr(lookup, "unit_vectors", computed)
    engine = METERS["active"](True)
    index = tuple(zeros((3,), torch.int64, True) for _ in range(engine.components))
    assert engine.lookup_many(torch.zeros(2, 64, dtype=torch.int64), index, 6, 32)[0].shape == (2, 3)
    assert engine.drawn()["bits"] == 18


FUNCTIONS = {
    "scaled": lambda x: x * 2.0,
    "promoted": lambda x: x.to(torch.uint8) * x.to(torch.int64)[0],
    "of no elements": lambda x: x[:0] + x[:1],
    "broadcast": lambda x: x[:, :1] * x[:1],
    "whole quotient": lambda x: x.to(torch.int64) // 3,
    "shifted": lambda x: x.to(torch.int64) << 3,
    "chosen": lambda x: torch.where(x > 0, x, 1.0),
    "in place": lambda x: x.add_(1),
    "whether any": lambda x: (x > 0.5).any(),
    "sum": lambda x: x.to(torch.uint8).sum(),
    "sum of another type": lambda x: x.sum(dtype=torch.float32),
    "sum of rows": lambda x: x.sum(1, keepdim=True),
    "largest": lambda x: x.max(),
    "joined": lambda x: torch.cat((x, x[:1])),
    "joined columns": lambda x: torch.cat([x, x[:, :0], x], dim=-1),
    "joined of two types": lambda x: torch.cat((x, x.to(torch.uint8))),
    "joined with nothing": lambda x: torch.cat((x, x[:0, 0])),
    "stacked": lambda x: torch.stack((x, x)),
    "stacked at the end": lambda x: torch.stack([x[0], x[0], x[0]], -1),
}


@pytest.mark.parametrize("shape", [(3, 4), (1, 4)])
@pytest.mark.parametrize("name", FUNCTIONS)
def test_shapes_and_types_are_those_of_torch(name, shape):
    known, counted = FUNCTIONS[name](torch.rand(shape).double()), FUNCTIONS[name](zeros(shape, torch.float64, True))
    assert (counted.shape, counted.dtype) == (known.shape, known.dtype)


@pytest.mark.parametrize("counts_only", [True, False])
def test_inputs_of_a_dealer_are_counted(counts_only):
    with Session(threepc.meter(2, counts_only=counts_only), Numerics()) as session:
        before = session.engine.counters()["online"]["sent"]
        assert privml.share(zeros((5,), torch.int64, counts_only), owner=2).shape == (5,)
        assert session.engine.counters()["online"]["sent"] - before >= 5 * 4


def test_a_count_does_not_wait_for_torchs_compiler(tmp_path):
    torch.manual_seed(0)
    module = torch.nn.Sequential(torch.nn.Conv2d(1, 2, 3), torch.nn.ReLU(), torch.nn.MaxPool2d(2), torch.nn.Flatten())
    privml.convert(module.eval(), calibration=torch.rand(20, 1, 6, 6)).save(tmp_path)
    count = (
        "import sys, torch, privml\n"
        f"ledger = privml.Program.load({str(tmp_path / 'program')!r}).cost([(1, 1, 6, 6)])\n"
        "x = privml.engines.shape_tensor.zeros((2, 3), torch.int64, True)\n"
        "torch.cat((x, x)), torch.stack((x, x))\n"
        "print(ledger.snapshot().total.bytes, 'torch._dynamo' in sys.modules)"
    )
    told = subprocess.run([sys.executable, "-c", count], capture_output=True, text=True, check=True).stdout.split()
    assert int(told[0]) > 10_000 and told[1] == "False"
