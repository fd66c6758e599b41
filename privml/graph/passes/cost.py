# SPDX-License-Identifier: Apache-2.0
"""The cost of a query, from the graph's shapes and formats alone: no keys, no network, no weights."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import torch
from torch import fx

from privml.context import Session
from privml.engines.shape_tensor import zeros
from privml.formats import Numerics
from privml.graph.ir import dtype_of, placeholders, shape_of
from privml.graph.lanes import Plans, over_lanes
from privml.graph.run import run_graph, share_attributes, share_inputs
from privml.graph.state import StateSpec, begun, next_state
from privml.session.ledger import Ledger, NodeCallback, Snapshot
from privml.sharing import reveal


class SessionMeter:
    """Counts query after query as one session runs them: the weights are shared once, and what is left of one
    reservation counts for the next. The first ledger counts from the beginning, set-up included, each further one from
    the end of what was counted before; ``on_counted`` is called with its shapes and itself. ``values``: the constants
    by name, and the weights where a meter that computes on values wants them, else zeros. ``states``: what calls keep;
    every query begins with states of the shapes that it names."""

    def __init__(
        self,
        graph: fx.Graph,
        values: Mapping[str, torch.Tensor],
        numerics: Numerics,
        meter: Any,
        plans: Plans | None = None,
        enter: Callable[[Any], Any] | None = None,
        states: Sequence[StateSpec] = (),
    ) -> None:
        """``enter``: the shapes of the graph's inputs of those of a query's."""
        self._enter, self._states = enter, tuple(states)
        self._graph, self._known, self._plans = graph, values, plans
        self._session, self.meter = Session(meter, numerics), meter
        self._attributes: dict[str, Any] | None = None
        self._before = Snapshot()
        self.on_counted: Callable[[Any, Ledger], None] = lambda shapes, ledger: None

    def _now(self) -> Snapshot:
        return Snapshot.of(self._session.engine.counters())

    def query(
        self, shapes: Sequence[Sequence[int]], on_node: NodeCallback | None = None, reveal_to: int | None = 1
    ) -> Ledger:
        """The ledger, which stays as it is, of one query on inputs of these shapes and of its results' opening."""
        asked, shapes = shapes, shapes if self._enter is None else self._enter(shapes)
        graph, session, before = self._graph, self._session, self._before
        ledger = session.ledger = Ledger(lambda: self._now() - before)
        if on_node is not None:
            ledger.on_node.append(on_node)
        nodes = placeholders(graph)
        entered = len(nodes) - len(self._states)
        inputs = [self._nothing(shape, dtype_of(node)) for node, shape in zip(nodes, shapes[:entered], strict=False)]
        states = [begun(spec, shape, session) for spec, shape in zip(self._states, shapes[entered:], strict=True)]
        shared = share_inputs(graph, session, [*inputs, *states])  # as a run does, before the weights
        if self._attributes is None:
            self._attributes = share_attributes(graph, session, self._values())
        results = run_graph(graph, shared, self._attributes, session, over_lanes(session, self._plans), 0)
        shown = len(results) - len(states)
        for spec, old, result in zip(self._states, states, results[shown:], strict=True):
            next_state(spec, old, result, session)
        with ledger.node("reveal", "reveal"):
            for result in results[:shown]:
                reveal(result, to=reveal_to)
        self._before = self._now()
        self.on_counted(asked, ledger)
        return ledger.frozen()

    def make_ahead(self, stock: Any) -> Snapshot:
        """The cost of making what a next query draws, which is no part of that query's ledger."""
        self.meter.reserve(stock)
        before, self._before = self._before, self._now()
        return self._before - before

    def _values(self) -> dict[str, torch.Tensor]:
        values = dict(self._known)
        for node in self._graph.nodes:
            if node.op == "get_attr" and node.meta["secret"] and node.target not in values:
                values[node.target] = self._nothing(shape_of(node), dtype_of(node))
        return values

    def _nothing(self, shape: Sequence[int], dtype: torch.dtype) -> torch.Tensor:
        return zeros(shape, dtype, self.meter.counts_only)
