# SPDX-License-Identifier: Apache-2.0
"""``python benchmarks/prepared_session.py FOLDER INPUTS [--prepare 32] [--queries 3] [--ot silent] [--linear auto]
[--out FILE]``

A session of engine ``twopc`` between two processes on this machine whose server prepares the products with weights of
``--prepare`` queries together while the client is idle: seconds and bytes of each query and of the idle times between
them. ``FOLDER``: where ``Program.save`` has put program and weights; ``INPUTS``: a file of ``torch.save`` with the list
of a query's inputs, which all queries send. The first query comes before anything is prepared, the idle time after it
prepares. One JSON line, appended to ``--out``.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import time
from pathlib import Path
from typing import Any

import torch

import privml
from privml.measure.machine import machine, revision
from privml.memory import keep_freed_memory, peak_memory
from privml.service.options import Addresses, Hooks, Limits
from privml.service.server import serve

ROOT = Path(__file__).resolve().parent.parent
# A party may compute for long before the other hears of it.
PATIENCE = 1200.0


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("inputs", type=Path)
    parser.add_argument("--prepare", type=int, default=32)
    parser.add_argument("--queries", type=int, default=3)
    parser.add_argument("--ot", default="silent")
    parser.add_argument("--linear", default="auto")
    parser.add_argument("--out", type=Path, default=ROOT / "build" / "results" / "prepared-session.jsonl")
    given = parser.parse_args()
    spec = privml.SessionSpec.of(engine="twopc", ot=given.ot, linear=given.linear, deadline=PATIENCE)
    inputs = torch.load(given.inputs)
    torch.set_num_threads(spec.threads)  # here and at the server: they share this machine
    keep_freed_memory()
    context = multiprocessing.get_context("spawn")
    told = context.Queue()
    limits = Limits(queries=given.queries, prepare=given.prepare, idle=PATIENCE)
    server = context.Process(target=_serve, args=(given.folder, spec, limits, told))
    server.start()
    try:
        place = f"127.0.0.1:{told.get(timeout=PATIENCE)}"
        queries = list(asked(privml.load(given.folder / "program"), place, spec, inputs, given.queries))
        peaks = [peak_memory(), told.get(timeout=60)]
    finally:
        server.join(60)
        server.kill()
    record = {
        "folder": given.folder.name, "prepare": given.prepare, "ot": given.ot, "linear": given.linear,
        "machine": machine(), "revision": revision(), "queries": queries, "peak_rss_bytes": peaks,
    }  # fmt: skip
    given.out.parent.mkdir(parents=True, exist_ok=True)
    with given.out.open("a") as file:
        file.write(json.dumps(record) + "\n")
    print(json.dumps({key: value for key, value in record.items() if key != "machine"}), flush=True)


def asked(program: Any, place: str, spec: privml.SessionSpec, inputs: list[torch.Tensor], count: int) -> Any:
    """What each of ``count`` queries took, and the idle time before it."""
    with privml.Client(program, place, spec, ahead=True) as client:
        last = time.perf_counter()
        for _ in range(count):
            answer = client.query(*inputs)
            now, spent = time.perf_counter(), answer.ledger.snapshot().total
            yield {
                "idle_seconds": now - last - answer.seconds, "ahead_bytes": answer.ahead.total.bytes,
                "seconds": answer.seconds, "bytes": spent.bytes, "depth": spent.depth,
            }  # fmt: skip
            last = now


def _serve(folder: Path, spec: privml.SessionSpec, limits: Limits, told: Any) -> None:
    keep_freed_memory()
    torch.set_num_threads(spec.threads)
    program = privml.load(folder / "program", folder / "weights.safetensors")
    serve(program, Addresses("127.0.0.1:0"), spec, limits=limits, hooks=Hooks(on_listening=told.put, log=_unseen))
    told.put(peak_memory())


def _unseen(line: str) -> None:
    """Standard output is for the record."""


if __name__ == "__main__":
    main()
