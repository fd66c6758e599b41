# SPDX-License-Identifier: Apache-2.0
"""What a session has cost so far: bytes, depth (one-way message hops on the critical path), seconds and
correlations, per phase and per graph node."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field, replace
from typing import TYPE_CHECKING, Any

from privml.tables import Table, size_text

if TYPE_CHECKING:
    import privml._core as _core
    from privml.context import Session

PHASES = ("setup", "preprocess", "online")


@dataclass(frozen=True, slots=True)
class PhaseCount:
    """Counters of one phase as one party sees them; ``seconds`` is wall time."""

    seconds: float = 0.0
    sent: int = 0
    received: int = 0
    depth: int = 0

    @property
    def bytes(self) -> int:
        """Both directions."""
        return self.sent + self.received

    def __add__(self, other: PhaseCount) -> PhaseCount:
        return PhaseCount(
            self.seconds + other.seconds,
            self.sent + other.sent,
            self.received + other.received,
            self.depth + other.depth,
        )

    def __sub__(self, other: PhaseCount) -> PhaseCount:
        return PhaseCount(
            self.seconds - other.seconds,
            self.sent - other.sent,
            self.received - other.received,
            self.depth - other.depth,
        )


@dataclass(frozen=True, slots=True)
class Snapshot:
    """All counters at one moment, or the difference of two moments. ``products``: how many products with weights that
    one party knows were made in which form, where the engine has several."""

    setup: PhaseCount = PhaseCount()
    preprocess: PhaseCount = PhaseCount()
    online: PhaseCount = PhaseCount()
    cots_as_sender: int = 0
    cots_as_receiver: int = 0
    products: Mapping[str, int] = field(default_factory=dict)

    @classmethod
    def of(cls, counters: Mapping[str, Any]) -> Snapshot:
        """From the dictionary that the core hands out."""
        phases = {name: PhaseCount(**counters[name]) for name in PHASES}
        sender, receiver = counters["cots_as_sender"], counters["cots_as_receiver"]
        made = dict(counters.get("products", {}))
        return cls(**phases, cots_as_sender=sender, cots_as_receiver=receiver, products=made)

    @property
    def total(self) -> PhaseCount:
        return self.setup + self.preprocess + self.online

    def _combine(self, other: Snapshot, sign: int) -> Snapshot:
        phases = {}
        for name in PHASES:
            mine, theirs = getattr(self, name), getattr(other, name)
            phases[name] = mine + theirs if sign > 0 else mine - theirs
        return Snapshot(
            **phases,
            cots_as_sender=self.cots_as_sender + sign * other.cots_as_sender,
            cots_as_receiver=self.cots_as_receiver + sign * other.cots_as_receiver,
            products=_summed(self.products, other.products, sign),
        )

    def __add__(self, other: Snapshot) -> Snapshot:
        return self._combine(other, 1)

    def __sub__(self, other: Snapshot) -> Snapshot:
        return self._combine(other, -1)


def _summed(mine: Mapping[str, int], theirs: Mapping[str, int], sign: int) -> dict[str, int]:
    sums = {name: mine.get(name, 0) + sign * theirs.get(name, 0) for name in (*mine, *theirs)}
    return {name: count for name, count in sums.items() if count}


@dataclass(slots=True)
class NodeRecord:
    """What one graph node (or layer) cost; several calls under one name add up."""

    name: str
    operator: str = ""
    calls: int = 0
    cost: Snapshot = field(default_factory=Snapshot)

    def as_dict(self) -> dict[str, Any]:
        return {"name": self.name, "operator": self.operator, "calls": self.calls, **asdict(self.cost)}


NodeCallback = Callable[[str, str], None]


class Ledger:
    """Reads the counters of one party and attributes differences to nodes.

    ``read`` returns the counters of now, those of the calling thread's lane where there is one. ``on_node`` callbacks
    get ``(event, name)`` with event "start" or "end"; they serve progress bars and must not raise.
    """

    def __init__(self, read: Callable[[], Snapshot]) -> None:
        self._read = read
        self.records: dict[str, NodeRecord] = {}
        self.on_node: list[NodeCallback] = []
        self._open = threading.local()  # a node within a node of the same thread
        self._lock = threading.Lock()

    def snapshot(self) -> Snapshot:
        return self._read()

    def expect(self, name: str, operator: str = "") -> None:
        """Gives a node its place among the records before it runs."""
        with self._lock:
            self.records.setdefault(name, NodeRecord(name, operator))

    @contextmanager
    def node(self, name: str, operator: str = "", part: bool = False) -> Iterator[None]:
        """Books what happens inside under ``name``; a node within a node is part of the outer one. Nodes of different
        lanes may be open at once, each in a thread of its own. ``part``: something done for the node apart from it."""
        outermost = not getattr(self._open, "yes", False)
        if outermost:
            self._open.yes = True
            if not part:
                self._notify("start", name)
            before, start = self._read(), time.perf_counter()
        try:
            yield
        finally:
            if outermost:
                self._open.yes = False
                self._book(name, operator, self._read() - before, time.perf_counter() - start, not part)
                if not part:
                    self._notify("end", name)

    def _book(self, name: str, operator: str, cost: Snapshot, seconds: float, call: bool) -> None:
        # Local tensor work belongs to the online phase, but only the caller's clock sees it.
        elsewhere = cost.setup.seconds + cost.preprocess.seconds
        online = PhaseCount(max(seconds - elsewhere, 0.0), cost.online.sent, cost.online.received, cost.online.depth)
        cost = replace(cost, online=online)
        with self._lock:
            record = self.records.setdefault(name, NodeRecord(name, operator))
            record.calls += call
            record.cost = record.cost + cost

    def _notify(self, event: str, name: str) -> None:
        with self._lock:
            for callback in self.on_node:
                callback(event, name)

    def frozen(self) -> Ledger:
        """A copy of what it shows now; it keeps no session alive."""
        now = self.snapshot()
        copy = Ledger(lambda: now)
        copy.records = dict(self.records)
        return copy

    def reset_nodes(self) -> None:
        """Forgets the records of nodes, not the totals."""
        self.records.clear()

    def summary(self) -> Table:
        """See ``cost_table``."""
        return cost_table(self.as_dict())

    def _repr_html_(self) -> str:
        return self.summary()._repr_html_()

    def as_dict(self) -> dict[str, Any]:
        """Totals and nodes as plain numbers, for JSON."""
        return {"total": asdict(self.snapshot()), "nodes": [r.as_dict() for r in self.records.values()]}


def cost_table(ledger: Mapping[str, Any]) -> Table:
    """Bytes in both directions, messages in sequence and seconds: online by layer, then by phase; ``ledger`` as
    ``Ledger.as_dict`` gives it."""
    total = ledger["total"]
    counted = [(node["name"], node["online"]) for node in ledger["nodes"]]
    counted += [(f"all: {phase}", total[phase]) for phase in PHASES]
    whole = {key: sum(total[phase][key] for phase in PHASES) for key in ("sent", "received", "depth", "seconds")}
    rows = tuple(
        (name, size_text(count["sent"] + count["received"]), str(count["depth"]), f"{count['seconds']:.3f}")
        for name, count in (*counted, ("total", whole))
    )
    columns = ("layer or phase", "sent and received", "messages in sequence", "seconds")
    return Table("Cost as this party sees it", columns, rows)


# ---- several queries of one session
@contextmanager
def between_queries(channels: Sequence[_core.Channel]) -> Iterator[None]:
    """Keeps messages out of the costs of both queries: afterwards ``channels`` have the depth of before, and
    the next query's ledger begins after their bytes. All parties must do the same."""
    depths = [channel.traffic()["depth"] for channel in channels]
    for channel in channels:
        channel.set_tag(0)
    yield
    for channel, depth in zip(channels, depths, strict=True):
        channel.set_depth(depth)


def begin_query(session: Session) -> None:
    """Gives ``session`` a ledger that counts from here on."""
    engines = session.engines  # not the session, see session_on
    engines.whole.refresh()
    before = Snapshot.of(engines.whole.counters())
    session.ledger = Ledger(lambda: Snapshot.of(engines.current().counters()) - before)


def make_ahead(session: Session, stock: Any) -> Snapshot:
    """Makes the correlations of a possible next query; returns what that cost this party."""
    before = Snapshot.of(session.engine.counters())
    session.reserve(stock)
    return Snapshot.of(session.engine.counters()) - before
