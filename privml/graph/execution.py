# SPDX-License-Identifier: Apache-2.0
"""Runs a program's graph node by node: on public tensors (floats), or on secret ones in a session."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import torch
from torch import fx
from torch.utils._pytree import tree_leaves

from privml.context import Session
from privml.dispatch import TABLE, dispatch
from privml.errors import InvalidInput, PrivmlError
from privml.formats import Boolean, FixedPoint, Float, Format, Integer
from privml.formats import node as current
from privml.graph.ir import SYM_SIZE, dtype_of, placeholders, shape_of
from privml.ops.values import engine_of, like
from privml.ops.words import reformatted
from privml.sharing import share
from privml.tensor import SecretTensor
from privml.transcript import as_one_step

Observer = Callable[[fx.Node, Any], None]


def execute(
    graph: fx.Graph,
    inputs: Sequence[Any],
    attributes: Mapping[str, Any],
    session: Session | None = None,
    observe: Observer | None = None,
) -> list[Any]:
    """The graph's results. ``attributes``: the tensor of each get_attr target.

    In a session every node runs under its layer's name, the formats chosen for it, and its ledger entry. Values are
    dropped after their last use. ``observe`` sees every node's value.
    """
    values: dict[fx.Node, Any] = {}
    remaining = iter(inputs)
    last_use: dict[fx.Node, list[fx.Node]] = {}
    for node in graph.nodes:
        for user in list(node.users)[-1:] or [node]:
            last_use.setdefault(_latest(node, user), []).append(node)
    with torch.no_grad():
        for node in graph.nodes:
            if node.op == "output":
                return [values[result] for result in node.args[0]]
            if node.op == "placeholder":
                value = next(remaining)
            elif node.op == "get_attr":
                value = attributes[node.target]
            else:
                args, kwargs = fx.map_arg((node.args, node.kwargs), values.__getitem__)
                value = call_node(node, args, kwargs, session)
            values[node] = value
            if observe is not None:
                observe(node, value)
            for finished in last_use.get(node, ()):
                values.pop(finished, None)
    raise ValueError("the graph has no output node")


def _latest(node: fx.Node, user: fx.Node) -> fx.Node:
    """The user of ``node`` that stands last in the graph."""
    latest = user
    for other in node.users:
        if latest < other:
            latest = other
    return latest


def call_node(node: fx.Node, args: Any, kwargs: Any, session: Session | None) -> Any:
    """The node's result, in a session under its layer's name, the formats chosen for it, and its ledger entry."""
    if node.target is SYM_SIZE:
        return args[0].shape[args[1]]
    if session is None or not node.meta.get("secret"):
        return node.target(*args, **kwargs)
    args, kwargs = (_in_formats(node, *pair) for pair in ((node.args, args), (node.kwargs, kwargs)))
    name = node.meta.get("layer", node.name)
    ledger = session.ledger
    entry = contextlib.nullcontext() if ledger is None else ledger.node(name, str(node.target))
    session.step(f"{node.target} in layer {name}", node.name, where="")
    with entry, current(name, node.meta.get("request"), node.meta.get("working")), as_one_step():
        try:
            if node.target in TABLE and any(isinstance(a, SecretTensor) for a in tree_leaves((args, kwargs))):
                return dispatch(node.target, args, kwargs)  # torch would take apart what has a rule of its own
            return node.target(*args, **kwargs)
        except (PrivmlError, RuntimeError, ValueError, TypeError, IndexError) as error:
            if hasattr(error, "add_note"):
                error.add_note(f"in layer {name!r} ({node.target})")
            raise


def _in_formats(node: fx.Node, spec: Any, value: Any) -> Any:
    """Operands of a layer of floats as floats, of a layer of fixed point in the formats kept for that."""
    if isinstance(spec, fx.Node):
        to = node.meta["format"]
        to = spec.meta.get("fixed", to) if isinstance(to, FixedPoint) else to
        if (
            not isinstance(value, SecretTensor)
            or not value.dtype.is_floating_point
            or isinstance(to, (Boolean, Integer))
        ):
            return value
        if value.format == to or not (isinstance(value.format, Float) or isinstance(to, Float)):
            return value
        return like(value, reformatted(engine_of(value), value.share, value.format, to), to)
    if isinstance(spec, dict):
        return {key: _in_formats(node, part, value[key]) for key, part in spec.items()}
    if isinstance(spec, (list, tuple)):
        return type(value)(_in_formats(node, part, v) for part, v in zip(spec, value, strict=True))
    return value


def share_attributes(
    graph: fx.Graph, session: Session, values: Mapping[str, torch.Tensor], owner: int = 0
) -> dict[str, Any]:
    """The tensor of each get_attr target: weights as secrets of party ``owner``, public constants as they are.
    Only the owner needs the values of weights."""
    result: dict[str, Any] = {}
    for node in graph.nodes:
        if node.op != "get_attr" or node.target in result:
            continue
        if not node.meta.get("secret"):
            result[node.target] = values[node.target]
            continue
        try:
            result[node.target] = _share(node, values.get(node.target), shape_of(node), owner, session)
        except InvalidInput as error:
            raise InvalidInput(f"weight {node.target!r}: {error}") from None
    return result


def share_inputs(graph: fx.Graph, session: Session, values: Sequence[Any], owner: int = 1) -> list[Any]:
    """Secrets of party ``owner``, one per placeholder. Others pass the shape instead of a tensor; secret tensors
    stay what they are."""
    nodes = placeholders(graph)
    if len(nodes) != len(values):
        raise InvalidInput(f"the program takes {len(nodes)} input(s), got {len(values)}")
    shared = []
    for node, value in zip(nodes, values, strict=True):
        if isinstance(value, SecretTensor):
            shared.append(value)
            continue
        known = value is not None and not isinstance(value, (tuple, torch.Size))
        tensor = torch.as_tensor(value).to(dtype_of(node)) if known else None
        shape = tuple(tensor.shape if known else value or ())
        wanted = shape_of(node)
        fits = len(shape) == len(wanted) and all(w in (None, n) for w, n in zip(wanted, shape, strict=True))
        if not fits or 0 in shape:
            text = ", ".join("any" if size is None else str(size) for size in wanted)
            raise InvalidInput(f"input {node.name!r}: shape {shape}, but the program expects ({text})")
        try:
            shared.append(_share(node, tensor, shape, owner, session))
        except InvalidInput as error:
            raise InvalidInput(f"input {node.name!r}: {error}") from None
    return shared


def _share(
    node: fx.Node, value: torch.Tensor | None, shape: Sequence[int], owner: int, session: Session
) -> SecretTensor:
    fmt: Format = node.meta["format"]
    return share(value, owner, fmt, shape=tuple(shape), dtype=dtype_of(node), session=session, wide=True)
