# SPDX-License-Identifier: Apache-2.0
"""Reference queries between real parties, compared with their prediction: they show what single calls do not.

A party that has waited goes on more slowly than one in a row of calls, and a shaped channel wakes it a little late;
what the layers of a query take beyond their prediction is spread over its messages. The rest is the handshake, and work
for each node of the graph: two queries of different depth tell them apart.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch

from privml.engines.demands import NOTHING, Demand
from privml.graph.file import write_program
from privml.measure.calibration import Calibration, handshake, hop, planning, step
from privml.measure.calls import Call
from privml.measure.launch import SECONDS_TO_MEASURE, SERVICE, Parties, PartyReport, launch
from privml.measure.predict import Times, calls_of, demand_of, times_of
from privml.measure.scratch import scratch_folder
from privml.program import Program
from privml.spec import LinkProfile, SessionSpec

# Layers of the reference networks: few, but enough messages to measure the cost of one.
LAYERS, FEW, WIDTH = 24, 2, 8
# A link of some delay: that of a local network.
DELAYED = LinkProfile(0.4, 3000.0)
RUNS = 3


def reference(depth: int) -> tuple[Program, torch.Tensor]:
    """A small network of so many layers, and an input."""
    from privml.conversion import convert  # loads much of torch, which predictions do without

    torch.manual_seed(0)
    layers = [layer for _ in range(depth) for layer in (torch.nn.Linear(WIDTH, WIDTH), torch.nn.ReLU())]
    value = torch.rand(1, WIDTH)
    return convert(torch.nn.Sequential(*layers).eval(), calibration=value, numerics={"bits": 32}), value


def calibrate(calibration: Calibration, spec: SessionSpec, calls: Sequence[Call], demand: Demand = NOTHING) -> None:
    """Measures all that ``calibration`` lacks of ``spec``, these calls and the items of ``demand``, and keeps it."""
    calibration.complete(spec, calls, demand)
    if step(spec) in calibration.seconds:
        return
    for name in (handshake(spec), hop(spec, False), hop(spec, True)):
        calibration.seconds.pop(name, None)  # of an attempt that did not come to its end
    rest: list[tuple[int, float]] = []
    still = _linked(spec, LinkProfile())
    for depth in (LAYERS, FEW):
        program, value = reference(depth)
        shapes = [tuple(value.shape)]
        calibration.complete(still, calls_of(program, shapes, still), demand_of(program, shapes, still))
        calibrate_planning(calibration, spec, program, shapes)
        if depth == LAYERS:
            _calibrate_hops(calibration, spec, program, value)
        runs = [_run(still, program, value) for _ in range(RUNS)]
        # The least disturbed one: this is short beside what else a busy machine does.
        seconds = min(run.seconds for run in runs)
        predicted = times_of(program, shapes, still, calibration).seconds
        rest.append((len(program.graph.nodes), seconds - predicted))
    (many, deep), (few, flat) = rest
    each = min(max(deep - flat, 0.0) / (many - few), max(flat, 0.0) / few)
    calibration.seconds[handshake(spec)] = max(flat - few * each, 0.0)
    calibration.seconds[step(spec)] = each
    calibration.save()


def _calibrate_hops(calibration: Calibration, spec: SessionSpec, program: Program, value: torch.Tensor) -> None:
    """What a message takes beyond its link, on one without a delay and on another."""
    shapes = [tuple(value.shape)]
    for delayed, link in ((False, LinkProfile()), (True, DELAYED)):
        linked = _linked(spec, link)
        # Over another link products may be made otherwise, which are calls of their own.
        calibration.complete(linked, calls_of(program, shapes, linked), demand_of(program, shapes, linked))
        times = times_of(program, shapes, linked, calibration)
        runs = [_run(linked, program, value) for _ in range(RUNS)]
        online = statistics.median(sum(node["online"]["seconds"] for node in run.ledger["nodes"]) for run in runs)
        depth = runs[0].ledger["total"]["online"]["depth"]
        calibration.seconds[hop(spec, delayed)] = max(online - sum(times.nodes.values()), 0.0) / depth


def calibrate_planning(
    calibration: Calibration, spec: SessionSpec, program: Program, shapes: Sequence[Sequence[int]]
) -> None:
    """Measures, once, how long a party that has just started counts what the query draws."""
    name = planning(spec, program.hash, shapes)
    if name in calibration.seconds or demand_of(program, shapes, spec) is NOTHING:
        return
    with scratch_folder() as folder:
        file = write_program(Path(folder, "program"), program.body)
        task = {"role": "counter", "program": str(file), "shapes": [tuple(shape) for shape in shapes], "spec": spec}
        found = [_count(task) for _ in range(2)]
    calibration.seconds[name] = min(found)
    calibration.save()


def forecast(program: Program, shapes: Sequence[Sequence[int]], spec: SessionSpec, calibration: Calibration) -> Times:
    """The times of one query over ``spec.link``; what is not known of its calls is measured, and kept."""
    calibrate(calibration, spec, calls_of(program, shapes, spec), demand_of(program, shapes, spec))
    calibrate_planning(calibration, spec, program, shapes)
    return times_of(program, shapes, spec, calibration)


def _linked(spec: SessionSpec, link: LinkProfile) -> SessionSpec:
    """The same session over ``link``, simulated between processes of this machine."""
    return replace(spec, link=link, simulated=link)


def _run(spec: SessionSpec, program: Program, value: torch.Tensor) -> PartyReport:
    return launch(program, value, spec).client


def _count(task: dict[str, Any]) -> float:
    with Parties(time.monotonic() + SECONDS_TO_MEASURE) as parties:
        parties.start("counter", SERVICE, task, task["spec"].threads)
        return parties.wait("counter", "done")["seconds"]
