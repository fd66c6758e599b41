# SPDX-License-Identifier: Apache-2.0
"""Both parties of preprocessing and of queries on stores, on threads, for the tests of this folder."""

from __future__ import annotations

import queue
from concurrent.futures import ThreadPoolExecutor

import torch
from small_network import Net

from privml.errors import PrivmlError
from privml.service.preprocess import Order, preprocess
from privml.service.query import query
from privml.service.serve import serve

INPUT = torch.tensor([[0.5, -1.0, 0.25, 2.0], [1.0, 1.0, -1.0, 0.0]])


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
    return Order(program, folder, **{"count": 2, "batch": 2, "key_file": f"{folder}.key", **fields})


def make(program, folder, client=None, **fields):
    """The outcomes of both parties that fill folder/0 and folder/1."""
    return both(
        lambda told: preprocess(order(program, f"{folder}/0", **fields), listen="127.0.0.1:0", on_listening=told),
        client or (lambda address: preprocess(order(program, f"{folder}/1", **fields), server=address, deadline=20.0)),
    )


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
