# SPDX-License-Identifier: Apache-2.0
"""The time of a query on this machine between parties on a given link.

A meter walks through the query. Its clocks carry, party by party, what every message needs on the link (delay, and the
bytes that its direction still has to carry), what each interactive call takes on this machine without a link, as it
was measured, the computing between calls, which the meter does as the parties do, and the making of correlations.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from privml.engines.demands import NOTHING
from privml.measure.calibration import Calibration, correlation, handshake, hop, layer, planning, setup, step
from privml.measure.calls import Call, Watch, Watched
from privml.program import Program
from privml.session.ledger import Ledger, PhaseCount, Snapshot
from privml.spec import LinkProfile, SessionSpec


@dataclass(frozen=True, slots=True)
class Times:
    """Seconds of a query by phase; ``handshake``: hello, both parties' own planning, and what they do for each node of
    the graph beside its calls. ``nodes``: online, by layer. ``estimated``: from figures of another machine."""

    ledger: Ledger
    handshake: float
    setup: float
    preprocess: float
    online: float
    nodes: dict[str, float] = field(default_factory=dict)
    estimated: bool = False

    @property
    def seconds(self) -> float:
        return self.handshake + self.setup + self.preprocess + self.online


def cost_of(program: Program, shapes: Sequence[Sequence[int]], spec: SessionSpec, rank: int) -> Ledger:
    """The ledger of party ``rank`` of one query, its correlations made ahead."""
    engine = spec.backend.meter(spec, rank)
    _reserve(program, shapes, spec, engine)
    return program.metered(engine, *shapes)


def prepared_cost(
    program: Program, shapes: Sequence[Sequence[int]], spec: SessionSpec, queries: int, rank: int
) -> tuple[SessionSpec, dict[str, PhaseCount]]:
    """How a query runs whose products were prepared together with those of ``queries`` in all; and by layer what party
    ``rank`` sends and receives to prepare one query's, correlations included and the set-up apart."""
    stores, spent = spec.backend.stores, dict[str, PhaseCount]()
    products = () if stores is None else stores.products(program, shapes, spec, queries)
    for name, counters in () if stores is None else stores.product_costs(products, spec, queries, rank):
        cost = Snapshot.of(counters)
        total = cost.preprocess + cost.online
        each = PhaseCount(0.0, -(-total.sent // queries), -(-total.received // queries), total.depth)
        spent[name] = spent.get(name, PhaseCount()) + each
    return replace(spec, prepared=frozenset(each.place for each in products)), spent


def calls_of(program: Program, shapes: Sequence[Sequence[int]], spec: SessionSpec) -> list[Call]:
    """The interactive calls of one query."""
    watch, engine = Watch(), spec.backend.meter(spec)
    _reserve(program, shapes, spec, engine)
    program.metered(Watched(engine, watch), *shapes)
    return watch.calls


def times_of(
    program: Program,
    shapes: Sequence[Sequence[int]],
    spec: SessionSpec,
    calibration: Calibration,
    computes: bool = True,
) -> Times:
    """Over ``spec.link``. ``calibration`` knows all calls of the query (``reference.calibrate``, ``estimate``).
    ``computes``: whether the time between calls is that of this process, which computes as the parties do; else it is
    what ``calibration`` says of a layer."""
    backend, link = spec.backend, spec.link
    engine: Any = backend.meter(spec, 0, not computes)
    if not hasattr(engine, "elapsed"):
        engine = Clocked(engine)
    making = calibration.seconds[correlation(spec)] if backend.transfers and not backend.by_kind else 0.0
    opening = calibration.seconds[setup(spec)] + _alone(Snapshot.of(engine.counters()).setup, link)
    beyond = calibration.seconds.get(hop(spec, link != LinkProfile()), 0.0)
    engine.set_link(link.delay_ms / 1000 + beyond, _seconds_per_byte(link), making)
    _reserve(program, shapes, spec, engine)
    engine.compute(calibration.making(spec, demand_of(program, shapes, spec)))
    preprocess = engine.elapsed()
    nodes: dict[str, float] = {}
    watch = Watch(lambda call: calibration.of(spec, call), computes)
    each = 0.0 if computes else calibration.seconds.get(layer(spec), 0.0)

    def on_node(event: str, name: str) -> None:
        if spec.threads == 1:  # each layer's own computing; side by side it goes to the next call
            watch.tick(engine)
        if event == "end":
            engine.compute(each)
        nodes[name] = nodes.get(name, 0.0) + (engine.elapsed() if event == "end" else -engine.elapsed())

    watch.begin()
    ledger = program.metered(Watched(engine, watch), *shapes, on_node=on_node)
    watch.tick(engine)
    before = calibration.seconds.get(handshake(spec), 0.0) + backend.handshake_hops * link.delay_ms / 1000
    before += len(program.graph.nodes) * calibration.seconds.get(step(spec), 0.0)
    # Both parties count what the query draws, side by side.
    before += calibration.seconds.get(planning(spec, program.hash, shapes), 0.0)
    return Times(ledger, before, opening, preprocess, engine.elapsed() - preprocess, nodes, estimated=not computes)


def demand_of(program: Program, shapes: Sequence[Sequence[int]], spec: SessionSpec) -> Any:
    """What the query reserves."""
    demand = spec.backend.demand(program, shapes, spec)
    return NOTHING if demand is None else demand


def _reserve(program: Program, shapes: Sequence[Sequence[int]], spec: SessionSpec, engine: Any) -> None:
    demand = demand_of(program, shapes, spec)
    if demand is not NOTHING:
        engine.reserve(demand)


def _seconds_per_byte(link: LinkProfile) -> float:
    return 8e-6 / link.bandwidth_mbps if link.bandwidth_mbps else 0.0


def _alone(cost: Any, link: LinkProfile) -> float:
    """Messages of this depth and these bytes."""
    return cost.depth * link.delay_ms / 1000 + max(cost.sent, cost.received) * _seconds_per_byte(link)


class Clocked:
    """A meter of protocols in which both parties send, then both receive; in all else the meter itself.

    Every message of the longest chain takes the link's delay, and the busier direction carries its bytes.
    """

    def __init__(self, engine: Any) -> None:
        self._engine = engine
        self._delay = self._seconds_per_byte = self._computed = 0.0

    def set_link(self, delay: float, seconds_per_byte: float, making: float = 0.0) -> None:
        """Seconds of a message one way and of a byte; what ``making`` correlations takes is added by ``compute``."""
        self._delay, self._seconds_per_byte = delay, seconds_per_byte

    def compute(self, seconds: float) -> None:
        """The parties compute for so long."""
        self._computed += seconds

    def elapsed(self) -> float:
        """Seconds that messages and ``compute`` have taken, the set-up apart."""
        counters = self._engine.counters()
        phases = [counters[phase] for phase in ("preprocess", "online")]
        depth = sum(phase["depth"] for phase in phases)
        carried = max(sum(phase[side] for phase in phases) for side in ("sent", "received"))
        return self._computed + depth * self._delay + carried * self._seconds_per_byte

    def lane(self, index: int) -> Clocked:
        return self

    def __getattr__(self, name: str) -> Any:
        return getattr(self._engine, name)
