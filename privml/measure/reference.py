# SPDX-License-Identifier: Apache-2.0
"""Reference queries between real parties, compared with their prediction: they show what single calls do not.

A party that has waited goes on more slowly than one in a row of calls, and a shaped channel wakes it a little late;
what the layers of a query take beyond their prediction is spread over its messages. The rest is the greeting, and work
for each node of the graph: two queries of different depth tell them apart.
"""

from __future__ import annotations

import pickle
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

import torch

from privml.conversion import convert
from privml.engines.correlations import DEFAULT_OT
from privml.engines.demands import NOTHING, Demand
from privml.graph.file import write_program
from privml.measure.calibration import Calibration, greeting, hop, planning, step
from privml.measure.calls import Call
from privml.measure.engines import Setting, offer_of
from privml.measure.launch import PartyReport, launch
from privml.measure.predict import Times, calls_of, demand_of, times_of
from privml.program import Program
from privml.spec import LinkProfile

# Layers of the reference networks: few, but enough messages to measure the cost of one.
LAYERS, FEW, WIDTH = 24, 2, 8
# A link of some delay: that of a local network.
DELAYED = LinkProfile(0.4, 3000.0)
RUNS = 3
COUNTING = "privml.measure.counting"


def reference(depth: int) -> tuple[Program, torch.Tensor]:
    """A small network of so many layers, and an input."""
    torch.manual_seed(0)
    layers = [layer for _ in range(depth) for layer in (torch.nn.Linear(WIDTH, WIDTH), torch.nn.ReLU())]
    value = torch.rand(1, WIDTH)
    return convert(torch.nn.Sequential(*layers).eval(), calibration=value, numerics={"bits": 32}), value


def calibrate(calibration: Calibration, setting: Setting, calls: Sequence[Call], demand: Demand = NOTHING) -> None:
    """Measures all that ``calibration`` lacks of ``setting``, these calls and the items of ``demand``, and keeps it."""
    calibration.complete(setting, calls, demand)
    if step(setting) in calibration.seconds:
        return
    for name in (greeting(setting), hop(setting, False), hop(setting, True)):
        calibration.seconds.pop(name, None)  # of an attempt that did not come to its end
    rest: list[tuple[int, float]] = []
    for depth in (LAYERS, FEW):
        program, value = reference(depth)
        shapes = [tuple(value.shape)]
        calibration.complete(setting, calls_of(program, shapes, setting), demand_of(program, shapes, setting))
        calibrate_planning(calibration, setting, program, shapes)
        if depth == LAYERS:
            _calibrate_hops(calibration, setting, program, value)
        runs = [_run(setting, program, value, LinkProfile()) for _ in range(RUNS)]
        # The least disturbed one: this is short beside what else a busy machine does.
        seconds = min(run.seconds for run in runs)
        predicted = times_of(program, shapes, setting, LinkProfile(), calibration).seconds
        rest.append((len(program.graph.nodes), seconds - predicted))
    (many, deep), (few, flat) = rest
    each = min(max(deep - flat, 0.0) / (many - few), max(flat, 0.0) / few)
    calibration.seconds[greeting(setting)] = max(flat - few * each, 0.0)
    calibration.seconds[step(setting)] = each
    calibration.save()


def _calibrate_hops(calibration: Calibration, setting: Setting, program: Program, value: torch.Tensor) -> None:
    """What a message takes beyond its link, on one without a delay and on another."""
    for delayed, link in ((False, LinkProfile()), (True, DELAYED)):
        times = times_of(program, [tuple(value.shape)], setting, link, calibration)
        runs = [_run(setting, program, value, link) for _ in range(RUNS)]
        online = statistics.median(sum(node["online"]["seconds"] for node in run.ledger["nodes"]) for run in runs)
        depth = runs[0].ledger["total"]["online"]["depth"]
        calibration.seconds[hop(setting, delayed)] = max(online - sum(times.nodes.values()), 0.0) / depth


def calibrate_planning(
    calibration: Calibration, setting: Setting, program: Program, shapes: Sequence[Sequence[int]]
) -> None:
    """Measures, once, how long a party that has just started counts what the query draws."""
    name = planning(setting, program.hash, shapes)
    if name in calibration.seconds or offer_of(setting.engine).demand is None:
        return
    with tempfile.TemporaryDirectory(prefix="privml-") as folder:
        file = write_program(Path(folder, "program"), program.body)
        task = Path(folder, "task")
        task.write_bytes(pickle.dumps((str(file), [tuple(shape) for shape in shapes], setting)))
        command = [sys.executable, "-m", COUNTING, str(task)]
        found = [float(subprocess.run(command, capture_output=True, check=True, text=True).stdout) for _ in range(2)]
    calibration.seconds[name] = min(found)
    calibration.save()


def forecast(
    program: Program, shapes: Sequence[Sequence[int]], setting: Setting, link: LinkProfile, calibration: Calibration
) -> Times:
    """The times of one query; what is not known of its calls is measured, and kept."""
    calibrate(calibration, setting, calls_of(program, shapes, setting), demand_of(program, shapes, setting))
    calibrate_planning(calibration, setting, program, shapes)
    return times_of(program, shapes, setting, link, calibration)


def _run(setting: Setting, program: Program, value: torch.Tensor, link: LinkProfile) -> PartyReport:
    return launch(
        program,
        value,
        ot=setting.ot or DEFAULT_OT,
        network={"delay_ms": link.delay_ms, "bandwidth_mbps": link.bandwidth_mbps},
        threads=setting.threads,
        dealer=setting.parties == 3,
        truncation=setting.truncation,
        ring=setting.ring,
    ).client
