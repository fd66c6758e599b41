# SPDX-License-Identifier: Apache-2.0
"""Which rows of the calibration data tell ranges, and which ones judge the formats chosen."""

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
    """``seen``: those that ranges are taken from. ``judges``: those on which errors are measured. ``held_out``: their
    number if they are others, 0 if they are among those seen."""

    seen: list[torch.Tensor]
    judges: list[torch.Tensor]
    held_out: int


def split_rows(graph: fx.Graph, data: Sequence[torch.Tensor], most: int) -> Rows:
    """Holds out every fourth batch of the graph's (of one row where it takes any number), ``most`` rows in all; the
    same rows judge if fewer than two could, or if the inputs do not have a row each."""
    data = list(data)
    counts = {x.shape[0] if x.dim() else 0 for x in data}
    rows = counts.pop() if len(counts) == 1 else 0
    sizes = {shape_of(node)[0] for node in placeholders(graph) if shape_of(node)}
    batch = next((size for size in sizes if size is not None), 1)
    apart = rows // batch // _ONE_OF
    if apart * batch < _FEWEST:
        few = max(most // batch * batch, batch)
        return Rows(data, [x[:few] for x in data] if rows else data, 0)
    apart = max(min(apart, most // batch), 1)
    step = rows // batch // apart
    places = torch.arange(rows // batch)
    held = (places % step == step - 1) & (places // step < apart)
    chosen = torch.zeros(rows, dtype=torch.bool)
    chosen[: rows // batch * batch] = held.repeat_interleave(batch)
    return Rows([x[~chosen] for x in data], [x[chosen] for x in data], int(chosen.sum()))
