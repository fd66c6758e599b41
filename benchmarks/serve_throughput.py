# SPDX-License-Identifier: Apache-2.0
"""Queries a second of one service with 1, 2 and 4 clients at once: JSON lines, with ratios taken in one run.

    python benchmarks/serve_throughput.py [queries per client] [model] [threads | local | ray]

``threads``: one process serves all of them, each on a thread. ``local``, ``ray``: a front and as many workers as there
are clients (``privml serve cluster=...``), though with Ray, which gives each a core, no more than cores. Every client
is a process that keeps its session, so that later queries have no set-up. ``rate`` counts queries of all clients from
the moment when all have had their first answer.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager

import models
import privml
from privml.service.client import Client

CLIENTS = (1, 2, 4)
COMMAND = [sys.executable, "-c", "from privml.cli import main; main()"]


def client(folder: str, address: str, name: str, count: int) -> None:
    """Says "ready" after a first answer; then, told to go, asks ``count`` times."""
    model = models.load(name)
    value = model.preprocess(model.samples[:1])
    with Client(folder, address) as asking:
        asking.query(value)
        print("ready", flush=True)
        sys.stdin.readline()
        for _ in range(count):
            asking.query(value)


def rate(folder: str, address: str, name: str, clients: int, count: int) -> float:
    """Queries a second of so many clients at once."""
    command = [sys.executable, __file__, "client", folder, address, name, str(count)]
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
    started = [subprocess.Popen(command, **pipes) for _ in range(clients)]
    for each in started:
        assert each.stdout.readline() == "ready\n"
    begin = time.perf_counter()
    for each in started:
        each.stdin.write("go\n")
        each.stdin.flush()
    for each in started:
        assert each.wait() == 0
    return clients * count / (time.perf_counter() - begin)


@contextmanager
def service(files: list[str], kind: str, clients: int) -> Iterator[str]:
    """The address of a service for so many clients at once."""
    words = [f"program={files[0]}", f"weights={files[1]}", "listen=127.0.0.1:0", "log=json", f"workers={clients}"]
    words += [] if kind == "threads" else [f"cluster={kind}"]
    serving = subprocess.Popen([*COMMAND, "serve", *words], stdout=subprocess.PIPE, text=True)
    try:
        listening = {}
        while len(listening) < (1 if kind == "threads" else 1 + clients):
            event = json.loads(serving.stdout.readline())
            if event["event"] == "listening":
                listening[event.get("worker")] = event["port"]
        threading.Thread(target=deque, args=(serving.stdout, 0), daemon=True).start()  # a full pipe would stop it
        yield f"127.0.0.1:{listening[None]}"
    finally:
        serving.send_signal(signal.SIGTERM)
        assert serving.wait() == 0


def main(count: int, name: str, kind: str) -> None:
    model = models.load(name)
    program = privml.convert(model.module, calibration=model.preprocess(model.calibration))
    rates = {}
    with tempfile.TemporaryDirectory() as folder:
        files = list(map(str, program.save(folder)))
        for clients in CLIENTS:
            if kind == "ray" and clients > os.cpu_count():
                continue
            with service(files, kind, clients) as address:
                rates[clients] = rate(folder, address, name, clients, count)
    for clients, value in rates.items():
        record = {"benchmark": "serve_throughput", "model": name, "service": kind, "clients": clients}
        record |= {"queries": clients * count, "rate": round(value, 3), "ratio": round(value / rates[1], 3)}
        print(json.dumps(record))


if __name__ == "__main__":
    if sys.argv[1:2] == ["client"]:
        client(*sys.argv[2:5], int(sys.argv[5]))
    else:
        given = sys.argv[1:] + ["20", "mlp", "threads"][len(sys.argv) - 1 :]
        main(int(given[0]), *given[1:])
