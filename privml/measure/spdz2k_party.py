# SPDX-License-Identifier: Apache-2.0
"""One party of a measurement of the actively secure engine: ``spdz2k_party.py rank port task-as-json``; prints one JSON
line. Loads only the compiled core."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from core_party import connect, load, load_core, median, meet, timed  # beside this script: no package, and so no torch

HERE = Path(__file__).resolve().parent
SHIFT = 16
NOTHING = {"masks": (0, 0), "randoms": 0, "triples": 0, "squares": 0, "bits": 0, "bit_triples": 0, "edabits": {}}
# Operations that are correlations alone.
CORRELATIONS = {"triple": "triples", "bit_triple": "bit_triples", "random_bit": "bits"}

Session = Any
Action = Callable[[], None]


def prepare(core: Any, session: Session, rank: int, task: dict[str, Any], n: int) -> Action:
    """The operation on n numbers that are shared already, and the check of all that it opened."""
    protocols, ring = core.spdz2k, session.ring
    bits = min(int(task["params"].get("bits", ring)), ring)
    values = np.random.default_rng(7).integers(-(2**30), 2**30, n) if rank == 0 else None
    x, y = (protocols.input(session, values, [n], 0) for _ in range(2))
    bit = protocols.less_than_zero(session, x, bits) if task["operator"] == "select" else None
    session.check()
    operations: dict[str, Callable[[], Any]] = {
        "multiply": lambda: protocols.multiply(session, x, y),
        "equal": lambda: protocols.equal_zero(session, x, bits),
        "less_than": lambda: protocols.less_than_zero(session, x, bits),
        "truncate": lambda: protocols.truncate(session, x, bits, SHIFT, "exact"),
        "select": lambda: protocols.multiply(session, protocols.bits_to_ring(session, bit), x),
    }

    def action() -> None:
        operations[task["operator"]]()
        session.check()

    return action


def demand_of(core: Any, task: dict[str, Any], n: int) -> dict[str, Any]:
    """What n operations draw."""
    if task["operator"] in CORRELATIONS:
        return {**NOTHING, CORRELATIONS[task["operator"]]: n}
    meter = core.ActiveSession.meter(0, task["ring"], "ideal")
    action = prepare(core, meter, 1, task, n)
    before = meter.drawn()
    action()
    return difference_of(meter.drawn(), before)


def difference_of(after: dict[str, Any], before: dict[str, Any]) -> dict[str, Any]:
    result = {name: after[name] - before[name] for name in after if isinstance(after[name], int)}
    result["masks"] = tuple(a - b for a, b in zip(after["masks"], before["masks"], strict=True))
    for kind in ("edabits", "matrices"):
        result[kind] = {key: c - before[kind].get(key, 0) for key, c in after[kind].items()}
    return result


def alone(channel: Any, session: Session, action: Action) -> dict[str, Any]:
    """Its time and counts, apart from those of all before it."""
    meet(channel)
    channel.set_depth(0)
    session.check()  # of nothing: counters are those of the last call
    return timed(channel, session, action)


def later(runs: list[dict[str, Any]]) -> dict[str, Any] | None:
    """The run of median length, without the first if there are others."""
    return median(runs[1:] or runs) if runs else None


def main() -> None:
    rank, port, task = int(sys.argv[1]), int(sys.argv[2]), json.loads(sys.argv[3])
    core = load_core()
    (channel,) = connect(core, rank, port, task["network"], 1)
    session = core.ActiveSession(channel, rank, task["ring"], task["provider"], task["k"])
    n, demand = task["n"], demand_of(core, task, task["n"])
    correlations = task["operator"] in CORRELATIONS
    action = None if correlations else prepare(core, session, rank, task, n)
    made, online = [], []
    for _ in range(task["repeats"] + 1):  # the first run warms up
        made.append(alone(channel, session, lambda: session.reserve(demand)))
        if action is None:  # what is made stays in stock
            break
        online.append(alone(channel, session, action))
    report: dict[str, Any] = {"made": later(made), "online": later(online)}
    report["demand"] = {name: count for name, count in demand.items() if count}
    report["peak_rss_bytes"] = load("privml_memory", HERE.parent / "memory.py").peak_memory()
    print(json.dumps(report), flush=True)


if __name__ == "__main__":
    main()
