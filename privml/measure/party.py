# SPDX-License-Identifier: Apache-2.0
"""One party of ``launch`` as a process: ``python -m privml.measure.party`` (see ``worker``); or, with the role
"counter", one that measures how long a newly started party counts what a query draws."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import torch

from privml.measure.predict import demand_of
from privml.measure.worker import report, work
from privml.memory import keep_freed_memory, peak_memory
from privml.program import Program
from privml.service.client import query
from privml.service.dealer import DEALER_CAPACITY, Dealt, deal
from privml.service.options import DEFAULT_CAPACITY, MOST_ELEMENTS, MOST_ROWS, Addresses, Capacity, Hooks, Limits
from privml.service.server import serve
from privml.service.session_worker import Answered
from privml.session.session import load_torch


def unlimited(capacity: Capacity) -> Capacity:
    """Both sides are the same person's, who can end a run that takes too long."""
    return replace(capacity, session_seconds=0, query_rows=MOST_ROWS, query_elements=MOST_ELEMENTS)


def main(task: dict[str, Any]) -> None:
    keep_freed_memory()
    torch.set_num_threads(task["spec"].threads)
    {"server": run_server, "client": run_client, "dealer": run_dealer, "counter": run_counter}[task["role"]](task)


def run_server(task: dict[str, Any]) -> None:
    program = Program.load(task["program"], task["weights"])

    def on_answer(answer: Answered) -> None:
        report_done(answer.seconds, answer.ledger.as_dict(), answer.source)

    serve(
        program,
        Addresses("127.0.0.1:0", task["dealer"]),
        task["spec"],
        limits=Limits(queries=1, capacity=unlimited(DEFAULT_CAPACITY)),
        hooks=hooks(on_answer),
    )


def run_client(task: dict[str, Any]) -> None:
    program = Program.load(task["program"])
    with np.load(task["inputs"]) as file:
        inputs = [file[name] for name in file.files]
    answer = query(
        program,
        Addresses(task["server"], task["dealer"]),
        inputs,
        task["spec"],
        progress=lambda done, total, label: report("progress", done=done, total=total, label=label),
    )
    np.savez(task["outputs"], *(output.numpy() for output in answer.outputs))
    report_done(answer.seconds, answer.ledger.as_dict(), answer.source)


def run_dealer(task: dict[str, Any]) -> None:
    def on_end(dealt: Dealt) -> None:
        report_done(dealt.seconds, dealt.ledger.as_dict(), "")

    program, capacity = Program.load(task["program"]), unlimited(DEALER_CAPACITY)
    deal(program, "127.0.0.1:0", task["spec"], sessions=1, capacity=capacity, hooks=hooks(on_end))


def hooks(on_answer: Callable[[Any], None]) -> Hooks:
    """What server and dealer report to ``launch``."""
    return Hooks(
        log=lambda text: report("log", text=text),
        on_listening=lambda port: report("listening", port=port),
        on_answer=on_answer,
    )


def run_counter(task: dict[str, Any]) -> None:
    load_torch()  # as parties do before they meet
    program = Program.load(task["program"])
    start = time.perf_counter()
    demand_of(program, task["shapes"], task["spec"])
    report("done", seconds=time.perf_counter() - start)


def report_done(seconds: float, ledger: dict[str, Any], source: str) -> None:
    report("done", seconds=seconds, ledger=ledger, peak_rss_bytes=peak_memory(), source=source)


if __name__ == "__main__":
    work(main)
