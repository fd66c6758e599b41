# SPDX-License-Identifier: Apache-2.0
"""How long a query takes on this machine between parties on a given link.

A meter walks through the query. Its clocks carry, party by party, what every message needs on the link (delay, and the
bytes that its direction still has to carry), what each interactive call takes on this machine without a link, as it
was measured, the computing between calls, which the meter does as the parties do, and the making of correlations.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from privml.engines import threepc, twopc
from privml.engines.correlations import OtChoice
from privml.errors import ConfigError
from privml.planning.calibration import Calibration, Setting
from privml.planning.calls import Call, Watch, Watched
from privml.program import Program
from privml.service.choose_ot import LinkProfile
from privml.session.ledger import Ledger, Snapshot

# One-way messages in sequence before the set-up: hello and what the query is about, between server and client, and
# then with the dealer.
GREETING_HOPS = {"twopc": 4, "threepc": 9}


@dataclass(frozen=True, slots=True)
class Times:
    """Seconds of a query by phase; ``greeting``: hello, and both parties' own planning. ``nodes``: online, by layer."""

    ledger: Ledger
    greeting: float
    setup: float
    preprocess: float
    online: float
    nodes: dict[str, float] = field(default_factory=dict)

    @property
    def seconds(self) -> float:
        return self.greeting + self.setup + self.preprocess + self.online


def meter_of(setting: Setting, rank: int = 0) -> Any:
    """The engine that counts for ``setting``, from the side of party ``rank``."""
    if setting.engine == "twopc" and setting.ot is not None:
        return twopc.meter(rank, setting.ot, setting.threads)
    if setting.engine == "threepc":
        return threepc.meter(rank, setting.truncation)
    raise ConfigError(f"no times are predicted for engine={setting.engine}")


def setting_of(engine: str, ot: OtChoice, threads: int = 1, truncation: str = "auto") -> Setting:
    if engine == "twopc":
        return Setting(engine, 2, ot, threads)
    return Setting(engine, 3, None, 1, truncation)


def calls_of(program: Program, shapes: Sequence[Sequence[int]], setting: Setting) -> list[Call]:
    """The interactive calls of one query."""
    watch, engine = Watch(), meter_of(setting)
    _reserve(program, shapes, setting, engine)
    program.metered(Watched(engine, watch), *shapes)
    return watch.calls


def times_of(
    program: Program, shapes: Sequence[Sequence[int]], setting: Setting, link: LinkProfile, calibration: Calibration
) -> Times:
    """``calibration`` knows all calls of the query (``reference.calibrate``)."""
    engine = meter_of(setting)
    making = calibration.seconds[setting.correlation] if setting.ot is not None else 0.0
    setup = calibration.seconds[setting.setup] + _alone(Snapshot.of(engine.counters()).setup, link)
    beyond = calibration.seconds.get(setting.hop(link != LinkProfile()), 0.0)
    engine.set_link(link.delay_ms / 1000 + beyond, _seconds_per_byte(link), making)
    _reserve(program, shapes, setting, engine)
    preprocess = engine.elapsed()
    nodes: dict[str, float] = {}
    watch = Watch(lambda call: calibration.of(setting, call))

    def on_node(event: str, name: str) -> None:
        if setting.threads == 1:  # each layer's own computing; side by side it goes to the next call
            watch.tick(engine)
        nodes[name] = nodes.get(name, 0.0) + (engine.elapsed() if event == "end" else -engine.elapsed())

    watch.begin()
    began = time.perf_counter()
    ledger = program.metered(Watched(engine, watch), *shapes, on_node=on_node)
    watch.tick(engine)
    planning = time.perf_counter() - began
    greeting = calibration.seconds.get(setting.greeting, 0.0) + GREETING_HOPS[setting.engine] * link.delay_ms / 1000
    if setting.ot is not None:  # the server, then the client, count what the query draws
        greeting += 2 * planning
    return Times(ledger, greeting, setup, preprocess, engine.elapsed() - preprocess, nodes)


def _reserve(program: Program, shapes: Sequence[Sequence[int]], setting: Setting, engine: Any) -> None:
    if setting.ot is not None:
        engine.reserve(program.correlations(*shapes, ot=setting.ot, threads=setting.threads).stock)


def _seconds_per_byte(link: LinkProfile) -> float:
    return 8e-6 / link.bandwidth_mbps if link.bandwidth_mbps else 0.0


def _alone(cost: Any, link: LinkProfile) -> float:
    """Messages of this depth and these bytes."""
    return cost.depth * link.delay_ms / 1000 + max(cost.sent, cost.received) * _seconds_per_byte(link)
