# SPDX-License-Identifier: Apache-2.0
"""A client and servers that are killed, as real processes: what is lost is asked again, in a session of its own."""

from __future__ import annotations

import threading
from collections import OrderedDict

import pytest
import service_party
import services
import torch

import privml
from privml.errors import PeerDisconnected

INPUT = torch.tensor([[0.5, -1.0, 0.25, 2.0], [1.0, 1.0, -1.0, 0.0]])


def net():
    torch.manual_seed(3)
    layers = {"first": torch.nn.Linear(4, 6), "relu": torch.nn.ReLU(), "second": torch.nn.Linear(6, 3)}
    return torch.nn.Sequential(OrderedDict(layers)).eval()


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    path = tmp_path_factory.mktemp("program")
    privml.convert(net(), calibration=torch.randn(64, 4, generator=torch.Generator().manual_seed(1))).save(path)
    return str(path)


@pytest.fixture
def server(start, folder, free_port):
    """Starts servers, one after another, on one port."""

    def run(**options):
        made = start(service_party.serve_program, folder, {"listen": f"127.0.0.1:{free_port}", **options})
        made.line("log listening")
        return made

    run.address = f"127.0.0.1:{free_port}"
    return run


def kill(server):
    server.process.kill()
    server.process.join()


def assert_right(answer):
    with torch.no_grad():
        assert (answer.outputs[0] - net()(INPUT)).abs().max() < 0.05


def test_a_server_killed_between_queries(server, folder):
    with services.client(folder, server.address, deadline=30.0) as client:
        first = server()
        for turn in (1, 2):
            answer = client.query(INPUT)
            assert_right(answer)
            assert answer.turn == turn
        kill(first)
        server()
        answer = client.query(INPUT)
        assert_right(answer)
        assert answer.turn == 1 and client.queries == 3


@pytest.mark.parametrize("ahead", [False, True])
def test_a_server_killed_within_a_query(server, folder, ahead):
    with services.client(folder, server.address, deadline=30.0, ahead=ahead) as client:
        server(die_at="second")
        with pytest.raises(PeerDisconnected):
            client.query(INPUT)
        server()
        assert_right(client.query(INPUT))


def test_retries_outlive_the_server(server, folder):
    first = server(die_at="relu")

    def replace():
        first.process.join()
        server()

    replacing = threading.Thread(target=replace)
    replacing.start()
    with services.client(folder, server.address, deadline=30.0, retries=3, backoff=0.1) as client:
        answer = client.query(INPUT)
        assert_right(answer)
        assert answer.turn == 1
    replacing.join()


def test_a_client_killed_in_an_idle_session_leaves_the_server_serving(start, server, folder):
    running = server()
    holding = start(service_party.hold_session, folder, {"server": server.address, "input": INPUT.tolist()})
    holding.line("answer")
    kill(holding)
    with services.client(folder, server.address, deadline=30.0) as client:
        assert_right(client.query(INPUT))
    assert running.process.is_alive()
