# SPDX-License-Identifier: Apache-2.0
"""Elements at secret places: of all places a bit says whether it is the one, and chooses its element.

Places must be known to lie in range, as those that sort, topk and argmax find do: for others no bit might be 1.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch

from privml.engines.base import Engine, Share
from privml.formats import FixedPoint, Float, Integer
from privml.ops.ring_formats import RingFormat, interval, public_format, ring_format
from privml.ops.values import constant, expand, is_secret, join, operand, ring_value
from privml.tensor import SecretTensor

aten = torch.ops.aten


def gather(x: Any, dim: int, index: SecretTensor) -> Any:
    """``aten.gather`` at secret places; NotImplemented where these, or the elements, are of another kind."""
    if not _fits(x, index, x.shape[dim]):
        return NotImplemented
    for other, length in enumerate(index.shape):
        x = x if other == dim % x.dim() else x.narrow(other, 0, length)
    bits, elements = _bits(index, x.shape[dim]), x.movedim(dim, 0).unsqueeze(dim % x.dim() + 1)
    if is_secret(x) and isinstance(x.format, Float):
        return torch.where(bits, elements, 0.0).sum(0)
    engine, placement = _common(x, index)
    share, fmt = _elements(elements, engine, index)
    chosen = engine.select_sum(bits.share, expand(share, bits.shape), fmt.bits)
    return SecretTensor(engine.claim(chosen, *interval(fmt)), fmt, placement, index.session, x.dtype)


def index_select(x: Any, dim: int, index: SecretTensor) -> Any:
    """``aten.index_select`` at secret places; NotImplemented as above."""
    return at(x, [None] * (dim % x.dim()) + [index])


def at(x: Any, indices: Sequence[Any]) -> Any:
    """``aten.index`` of one secret tensor of places; NotImplemented as above, and beside other indices."""
    dims = [dim for dim, index in enumerate(indices) if index is not None]
    index = indices[dims[0]]
    if len(dims) > 1 or not _fits(x, index, x.shape[dims[0]]):
        return NotImplemented
    dim, count = dims[0], index.dim()
    first = x.movedim(dim, 0)
    rows = _rows(first.reshape(first.shape[0], -1), index.reshape(-1)).reshape(*index.shape, *first.shape[1:])
    return rows.movedim(list(range(count)), list(range(dim, dim + count))) if dim and count else rows


def _rows(x: Any, index: SecretTensor) -> SecretTensor:
    """The rows of a matrix at places [k]."""
    bits = _bits(index, x.shape[0])
    if is_secret(x) and isinstance(x.format, Float):
        return torch.where(bits[..., None], x[:, None], 0.0).sum(0)
    engine, placement = _common(x, index)
    share, fmt = _elements(x, engine, index)
    ring = max(fmt.bits, index.session.working.bits)
    owner = x.placement if is_secret(x) else index.placement
    chosen = engine.select_rows(bits.t().share, operand(share, fmt, owner), ring)
    chosen = engine.claim(engine.reduce(chosen, ring, fmt.bits), *interval(fmt))
    return SecretTensor(chosen, fmt, placement, index.session, x.dtype)


def _fits(x: Any, index: Any, count: int) -> bool:
    """Whether ``index`` lies in [0, count) for certain, and elements of ``x`` are numbers."""
    if not is_secret(index) or not isinstance(index.format, Integer):
        return False
    if not isinstance(x.format, (FixedPoint, Float, Integer)) if is_secret(x) else x.dtype is torch.bool:
        return False
    low, high = interval(index.format)
    return low >= 0 and high < count


def _common(x: Any, index: SecretTensor) -> tuple[Engine, Any]:
    """Engine and placement of what depends on both."""
    placement = join(x.placement, index.placement) if is_secret(x) else index.placement
    return index.session.engine_for(placement), placement


def _elements(x: Any, engine: Engine, index: SecretTensor) -> tuple[Share, RingFormat]:
    if is_secret(x):
        return ring_value(x, x.dtype)
    working = index.session.working
    fmt = public_format(x, ring_format(working.bits, working.scale, x.dtype.is_floating_point))
    return constant(x, x.shape, fmt, engine), fmt


def _bits(index: SecretTensor, count: int) -> SecretTensor:
    """bool [count, ...]: at which of all places each is."""
    return index.unsqueeze(0) == torch.arange(count).view(-1, *[1] * index.dim())
