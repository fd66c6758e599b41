# SPDX-License-Identifier: Apache-2.0
"""What a party counts of a query, before anything else is done for it, takes no memory of the inputs' size, keeps no
other client waiting, and is exact."""

import sys
import threading

import pytest
import services
import torch
from commands import run
from serving import ENGINES, serving

from privml.conversion import convert
from privml.engines.active import backend as active
from privml.engines.correlations import OtChoice
from privml.engines.shape_tensor import ShapeTensor
from privml.engines.threepc import backend as threepc
from privml.engines.twopc import backend as twopc
from privml.program import Program
from privml.session.ledger import PHASES, Snapshot

METERS = {
    "twopc": lambda counts_only: twopc.meter(1, OtChoice(), 1, counts_only),
    "lanes": lambda counts_only: twopc.meter(0, OtChoice("silent", 0), 2, counts_only),
    "active": lambda counts_only: active.meter(1, OtChoice("ideal"), 64, "auto", counts_only),
    "active, exact": lambda counts_only: active.meter(1, OtChoice("ideal"), 64, "exact", counts_only),
    **{f"threepc {rank}": lambda counts_only, rank=rank: threepc.meter(rank, None, counts_only) for rank in range(3)},
    "threepc, exact": lambda counts_only: threepc.meter(0, threepc.Config("exact"), counts_only),
}
# Megabytes. One tensor of the network's activations has more at ROWS rows.
MOST, ROWS = 75, 600_000


class Net(torch.nn.Module):
    """A little of everything that makes buffers: patches of images, windows, tables, maxima, quotients."""

    def __init__(self):
        super().__init__()
        torch.manual_seed(3)
        self.convolution, self.linear = torch.nn.Conv2d(1, 2, 3, padding=1), torch.nn.Linear(8, 3)

    def forward(self, x):
        x = torch.nn.functional.max_pool2d(torch.relu(self.convolution(x)), 2)
        x = torch.nn.functional.gelu(self.linear(torch.flatten(x, 1)))
        return torch.softmax(4 * x, 1), x.argmax(1)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("program")
    convert(Net().eval(), calibration=torch.randn(64, 1, 4, 4)).save(folder)
    return folder


def counted(program, engine, rows):
    counted = program.metered(engine, (rows, 1, 4, 4)).snapshot()
    phases = [getattr(counted, phase) for phase in PHASES]
    return [(p.sent, p.received, p.depth) for p in phases], counted.cots_as_sender, counted.cots_as_receiver


@pytest.mark.parametrize("rows", [1, 5])
@pytest.mark.parametrize("engine", METERS)
def test_shapes_are_enough(folder, engine, rows):
    program = Program.load(folder / "program")
    alone, with_zeros = METERS[engine](True), METERS[engine](False)
    assert alone.counts_only and not with_zeros.counts_only
    assert counted(program, alone, rows) == counted(program, with_zeros, rows)
    if engine.startswith("active"):
        assert alone.drawn() == with_zeros.drawn()
    assert Snapshot.of(alone.counters()).total.bytes > 0


@pytest.mark.parametrize("engine", METERS)
def test_counting_takes_no_memory_of_the_inputs_size(folder, engine, tmp_path):
    assert ROWS * 16 * 8 > 1e6 * MOST  # the first layer's result
    script = tmp_path / "count.py"
    script.write_text(f"""
import resource, sys
sys.path[:0] = {sys.path!r}
from test_counting import METERS, counted
from privml.program import Program
program = Program.load({str(folder / "program")!r})
assert program.inputs[0].shape[0] is None
counted(program, METERS[{engine!r}](True), {ROWS // 10})  # touches the pages of the libraries that the next one needs
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
counted(program, METERS[{engine!r}](True), {ROWS})
print((resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) / 1024)
""")
    assert float(run(str(script), cwd=tmp_path).stdout) < MOST


def test_an_honest_query_does_not_wait_for_the_count_of_another_one(folder, monkeypatch):
    program = Program.load(folder / "program", folder / "weights.safetensors")
    counting, go, metered = threading.Event(), threading.Event(), Program.metered

    def slow(self, engine, *shapes, **more):
        if shapes[0][0] == 7:
            counting.set()
            assert go.wait(200)
        return metered(self, engine, *shapes, **more)

    monkeypatch.setattr(Program, "metered", slow)
    x = torch.randn(2, 1, 4, 4)
    with serving(program) as (server, settings):
        other = threading.Thread(target=_ask, args=(Program.load(folder / "program"), server, settings), daemon=True)
        other.start()
        assert counting.wait(200)
        with services.client(Program.load(folder / "program"), server.address, **settings) as client:
            probabilities, _ = client.query(x).outputs
        go.set()
        other.join(200)
    with torch.no_grad():
        assert (probabilities - Net().eval()(x)[0]).abs().max() < 0.05


def _ask(program, server, settings):
    with services.client(program, server.address, **settings) as client:
        client.query(torch.zeros(7, 1, 4, 4))


def test_shapes_alone_are_no_values():
    a = ShapeTensor((2, 3))
    assert (a + torch.ones(3, dtype=torch.int64)).shape == (2, 3) and isinstance(a @ a.T, ShapeTensor)
    assert not bool((a != 0).any()) and int(a.sum()) == 0
    with pytest.raises(RuntimeError):
        a.numpy()


def test_every_engine_is_metered_so():
    assert set(ENGINES) <= {name.split(" ")[0].strip(",") for name in METERS}
