# SPDX-License-Identifier: Apache-2.0
"""One party of a calibration as a process: ``python -m privml.measure.measuring rank ports file``.

Prints "port N" if it listens, and at the end one JSON line: ``setup`` (seconds of the set-up), ``correlation``
(seconds to make one; null if none are made), ``calls`` (seconds of a call, one of each sample of ``file``).
"""

from __future__ import annotations

import json
import pickle
import statistics
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch

import privml._core as _core
from privml.engines import demands
from privml.engines.active import backend as active
from privml.engines.active.engine import ActiveEngine
from privml.engines.base import Engine
from privml.engines.correlations import Correlations, OtChoice
from privml.engines.demands import Item
from privml.engines.threepc import backend as threepc
from privml.engines.twopc.backend import connected, connections
from privml.measure import core_party as twopc_party
from privml.measure import threepc_party
from privml.measure.calls import Sample, arguments

UNSHAPED = {"delay_ms": 0.0, "bandwidth_mbps": 0.0}
# Correlations of each direction that are timed at once.
TIMED_CORRELATIONS = 1 << 19
# Up to so many wire bytes: calls in a row, and how often such a row is timed; the median counts.
# What an actively secure session draws takes far longer to make than to use.
FEW_REPEATS = ((20_000, 4, 3), (400_000, 1, 2), (1 << 62, 1, 1))
# Bytes that making items sends while it is timed.
TIMED_ITEMS = 20_000_000
REPEATS = ((20_000, 10, 5), (400_000, 4, 5), (4_000_000, 1, 5), (1 << 62, 1, 2))


def twopc_engine(rank: int, ports: list[int], task: dict[str, Any]) -> tuple[Engine, float]:
    ot, threads = task["ot"], task["threads"]
    count = connections(ot, threads)
    channels = twopc_party.connect(_core, rank, ports[0] if ports else 0, UNSHAPED, count)
    start = time.perf_counter()
    return connected(channels, rank, ot, threads, None), time.perf_counter() - start


def threepc_engine(rank: int, ports: list[int], task: dict[str, Any]) -> tuple[Engine, float]:
    channels = threepc_party.connect(rank, ports, UNSHAPED)
    threepc.established(*channels, rank, task["truncation"])  # now all are there
    start = time.perf_counter()
    return threepc.established(*channels, rank, task["truncation"]), time.perf_counter() - start


def active_engine(rank: int, ports: list[int], task: dict[str, Any]) -> tuple[Engine, float]:
    (channel,) = twopc_party.connect(_core, rank, ports[0] if ports else 0, UNSHAPED, 1)
    start = time.perf_counter()
    return active.established(channel, rank, task["ot"], task["ring"], task["truncation"]), time.perf_counter() - start


ENGINES: dict[str, Callable[[int, list[int], dict[str, Any]], tuple[Engine, float]]] = {
    "twopc": twopc_engine,
    "threepc": threepc_engine,
    "active": active_engine,
}


def meet(engine: Engine) -> None:
    """All parties are here, and nothing is under way, before a clock starts."""
    zero = torch.zeros(1, dtype=torch.int64)
    for owner in range(engine.parties):
        value = zero if engine.rank == owner else None
        engine.reveal(engine.input(value, (1,), owner, 8), 8)
    engine.finish()


def seconds_per_correlation(engine: Engine, ot: OtChoice) -> float:
    count = max(TIMED_CORRELATIONS, _core.ot_granularity(ot.provider, ot.k, ot.security))
    times = []
    for _ in range(3):
        meet(engine)
        start = time.perf_counter()
        engine.reserve(Correlations(count, count))
        meet(engine)
        times.append(time.perf_counter() - start)
        for sender in (0, 1):
            engine.session.draw_and_discard(sender, count)
    return statistics.median(times) / (2 * count)


def seconds_of(engine: Engine, sample: Sample, rank: int) -> float:
    """Seconds of one call in a series of the same call, its correlations made before."""
    args, kwargs = arguments(sample, engine, rank)
    call = getattr(engine, sample.method)
    stock = stock_of(sample, engine, rank, lambda: call(*args, **kwargs))
    repeats = FEW_REPEATS if isinstance(engine, ActiveEngine) else REPEATS
    row, times = next((row, times) for most, row, times in repeats if sample.size <= most)
    measured = []
    for _ in range(times):
        stock(row)
        meet(engine)
        start = time.perf_counter()
        for _ in range(row):
            call(*args, **kwargs)
        engine.finish()
        measured.append((time.perf_counter() - start) / row)
    return statistics.median(measured)


def stock_of(sample: Sample, engine: Engine, rank: int, call: Callable[[], Any]) -> Callable[[int], None]:
    """To a number of calls, the making of what they draw; ``call`` is one, done before."""
    if isinstance(engine, ActiveEngine):
        meter = active.meter(rank, OtChoice("ideal"), engine.ring, engine.truncation)
        args, kwargs = arguments(sample, meter, rank)
        getattr(meter, sample.method)(*args, **kwargs)
        drawn = meter.drawn()
        return lambda row: engine.reserve(demands.times(drawn, row))
    before = engine.counters()
    call()
    after = engine.counters()
    ends = [after[name] - before[name] for name in ("cots_as_sender", "cots_as_receiver")]
    from0, from1 = ends if rank == 0 else ends[::-1]
    return lambda row: engine.reserve(Correlations(row * from0, row * from1).stock) if from0 + from1 else None


def seconds_per_item(engine: ActiveEngine, item: Item) -> float:
    """Of making one among a sample of ``TIMED_ITEMS`` bytes, after some that are not timed."""
    like = engine.drawn()
    meter = active.meter(0, OtChoice("softspoken", security="malicious"), engine.ring)
    meter.reserve(demands.demand_for(item, 1000, like))
    one = meter.counters()["preprocess"]["sent"] / 1000
    count = max(round(TIMED_ITEMS / max(one, 1.0)), 1)
    before = (count + 7) // 8
    engine.reserve(demands.demand_for(item, before, like))
    meet(engine)
    start = time.perf_counter()
    engine.reserve(demands.demand_for(item, before + count, like))  # what is there is not made again
    meet(engine)
    return (time.perf_counter() - start) / count


def main() -> None:
    rank, ports, file = int(sys.argv[1]), json.loads(sys.argv[2]), sys.argv[3]
    task = pickle.loads(Path(file).read_bytes())
    torch.set_num_threads(task["threads"])
    engine, setup = ENGINES[task["engine"]](rank, ports, task)
    ot = task["ot"]
    by_kind = isinstance(engine, ActiveEngine)
    correlation = None if ot is None or by_kind else seconds_per_correlation(engine, ot)
    kinds = [seconds_per_item(engine, item) for item in task["items"]] if by_kind else []
    calls = []
    with torch.no_grad():
        for sample in task["samples"]:
            calls.append(seconds_of(engine, sample, rank))
    meet(engine)
    print(json.dumps({"setup": setup, "correlation": correlation, "items": kinds, "calls": calls}), flush=True)
    engine.close()


if __name__ == "__main__":
    main()
