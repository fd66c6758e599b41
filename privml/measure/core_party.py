# SPDX-License-Identifier: Apache-2.0
"""One party of a measurement, run as a script: ``core_party.py rank port task-as-json``; prints one JSON line.

Loads the compiled core alone (no torch), so that the peak memory is the protocol's.
"""

from __future__ import annotations

import importlib.util
import json
import sys
import time
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

HERE = Path(__file__).resolve().parent
SECONDS_TO_CONNECT = 30.0
SECONDS_TO_ANSWER = 600.0


def load(name: str, path: Path) -> ModuleType:
    spec = importlib.util.spec_from_file_location(name, path)
    if spec is None or spec.loader is None:
        raise ImportError(f"cannot load {path}")
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)
    return module


def load_core() -> ModuleType:
    """The extension alone; its errors are those of privml/errors.py, which needs no torch either."""
    package = HERE.parent
    stub = ModuleType("privml")
    stub.__path__ = [str(package)]
    sys.modules["privml"] = stub
    return load("privml._core", next(package.glob("_core*.so")))


def connect(core: ModuleType, rank: int, port: int, network: dict[str, Any], count: int) -> list[Any]:
    """``count`` channels; the next one is opened when both parties hold the last, so all are in order."""
    shape = (network["delay_ms"], network["bandwidth_mbps"])
    listener = None
    if rank == 0:
        listener = core.TcpListener("127.0.0.1", port)
        print(f"port {listener.port}", flush=True)
    channels = []
    for _ in range(count):
        if listener is not None:
            channel = listener.accept(SECONDS_TO_CONNECT, *shape)
        else:
            channel = core.connect_tcp("127.0.0.1", port, SECONDS_TO_CONNECT, None, *shape)
        channel.set_deadline(SECONDS_TO_ANSWER)
        meet(channel)
        channels.append(channel)
    return channels


def difference(after: dict[str, Any], before: dict[str, Any]) -> dict[str, Any]:
    return {key: after[key] - before[key] for key in after}


def meet(channel: Any) -> None:
    """Both parties are here before a clock starts."""
    channel.write(b"x")
    channel.read(1)


def timed(channel: Any, session: Any, action: Callable[[], Any]) -> dict[str, Any]:
    """Seconds until both parties have done ``action``, and what it added to the counters; they have just met."""
    before, start = session.counters(), time.perf_counter()
    action()
    after = session.counters()
    meet(channel)
    seconds = time.perf_counter() - start
    phases = {name: difference(after[name], before[name]) for name in ("preprocess", "online")}
    return {"seconds": seconds, "phases": phases}


def median(runs: list[dict[str, Any]]) -> dict[str, Any]:
    """The run of middle length."""
    return sorted(runs, key=lambda run: run["seconds"])[len(runs) // 2]


def main() -> None:
    rank, port, task = int(sys.argv[1]), int(sys.argv[2]), json.loads(sys.argv[3])
    core = load_core()
    operators = load("privml_bench_operators", HERE / "core_operators.py")
    threads, background = task["threads"], task["refill"] == "background"
    channels = connect(core, rank, port, task["network"], threads * 2 if background else threads)
    channel, ot = channels[0], (task["provider"], task["k"], task["security"])
    session = core.TwoPartySession(channel, rank, *ot, further=channels[1:threads], refills=channels[threads:])
    n = task["n"]
    action = operators.prepare(task["operator"], core, session, rank, n, task["params"])
    action()
    runs = []
    for _ in range(task["repeats"]):
        meet(channel)
        runs.append(timed(channel, session, action))
    report = median(runs)
    report["phases"]["setup"] = session.counters()["setup"]
    report["peak_rss_bytes"] = load("privml_memory", HERE.parent / "memory.py").peak_memory()
    print(json.dumps(report), flush=True)


if __name__ == "__main__":
    main()
