# SPDX-License-Identifier: Apache-2.0
"""Calls of one session on which the formats of a model with state are judged: errors of one call enter the next."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import fx

from privml.context import Session
from privml.graph.ir import dtype_of, placeholders, shape_of
from privml.graph.passes.losses import difference
from privml.graph.run import run_graph, share_inputs
from privml.graph.state import StateSpec, next_state
from privml.sharing import reveal


@dataclass(frozen=True, slots=True)
class Steps:
    """``inputs`` of one call after another, without the state; ``begun``: the states of the first call; ``grows``: the
    dimension along which each becomes longer, None if it is replaced."""

    inputs: list[list[torch.Tensor]]
    begun: list[torch.Tensor]
    grows: list[int | None]

    def clear(self, graph: fx.Graph, attributes: dict[str, Any]) -> list[list[torch.Tensor]]:
        """The outputs of every call but for the state."""
        count, state, outputs = len(self.begun), self.begun, []
        for inputs in self.inputs:
            results = run_graph(graph, [*inputs, *state], attributes)
            outputs.append(results[:-count])
            state = [
                new if dim is None else torch.cat([old, new], dim)
                for dim, old, new in zip(self.grows, state, results[-count:], strict=True)
            ]
        return outputs

    def errors(
        self, graph: fx.Graph, attributes: dict[str, Any], session: Session, expected: Sequence[Sequence[torch.Tensor]]
    ) -> tuple[float, ...]:
        """Of a graph with formats, by call, as a part of the largest output of all calls; see ``difference``."""
        specs = [
            _spec(node, dim) for node, dim in zip(placeholders(graph)[-len(self.begun) :], self.grows, strict=True)
        ]
        beside = [torch.cat([x.flatten() for x in each]) for each in zip(*expected, strict=True)]
        count, state, found = len(self.begun), None, []
        for inputs, clear in zip(self.inputs, expected, strict=True):
            shares = share_inputs(graph, session, [*inputs, *self.begun])
            before = shares[-count:] if state is None else state
            results = run_graph(graph, [*shares[:-count], *before], attributes, session)
            found.append(difference([reveal(x) for x in results[:-count]], clear, beside))
            pairs = zip(specs, before, results[-count:], strict=True)
            state = [next_state(spec, old, new, session) for spec, old, new in pairs]
        return tuple(found)


def _spec(node: fx.Node, grows: int | None) -> StateSpec:
    return StateSpec(node.name, tuple(shape_of(node)), dtype_of(node), node.meta["format"], grows)
