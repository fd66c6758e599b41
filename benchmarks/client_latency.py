# SPDX-License-Identifier: Apache-2.0
"""``python benchmarks/client_latency.py [--models mlp,lenet] [--engines twopc,threepc,active] [--queries 5]``

How long the first query of a session takes and the ones that follow it, on loopback: server, dealer and client are
processes of this machine, the client's clock runs from ``Client.query`` to its return. Without ``ahead`` a following
query makes its correlations itself, with it the session has made them while it was idle. One JSON line for each model
and engine, appended to ``--out``: seconds of every query, the median of those that follow, and first : next.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import multiprocessing
import statistics
import sys
import time
from pathlib import Path
from typing import Any

import torch

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

import models  # noqa: E402
import privml  # noqa: E402
from privml.measure.machine import machine, revision  # noqa: E402
from privml.program import Program  # noqa: E402
from privml.service.dealer import deal  # noqa: E402
from privml.service.options import Hooks  # noqa: E402
from privml.service.server import serve  # noqa: E402
from privml.session.ledger import PHASES  # noqa: E402

PROCESSES = multiprocessing.get_context("spawn")
# Settings of both sides, whether correlations can be made ahead, and how numbers are chosen.
# Engine -> whether it makes correlations ahead, and the numerics of its programs.
ENGINES: dict[str, tuple[bool, dict[str, Any]]] = {
    "twopc": (True, {"bits": 32}),
    "threepc": (False, {"bits": 32}),
    "active": (True, {"bits": 64, "narrow": False}),
}
LISTEN = "127.0.0.1:0"


def run_server(pipe: Any, folder: str, engine: str, dealer: str | None) -> None:
    torch.set_num_threads(1)
    program = Program.load(f"{folder}/program", f"{folder}/weights.safetensors")
    serve(program, privml.Addresses(LISTEN, dealer), privml.SessionSpec(engine), hooks=hooks(pipe))


def run_dealer(pipe: Any, folder: str, engine: str) -> None:
    torch.set_num_threads(1)
    deal(Program.load(f"{folder}/program"), LISTEN, privml.SessionSpec(engine), hooks=hooks(pipe))


def hooks(pipe: Any) -> Hooks:
    return Hooks(log=lambda line: None, on_listening=pipe.send)


class Started:
    """``target`` in a process that listens on ``address``, until the block ends."""

    def __init__(self, target: Any, *args: Any) -> None:
        self._pipe, theirs = PROCESSES.Pipe(duplex=False)
        self._process = PROCESSES.Process(target=target, args=(theirs, *args), daemon=True)
        self._process.start()

    def __enter__(self) -> Started:
        self.address = f"127.0.0.1:{self._pipe.recv()}"
        return self

    def __exit__(self, *exception: object) -> None:
        self._process.terminate()
        self._process.join()


def measure(
    folder: str, value: torch.Tensor, engine: str, server: privml.Addresses, ahead: bool, queries: int
) -> dict[str, Any]:
    """Seconds and bytes of each query of one session."""
    seconds, costs = [], []
    with privml.Client(folder, server, privml.SessionSpec(engine), ahead=ahead) as client:
        for _ in range(queries):
            start = time.perf_counter()
            answer = client.query(value)
            seconds.append(time.perf_counter() - start)
            cost = answer.ledger.snapshot()
            costs.append({phase: getattr(cost, phase).bytes for phase in PHASES})
            assert answer.turn == len(seconds)
            assert client.ready(600.0)
    following = statistics.median(seconds[1:])
    return {"seconds": seconds, "bytes": costs, "next": following, "ratio": seconds[0] / following}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--models", default="mlp,lenet")
    parser.add_argument("--engines", default=",".join(ENGINES))
    parser.add_argument("--queries", type=int, default=5)
    parser.add_argument("--ahead", choices=("both", "only"), default="both", help="only: no sessions without it")
    parser.add_argument("--folder", default="build/client-latency", help="where converted programs go")
    parser.add_argument("--out", type=Path, default=ROOT / "build" / "results" / "client-latency.jsonl")
    args = parser.parse_args()
    torch.set_num_threads(1)
    for name in args.models.split(","):
        model = models.load(name)
        value = model.preprocess(model.samples[:1])
        for engine in args.engines.split(","):
            can_make_ahead, numerics = ENGINES[engine]
            folder = f"{args.folder}/{name}-{numerics['bits']}"
            calibration = model.preprocess(model.calibration)
            privml.convert(model.module, calibration=calibration, numerics=numerics).save(folder)
            with contextlib.ExitStack() as started:
                dealer = None
                if engine == "threepc":
                    dealer = started.enter_context(Started(run_dealer, folder, engine)).address
                server = started.enter_context(Started(run_server, folder, engine, dealer)).address
                ways = (True,) if can_make_ahead and args.ahead == "only" else (False, True)[: 1 + can_make_ahead]
                for ahead in ways:
                    row = {"model": name, "engine": engine, "ahead": ahead, "batch": 1}
                    row |= measure(folder, value, engine, privml.Addresses(server, dealer), ahead, args.queries)
                    row |= {"machine": machine(), "revision": revision(ROOT)}
                    args.out.parent.mkdir(parents=True, exist_ok=True)
                    with args.out.open("a") as file:
                        file.write(json.dumps(row) + "\n")
                    print(
                        f"{name} {engine}{' ahead' if ahead else ''}: first {row['seconds'][0] * 1000:.0f} ms, next "
                        f"{row['next'] * 1000:.0f} ms, ratio {row['ratio']:.1f}"
                    )


if __name__ == "__main__":
    main()
