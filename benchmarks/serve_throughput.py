# SPDX-License-Identifier: Apache-2.0
"""Queries a second of one server with 1, 2 and 4 clients at once: JSON lines, with ratios taken in one run.

    python benchmarks/serve_throughput.py [queries per client] [model]

Every client is a process that keeps its session, so that later queries have no set-up. ``rate`` counts queries of all
clients from the moment when all have had their first answer.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
import threading
import time
from collections import deque

import models
import privml
from privml.engines.correlations import OtChoice
from privml.service.choose_ot import LinkProfile
from privml.service.client import Client
from privml.service.dispatcher import Capacity
from privml.service.local_workers import LocalWorker
from privml.service.worker import task_of

CLIENTS = (1, 2, 4)


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


def main(count: int, name: str) -> None:
    model = models.load(name)
    program = privml.convert(model.module, calibration=model.preprocess(model.calibration))
    with tempfile.TemporaryDirectory() as folder:
        files = map(str, program.save(folder))
        task = task_of(
            *files,
            ot=OtChoice(),
            tls=None,
            capacity=Capacity(workers=max(CLIENTS)),
            link_profile=LinkProfile(),
            threads=1,
            deadline=60.0,
            listen="127.0.0.1:0",
        )
        server = LocalWorker(task, "127.0.0.1")
        try:
            told = server.messages()
            port = next(message["port"] for message in told if "port" in message)
            threading.Thread(target=deque, args=(told, 0), daemon=True).start()  # its events, unread, would stop it
            rates = {n: rate(folder, f"127.0.0.1:{port}", name, n, count) for n in CLIENTS}
        finally:
            server.end()
    for clients, value in rates.items():
        record = {"benchmark": "serve_throughput", "model": name, "clients": clients, "queries": clients * count}
        print(json.dumps({**record, "rate": round(value, 3), "ratio": round(value / rates[1], 3)}))


if __name__ == "__main__":
    if sys.argv[1:2] == ["client"]:
        client(*sys.argv[2:5], int(sys.argv[5]))
    else:
        main(int(sys.argv[1]) if len(sys.argv) > 1 else 20, sys.argv[2] if len(sys.argv) > 2 else "mlp")
