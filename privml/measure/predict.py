# SPDX-License-Identifier: Apache-2.0
"""The time of a query on this machine between parties on a given link.

A meter walks through the query. Its clocks carry, party by party, what every message needs on the link (delay, and the
bytes that its direction still has to carry), what each interactive call takes on this machine without a link, as it
was measured, the computing between calls, which the meter does as the parties do, and the making of correlations.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from privml.engines.demands import NOTHING
from privml.measure.calibration import Calibration, correlation, greeting, hop, planning, setup, step
from privml.measure.calls import Call, Watch, Watched
from privml.measure.engines import Setting, offer_of
from privml.program import Program
from privml.session.ledger import Ledger, Snapshot
from privml.spec import LinkProfile


@dataclass(frozen=True, slots=True)
class Times:
    """Seconds of a query by phase; ``greeting``: hello, both parties' own planning, and what they do for each node of
    the graph beside its calls. ``nodes``: online, by layer."""

    ledger: Ledger
    greeting: float
    setup: float
    preprocess: float
    online: float
    nodes: dict[str, float] = field(default_factory=dict)

    @property
    def seconds(self) -> float:
        return self.greeting + self.setup + self.preprocess + self.online


def cost_of(program: Program, shapes: Sequence[Sequence[int]], setting: Setting, rank: int) -> Ledger:
    """The ledger of party ``rank`` of one query, its correlations made ahead."""
    engine = offer_of(setting.engine).meter(setting, rank, True)
    _reserve(program, shapes, setting, engine)
    return program.metered(engine, *shapes)


def calls_of(program: Program, shapes: Sequence[Sequence[int]], setting: Setting) -> list[Call]:
    """The interactive calls of one query."""
    watch, engine = Watch(), offer_of(setting.engine).meter(setting, 0, True)
    _reserve(program, shapes, setting, engine)
    program.metered(Watched(engine, watch), *shapes)
    return watch.calls


def times_of(
    program: Program, shapes: Sequence[Sequence[int]], setting: Setting, link: LinkProfile, calibration: Calibration
) -> Times:
    """``calibration`` knows all calls of the query (``reference.calibrate``)."""
    offer = offer_of(setting.engine)
    engine = offer.meter(setting, 0, False)  # computes as the parties do
    making = calibration.seconds[correlation(setting)] if setting.ot is not None and not offer.by_kind else 0.0
    opening = calibration.seconds[setup(setting)] + _alone(Snapshot.of(engine.counters()).setup, link)
    beyond = calibration.seconds.get(hop(setting, link != LinkProfile()), 0.0)
    engine.set_link(link.delay_ms / 1000 + beyond, _seconds_per_byte(link), making)
    _reserve(program, shapes, setting, engine)
    engine.compute(calibration.making(setting, demand_of(program, shapes, setting)))
    preprocess = engine.elapsed()
    nodes: dict[str, float] = {}
    watch = Watch(lambda call: calibration.of(setting, call))

    def on_node(event: str, name: str) -> None:
        if setting.threads == 1:  # each layer's own computing; side by side it goes to the next call
            watch.tick(engine)
        nodes[name] = nodes.get(name, 0.0) + (engine.elapsed() if event == "end" else -engine.elapsed())

    watch.begin()
    ledger = program.metered(Watched(engine, watch), *shapes, on_node=on_node)
    watch.tick(engine)
    before = calibration.seconds.get(greeting(setting), 0.0) + offer.greeting_hops * link.delay_ms / 1000
    before += len(program.graph.nodes) * calibration.seconds.get(step(setting), 0.0)
    # Both parties count what the query draws, side by side.
    before += calibration.seconds.get(planning(setting, program.hash, shapes), 0.0)
    return Times(ledger, before, opening, preprocess, engine.elapsed() - preprocess, nodes)


def demand_of(program: Program, shapes: Sequence[Sequence[int]], setting: Setting) -> Any:
    """What the query reserves."""
    demand = offer_of(setting.engine).demand
    return NOTHING if demand is None else demand(program, shapes, setting)


def _reserve(program: Program, shapes: Sequence[Sequence[int]], setting: Setting, engine: Any) -> None:
    demand = demand_of(program, shapes, setting)
    if demand is not NOTHING:
        engine.reserve(demand)


def _seconds_per_byte(link: LinkProfile) -> float:
    return 8e-6 / link.bandwidth_mbps if link.bandwidth_mbps else 0.0


def _alone(cost: Any, link: LinkProfile) -> float:
    """Messages of this depth and these bytes."""
    return cost.depth * link.delay_ms / 1000 + max(cost.sent, cost.received) * _seconds_per_byte(link)
