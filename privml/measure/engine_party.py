# SPDX-License-Identifier: Apache-2.0
"""One party of an engine alone, as a process: ``python -m privml.measure.engine_party`` (see ``worker``).

It measures an operator of a suite ("operator"), or the calls ("samples") and correlations ("items") of programs.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import torch

import privml._core as _core
from privml.engines import demands
from privml.engines.base import Engine
from privml.engines.correlations import Correlations, OtChoice
from privml.engines.demands import Item
from privml.engines.threepc.device import Peaks
from privml.measure import worker
from privml.measure.calls import Sample, arguments
from privml.measure.engine_operators import prepare
from privml.memory import peak_memory
from privml.spec import SessionSpec

# Messages in a chain: all parties count the depth of a run from a multiple of it.
LONGER_THAN_ANY = 1_000_000
# Correlations of each direction that are timed at once.
TIMED_CORRELATIONS = 1 << 19
# Bytes that making items sends while it is timed.
TIMED_ITEMS = 20_000_000
# Up to so many wire bytes: calls in a row, and how often such a row is timed; the median counts.
REPEATS = ((20_000, 10, 5), (400_000, 4, 5), (4_000_000, 1, 5), (1 << 62, 1, 2))
# What comes of correlations of many kinds takes far longer to make than to use.
FEW_REPEATS = ((20_000, 4, 3), (400_000, 1, 2), (1 << 62, 1, 1))


def main(task: dict[str, Any]) -> None:
    spec = task["spec"]
    torch.set_num_threads(spec.threads)
    channels = worker.connect(_core, task, spec.backend.connections(spec, 0) - (task["parties"] - 1))
    start = time.perf_counter()
    engine = spec.backend.open(channels, task["rank"], spec)
    setup = time.perf_counter() - start
    report = operator(engine, task) if "operator" in task else {"setup": setup, **calibrate(engine, task)}
    meet(engine)
    worker.report("done", **report)
    engine.close()


def meet(engine: Engine) -> None:
    """All parties are here, and nothing is under way, before a clock starts."""
    zero = torch.zeros(1, dtype=torch.int64)
    for owner in range(engine.parties):
        value = zero if engine.rank == owner else None
        engine.reveal(engine.input(value, (1,), owner, 8), 8)
    engine.finish()


# ---- an operator of a suite
def operator(engine: Engine, task: dict[str, Any]) -> dict[str, Any]:
    """The median of the repeats after one warm-up."""
    action, peaks = prepare(engine, task), Peaks(torch.device(getattr(task["spec"].engine, "device", "cpu")))
    with peaks.phase("first call"):
        action()
    runs = []
    for index in range(task["repeats"]):
        meet(engine)
        if task["spec"].backend.dealt:  # parties that wait for different ones
            engine.party.links.advance((index + 1) * LONGER_THAN_ANY)
        before, start, busy = engine.counters(), time.perf_counter(), time.process_time()
        with peaks.phase("later calls"):
            layers = action()
            engine.finish()
        seconds, busy = time.perf_counter() - start, time.process_time() - busy
        phases = worker.spent(engine.counters(), before)
        runs.append({"seconds": seconds, "cpu_seconds": busy, "phases": phases, "layers": layers})
    report = worker.median(runs)
    return {**report, "peak_rss_bytes": peak_memory(), "peak_device_bytes": peaks.bytes}


# ---- calls and correlations of programs
def calibrate(engine: Engine, task: dict[str, Any]) -> dict[str, Any]:
    """Seconds to make a correlation (None if none are made, or of many kinds), of making one of each of ``items``, and
    of a call, one of each of ``samples``."""
    spec = task["spec"]
    alike = spec.backend.transfers and not spec.backend.by_kind
    total, items, calls = len(task["items"]) + len(task["samples"]), [], []
    correlation = seconds_per_correlation(engine, spec.ot) if alike else None
    for item in task["items"]:
        report_progress(task, len(items), total, item.key)
        items.append(seconds_per_item(engine, spec, item))
    with torch.no_grad():
        for sample in task["samples"]:
            report_progress(task, len(items) + len(calls), total, sample.method)
            calls.append(seconds_of(engine, spec, sample))
    return {"correlation": correlation, "items": items, "calls": calls}


def report_progress(task: dict[str, Any], done: int, total: int, label: str) -> None:
    """Of the party that is waited for."""
    if task["rank"] == 0:
        worker.report("progress", done=done, total=total, label=label)


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


def seconds_of(engine: Engine, spec: SessionSpec, sample: Sample) -> float:
    """Seconds of one call in a series of the same call, its correlations made before."""
    args, kwargs = arguments(sample, engine, engine.rank)
    call = getattr(engine, sample.method)
    stock = stock_of(sample, engine, spec, lambda: call(*args, **kwargs))
    repeats = FEW_REPEATS if spec.backend.by_kind else REPEATS
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


def stock_of(sample: Sample, engine: Engine, spec: SessionSpec, call: Callable[[], Any]) -> Callable[[int], None]:
    """To a number of calls, the making of what they draw; ``call`` is one, done before."""
    rank = engine.rank
    if spec.backend.by_kind:
        meter = spec.backend.meter(replace(spec, ot=replace(spec.ot, provider="ideal")), rank, False)
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


def seconds_per_item(engine: Engine, spec: SessionSpec, item: Item) -> float:
    """Of making one among a sample of ``TIMED_ITEMS`` bytes, after some that are not timed."""
    like = engine.drawn()
    meter = spec.backend.meter(replace(spec, ot=None))
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


if __name__ == "__main__":
    worker.work(main)
