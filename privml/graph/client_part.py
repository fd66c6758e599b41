# SPDX-License-Identifier: Apache-2.0
"""What the client computes by itself before anything is shared: of its inputs alone, in clear.

As plain data: ``nodes``, ``constants`` and ``outputs`` as of a program's body. Attributes that are no constants are
tables of the model that the client was given; its files hold them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import fx

from privml.errors import ConfigError, InvalidInput
from privml.graph.ir import dtype_of, placeholders, shape_of
from privml.graph.run import given_to, run_graph


@dataclass(frozen=True, slots=True)
class ClientPart:
    """``graph`` of what is computed, ``constants`` of it."""

    graph: fx.Graph
    constants: Mapping[str, torch.Tensor]

    @property
    def tables(self) -> dict[str, tuple[tuple[int | None, ...], torch.dtype]]:
        """Shape and dtype of every table by name."""
        nodes = (node for node in self.graph.nodes if node.op == "get_attr" and node.target not in self.constants)
        return {node.target: (shape_of(node), dtype_of(node)) for node in nodes}

    def run(self, values: Sequence[Any], tables: Mapping[str, torch.Tensor] | None) -> tuple[torch.Tensor, ...]:
        """What the parties compute with, of the client's inputs. InvalidInput for ids outside the table, ConfigError
        without the tables."""
        if self.tables and tables is None:
            raise ConfigError("the client looks up ids by itself: load the tables that belong to the program")
        nodes = placeholders(self.graph)
        given = [given_to(node, value) for node, value in zip(nodes, values, strict=True)]
        try:
            with torch.no_grad():
                return tuple(run_graph(self.graph, given, {**self.constants, **(tables or {})}))
        except IndexError as error:
            names = " or ".join(repr(node.name) for node in nodes)
            raise InvalidInput(f"input {names}: an id {error}") from None
