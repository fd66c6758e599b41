# SPDX-License-Identifier: Apache-2.0
"""What a query will cost, from the graph's shapes and formats alone: no keys, no network, no weights."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import torch
from torch import fx

from privml.context import Numerics, Session
from privml.execution import share_attributes, share_inputs
from privml.graph import dtype_of, shape_of
from privml.parallel import Plans, run_graph
from privml.session.ledger import Ledger, NodeCallback, Snapshot
from privml.sharing import reveal


def predict(
    graph: fx.Graph,
    constants: Mapping[str, torch.Tensor],
    numerics: Numerics,
    meter: Any,
    batch: int = 1,
    reveal_to: int | None = 1,
    shapes: Sequence[Sequence[int]] | None = None,
    plans: Plans | None = None,
    on_node: NodeCallback | None = None,
) -> Ledger:
    """The ledger, with an entry per layer, of one query of ``batch`` inputs, or of inputs of these ``shapes``, and of
    its results' opening.

    ``meter``: an engine that computes on zeros and books what every protocol would send (for two parties
    ``privml.engines.twopc.meter(rank, ot, k)``); bytes are those of its rank. ``plans``: see ``run_graph``;
    ``on_node``: see ``Ledger``.
    """
    session = Session(meter, numerics)
    ledger = session.ledger = Ledger(lambda: Snapshot.of(session.engine.counters()))
    if on_node is not None:
        ledger.on_node.append(on_node)
    values = dict(constants)
    for node in graph.nodes:
        if node.op == "get_attr" and node.meta["secret"]:
            values[node.target] = torch.zeros(shape_of(node), dtype=dtype_of(node))
    nodes = [node for node in graph.nodes if node.op == "placeholder"]
    if shapes is None:
        shapes = [[batch if size is None else size for size in shape_of(node)] for node in nodes]
    inputs = [torch.zeros(tuple(shape), dtype=dtype_of(node)) for node, shape in zip(nodes, shapes, strict=True)]
    shared = share_inputs(graph, session, inputs)  # as a run does, before the weights
    results = run_graph(graph, shared, share_attributes(graph, session, values), session, plans)
    with ledger.node("reveal", "reveal"):
        for result in results:
            reveal(result, to=reveal_to)
    return ledger
