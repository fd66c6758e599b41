# SPDX-License-Identifier: Apache-2.0
"""Whether every promise that protocols rely on in a program is proved, found by other means than the formats'."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

import torch
from torch import fx

from privml.context import Session
from privml.engines.intervals import IntervalEngine
from privml.formats import Boolean, FixedPoint, Float, Format, Numerics, Owned, Placement
from privml.graph.ir import attribute, attributes_of, dtype_of, placeholders, shape_of
from privml.graph.run import Run, in_order, run_graph
from privml.ops.ring_formats import interval
from privml.tensor import SHARED, SecretTensor


def check_promises(module: fx.GraphModule, numerics: Numerics, data: Sequence[torch.Tensor]) -> None:
    """Runs a graph with formats on the ranges of its inputs and weights, and on the public inputs of ``data``;
    ConfigError, naming the layer, where a protocol relies on a sign or a bound that does not follow. Layers of floats,
    whose protocols take no promises from rules, are left out: fixed-point layers read anything from them."""
    if numerics.floating is not None:
        return
    session = Session(IntervalEngine(), numerics)
    given = {node: _one(node, value) for node, value in zip(placeholders(module.graph), data, strict=True)}

    def secret(node: fx.Node, owner: int) -> SecretTensor | None:
        shape = given[node].shape if node in given else shape_of(node)
        return _unknown(node, tuple(shape), dtype_of(node), session, Owned(owner))

    attributes: dict[str, Any] = {}
    for node in module.graph.nodes:
        if node.op == "get_attr":
            known = node.meta.get("secret")
            attributes[node.target] = secret(node, 0) if known else attribute(module, node.target)
    inputs = [secret(node, 1) if node.meta["secret"] else value for node, value in given.items()]
    outside = {node for node in module.graph.nodes if node.op == "call_function" and _has_floats(node)}
    scheduler = None
    if outside:
        scheduler = partial(_without, outside, _clear(module, list(given.values()), outside), session)
    run_graph(module.graph, inputs, attributes, session, scheduler=scheduler)


def _one(node: fx.Node, value: torch.Tensor) -> torch.Tensor:
    """The first of as many values as the graph takes."""
    sizes = [1 if size is None else size for size in shape_of(node)]
    first = value[tuple(slice(0, size) for size in sizes)]
    return first if list(first.shape) == sizes else torch.zeros(sizes, dtype=dtype_of(node))


def _has_floats(node: fx.Node) -> bool:
    """Whether a node computes with floats."""
    if not node.meta.get("secret"):
        return False
    fmt = node.meta.get("format")
    reads = any(isinstance(a.meta.get("format"), Float) for a in node.all_input_nodes)
    return isinstance(fmt, Float) or reads and not isinstance(fmt, FixedPoint)


def _clear(module: fx.GraphModule, inputs: list[torch.Tensor], wanted: set[fx.Node]) -> dict[fx.Node, Any]:
    """What ``wanted`` nodes compute in clear, for the shapes of it."""
    values: dict[fx.Node, Any] = {}

    def observe(node: fx.Node, value: Any) -> None:
        if node in wanted:
            values[node] = value

    attributes = attributes_of(module)
    run_graph(module.graph, inputs, attributes, scheduler=partial(in_order, observe=observe))
    return values


def _without(outside: set[fx.Node], clear: Mapping[fx.Node, Any], session: Session, run: Run) -> None:
    """Scheduler: one node after another; of those ``outside`` anything comes that their formats hold."""
    for node in run.graph.nodes:
        if node in outside:
            run.values[node] = _like(node, clear[node], session)
        elif node.op == "call_function":
            run.compute(node)


def _like(node: fx.Node, value: Any, session: Session) -> Any:
    if isinstance(value, (tuple, list)):
        return type(value)(_like(node, each, session) for each in value)
    return _unknown(node, tuple(value.shape), value.dtype, session, SHARED)


def _unknown(
    node: fx.Node, shape: tuple[int, ...], dtype: torch.dtype, session: Session, placement: Placement
) -> SecretTensor | None:
    """Anything that the format of a node holds, of a float anything that fixed-point layers may read of it."""
    fmt = node.meta["format"]
    fmt = node.meta.get("fixed") if isinstance(fmt, Float) else fmt
    return None if fmt is None else SecretTensor(_share(fmt, shape), fmt, placement, session, dtype)


def _share(fmt: Format, shape: tuple[int, ...]) -> tuple[torch.Tensor, ...]:
    """What a value of the format may be, which its owner checks as it shares it."""
    low, high = (0, 1) if isinstance(fmt, Boolean) else interval(fmt)
    kind = torch.uint8 if isinstance(fmt, Boolean) else torch.int64
    return tuple(torch.tensor(end, dtype=kind).expand(shape) for end in (low, high))
