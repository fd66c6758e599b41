# SPDX-License-Identifier: Apache-2.0
"""A server and its clients as real processes: answers, bad clients, garbage, deaths."""

from __future__ import annotations

import json
import os
import signal
import socket

import numpy as np
import pytest
import service_party
import torch
from patience import PATIENCE
from small_network import Net

from privml.conversion import convert
from privml.engines.correlations import OtChoice
from privml.errors import InvalidInput
from privml.measure.launch import launch

INPUT = [[0.5, -1.0, 0.25, 2.0], [1.0, 1.0, -1.0, 0.0]]


def converted(seed_weight=0.0):
    net = Net().eval()
    with torch.no_grad():
        net.first.bias += seed_weight
    return convert(net, torch.randn(1, 4), calibration=torch.randn(64, 4) * 2)


@pytest.fixture(scope="session")
def program():
    torch.manual_seed(4)
    return converted()


@pytest.fixture(scope="session")
def folder(program, tmp_path_factory):
    path = tmp_path_factory.mktemp("program")
    program.save(path)
    return str(path)


@pytest.fixture(scope="session")
def other_folder(tmp_path_factory):
    """A program with the same shapes and other formats."""
    path = tmp_path_factory.mktemp("other")
    convert(Net().eval(), torch.randn(1, 4), calibration=torch.randn(64, 4) * 50).save(path)
    return str(path)


@pytest.fixture
def server(start, folder):
    def run(**options):
        made = start(service_party.serve_program, folder, options)
        made.address = "127.0.0.1:" + made.line("port").split()[1]
        made.line("log listening")
        return made

    return run


@pytest.fixture
def client(start, folder):
    def run(address, value=INPUT, folder=folder, **options):
        return start(service_party.send_query, folder, {"server": address, "input": value, **options})

    return run


def assert_answer(line, value=INPUT):
    assert line.startswith("answer "), line
    with torch.no_grad():
        exact = Net().eval()(torch.tensor(value))
    assert (torch.tensor(json.loads(line.removeprefix("answer "))) - exact).abs().max() < 0.05


def test_queries_one_after_another(server, client):
    running = server(queries=3)
    for value in (INPUT, INPUT[:1], INPUT * 4):
        assert_answer(client(running.address, value).last(), value)
        assert f"input [{len(value)}, 4]" in running.line("log query")
    assert running.last() == "end"


def test_a_program_of_floats_is_served(start, tmp_path):
    program = convert(Net().eval(), calibration=torch.randn(8, 4), numerics={"floating": "float32"})
    program.save(tmp_path)
    running = start(service_party.serve_program, str(tmp_path), {"queries": 1})
    address = "127.0.0.1:" + running.line("port").split()[1]
    answer = start(service_party.send_query, str(tmp_path), {"server": address, "input": INPUT}).last()
    assert answer.startswith("answer "), answer
    with torch.no_grad():
        exact = Net().eval()(torch.tensor(INPUT))
    assert torch.allclose(torch.tensor(json.loads(answer.removeprefix("answer "))), exact, rtol=1e-5, atol=1e-6)
    assert running.last() == "end"


def test_server_survives_garbage_and_bad_clients(server, client, other_folder):
    running = server(queries=1)
    host, port = running.address.split(":")
    for sent in (b"GET / HTTP/1.1\r\n\r\n" * 4, b"\x00" * 200, b"\x10"):
        with socket.create_connection((host, int(port))) as scanner:
            scanner.sendall(sent)
        assert running.line("log").startswith("log a connection ended without an answer")
    wrong = client(running.address, folder=other_folder).last()
    assert wrong.startswith("error HandshakeMismatch") and "program is" in wrong
    assert "HandshakeMismatch" in running.line("log")
    wrong = client(running.address, ot=OtChoice(k=8)).last()
    assert wrong.startswith("error HandshakeMismatch") and "k is 8 here and 4 at the peer" in wrong
    assert "k is 4 here and 8 at the peer" in running.line("log")
    dead = client(running.address, die_at="relu")
    dead.process.join(PATIENCE)
    assert "PeerDisconnected" in running.line("log")
    assert_answer(client(running.address).last())
    assert running.last() == "end"
    assert all("\n" not in line for line in running.lines)


def test_refused_shape_reaches_the_client(server, start, folder):
    running = server(queries=1)
    asked = start(service_party.send_shapes, folder, {"server": running.address, "shapes": [[2, 5]]})
    assert asked.last().startswith("error InvalidInput the server refuses the query") and "(any, 4)" in asked.lines[-1]
    assert "InvalidInput" in running.line("log")
    huge = start(service_party.send_shapes, folder, {"server": running.address, "shapes": [[1 << 40, 4]]})
    assert huge.last().startswith("error InvalidInput")


@pytest.mark.parametrize("die_at", ["first", "relu", "second"])
def test_server_killed_during_a_query(server, client, die_at):
    running = server(die_at=die_at)
    assert client(running.address).last().startswith("error PeerDisconnected")
    running.process.join(PATIENCE)
    assert running.process.exitcode == -9


def test_client_waits_for_the_server(client, start, folder, free_port):
    early = client(f"127.0.0.1:{free_port}")
    early.line("waiting")
    start(service_party.serve_program, folder, {"listen": f"127.0.0.1:{free_port}", "queries": 1})
    assert_answer(early.last())


