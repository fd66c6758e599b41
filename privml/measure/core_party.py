# SPDX-License-Identifier: Apache-2.0
"""One party of a measurement of the compiled sessions, run as a script (see ``worker``).

Loads the compiled core alone (no torch), so that the peak memory is the protocol's.
"""

from __future__ import annotations

import importlib
import sys
import time
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

PACKAGE = Path(__file__).resolve().parents[1]


def skip_package() -> None:
    """Lets modules of privml be imported without what ``import privml`` loads."""
    sys.path.pop(0)  # this folder, whose modules are not to be found by their last names
    package = ModuleType("privml")
    package.__path__ = [str(PACKAGE)]
    sys.modules["privml"] = package


def timed(channel: Any, session: Any, action: Callable[[], Any]) -> dict[str, Any]:
    """Seconds until both parties have done ``action``, and what it added to the counters; they have just met."""
    before, start = session.counters(), time.perf_counter()
    action()
    after = session.counters()
    worker.meet([channel])
    return {"seconds": time.perf_counter() - start, "phases": worker.spent(after, before)}


def two_party(core: Any, task: dict[str, Any]) -> dict[str, Any]:
    """An operator of the two-party session, its correlations made within: the median after one warm-up."""
    threads = task["threads"]
    channels = worker.connect(core, task, threads * (2 if task["background"] else 1) - 1)
    channel, further = channels[0], {"further": channels[1:threads], "refills": channels[threads:]}
    session = core.TwoPartySession(channel, task["rank"], *task["ot"], **further)
    session.set_planning(1, task["ciphertexts"])
    params = {**task["params"], "seconds_per_byte": task["seconds_per_byte"], "linear": task["linear"]}
    action = core_operators.prepare(task["operator"], core, session, task["rank"], task["n"], params)
    action()
    runs = []
    for _ in range(task["repeats"]):
        worker.meet([channel])
        runs.append(timed(channel, session, action))
    report = worker.median(runs)
    report["phases"]["setup"] = session.counters()["setup"]
    return report


def active(core: Any, task: dict[str, Any]) -> dict[str, Any]:
    """An operator of the actively secure session, and apart from it the making of what that draws, seconds of each: the
    median after one warm-up. Of correlations alone, the making of the first."""
    (channel,) = worker.connect(core, task, 0)
    provider, k, _ = task["ot"]
    session = core.ActiveSession(channel, task["rank"], task["ring"], provider, k)
    setup, demand = session.counters()["setup"], core_operators.active_demand(core, task)
    correlations = task["operator"] in core_operators.CORRELATIONS
    action = None if correlations else core_operators.prepare_active(core, session, task["rank"], task)

    def alone(call: Callable[[], Any], phase: str) -> dict[str, Any]:
        worker.meet([channel])
        channel.set_depth(0)
        session.check()  # of nothing: counters are those of the last call
        run = timed(channel, session, call)
        return {**run["phases"][phase], "seconds": run["seconds"]}

    made, online = [], []
    for _ in range(task["repeats"] + 1):
        made.append(alone(lambda: session.reserve(demand), "preprocess"))
        if action is None:  # what is made stays in stock
            break
        online.append(alone(action, "online"))
    phases = {"setup": setup, "preprocess": worker.median(made[1:] or made)}
    phases["online"] = worker.median(online[1:]) if online else None
    return {
        "seconds": sum(phases[name]["seconds"] for name in ("preprocess", "online") if phases[name]),
        "phases": phases,
    }


def main(task: dict[str, Any]) -> None:
    core = importlib.import_module("privml._core")
    report = {"TwoPartySession": two_party, "ActiveSession": active}[task["session"]](core, task)
    worker.report("done", **report, peak_rss_bytes=memory.peak_memory())


if __name__ == "__main__":
    skip_package()
    core_operators, worker = (
        importlib.import_module(f"privml.measure.{name}") for name in ("core_operators", "worker")
    )
    memory = importlib.import_module("privml.memory")
    worker.work(main)
