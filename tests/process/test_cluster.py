# SPDX-License-Identifier: Apache-2.0
"""A front and its workers, each a process: clients are sent on, and a worker that dies fails its own sessions alone."""

from __future__ import annotations

import json
import os
import signal
from functools import partial

import pytest
import torch
from commands import Command
from running import LONG, Paused, Running
from services import query

from privml.conversion import convert
from privml.errors import ConfigError, PeerDisconnected, ServiceBusy
from privml.service.cluster import public_host, serve_cluster
from privml.service.negotiation import settings_of
from privml.service.options import Capacity, Hooks, Limits
from privml.service.worker import LocalWorker, task_of
from privml.spec import SessionSpec

VALUE = torch.tensor([[1.25, -0.5, 0.75, 2.0]])


@pytest.fixture(scope="module")
def program(tmp_path_factory):
    torch.manual_seed(4)
    net = torch.nn.Sequential(torch.nn.Linear(4, 6), torch.nn.ReLU(), torch.nn.Linear(6, 3)).eval()
    made = convert(net, calibration=torch.randn(64, 4) * 2)
    made.files = tuple(map(str, made.save(tmp_path_factory.mktemp("program"))))
    with torch.no_grad():
        made.exact = net(VALUE)
    return made


def assert_right(program, answer):
    assert not isinstance(answer, Exception), answer
    assert (answer.outputs[0] - program.exact).abs().max() < 0.05


def start_local(task, made):
    def start(number, port):
        made[number] = LocalWorker({**task, "listen": f"127.0.0.1:{port}"}, "127.0.0.1")
        return made[number]

    return start


def start_ray(task, made):
    from privml.service.worker import RayWorker, connect

    ray = connect(None)

    def start(number, port):
        made[number] = RayWorker(ray, {**task, "listen": f"127.0.0.1:{port}"}, "127.0.0.1")
        return made[number]

    return start


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["local", "ray"])
def test_a_worker_that_dies_fails_its_own_sessions_alone(program, kind):
    if kind == "ray":
        pytest.importorskip("ray")
    task = task_of(*program.files, None, SessionSpec(), Limits(capacity=Capacity(workers=1, queue=0)))
    workers = {}
    start = {"local": start_local, "ray": start_ray}[kind](task, workers)

    def call(**hooks):
        serve_cluster(settings_of(program), "127.0.0.1:0", start, capacity=Capacity(workers=2), hooks=Hooks(**hooks))

    with Running(call) as running:
        for number in range(2):
            running.wait("listening", worker=number)
        ask = partial(Paused, program, running.address, VALUE)
        first = _until_taken(ask).there()
        second = _until_taken(ask).there()  # each worker has one: none has room for two
        places = [running.wait("started", worker=number).fields["worker"] for number in range(2)]
        assert sorted(places) == [0, 1]
        with pytest.raises(ServiceBusy):
            query(program, running.address, VALUE)
        killed = running.kinds("started")[0].fields["worker"]
        os.kill(workers[killed].pid, signal.SIGKILL)
        running.wait("worker_died", worker=killed)
        outcomes = [first.go(), second.go()]
        assert sum(isinstance(each, PeerDisconnected) for each in outcomes) == 1
        assert_right(program, next(each for each in outcomes if not isinstance(each, Exception)))
        running.wait("listening", 2, worker=killed)  # it is back, on the port that it had
        third, fourth = _until_taken(ask).there(), _until_taken(ask).there()
        running.stop.ask()
        running.wait("draining")
        for each in (third, fourth):
            assert_right(program, each.go())
        running.result()
    assert running.stop.cut == 0


def _until_taken(ask):
    """A query under way; a worker may need a moment until it tells that it has room."""
    for _ in range(600):
        paused = ask()
        if paused._there.wait(0.5) or not paused._done.done():
            return paused
        assert isinstance(paused.outcome(), ServiceBusy), paused.outcome()
    raise AssertionError("no worker takes the query")


@pytest.mark.slow
@pytest.mark.parametrize("finishes", [True, False], ids=["finishes", "cut off"])
@pytest.mark.parametrize("kind", ["local", "ray"])
def test_the_exit_code_tells_of_sessions_that_workers_cut_off(program, tmp_path, kind, finishes):
    if kind == "ray":
        pytest.importorskip("ray")
    words = [f"program={program.files[0]}", f"weights={program.files[1]}", "listen=127.0.0.1:0", "log=json"]
    drain = f"drain_seconds={LONG if finishes else 0.1}"
    with Command("serve", f"cluster={kind}", "workers=1", *words, drain, cwd=tmp_path) as serving:

        def told(kind, **fields):
            for line in serving.stdout:
                event = json.loads(line)
                if event["event"] == kind and fields.items() <= event.items():
                    return event
            raise AssertionError(f"it ended without {kind}")

        port = told("listening")["port"]
        told("listening", worker=0)
        paused = _until_taken(partial(Paused, program, f"127.0.0.1:{port}", VALUE)).there()
        os.kill(serving.pid, signal.SIGTERM)
        told("draining")
        if finishes:
            assert_right(program, paused.go())
        stopped = [told("stopped", worker=0), told("stopped")]
        assert [event["cut"] for event in stopped] == ([0, 0] if finishes else [1, 1])
        assert serving.wait() == (0 if finishes else 1)
        if not finishes:
            assert isinstance(paused.go(), PeerDisconnected)


def test_workers_need_a_name():
    assert (
        public_host("127.0.0.1:9000", None) == "127.0.0.1" and public_host("0.0.0.0:9000", "a.example") == "a.example"
    )
    with pytest.raises(ConfigError, match="advertise=HOST"):
        public_host("0.0.0.0:9000", None)
