# SPDX-License-Identifier: Apache-2.0
"""A session outlives what goes wrong between operations: torch.compile, wrong arguments, errors of the user's code."""

import multiprocessing
import sys
from pathlib import Path

import pytest
import torch
from patience import PATIENCE
from ports import reserved
from torch import nn
from torch.nn import functional

import privml
from privml.errors import UnsupportedOperator

ENGINES = {
    "plain": {},
    "twopc": {"ot": "ideal"},
    "threepc": {"truncation": "exact"},
    "active": {"ot": "ideal", "truncation": "exact"},
}


@pytest.fixture(autouse=True)
def one_thread():
    torch.set_num_threads(1)


@pytest.fixture(params=ENGINES)
def session(request):
    with privml.local(request.param, **ENGINES[request.param]) as session:
        yield session


def shared(*shape):
    """A value that nobody knows."""
    return privml.share(torch.ones(shape), owner=0) * privml.share(torch.full(shape, 0.5), owner=1)


def assert_alive():
    x, y = privml.share(torch.tensor([2.0, -3.0]), owner=0), privml.share(torch.tensor([4.0, 5.0]), owner=1)
    assert torch.equal(privml.reveal(torch.relu(x * y)), torch.tensor([8.0, 0.0]))


def compiled_module():
    return torch.compile(privml.secret(nn.Linear(3, 2)), backend="eager")(shared(2, 3))


def compiled_in_place():
    module = privml.secret(nn.Linear(3, 2))
    module.compile(backend="eager")
    return module(torch.ones(2, 3))


def compiled_function():
    return torch.compile(lambda x: torch.relu(x) * 2, backend="eager")(shared(3))


def compiled_closure():
    x = shared(3)
    return torch.compile(lambda: torch.relu(x) * 2, backend="eager", fullgraph=True)()


def exported():
    return torch.export.export(privml.secret(nn.Linear(3, 2)), (torch.ones(2, 3),))


TRACED = [compiled_module, compiled_in_place, compiled_function, compiled_closure, exported]


@pytest.mark.parametrize("call", TRACED, ids=lambda call: call.__name__)
def test_compiling_secrets_is_refused_in_one_sentence(call, session):
    try:
        with pytest.raises(UnsupportedOperator, match=r"privml\.compile_step") as refusal:
            call()
    finally:
        torch._dynamo.reset()
    assert len(str(refusal.value)) < 400 and "\n" not in str(refusal.value)
    assert_alive()


WRONG = {
    "matmul": lambda: shared(2, 3) @ shared(2, 3),
    "bmm": lambda: torch.bmm(shared(2, 3, 4), shared(3, 4, 2)),
    "conv": lambda: functional.conv2d(shared(1, 3, 5, 5), shared(2, 4, 3, 3)),
    "stride": lambda: functional.conv2d(shared(1, 3, 5, 5), shared(2, 3, 3, 3), stride=0),
    "broadcast": lambda: shared(2, 3) + shared(4),
    "unsupported": lambda: shared(3).digamma(),
    "index": lambda: functional.embedding(torch.tensor([9]), shared(3, 2)),
    "nan": lambda: privml.share(torch.tensor([float("nan")])),
    "owner": lambda: privml.share(torch.ones(2), owner=9),
    "leak": lambda: bool(shared(1) > 0),
    "public": lambda: shared(3) / 0,
    "user": lambda: {}["missing"],
}


@pytest.mark.parametrize("name", WRONG)
def test_wrong_arguments_leave_the_session_alive(name, session):
    with pytest.raises(Exception):  # noqa: B017 - which one is not the point
        WRONG[name]()
    assert_alive()


# A value that is no number is refused where it is known.
BOTH = [call for name, call in WRONG.items() if name != "nan"]


def play(pipe, rank, address):
    """A party that makes the same mistakes as the other one, and goes on."""
    torch.set_num_threads(1)
    place = {"listen": address} if rank == 0 else {"connect": address}
    with privml.connect(rank, privml.SessionSpec(deadline=PATIENCE), **place) as session:
        for call in (compiled_module, compiled_function, *BOTH):
            try:
                call()
            except Exception as error:
                pipe.send(type(error).__name__)
        x, y = (privml.share(torch.tensor(v), owner=i) for i, v in enumerate(([2.0, -3.0], [4.0, 5.0])))
        pipe.send(privml.reveal(torch.relu(x * y)).tolist())
    assert session.parties == 2


def test_two_processes_go_on_after_the_same_mistakes():
    processes = multiprocessing.get_context("spawn")
    sys.path.insert(0, str(Path(__file__).parent))
    started = []
    with reserved(1) as (address,):
        for rank in range(2):
            pipe, theirs = processes.Pipe(duplex=False)
            process = processes.Process(target=play, args=(theirs, rank, address))
            process.start()
            theirs.close()
            started.append((process, pipe))
        try:
            for _, pipe in started:
                said = []
                while not said or isinstance(said[-1], str):
                    assert pipe.poll(PATIENCE), said
                    said.append(pipe.recv())
                assert said[:2] == ["UnsupportedOperator"] * 2 and len(said) == len(BOTH) + 3
                assert said[-1] == [8.0, 0.0]
        finally:
            for process, _ in started:
                process.kill() if process.is_alive() and sys.exc_info()[0] else process.join(PATIENCE)
