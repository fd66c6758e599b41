# SPDX-License-Identifier: Apache-2.0
"""Whether every promise that protocols rely on in a program is proved, found by other means than the formats'."""

from __future__ import annotations

from typing import Any

import torch
from torch import fx

from privml.context import Session
from privml.engines.intervals import IntervalEngine
from privml.formats import Boolean, Float, Format, Numerics, Owned
from privml.graph.ir import attribute, dtype_of, placeholders, shape_of
from privml.graph.run import run_graph
from privml.ops.ring_formats import interval
from privml.tensor import SecretTensor


def check_promises(module: fx.GraphModule, numerics: Numerics) -> None:
    """Runs a graph with formats on the ranges of its inputs and weights; ConfigError, naming the layer, where a
    protocol relies on a sign or a bound that does not follow. Graphs with floats, whose protocols take no promises
    from rules, are not looked at."""
    formats = [node.meta.get("format") for node in module.graph.nodes]
    if numerics.floating is not None or any(isinstance(fmt, Float) for fmt in formats):
        return
    session = Session(IntervalEngine(), numerics)

    def secret(node: fx.Node, owner: int) -> SecretTensor:
        shape = tuple(1 if size is None else size for size in shape_of(node))
        return SecretTensor(
            _share(node.meta["format"], shape), node.meta["format"], Owned(owner), session, dtype_of(node)
        )

    attributes: dict[str, Any] = {}
    for node in module.graph.nodes:
        if node.op == "get_attr":
            known = node.meta.get("secret")
            attributes[node.target] = secret(node, 0) if known else attribute(module, node.target)
    inputs = [secret(node, 1) if node.meta["secret"] else _public(node) for node in placeholders(module.graph)]
    run_graph(module.graph, inputs, attributes, session)


def _public(node: fx.Node) -> torch.Tensor:
    return torch.zeros(tuple(1 if size is None else size for size in shape_of(node)), dtype=dtype_of(node))


def _share(fmt: Format, shape: tuple[int, ...]) -> tuple[torch.Tensor, ...]:
    """What a value of the format may be, which its owner checks as it shares it."""
    low, high = (0, 1) if isinstance(fmt, Boolean) else interval(fmt)
    kind = torch.uint8 if isinstance(fmt, Boolean) else torch.int64
    return tuple(torch.tensor(end, dtype=kind).expand(shape) for end in (low, high))
