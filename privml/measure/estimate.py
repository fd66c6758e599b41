# SPDX-License-Identifier: Apache-2.0
"""Times of calls on a machine on which nothing was measured: figures of a reference machine, times how much longer this
one takes to make correlations.

``reference_times.json`` has, by engine, what least squares find in the measured queries of the zoo: seconds of a
message (``hop``; ``delayed`` on a link that makes parties wait), of a layer, of the handshake and of each node of the
graph (``step``), of the set-up and of making a transfer, by its source, or where correlations are of many kinds of a
byte sent to make them; and for each call those of a byte of its messages and of a product (``Sample.products``). What
ciphertexts compute comes from the engine, which chooses between forms of a product by it (``Sample.computing``).
``scripts/make_reference_times.py`` makes it.
"""

from __future__ import annotations

import json
import statistics
import time
from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any

from privml.engines.correlations import Correlations, OtChoice
from privml.engines.demands import Demand
from privml.measure import calibration as names
from privml.measure.calibration import Calibration
from privml.measure.calls import Call, Sample
from privml.measure.predict import Times, calls_of, demand_of, times_of
from privml.program import Program
from privml.service.choose_ot import DEGREES, SOFTSPOKEN_NANOSECONDS, made_ahead
from privml.spec import SessionSpec

FILE = Path(__file__).with_name("reference_times.json")
# The name that ``speed`` is kept under.
SPEED = "speed"
# The correlations that the figures and the speed are of; so many each way at once, so often.
PROBE, DRAWN, ROUNDS = OtChoice(k=4), 1 << 20, 5


@cache
def figures() -> Mapping[str, Any]:
    """By engine."""
    return json.loads(FILE.read_text())["engines"]


def has_figures(spec: SessionSpec) -> bool:
    """Whether there are figures for its engine: for those of this package, not for others."""
    return spec.engine.engine in figures()


def speed(calibration: Calibration) -> float:
    """The time that this machine takes, as a multiple of the reference machine's; measured once in a second or two,
    and kept."""
    if SPEED not in calibration.seconds:
        calibration.seconds[SPEED] = measured_speed()
        calibration.save()
    return calibration.seconds[SPEED]


def measured_speed() -> float:
    """Of both parties on threads of this process: their processor time, which other programs have no part in."""
    spec = SessionSpec(ot=PROBE)
    engine = spec.backend.local(spec)
    try:
        times = []
        for turn in range(ROUNDS):
            stock = DRAWN * (turn + 1)  # what is there is not made again
            start = time.process_time()
            engine.reserve(Correlations(stock, stock))
            times.append(time.process_time() - start)
    finally:
        engine.close()
    each = statistics.median(times) / 4 / DRAWN  # two parties, two directions
    return each / figures()[spec.engine.engine]["making"][PROBE.provider]


def forecast(
    program: Program, shapes: Sequence[Sequence[int]], spec: SessionSpec, calibration: Calibration
) -> Times | None:
    """The times of one query over ``spec.link``: from what was measured here, if ``calibration`` has all of it, else
    from the figures; None for an engine that has none."""
    calls = calls_of(program, shapes, spec)
    if calibration.knows(spec, calls, demand_of(program, shapes, spec)):
        return times_of(program, shapes, spec, calibration)
    if not has_figures(spec):
        return None
    known = estimated(calibration, spec, calls, demand_of(program, shapes, spec))
    return times_of(program, shapes, spec, known, computes=False)


def estimated(calibration: Calibration, spec: SessionSpec, calls: Iterable[Call], demand: Demand) -> Calibration:
    """All that ``predict.times_of`` needs for a query of these calls that draws ``demand``, not to be saved. There are
    figures for the engine."""
    own, slower, ot = figures()[spec.engine.engine], speed(calibration), spec.ot
    seconds = {
        names.setup(spec): own["setup"][ot.provider if spec.backend.transfers else "none"],
        names.handshake(spec): own["handshake"],
        names.step(spec): own["step"],
        names.layer(spec): own["layer"],
        names.hop(spec, False): own["hop"],
        names.hop(spec, True): own["hop"] + own["delayed"],
    }
    if spec.backend.transfers:
        security = spec.backend.security or PROBE.security
        each = own["making"][ot.provider]
        if spec.backend.by_kind:
            seconds[names.making(spec)] = each * made_ahead(demand, spec)[0].preprocess.bytes
        else:
            slower_than_probe = _nanoseconds(ot) / _nanoseconds(OtChoice(ot.provider, PROBE.k, security))
            seconds[names.correlation(spec)] = each * slower_than_probe
    for call in calls:
        seconds[names.named(spec, call.sample)] = seconds_of(own, call.sample)
    return Calibration(calibration.path, {name: slower * each for name, each in seconds.items()})


def seconds_of(own: Mapping[str, Any], sample: Sample) -> float:
    """Of one call; of a method that no measured query calls, as of all the others together. What an engine says of
    its computing stands for the products."""
    a_byte, a_product = own["calls"].get(sample.method, own["calls"]["other"])
    return a_byte * sample.size + (sample.computing or a_product * sample.products)


def _nanoseconds(ot: OtChoice) -> float:
    """Of a correlation, by k and security; 1 where there is one figure."""
    if ot.provider != PROBE.provider:
        return 1.0
    known = dict(zip(DEGREES, SOFTSPOKEN_NANOSECONDS[ot.security], strict=True))
    nearest = min(max(ot.k, DEGREES[0]), DEGREES[-1])
    return known[nearest] * 2.0 ** (max(ot.k, nearest) - nearest)
