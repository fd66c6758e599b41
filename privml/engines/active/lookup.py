# SPDX-License-Identifier: Apache-2.0
"""Public tables at an index that no party knows.

With random bits r_j and r = sum 2^j r_j, the parties open c = index - r mod 2^b; the entry is the sum over j of
table[(c + j) mod 2^b] times [r = j]. The unit vector of r takes 2^b - b - 1 products of the random bits, which do not
depend on the index, whatever the number of tables.
Leakage: none, c is uniform. Online: one opening of b bits.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch

from privml.engines.base import Operand
from privml.engines.shape_tensor import ShapeTensor
from privml.engines.shares import Share, each, joined

if TYPE_CHECKING:
    from privml.engines.active.engine import ActiveEngine


def lookup_many(engine: ActiveEngine, tables: torch.Tensor, index: Share, in_bits: int) -> Share:
    """tables[:, index] for public ``tables`` [k, 2^in_bits], in_bits <= 8: a share of shape [k, ...]."""
    bits, size, shape = engine.ring, 1 << in_bits, index[0].shape
    if engine.counts_only:
        return _counted(engine, len(tables), index, in_bits)
    random = engine.random_bits((in_bits, *shape))
    weights = torch.tensor([1 << j for j in range(in_bits)]).view(-1, *[1] * len(shape))
    mask = engine.sum(engine.multiply_public(random, weights, bits), [0], False, bits)
    turn = engine.open(engine.subtract(index, mask, bits), in_bits)
    unit = unit_vectors(engine, random)
    places = (turn + torch.arange(size).view(-1, *[1] * len(shape))) & (size - 1)
    entries = tables[:, places]
    spread = each(unit, lambda c: c.expand(entries.shape))
    return engine.sum(engine.multiply_public(spread, entries, bits), [1], False, bits)


def _counted(engine: ActiveEngine, tables: int, index: Share, in_bits: int) -> Share:
    """What ``lookup_many`` draws and sends; all else is local."""

    def like(*leading: int) -> Share:
        return tuple(ShapeTensor((*leading, *c.shape), c.dtype) for c in index)

    def unit_vector(count: int) -> None:
        if count > 1:
            low, high = count // 2, count - count // 2
            unit_vector(low)
            unit_vector(high)
            product = Operand(like((1 << high) - 1, (1 << low) - 1), engine.ring)
            engine.multiply(product, product, engine.ring)

    engine.random_bits((in_bits, *index[0].shape))
    engine.open(index, in_bits)
    unit_vector(in_bits)
    return like(tables)


def unit_vectors(engine: ActiveEngine, digits: Share) -> Share:
    """[2^b, ...]: 1 at place sum 2^j digits[j], 0 elsewhere, for bits [b, ...] as numbers."""
    bits, count = engine.ring, digits[0].shape[0]
    if count == 1:
        return joined([engine.add_public(engine.negate(digits, bits), 1, bits), digits], 0)
    low = unit_vectors(engine, each(digits, lambda c: c[: count // 2]))
    high = unit_vectors(engine, each(digits, lambda c: c[count // 2 :]))
    # The first of each half is 1 less the others: their products need not be computed.
    n, m = low[0].shape[0] - 1, high[0].shape[0] - 1
    shape = (m, n, *low[0].shape[1:])
    left = each(low, lambda c: c[1:].unsqueeze(0).expand(shape))
    right = each(high, lambda c: c[1:].unsqueeze(1).expand(shape))
    inner = engine.multiply(Operand(right, bits), Operand(left, bits), bits)
    column = engine.subtract(each(high, lambda c: c[1:]), engine.sum(inner, [1], False, bits), bits)
    below = joined([each(column, lambda c: c.unsqueeze(1)), inner], 1)
    row = engine.subtract(low, engine.sum(below, [0], False, bits), bits)
    grid = joined([each(row, lambda c: c.unsqueeze(0)), below], 0)
    return each(grid, lambda c: c.flatten(0, 1))
