# SPDX-License-Identifier: Apache-2.0
"""Range calibration: how large every value of a graph becomes on example data, run in float."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import torch
from torch import fx

from privml.errors import InvalidInput, UnsupportedOperator
from privml.graph.ir import attributes_of, extremes_of, placeholders, real_extremes, shape_of, tensor_of
from privml.graph.run import in_order, run_graph

# Fractional bits up to which inputs count as exact fixed-point numbers (such as pixels / 256).
FINEST = 12
_CHUNK = 32
# A mask adds or writes at most this value to exclude a place.
NEVER = -1e9
# What stands for infinity while it is measured how much of a mask's number is left in later values; and what is left
# of it at least.
FAR, _LEFT = 1e30, 1e20


@dataclass(slots=True)
class Range:
    """``largest``: max |x| seen; ``negative``: some value was below zero; ``grain``: smallest k for which all values
    are multiples of 2^-k, or None; ``hides``: a mask has put infinity in places, which do not count; ``far``: the
    least that is left of ``FAR`` there."""

    largest: float = 0.0
    negative: bool = False
    grain: int | None = 0
    hides: bool = False
    far: float = math.inf


def calibrate(module: fx.GraphModule, data: Sequence[torch.Tensor]) -> tuple[dict[fx.Node, Range], list[torch.Tensor]]:
    """Ranges of all float nodes on ``data`` (one batch per input, run in chunks), and the graph's float outputs.

    Raises InvalidInput for shapes that do not fit the graph, and if a value becomes NaN or infinite.
    """
    inputs = placeholders(module.graph)
    check_shapes(inputs, data)
    attributes = attributes_of(module)
    observer = Observer({})
    scheduler = partial(in_order, observe=observer)
    outputs = [run_graph(module.graph, part, attributes, scheduler=scheduler) for part in chunks(inputs, data)]
    hold(module.graph, observer.ranges)
    return observer.ranges, [torch.cat(parts) for parts in zip(*outputs, strict=True)]


class Observer:
    """Widens ``ranges`` by every float value that it is called with. ``strict``: NaN and infinity are refused;
    otherwise they are left out, as rows in which a mask hides everything have them."""

    def __init__(self, ranges: dict[fx.Node, Range], strict: bool = True) -> None:
        self.ranges, self.strict = ranges, strict
        self._hiding = {node for node, known in ranges.items() if known.hides}

    def __call__(self, node: fx.Node, value: Any) -> None:
        if isinstance(value, (tuple, list)):
            value = value[0]
        if isinstance(value, torch.Tensor) and value.dtype.is_floating_point and value.numel():
            known = self.ranges.setdefault(node, Range())
            low, high = extremes_of(node, value) if node.op == "get_attr" else real_extremes(value)
            if max(-low, high) < -NEVER:  # also false for NaN
                return _widen(known, node, value, (low, high))
            if _hides(node, self._hiding, value):
                self._hiding.add(node)
                known.hides = True
                far = value.abs()[value.abs() >= _LEFT]
                known.far = min(known.far, float(far.min()) if far.numel() else math.inf)
                value = value[value.abs() < -NEVER] if node.meta.get("secret") else value
            if not self.strict:
                value = value[torch.isfinite(value)]
            if value.numel():
                _widen(known, node, value, real_extremes(value))


def infinite_output(line: str | None) -> UnsupportedOperator:
    """The error of a mask whose places are read out; ``line``: of the model, where it is known."""
    return UnsupportedOperator(
        f"an output holds infinity where a mask hides elements ({line or 'source unknown'}), which no fixed-point "
        "number can be; apply the mask to the answer once it is known"
    )


def hold(graph: fx.Graph, ranges: dict[fx.Node, Range]) -> None:
    """A state takes what its output gives: both reach as far, and its numbers are exact multiples of nothing."""
    held = [node for node in placeholders(graph) if node.meta.get("held") and tensor_of(node).dtype.is_floating_point]
    (results,) = graph.output_node().args
    for node, result in zip(held, results[len(results) - len(held) :], strict=True):
        known, made = ranges.setdefault(node, Range()), ranges.get(result, Range())
        known.largest = max(known.largest, made.largest)
        known.negative, known.grain = True, None


def _hides(node: fx.Node, hiding: set[fx.Node], value: torch.Tensor) -> bool:
    """Whether a node's value holds infinities (or their substitutes) from a mask."""
    if not bool((value.abs() >= -NEVER).any()):
        return False
    numbers = [a for a in node.args if isinstance(a, (int, float)) and not isinstance(a, bool)]
    secret = bool(node.meta.get("secret"))
    return not secret or any(abs(a) >= -NEVER for a in numbers) or any(a in hiding for a in node.all_input_nodes)


def chunks(inputs: Sequence[fx.Node], data: Sequence[torch.Tensor]) -> list[list[torch.Tensor]]:
    """``data`` in batches of the size that the graph takes (a graph with a fixed batch drops the remainder)."""
    sizes = {shape_of(node)[0] for node in inputs if shape_of(node)}
    fixed = next((size for size in sizes if size is not None), None)
    if not sizes or len({x.shape[0] if x.dim() else None for x in data}) > 1 or data[0].dim() == 0:
        return [list(data)]
    step = _CHUNK if fixed is None else fixed
    count = data[0].shape[0] if fixed is None else data[0].shape[0] // fixed * fixed
    return [[x[i : i + step] for x in data] for i in range(0, count, step)]


def check_shapes(inputs: Sequence[fx.Node], data: Sequence[torch.Tensor]) -> None:
    if len(inputs) != len(data):
        raise InvalidInput(f"the model takes {len(inputs)} input(s), got {len(data)} of calibration data")
    for node, value in zip(inputs, data, strict=True):
        shape = shape_of(node)
        fits = len(shape) == value.dim() and all(
            want is None or want == size or (i == 0 and size >= want)
            for i, (want, size) in enumerate(zip(shape, value.shape, strict=True))
        )
        if not fits or value.numel() == 0 and not node.meta.get("held"):
            wanted = ", ".join("any" if size is None else str(size) for size in shape)
            raise InvalidInput(
                f"calibration data of input {node.name!r} has shape {tuple(value.shape)}, the model takes ({wanted})"
            )
        if value.dtype != tensor_of(node).dtype:
            raise InvalidInput(
                f"calibration data of input {node.name!r} is {value.dtype}, the model takes {tensor_of(node).dtype}"
            )


def _widen(known: Range, node: fx.Node, value: torch.Tensor, extremes: tuple[float, float]) -> None:
    low, high = extremes
    # Public masks may hold infinities; secrets may not.
    if node.meta.get("secret") and not (abs(low) < float("inf") and abs(high) < float("inf")):
        name = node.meta.get("layer", node.name)
        raise InvalidInput(f"the model computes NaN or infinity in layer {name!r} on the calibration data")
    known.largest = max(known.largest, abs(low), abs(high))
    known.negative = known.negative or low < 0
    if node.op == "placeholder" and known.grain is not None:
        known.grain = _grain(value, known.grain)


def _grain(value: torch.Tensor, start: int) -> int | None:
    for k in range(start, FINEST + 1):
        scaled = value.double() * 2.0**k
        if torch.equal(scaled, scaled.round()):
            return k
    return None
