# SPDX-License-Identifier: Apache-2.0
"""Rows in which masks have bits that no row of the data has, as queries may: formats are judged on them too.

Bits that inputs give, and that the data give one value all over, take both values here: in half of the rows as padding
leaves them, alike up to some place and the opposite after it, in the others at random. A mask of several places has
both bits along its last dimension, for a row that is hidden altogether means nothing.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import torch
from torch import fx

from privml.context import Session
from privml.graph.ir import attributes_of, dtype_of, placeholders, shape_of
from privml.graph.passes.input_masks import free_bits, is_constant
from privml.graph.passes.kinds import is_secret
from privml.graph.passes.ranges import Observer, Range, chunks, hold
from privml.graph.run import format_of, in_order, run_graph, share_inputs
from privml.sharing import reveal, share

# Rows that are looked at, and the kinds of them.
_MOST, _KINDS = 16, 4

Bits = dict[fx.Node, torch.Tensor]


@dataclass(frozen=True, slots=True)
class Supposed:
    """``parts``: inputs, and the bits that count in place of what nodes compute; ``expected``: the clear outputs;
    ``where``: what rows these are."""

    parts: list[tuple[list[torch.Tensor], Bits]]
    expected: list[torch.Tensor]
    where: str

    @property
    def rows(self) -> int:
        return sum(next((x.shape[0] for x in inputs if x.dim()), 1) for inputs, _ in self.parts)


def suppose(module: fx.GraphModule, data: Sequence[torch.Tensor], ranges: dict[fx.Node, Range]) -> Supposed | None:
    """Rows of ``data`` (one batch per input) with other bits; widens ``ranges`` to what they reach. None if no mask is
    constant there, or if indices are computed from the bits and there are none for these."""
    inputs, first = placeholders(module.graph), chunks(placeholders(module.graph), data)[0]
    if all(shape_of(node)[:1] == (None,) for node in inputs) and len({len(x) for x in first}) == 1:
        first = [x[:_MOST] for x in first]
    attributes = attributes_of(module)
    bits = _constants(module, first, attributes, free_bits(module, data))
    if not bits:
        return None
    random = torch.Generator().manual_seed(0)
    observer = Observer(ranges, strict=False)
    parts, outputs = [], []
    for start in range(0, _KINDS, min(len(value) if value.dim() else 1 for value in bits.values())):
        drawn = {node: _other(value, start, random) for node, value in bits.items()}
        changed = [drawn.get(node, x) for node, x in zip(inputs, first, strict=True)]
        schedule = partial(in_order, observe=observer, given=drawn)
        try:
            outputs.append(run_graph(module.graph, changed, attributes, scheduler=schedule))
        except (IndexError, RuntimeError):
            return None
        parts.append((changed, drawn))
    hold(module.graph, ranges)
    return Supposed(parts, _joined(outputs), "rows with other bits in masks that all calibration rows have alike")


def of_lengths(
    module: fx.GraphModule, batches: Sequence[Sequence[torch.Tensor]], ranges: dict[fx.Node, Range]
) -> Supposed | None:
    """Rows whose state has other lengths than in the data: one batch per input for each; widens ``ranges``."""
    if not batches:
        return None
    attributes = attributes_of(module)
    schedule = partial(in_order, observe=Observer(ranges))
    outputs = [run_graph(module.graph, batch, attributes, scheduler=schedule) for batch in batches]
    hold(module.graph, ranges)
    return Supposed([(list(batch), {}) for batch in batches], _joined(outputs), "rows with a shorter state")


def answers(
    module: fx.GraphModule, supposed: Supposed, attributes: dict[str, Any], session: Session
) -> list[torch.Tensor]:
    """The outputs of a graph with formats on the supposed rows. ``attributes``: see ``run_graph``."""
    outputs = []
    for inputs, bits in supposed.parts:
        schedule = partial(in_order, given=shared_bits(bits, session))
        shares = share_inputs(module.graph, session, inputs)
        results = run_graph(module.graph, shares, attributes, session, schedule)
        outputs.append([reveal(x) for x in results])
    return _joined(outputs)


def shared_bits(bits: Bits, session: Session) -> dict[fx.Node, Any]:
    """Bits in place of what nodes with formats compute; those of inputs are not among them."""
    return {node: _shared(node, value, session) for node, value in bits.items() if node.op != "placeholder"}


def _shared(node: fx.Node, value: torch.Tensor, session: Session) -> Any:
    if not is_secret(node):
        return value
    shape = tuple(value.shape)
    return share(value, 0, format_of(node), shape=shape, dtype=dtype_of(node), session=session, wide=True)


def _joined(outputs: list[list[torch.Tensor]]) -> list[torch.Tensor]:
    return [torch.cat(each) if each[0].dim() else torch.stack(each) for each in zip(*outputs, strict=True)]


def _constants(
    module: fx.GraphModule, data: Sequence[torch.Tensor], attributes: dict[str, Any], free: frozenset[fx.Node]
) -> Bits:
    found: Bits = {}

    def observe(node: fx.Node, value: Any) -> None:
        if node in free and is_constant(value):
            found[node] = value

    if free:
        run_graph(module.graph, data, attributes, scheduler=partial(in_order, observe=observe))
    return found


def _other(value: torch.Tensor, start: int, random: torch.Generator) -> torch.Tensor:
    """Bits in the shape and dtype of ``value``, whose rows are those from number ``start`` on."""
    if not value.dim():
        return torch.full_like(value, start % 2)
    rows = [_row(value[0], start + row, random) for row in range(len(value))]
    return torch.stack(rows).to(value.dtype)


def _row(like: torch.Tensor, number: int, random: torch.Generator) -> torch.Tensor:
    along = next((d for d in reversed(range(like.dim())) if like.shape[d] > 1), None)
    if along is None:
        return torch.full_like(like, number % 2, dtype=torch.bool)
    length = like.shape[along]
    if number % _KINDS < 2:
        some = int(torch.randint(1, length, (), generator=random))
        shape = [length if d == along else 1 for d in range(like.dim())]
        drawn = (torch.arange(length) < some).reshape(shape).expand(like.shape)
    else:
        order = torch.rand(like.shape, generator=random).argsort(along)
        drawn = order < torch.randint(1, length, (), generator=random)
    return drawn if number % 2 else ~drawn
