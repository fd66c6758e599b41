# SPDX-License-Identifier: Apache-2.0
"""``python benchmarks/active_store.py [--model lenet] [--ring 64] [--ot softspoken] [--k 4] [--queries 2]``

Actively secure queries on a store: how large a half is and how long it takes to make, then what each query on it takes.
Server and client are processes of their own over loopback TCP. One JSON line, appended to ``--out``.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import sys
import tempfile
import time
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

import torch  # noqa: E402

import models  # noqa: E402
from privml.conversion import convert  # noqa: E402
from privml.engines.correlations import OtChoice  # noqa: E402
from privml.measure.machine import machine, revision  # noqa: E402
from privml.memory import peak_memory  # noqa: E402
from privml.program import Program  # noqa: E402
from privml.service.client import query  # noqa: E402
from privml.service.options import Hooks, Limits  # noqa: E402
from privml.service.preprocess import Order, preprocess  # noqa: E402
from privml.service.server import serve  # noqa: E402
from privml.session.preprocessing import StoreHalf  # noqa: E402
from privml.spec import SessionSpec  # noqa: E402

PROCESSES = multiprocessing.get_context("spawn")


def prepared(folder: str, rank: int, options: argparse.Namespace) -> tuple[Program, Order]:
    torch.set_num_threads(1)
    program = Program.load(f"{folder}/program", f"{folder}/weights.safetensors" if rank == 0 else None)
    half = f"{folder}/{rank}"
    spec = SessionSpec.of("active", ring=options.ring, ot=options.ot, k=options.k, deadline=600.0)
    return program, Order(program, half, options.queries, 1, spec, f"{half}.key")


def half_of(order: Order, rank: int) -> StoreHalf:
    return StoreHalf(order.folder, rank, order.program.hash, order.key_file)


def server(pipe: Connection, folder: str, options: argparse.Namespace) -> None:
    program, order = prepared(folder, 0, options)
    preprocess(order, listen="127.0.0.1:0", on_listening=pipe.send)
    with half_of(order, 0) as half:
        hooks = Hooks(log=lambda text: None, on_listening=pipe.send)
        limits = Limits(queries=options.queries)
        serve(program, "127.0.0.1:0", order.spec, preprocessing=half, limits=limits, hooks=hooks)


def client(pipe: Connection, folder: str, options: argparse.Namespace) -> None:
    program, order = prepared(folder, 1, options)
    inputs = torch.load(f"{folder}/inputs.pt")
    made = preprocess(order, server=f"127.0.0.1:{pipe.recv()}")
    pipe.send({
        "bytes": made.bytes, "seconds": made.seconds, "sent": made.cost.preprocess.sent,
        "peak_rss_bytes": peak_memory(), "setup_sent": made.cost.setup.sent, "depth": made.cost.preprocess.depth,
    })  # fmt: skip
    port, answers = pipe.recv(), []
    with half_of(order, 1) as half:
        for index in range(options.queries):
            answer = query(program, f"127.0.0.1:{port}", inputs[index : index + 1], order.spec, preprocessing=half)
            cost = answer.ledger.snapshot()
            answers.append({
                "seconds": answer.seconds, "online": cost.online.seconds, "setup": cost.setup.seconds,
                "sent": cost.total.sent, "depth": cost.online.depth, "ahead": cost.preprocess.bytes,
                "label": int(answer.outputs[0].argmax()),
            })  # fmt: skip
    pipe.send(answers)


def measure(options: argparse.Namespace) -> dict[str, Any]:
    model = models.load(options.model)
    numerics = {"bits": options.ring, "narrow": False}
    program = convert(model.module, calibration=model.preprocess(model.calibration), numerics=numerics)
    inputs = model.preprocess(model.samples[: options.queries])
    with tempfile.TemporaryDirectory() as folder, torch.no_grad():
        program.save(folder)
        torch.save(inputs, f"{folder}/inputs.pt")
        pipes = [PROCESSES.Pipe() for _ in range(2)]
        parties = [
            PROCESSES.Process(target=target, args=(theirs, folder, options))
            for target, (_, theirs) in zip((server, client), pipes, strict=True)
        ]
        for party in parties:
            party.start()
        (to_server, _), (to_client, _) = pipes
        to_client.send(to_server.recv())
        made = to_client.recv()
        to_client.send(to_server.recv())
        answers = to_client.recv()
        for party in parties:
            party.join()
        right = [answer.pop("label") for answer in answers] == model.module(inputs).argmax(1).tolist()
    return {
        "time": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
        "suite": "active-store",
        "model": options.model,
        "ring": options.ring,
        "ot": OtChoice(options.ot, options.k, "malicious").tag,
        "queries": options.queries,
        "store": made,
        "answers": answers,
        "right": right,
        "machine": machine(),
        "git": revision(ROOT),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", default="lenet")
    parser.add_argument("--ring", type=int, default=64)
    parser.add_argument("--ot", default="softspoken")
    parser.add_argument("--k", type=int, default=4)
    parser.add_argument("--queries", type=int, default=2)
    parser.add_argument("--out", type=Path, default=ROOT / "build" / "results" / "active-store.jsonl")
    options = parser.parse_args()
    row = measure(options)
    options.out.parent.mkdir(parents=True, exist_ok=True)
    with options.out.open("a") as file:
        file.write(json.dumps(row) + "\n")
    print(json.dumps(row, indent=1))


if __name__ == "__main__":
    main()
