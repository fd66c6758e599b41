# SPDX-License-Identifier: Apache-2.0
"""Maxima by tournament, and tables that everybody knows at an index nobody knows.

max(x, y) = x + [x < y] (y - x) for |x|, |y| < 2^(bits-2): three rounds per level, the first of equal values wins.
A table of 2^k entries: parts of the one-hot vector of r are dealt, which parties 0 and 1 turn by their public m;
2^k elements dealt per index, whatever the number of tables, and one element each way per entry.
Source: MIZAR, Section 4.2 (with max instead of the min that is printed).
"""

from __future__ import annotations

import torch

from privml.engines.base import Engine
from privml.engines.shares import Share, each, joined, part, stack
from privml.engines.threepc.party import Party
from privml.engines.threepc.products import Opening


def _pairs(a: Share) -> tuple[Share, Share, Share]:
    """Elements of even and odd place, and what is left over, of the last dimension."""
    half = a[0].shape[-1] // 2 * 2
    return (
        each(a, lambda c: c[..., 0:half:2]),
        each(a, lambda c: c[..., 1:half:2]),
        each(a, lambda c: c[..., half:]),
    )


def max_last(engine: Engine, a: Share, bits: int, one_hot: bool) -> tuple[Share, Share | None]:
    """See ``Engine.max_last``."""
    lost, counts = [], []
    while a[0].shape[-1] > 1:
        left, right, rest = _pairs(a)
        difference = engine.subtract(left, right, bits)
        below = engine.less_than_zero(difference, bits)
        won = engine.subtract(left, engine.select(below, difference, bits), bits)
        lost.append(below)
        counts.append(a[0].shape[-1])
        a = joined([won, rest], -1)
    value = each(a, lambda c: c.squeeze(-1))
    if not one_hot:
        return value, None
    position = engine.public(torch.ones(a[0].shape, dtype=torch.uint8, device=a[0].device), 1)
    for below, count in zip(reversed(lost), reversed(counts), strict=True):
        pairs = count // 2
        winner, rest = each(position, lambda c, n=pairs: c[..., :n]), each(position, lambda c, n=pairs: c[..., n:])
        right = engine.logical_and(winner, below)
        left = engine.xor(winner, right)
        both = each(stack([left, right], -1), lambda c: c.flatten(-2))
        position = joined([both, rest], -1)
    return value, position


def argmax_last(engine: Engine, a: Share, bits: int) -> Share:
    """See ``Engine.argmax_last``: the winner's index goes through the same selections as its value."""
    shape = a[0].shape
    index = engine.public(torch.arange(shape[-1], device=a[0].device).expand(shape), 64)
    while a[0].shape[-1] > 1:
        left, right, rest = _pairs(a)
        first, second, others = _pairs(index)
        difference = engine.subtract(left, right, bits)
        below = engine.less_than_zero(difference, bits)
        both = stack([difference, engine.subtract(first, second, 64)])
        twice = stack([below, below])
        chosen = engine.select(twice, both, 64)
        a = joined([engine.subtract(left, part(chosen, 0), bits), rest], -1)
        index = joined([engine.subtract(first, part(chosen, 1), 64), others], -1)
    return each(index, lambda c: c.squeeze(-1).clone())


def lookup_begun(party: Party, tables: torch.Tensor, index: Share, in_bits: int, out_bits: int) -> Opening:
    """tables[:, index] for public ``tables`` [k, 2^in_bits], in_bits <= 8: a share of shape [k, ...]."""
    (m, r), size = index, 1 << in_bits
    shape = (*r.shape, size)
    hot = None
    if party.deals:
        hot = torch.zeros(shape, dtype=torch.int64, device=r.device).scatter_(-1, (r & (size - 1)).unsqueeze(-1), 1)
    dealt = party.deal(hot, shape, out_bits)
    part = None
    if not party.deals:
        part = party.kernels.lookup_shares(tables, m, dealt, out_bits)
    return Opening(part, (tables.shape[0], *r.shape), out_bits)
