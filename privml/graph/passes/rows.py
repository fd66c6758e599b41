# SPDX-License-Identifier: Apache-2.0
"""Which rows of the calibration data give ranges, and which ones judge the formats chosen."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import fx

from privml.graph.ir import placeholders, shape_of

# One row of so many is held out, if that leaves enough of them.
_ONE_OF = 4
_FEWEST = 2


@dataclass(frozen=True, slots=True)
class Rows:
    """``seen``: those that ranges are taken from. ``judges``: those on which errors are measured: ``held_out`` others,
    and where these are few, some of those seen."""

    seen: list[torch.Tensor]
    judges: list[torch.Tensor]
    held_out: int


def split_rows(graph: fx.Graph, data: Sequence[torch.Tensor], most: int) -> Rows:
    """Holds out every fourth batch of the graph's (of one row where it takes any number), none if fewer than two rows
    would be or if the inputs do not have a row each. ``most`` rows judge in all, those held out before others."""
    data = list(data)
    counts = {x.shape[0] if x.dim() else 0 for x in data}
    rows = counts.pop() if len(counts) == 1 else 0
    if not rows:
        return Rows(data, data, 0)
    sizes = {shape_of(node)[0] for node in placeholders(graph) if shape_of(node)}
    batch = next((size for size in sizes if size is not None), 1)
    batches = rows // batch
    judging = max(min(batches, most // batch), 1)
    apart = min(batches // _ONE_OF, judging)
    apart = apart if apart * batch >= _FEWEST else 0
    step = batches // apart if apart else 1
    held = [place for place in range(batches) if place % step == step - 1][:apart]
    others = [place for place in range(batches) if place not in set(held)]
    places = torch.arange(batches * batch).reshape(batches, batch)

    def taken(chosen: list[int]) -> list[torch.Tensor]:
        index = places[sorted(chosen)].flatten()
        return [x[index] for x in data]

    rest = torch.arange(batches * batch, rows)
    seen = torch.cat([places[others].flatten(), rest])
    return Rows([x[seen] for x in data], taken(held + others[: judging - apart]), apart * batch)
