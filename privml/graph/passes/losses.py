# SPDX-License-Identifier: Apache-2.0
"""Which layers of a graph with formats change its outputs most, by their own rounding alone."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import torch
from torch import fx

from privml.context import Session
from privml.engines.plain.engine import PlainEngine
from privml.formats import Numerics
from privml.graph.ir import attribute
from privml.graph.passes.kinds import STRUCTURAL, is_float, is_secret
from privml.graph.passes.ranges import NEVER
from privml.graph.passes.supposed import Bits, shared_bits
from privml.graph.run import Run, in_order, run_graph, share_attributes, share_inputs
from privml.sharing import reveal
from privml.tensor import SecretTensor

# Nodes whose effect on the outputs is computed: those with the largest errors of their own.
_LOOKED_AT = 32


def losses(
    module: fx.GraphModule, numerics: Numerics, batch: Sequence[torch.Tensor], bits: Bits | None = None
) -> list[tuple[str, float]]:
    """(layer, error of an output as a part of the largest output) of the layers that lose something, the worst first.

    A layer's own error is the difference between its result in its format and that of real numbers on the operands
    that it got; the error of the outputs is what comes of this difference alone in a run on real numbers. What the
    format of an input loses counts for the layers that read it. ``bits`` count in place of what nodes compute."""
    graph, bits = module.graph, bits or {}
    values = {n.target: attribute(module, n.target).detach() for n in graph.nodes if n.op == "get_attr"}
    own = _own_errors(graph, values, numerics, batch, bits)
    expected = run_graph(graph, batch, values, scheduler=partial(in_order, given=bits))
    found: dict[str, float] = {}
    for node in sorted(own, key=lambda n: -own[n][1])[:_LOOKED_AT]:
        altered = run_graph(graph, batch, values, scheduler=_altering(node, own[node][0], bits))
        loss = difference(altered, expected)
        for layer in _layers(node):
            found[layer] = max(found.get(layer, 0.0), loss)
    return sorted(((layer, loss) for layer, loss in found.items() if loss > 0), key=lambda pair: -pair[1])


def difference(
    results: Sequence[torch.Tensor], expected: Sequence[torch.Tensor], beside: Sequence[torch.Tensor] | None = None
) -> float:
    """The largest error of a result, relative to the largest one, also of those ``beside``; if none is a real number
    the part that differs. Infinite where a result is not a number; where none is expected there is no error."""
    labels = not any(x.dtype.is_floating_point for x in expected)
    worst = 0.0
    for result, clear, more in zip(results, expected, beside or expected, strict=True):
        if clear.dtype.is_floating_point:
            size = max(_largest(clear), _largest(more)) or 1.0
            error = _largest_error(result, clear) / size
            worst = max(worst, math.inf if math.isnan(error) else error)
        elif labels:
            worst = max(worst, float((result != clear).double().mean()))
    return worst


def _layers(node: fx.Node) -> list[str]:
    """The layer that computes a value; those that read it, also through views, if it is an input."""
    if node.op != "placeholder":
        return [str(node.meta.get("layer", node.name))]
    found: list[str] = []
    waiting = list(node.users)
    while waiting:
        user = waiting.pop()
        if user.op == "call_function" and is_secret(user):
            found += _layers(user)
            waiting += user.users if user.target in STRUCTURAL else ()
    return found


def _largest_error(result: torch.Tensor, clear: torch.Tensor) -> float:
    errors = torch.where(torch.isfinite(clear), result - clear, 0.0).abs()
    return float(errors.max()) if errors.numel() else 0.0


def _largest(values: torch.Tensor) -> float:
    if not values.numel():
        return 0.0
    return float(torch.where(torch.isfinite(values), values, 0.0).abs().max())


def _first(value: Any) -> Any:
    return value[0] if isinstance(value, (tuple, list)) else value


def _own_errors(
    graph: fx.Graph, values: dict[str, torch.Tensor], numerics: Numerics, batch: Sequence[torch.Tensor], bits: Bits
) -> dict[fx.Node, tuple[torch.Tensor, float]]:
    """Per real secret its error, and the largest one as a part of its largest value."""
    decoded: dict[fx.Node, Any] = {}
    own: dict[fx.Node, tuple[torch.Tensor, float]] = {}

    def observe(node: fx.Node, value: Any) -> None:
        several = isinstance(value, (tuple, list))
        parts = [reveal(v) if isinstance(v, SecretTensor) else v for v in (value if several else [value])]
        # weights are exact: what their formats lose counts for the layers that read them
        decoded[node] = values[node.target] if node.op == "get_attr" else parts if several else parts[0]
        if not (is_secret(node) and is_float(node)) or node.op == "get_attr":
            return
        if node.op == "placeholder":
            exact = batch[len([n for n in decoded if n.op == "placeholder"]) - 1]
        else:
            args, kwargs = fx.map_arg((node.args, node.kwargs), decoded.__getitem__)
            exact = _first(node.target(*args, **kwargs))
        error = (_first(decoded[node]) - exact).to(exact.dtype)
        error = torch.where((exact > NEVER) & torch.isfinite(error), error, 0.0)
        size = float(torch.where(exact > NEVER, exact, 0.0).abs().max()) or 1.0
        if bool(error.any()):
            own[node] = error, float(error.abs().max()) / size

    session = Session(PlainEngine(), numerics)
    inputs, given = share_inputs(graph, session, batch), shared_bits(bits, session)
    run_graph(
        graph,
        inputs,
        share_attributes(graph, session, values),
        session,
        scheduler=partial(in_order, observe=observe, given=given),
    )
    return own


def _altering(at: fx.Node, error: torch.Tensor, bits: Bits) -> Callable[[Run], None]:
    """Scheduler that adds ``error`` to the value of one node."""

    def schedule(run: Run) -> None:
        for node in run.graph.nodes:
            if node.op == "call_function":
                run.compute(node)
            if node in bits and node in run.values:
                run.values[node] = bits[node]
            if node is at and node in run.values:
                value = run.values[node]
                several = isinstance(value, (tuple, list))
                run.values[node] = (value[0] + error, *value[1:]) if several else value + error

    return schedule
