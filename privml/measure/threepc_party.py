# SPDX-License-Identifier: Apache-2.0
"""One of the three parties of a measurement, run as a script: ``threepc_party.py rank ports task-as-json``.

Prints "port N" if it listens, and at the end one JSON line: seconds, bytes and depth per phase, peak memory.
"""

from __future__ import annotations

import json
import sys
import time
from typing import Any

import torch

import privml._core as _core
from privml.engines.threepc import backend as threepc
from privml.engines.threepc.device import Peaks, kernels_for
from privml.measure.core_party import SECONDS_TO_ANSWER, SECONDS_TO_CONNECT, difference, median
from privml.measure.threepc_operators import prepare
from privml.memory import peak_memory

# Messages in a chain: all parties count the depth of a run from a multiple of it.
LONGER_THAN_ANY = 1_000_000


def connect(rank: int, ports: list[int], network: dict[str, Any]) -> tuple[dict[int, Any], Any]:
    """Channels to the two others and, between parties 2 and 0, the one for dealing. Each party accepts those of
    higher rank, which are started one after the other."""
    shape = network["delay_ms"], network["bandwidth_mbps"]
    listener = _core.TcpListener("127.0.0.1", 0) if rank < 2 else None
    channels = {i: _core.connect_tcp("127.0.0.1", ports[i], SECONDS_TO_CONNECT, None, *shape) for i in range(rank)}
    dealing = _core.connect_tcp("127.0.0.1", ports[0], SECONDS_TO_CONNECT, None, *shape) if rank == 2 else None
    if listener is not None:
        print(f"port {listener.port}", flush=True)
        for peer in range(rank + 1, 3):
            channels[peer] = listener.accept(SECONDS_TO_CONNECT, *shape)
        if rank == 0:
            dealing = listener.accept(SECONDS_TO_CONNECT, *shape)
    for channel in (*channels.values(), dealing):
        if channel is not None:
            channel.set_deadline(SECONDS_TO_ANSWER)
    return channels, dealing


def meet(engine: Any) -> None:
    """All parties are here, and nothing is under way, before a clock starts."""
    zero = torch.zeros(1, dtype=torch.int64)
    for owner in range(3):
        engine.reveal(engine.input(zero, (1,), owner, 8), 8)
    engine.party.drain()


def main() -> None:
    rank, ports, task = int(sys.argv[1]), json.loads(sys.argv[2]), json.loads(sys.argv[3])
    torch.set_num_threads(task["threads"])
    engine = threepc.established(
        *connect(rank, ports, task["network"]), rank, task["truncation"], kernels=kernels_for(task["device"])
    )
    action = prepare(engine, task)
    peaks = Peaks(engine.party.device)
    with peaks.phase("first call"):
        action()
    runs = []
    for index in range(task["repeats"]):
        meet(engine)
        engine.party.links.advance((index + 1) * LONGER_THAN_ANY)
        before, start, busy = engine.counters(), time.perf_counter(), time.process_time()
        with peaks.phase("later calls"):
            layers = action()
            engine.party.drain()
        seconds, busy = time.perf_counter() - start, time.process_time() - busy
        after = engine.counters()
        phases = {name: difference(after[name], before[name]) for name in ("preprocess", "online")}
        runs.append({"seconds": seconds, "cpu_seconds": busy, "phases": phases, "layers": layers})
    meet(engine)
    report = median(runs)
    report["peak_rss_bytes"], report["peak_device_bytes"] = peak_memory(), peaks.bytes
    print(json.dumps(report), flush=True)
    engine.close()


if __name__ == "__main__":
    main()