def test_no_server(client, free_port):
    last = client(f"127.0.0.1:{free_port}", deadline=1.0).last()
    assert last.startswith("error PeerDisconnected") and str(free_port) in last


@pytest.mark.parametrize(
    "value, message",
    [
        ([[1.0, 2.0, 3.0]], "shape (1, 3)"),
        ([[1.0, float("nan"), 0.0, 0.0]], "(0, 1)"),
        ([[0.0, 0.0, 0.0, 1e30]], "(0, 3)"),
        ([[0.0] * 4, [0.0, 0.0, float("inf"), 0.0]], "(1, 2)"),
    ],
)
def test_bad_input_never_leaves_the_client(client, value, message):
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        listener.listen()
        listener.settimeout(0.2)
        last = client(f"127.0.0.1:{listener.getsockname()[1]}", value).last()
        assert last.startswith("error InvalidInput") and message in last
        with pytest.raises(TimeoutError):
            listener.accept()


def test_interrupt_ends_a_client_that_waits(client):
    with socket.socket() as silent:
        silent.bind(("127.0.0.1", 0))
        silent.listen()
        waiting = client(f"127.0.0.1:{silent.getsockname()[1]}")
        connection, _ = silent.accept()
        assert connection.recv(8)
        os.kill(waiting.process.pid, signal.SIGINT)
        waiting.process.join(45)  # less than the deadline of its read
        assert waiting.process.exitcode == 1


def test_interrupt_ends_a_server_with_a_client(server):
    running = server()
    host, port = running.address.split(":")
    with socket.create_connection((host, int(port))) as connection:
        connection.send(b"p")  # it waits for the rest of a hello
        os.kill(running.process.pid, signal.SIGINT)
        running.process.join(45)  # less than the deadline of its read
        assert running.process.exitcode == 1


def test_a_signal_lets_the_query_under_way_finish(server, client):
    running = server(signals=True)
    held = client(running.address, stop_at="relu")
    held.line("stopped")
    os.kill(running.process.pid, signal.SIGTERM)
    assert "1 running session(s) have 30 seconds" in running.line("log ending")
    assert client(running.address).last().startswith("error ServiceBusy")
    os.kill(held.process.pid, signal.SIGCONT)
    assert_answer(held.last())
    assert running.last() == "end" and running.process.exitcode == 0


@pytest.mark.parametrize("second", [signal.SIGTERM, signal.SIGINT])
def test_a_second_signal_ends_a_server_at_once(server, client, second):
    running = server(signals=True)
    held = client(running.address, stop_at="relu")
    held.line("stopped")
    os.kill(running.process.pid, signal.SIGINT)
    running.line("log ending")
    os.kill(running.process.pid, second)
    assert running.last() == "end"
    os.kill(held.process.pid, signal.SIGCONT)
    assert held.last().startswith("error PeerDisconnected")


def test_port_in_use(server, start, folder):
    running = server()
    last = start(service_party.serve_program, folder, {"listen": running.address}).last()
    assert last.startswith("error ConfigError") and running.address.split(":")[1] in last


def total_bytes(total):
    return [(total[phase]["sent"], total[phase]["received"]) for phase in ("setup", "preprocess", "online")]


@pytest.mark.fresh
def test_launch_runs_both_parties(program):
    seen = []
    run = launch(program, np.array(INPUT, dtype=np.float32), progress=lambda *step: seen.append(step))
    assert_answer(f"answer {run.outputs[0].tolist()}")
    online = {
        node["name"]: sum(node["online"][way] for way in ("sent", "received")) for node in run.client.ledger["nodes"]
    }
    sizes = [online[layer] for layer in program.layers]
    done = [sum(sizes[:place]) for place in range(len(sizes) + 1)]
    steps = zip(done, [sum(sizes)] * len(done), [*program.layers, "done"], strict=True)
    assert seen == list(steps), "the bar moves by the bytes of each layer"
    predicted = program.cost([(2, 4)]).as_dict()["total"]
    assert total_bytes(predicted) == total_bytes(run.client.ledger["total"])
    drawn = program.correlations([(2, 4)])
    assert (
        run.client.ledger["total"]["cots_as_sender"],
        run.client.ledger["total"]["cots_as_receiver"],
    ) == drawn.roles(1)
    assert all(node["preprocess"]["sent"] == 0 for node in run.client.ledger["nodes"]), (
        "all made before the first layer"
    )
    ours, theirs = run.client.ledger["total"], run.server.ledger["total"]
    assert ours["online"]["sent"] == theirs["online"]["received"] > 0
    assert [node["name"] for node in run.client.ledger["nodes"]] == list(dict.fromkeys(program.layers))


@pytest.mark.parametrize("threads", [2, 3])
def test_server_and_client_with_lanes(server, client, threads):
    running = server(queries=2, threads=threads)
    wrong = client(running.address).last()
    assert wrong.startswith("error HandshakeMismatch") and "threads is 1 here" in wrong
    assert f"threads is {threads} here and 1 at the peer" in running.line("log a")
    first, second = (client(running.address, threads=threads) for _ in range(2))  # one waits while the other is served
    assert_answer(first.last())
    assert_answer(second.last())
    assert running.last() == "end"


def test_launch_refuses_bad_input_before_it_starts(program):
    with pytest.raises(InvalidInput):
        launch(program, torch.zeros(1, 5))
