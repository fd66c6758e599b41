# SPDX-License-Identifier: Apache-2.0
"""Both parties of preprocessing and of queries on stores, on threads, for the tests of this folder."""

from __future__ import annotations

import json
import queue
import shutil
import signal
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import service_party
import services
import torch
from patience import PATIENCE
from services import preprocess, query, serve
from small_network import Net

from privml.errors import PrivmlError
from privml.service.options import Hooks

INPUT = torch.tensor([[0.5, -1.0, 0.25, 2.0], [1.0, 1.0, -1.0, 0.0]])


def _listens(port):
    raise AssertionError(f"the server listens on port {port}")


# Of a server that must end before.
LISTENS_NOT = Hooks(on_listening=_listens)


def both(server, client):
    """Runs ``server(on_listening)`` and ``client(address)`` on threads: two results, or the errors in their place."""
    ports = queue.Queue()

    def outcome(call, *args):
        try:
            return call(*args)
        except (PrivmlError, OSError) as error:
            return error
        finally:
            ports.put(None)

    with ThreadPoolExecutor(2) as executor:
        first = executor.submit(outcome, server, ports.put)
        port = ports.get(timeout=60)
        second = None if port is None else executor.submit(outcome, client, f"127.0.0.1:{port}")
        return first.result(120), None if second is None else second.result(120)


def order(program, folder, **fields):
    return services.order(program, folder, **{"count": 2, "batch": 2, "key_file": f"{folder}.key", **fields})


def make(program, folder, client=None, **fields):
    """The outcomes of both parties that fill folder/0 and folder/1."""
    return both(
        lambda told: preprocess(order(program, f"{folder}/0", **fields), listen="127.0.0.1:0", on_listening=told),
        client or (lambda address: preprocess(order(program, f"{folder}/1", **fields), server=address, deadline=20.0)),
    )


def filled(program, folder, **fields):
    """The same, and nothing went wrong."""
    outcomes = make(program, folder, **fields)
    for outcome in outcomes:
        assert not isinstance(outcome, Exception), outcome
    return outcomes


def copied(made, folder):
    """Fresh copies of both halves for a test (what no user may do: a copy is a second life)."""
    return Path(shutil.copytree(made, folder / "stores"))


def altered(half, kind, place):
    """One bit of a half's first chunk of a kind."""
    chunk = half / "chunks" / f"{kind}-00000000"
    data = bytearray(chunk.read_bytes())
    data[place] ^= 1
    chunk.write_bytes(data)


def answer(program, server_half, client_half, value=INPUT, **options):
    """(what the server answered or logged, what the client got) of one query."""
    told, logged = [], []

    def log(text):
        logged.append(text)
        if "without an answer" in text:
            raise StopIteration

    def server(on_listening):
        try:
            options_ = {"queries": 1, "on_listening": on_listening, "on_answer": told.append, "log": log, **options}
            serve(program, "127.0.0.1:0", preprocessing=server_half, **options_)
        except StopIteration:
            return logged[-1]
        return told[0]

    return both(server, lambda to: query(program, to, value, preprocessing=client_half, deadline=20.0, **options))


def assert_right(outputs, value=INPUT):
    with torch.no_grad():
        assert (outputs[0] - Net().eval()(value)).abs().max() < 0.05


def killed_in_a_query(start, folder, stores, deadly, layer="relu", **options):
    """Queries by processes on both halves, of which the first dies at the server or the client, in ``layer``; the next
    is answered, where the server died by another one."""
    die = {"die_at": layer}
    serving = {"store": f"{stores}/0", "queries": 1, **options}
    asking = {"input": INPUT.tolist(), "store": f"{stores}/1", **options}

    def listening(**more):
        server = start(service_party.serve_program, folder, {**serving, **more})
        return server, "127.0.0.1:" + server.line("port").split()[1]

    server, address = listening(**(die if deadly == "server" else {}))
    first = {**asking, "server": address, **(die if deadly == "client" else {})}
    client = start(service_party.send_query, folder, first)
    if deadly == "server":
        assert client.last().startswith("error PeerDisconnected")
        assert_killed(server)
        server, address = listening()
    else:
        assert_killed(client)
        assert "PeerDisconnected" in server.line("log a connection")
    again = start(service_party.send_query, folder, {**asking, "server": address}).last()
    assert_right([torch.tensor(json.loads(again.removeprefix("answer ")))])
    server.last()


def assert_killed(party):
    party.process.join(PATIENCE)
    assert party.process.exitcode == -signal.SIGKILL
