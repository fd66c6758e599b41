# SPDX-License-Identifier: Apache-2.0
"""serve, query and deal as three real processes; whatever dies or disagrees, nothing hangs and the service goes on."""

from __future__ import annotations

import json
import socket
from collections import OrderedDict

import pytest
import service_party
import torch
from torch import nn

import privml
from privml.errors import ConfigError
from privml.measure.launch import launch
from privml.spec import SessionSpec, engine

INPUT = [[0.5, -1.0, 2.0, 0.25], [1.5, 0.0, -0.5, 1.0]]


def net():
    torch.manual_seed(4)
    return nn.Sequential(OrderedDict(first=nn.Linear(4, 8), relu=nn.ReLU(), second=nn.Linear(8, 3)))


@pytest.fixture(scope="module")
def program():
    return privml.convert(net(), calibration=torch.randn(64, 4, generator=torch.Generator().manual_seed(1)))


@pytest.fixture(scope="module")
def folder(program, tmp_path_factory):
    path = tmp_path_factory.mktemp("program")
    program.save(path)
    return str(path)


@pytest.fixture
def service(start, folder):
    """A dealer and a server that knows it."""

    def run(dealing=None, **serving):
        dealer = start(service_party.deal_program, folder, dealing or {})
        dealer.address = "127.0.0.1:" + dealer.line("port").split()[1]
        server = start(service_party.serve_program, folder, {"dealer": dealer.address, **serving})
        server.address = "127.0.0.1:" + server.line("port").split()[1]
        return dealer, server

    return run


def ask(start, folder, dealer, server, value=INPUT, **options):
    options = {"server": server.address, "dealer": dealer.address, "input": value, **options}
    return start(service_party.send_query, folder, options)


def assert_answer(line, value=INPUT):
    assert line.startswith("answer "), line
    with torch.no_grad():
        exact = net()(torch.tensor(value))
    assert (torch.tensor(json.loads(line.removeprefix("answer "))) - exact).abs().max() < 0.05


def test_queries_one_after_another(service, start, folder):
    dealer, server = service({"sessions": 3}, queries=3)
    for value in (INPUT, INPUT[:1], INPUT * 4):
        assert_answer(ask(start, folder, dealer, server, value).last(), value)
    assert server.last() == "end" and dealer.last() == "end 3"


def test_a_client_that_dies_ends_its_session_alone(service, start, folder):
    dealer, server = service({"sessions": 2, "deadline": 10.0}, queries=1)
    dead = ask(start, folder, dealer, server, die_at="relu")
    dead.process.join(60)
    assert server.line("log a connection ended").startswith("log a connection ended without an answer: PeerDisconn")
    assert_answer(ask(start, folder, dealer, server).last())
    assert server.last() == "end"
    assert dealer.last() in ("end 1", "end 2")  # the first counts if all was dealt before the client died


def test_a_dealer_that_dies_ends_the_query(service, start, folder):
    dealer, server = service(queries=1, deadline=10.0)
    dealer.process.kill()
    dealer.process.join()
    last = ask(start, folder, dealer, server, deadline=5.0).last(40)
    assert last.startswith("error PeerDisconnected"), last
    assert "PeerDisconnected" in server.line("log a connection ended", 40)


def test_parties_that_truncate_differently(service, start, folder):
    dealer, server = service({"truncation": "exact"}, queries=1)
    last = ask(start, folder, dealer, server).last(40)
    assert last.startswith("error HandshakeMismatch"), last
    assert "truncation is 'exact' here and 'auto' at the peer" in dealer.line("log a session ended")


def test_a_dealer_of_another_program_is_told_to_server_and_client(start, folder, tmp_path):
    privml.convert(net(), calibration=torch.full((64, 4), 9.0)).save(tmp_path)
    dealer = start(service_party.deal_program, str(tmp_path), {})
    dealer.address = "127.0.0.1:" + dealer.line("port").split()[1]
    server = start(service_party.serve_program, folder, {"dealer": dealer.address, "queries": 1})
    server.address = "127.0.0.1:" + server.line("port").split()[1]
    last = ask(start, folder, dealer, server).last(40)
    assert last.startswith("error HandshakeMismatch") and "program is" in last, last
    assert "program is" in server.line("log a connection ended", 40)


def test_all_parties_are_told_what_is_no_secret(start, tmp_path):
    """The dealer too, which computes with public values as the others do."""
    torch.manual_seed(4)
    model = nn.Sequential(nn.Embedding(6, 4), nn.Flatten(), nn.Linear(8, 3))
    ids = torch.randint(0, 6, (16, 2))
    privml.convert(model, calibration=ids, token_ids="public").save(tmp_path)
    dealer = start(service_party.deal_program, str(tmp_path), {})
    dealer.address = "127.0.0.1:" + dealer.line("port").split()[1]
    server = start(service_party.serve_program, str(tmp_path), {"dealer": dealer.address, "queries": 1})
    server.address = "127.0.0.1:" + server.line("port").split()[1]
    for party in (dealer, server):
        assert "all parties, the dealer too, learn these inputs of the program: " in party.line("log all parties", 40)
    assert ask(start, str(tmp_path), dealer, server, value=[[1, 2]]).last(40).startswith("answer ")


def test_a_dealer_survives_garbage(service, start, folder):
    dealer, server = service({"sessions": 1}, queries=1)
    host, port = dealer.address.split(":")
    for sent in (b"GET / HTTP/1.1\r\n\r\n" * 4, bytes(200), b"\x10"):
        with socket.create_connection((host, int(port))) as scanner:
            scanner.sendall(sent)
        assert dealer.line("log a connection was refused")
    assert_answer(ask(start, folder, dealer, server).last())
    assert dealer.last() == "end 1"


def test_launch_with_a_dealer_costs_what_was_predicted(program):
    value = torch.tensor(INPUT)
    run = launch(program, value, SessionSpec("threepc"))
    assert_answer("answer " + json.dumps(run.outputs[0].tolist()))
    for rank, report in enumerate((run.server, run.client, run.dealer)):
        foretold = program.cost([value.shape], SessionSpec("threepc"), rank=rank).as_dict()["total"]
        for phase in ("setup", "preprocess", "online"):
            for count in ("sent", "received", "depth"):
                assert report.ledger["total"][phase][count] == foretold[phase][count], (rank, phase, count)


def test_a_device_that_is_not_there_is_refused_at_once(program):
    with pytest.raises(ConfigError, match="device"):
        launch(program, torch.tensor(INPUT), SessionSpec(engine("threepc", device="tpu")))
    if not torch.cuda.is_available():
        with pytest.raises(ConfigError, match="no CUDA device"):
            launch(program, torch.tensor(INPUT), SessionSpec(engine("threepc", device="cuda")))
