# SPDX-License-Identifier: Apache-2.0
"""Programs over several lanes: the same values and exact predictions, fewer messages in sequence where branches are
independent."""

import threading
import time

import pytest
import torch
import torch.nn.functional as F
from patience import ENDLESS
from test_networks import Block, lenet

import models
import privml
from privml.conversion import convert
from privml.engines.correlations import OtChoice
from privml.engines.twopc.engine import TwoPartyEngine
from privml.errors import PrivmlError
from privml.spec import SessionSpec


class Branches(torch.nn.Module):
    """Three convolutions of one value with a ReLU behind each, of different numbers of channels."""

    def __init__(self):
        super().__init__()
        self.first = torch.nn.Conv2d(1, 3, 3)
        self.branches = torch.nn.ModuleList(torch.nn.Conv2d(3, channels, 3) for channels in (2, 3, 4))

    def forward(self, x):
        x = self.first(x)
        return torch.cat([F.relu(branch(x)) for branch in self.branches], 1)


class Residual(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.head, self.block, self.tail = torch.nn.Conv2d(1, 3, 3), Block(3, 4, 2), torch.nn.Linear(4, 3)

    def forward(self, x):
        return self.tail(self.block(F.relu(self.head(x))).mean((2, 3)))


NETWORKS = {
    "branches": (Branches, (2, 1, 7, 7)),
    "residual": (Residual, (2, 1, 9, 9)),
    "lenet": (lenet, (2, 1, 16, 16)),
}


@pytest.fixture(scope="module", params=NETWORKS)
def case(request):
    """(name, program, input)."""
    torch.manual_seed(5)
    make, shape = NETWORKS[request.param]
    net = make()
    for _ in range(3):
        net(torch.randn(8, *shape[1:]))
    x = torch.randn(*shape)
    return request.param, convert(net.eval(), x, calibration=torch.randn(16, *shape[1:])), x


BRANCHES_ALONE = pytest.mark.parametrize("case", ["branches"], indirect=True)


def intermediates(program):
    """The same program with every secret fixed-point node among its outputs."""
    body = program.body
    parted = {n["args"][0]["node"] for n in body["nodes"] if n.get("target") == "getitem"}
    names = [
        n["name"]
        for n in body["nodes"]
        if n["kind"] == "call" and n["secret"] and "shape" in n and n["name"] not in parted
    ]
    assert set(body["outputs"]) <= set(names)
    return type(program)({**body, "outputs": names}, program.weights)


def run(program, x, threads, ot="softspoken", reserve=False, **settings):
    """(revealed outputs, party 0's counters after the run, the ledger)."""
    with privml.local("twopc", ot=ot, threads=threads, **settings) as session:
        if reserve:
            choice = OtChoice(ot)
            session.reserve(program.correlations(program.shapes(len(x)), SessionSpec(ot=choice, threads=threads)).stock)
        outputs = program.run(session, x)
        outputs = outputs if isinstance(outputs, tuple) else (outputs,)
        revealed = [privml.reveal(output, to=1) for output in outputs]
        return revealed, session.ledger.snapshot(), session.ledger


def test_every_intermediate_value_is_the_same_whatever_the_threads(case):
    _, program, x = case
    program = intermediates(program)
    alone, *others = (run(program, x, threads, ot="ideal")[0] for threads in (1, 2, 3))
    for outputs in others:
        assert len(outputs) == len(alone) > 3
        for mine, expected in zip(outputs, alone, strict=True):
            assert torch.equal(mine, expected)


def test_labels_of_the_shipped_model_are_the_same_whatever_the_threads():
    model = models.load("lenet")
    program = convert(model.module, calibration=model.preprocess(model.calibration))
    x = model.preprocess(model.samples[:5])
    scores = [run(program, x, threads)[0][0] for threads in (1, 2, 3)]
    assert torch.equal(scores[0], scores[1]) and torch.equal(scores[0], scores[2])
    assert torch.equal(scores[0].argmax(1), model.labels[:5])


@pytest.mark.parametrize("threads", [1, 2, 3])
@pytest.mark.parametrize("ot", ["ideal", "softspoken"])
def test_prediction_equals_the_run(case, ot, threads):
    _, program, x = case
    _, after, ledger = run(program, x, threads, ot, reserve=True)
    predicted = program.cost(program.shapes(len(x)), SessionSpec(ot=OtChoice(ot), threads=threads), rank=0)
    total = predicted.snapshot()
    for phase in ("setup", "preprocess", "online"):
        mine, real = getattr(total, phase), getattr(after, phase)
        assert (mine.sent, mine.received, mine.depth) == (real.sent, real.received, real.depth), phase
    assert (total.cots_as_sender, total.cots_as_receiver) == (after.cots_as_sender, after.cots_as_receiver)
    layers = [name for name in predicted.records if name != "reveal"]
    assert list(ledger.records) == layers == list(dict.fromkeys(program.layers))
    for name in layers:
        mine, real = predicted.records[name], ledger.records[name]
        assert mine.calls == real.calls > 0 and mine.cost.online.sent == real.cost.online.sent, name
        assert mine.cost.online.depth == real.cost.online.depth, name


def depth(program, x, threads):
    return program.cost(program.shapes(len(x)), SessionSpec(threads=threads)).snapshot().online.depth


def test_depth_falls_where_branches_are_independent(case):
    name, program, x = case
    depths = [depth(program, x, threads) for threads in (1, 2, 3)]
    if name == "lenet":
        assert depths[0] == depths[1] == depths[2]
    elif name == "residual":
        assert depths[1] < depths[0]
    else:
        assert depths[2] < depths[1] < depths[0]
        assert depths[0] - depths[2] > 0.4 * depths[0]  # two of three convolutions and ReLUs are hidden


def test_an_overlapped_run_sends_what_a_run_in_order_sends(case):
    name, program, x = case
    one, three = (program.cost(program.shapes(len(x)), SessionSpec(threads=threads)).snapshot() for threads in (1, 3))
    if name == "lenet":  # its convolutions are divided, which costs a little
        assert one.online.bytes <= three.online.bytes < 1.05 * one.online.bytes
    else:
        assert three.online.bytes == one.online.bytes and three.cots_as_sender == one.cots_as_sender


@BRANCHES_ALONE
def test_an_operand_of_several_products_is_truncated_once(case):
    """By whichever product comes first in order, and before all of them where they overlap."""
    _, program, x = case
    nodes = [dict(node) for node in program.body["nodes"]]
    first = next(node for node in nodes if node["kind"] == "call")
    for key in ("format", "request"):  # the first layer's result keeps its doubled scale
        first[key] = {**first[key], "bits": 26, "scale": first["format"]["scale"] + 8}
    program = intermediates(type(program)({**program.body, "nodes": nodes}, program.weights))
    alone, after, _ = run(program, x, 1)
    overlapped, after_three, ledger = run(program, x, 3)
    assert all(torch.equal(a, b) for a, b in zip(alone, overlapped, strict=True))
    assert after_three.cots_as_sender == after.cots_as_sender and after_three.online.bytes == after.online.bytes
    assert after_three.online.depth < after.online.depth
    (plan,) = (plan for key, plan in program._plans.items() if key[0] == 3)
    assert [task.operand.name for task in plan.tasks if task.operand is not None] == [first["name"]]
    predicted = program.cost(program.shapes(len(x)), SessionSpec(threads=3), rank=0)
    for name, record in ledger.records.items():
        assert record.cost.online.sent == predicted.records[name].cost.online.sent, name


def test_repeated_runs_of_one_session_agree(case):
    _, program, x = case
    with privml.local("twopc", ot="ideal", threads=2) as session:
        first, second = (privml.reveal(program.run(session, x), to=1) for _ in range(2))
    assert torch.equal(first, second)


def test_test_seeds_make_every_lane_reproducible(case):
    """Same seed, same shares at both parties, whatever order the threads ran in."""
    _, program, x = case

    def shares():
        with privml.local("twopc", threads=3, test_seed=11) as session:
            return program.run(session, x).share

    first, second = shares(), shares()
    assert all(torch.equal(a, b) for a, b in zip(first, second, strict=True))


@BRANCHES_ALONE
def test_waiting_times_of_branches_overlap(case):
    """On a slow link the time follows the depth: a hop of delay for each message in sequence, not more in parallel."""
    _, program, x = case
    seconds = {}
    for threads in (1, 3):
        with privml.local("twopc", ot="ideal", threads=threads, delay_ms=5) as session:
            program.prepare(session)
            program.run(session, x)
            start = time.monotonic()
            privml.reveal(program.run(session, x), to=1)
            seconds[threads] = time.monotonic() - start
            assert seconds[threads] >= 0.005 * 10
    print(f"with 5 ms delay: {seconds[1]:.3f} s on one lane, {seconds[3]:.3f} s on three")


class Broken(RuntimeError):
    pass


@BRANCHES_ALONE
@pytest.mark.parametrize("kind", [Broken, ValueError])
def test_a_failing_node_ends_all_lanes_with_its_error(case, kind, monkeypatch):
    _, program, x = case
    calls = []
    original = TwoPartyEngine.relu

    def relu(self, a, bits):
        if self.session.metering:
            return original(self, a, bits)
        calls.append(threading.current_thread().name)
        if len(calls) == 3:
            raise kind("this node fails")
        return original(self, a, bits)

    before = threading.active_count()
    with privml.local("twopc", ot="ideal", threads=3, deadline=ENDLESS) as session:
        monkeypatch.setattr(TwoPartyEngine, "relu", relu)
        with pytest.raises(kind, match="this node fails"):
            program.run(session, x)  # long before the deadline
        with pytest.raises(PrivmlError):
            program.run(session, x)
    while threading.active_count() > before:
        time.sleep(0.05)


def test_what_is_computed_on_demand_is_not_overlapped():
    """The indices of a maximum are a protocol that runs when someone asks; two lanes must not."""

    class Indices(torch.nn.Module):
        def forward(self, x):
            values, indices = F.max_pool2d(x, 2, return_indices=True)
            return values.relu() + 1, indices + 1, indices * 2

    program = convert(Indices(), torch.randn(1, 1, 4, 4))
    x = torch.randn(1, 1, 4, 4)
    (values, more, double), _, _ = run(program, x, 2, ot="ideal")
    expected, indices = F.max_pool2d(x, 2, return_indices=True)
    assert torch.equal(more, indices + 1) and torch.equal(double, indices * 2)
    assert (values - expected.relu() - 1).abs().max() < 0.05
    assert list(program._plans.values()) == [None]


def test_an_engine_that_sends_nothing_runs_in_order(case):
    _, program, x = case
    with privml.local("plain") as session:
        assert session.engine.lanes == 1
        expected = privml.reveal(program.run(session, x))
    assert torch.equal(run(program, x, 2)[0][0], expected)
