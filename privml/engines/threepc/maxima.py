# SPDX-License-Identifier: Apache-2.0
"""Maxima by groups: where numbers are few, all of a group are compared with one another at once.

Functionality: the largest of the last dimension, and its place; the first of equal values wins. Of a group of k numbers
all k (k - 1) / 2 differences are compared; the number that loses no comparison has 1 in a table of losses, and the sum
of all numbers times that is the largest. Groups of two are a tournament: max(x, y) = x - [x < y] (x - y).
Leakage, assumption: those of comparisons, weighted bits, lookups and inner products, of which nothing is opened.
Cost: that of the groups' sizes that ``levels`` chooses, which count a message as ``comparison`` does. Depth of a level:
that of a comparison and 3, or 1 in a tournament.
Source: ours.
"""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING

import torch

from privml.engines.composed.maxima import pairs
from privml.engines.shares import Share, each, joined, part, stack
from privml.engines.threepc.comparison import WORTH_A_MESSAGE, chosen_plan

if TYPE_CHECKING:
    from privml.engines.threepc.engine import ThreePartyEngine

# Numbers that are compared with one another, at most; and where there are many of them.
_LARGEST_GROUP = 16
_SIZES_OF_MANY, _MANY = (2, 4), 1 << 12


def max_last(engine: ThreePartyEngine, a: Share, bits: int) -> Share:
    """``Engine.max_last`` without its one-hot vector."""
    return part(_largest(engine, stack([a]), bits, bits), 0)


def argmax_last(engine: ThreePartyEngine, a: Share, bits: int) -> Share:
    """``Engine.argmax_last``: places go through the same choices as the values, in one ring of 64 bits."""
    shape = a[0].shape
    index = engine.public(torch.arange(shape[-1], device=a[0].device).expand(shape), 64)
    return part(_largest(engine, stack([a, index]), bits, 64), 1)


def _largest(engine: ThreePartyEngine, rows: Share, bits: int, ring: int) -> Share:
    """Of ``rows`` [values, ..., n] in Z_2^ring those at the largest of the first, which are compared in Z_2^bits."""
    shape = rows[0].shape
    for size in levels(shape[1:-1].numel(), shape[-1], bits, engine.party.comparison):
        whole = rows[0].shape[-1] // size * size
        groups, rest = each(rows, lambda c, n=whole: c[..., :n]), each(rows, lambda c, n=whole: c[..., n:])
        won = _of_pairs(engine, groups, bits, ring) if size == 2 else _of_groups(engine, groups, size, bits, ring)
        rows = joined([won, rest], -1)
    return each(rows, lambda c: c.squeeze(-1).clone())


def _of_pairs(engine: ThreePartyEngine, rows: Share, bits: int, ring: int) -> Share:
    left, right, _ = pairs(rows)
    difference = engine.subtract(left, right, ring)
    below = engine.less_than_zero(part(difference, 0), bits)
    chosen = engine.select(each(below, lambda c: c.expand(difference[0].shape)), difference, ring)
    return engine.subtract(left, chosen, ring)


def _of_groups(engine: ThreePartyEngine, rows: Share, size: int, bits: int, ring: int) -> Share:
    # [number in the group, values, ..., groups]
    rows = each(rows, lambda c: c.unflatten(-1, (-1, size)).movedim(-1, 0))
    first, second = torch.triu_indices(size, size, 1, device=rows[0].device)
    values = each(rows, lambda c: c[:, 0])
    difference = engine.subtract(each(values, lambda c: c[first]), each(values, lambda c: c[second]), bits)
    below = engine.less_than_zero(difference, bits)
    weights = torch.zeros(size, len(first), dtype=torch.int64, device=rows[0].device)
    number = torch.arange(len(first), device=rows[0].device)
    weights[first, number], weights[second, number] = 1, -1
    counted = (size - 1).bit_length()
    losses = engine.weighted_bits(below, weights, counted)
    earlier = torch.arange(size, device=rows[0].device).view(-1, *[1] * (losses[0].dim() - 1))
    losses = engine.add_public(losses, earlier.expand(losses[0].shape), counted)
    table = torch.zeros(1 << counted, dtype=torch.int64, device=rows[0].device)
    table[0] = 1
    best = engine.lookup(table, losses, counted, ring)
    return engine.inner(each(best, lambda c: c.unsqueeze(1).expand(rows[0].shape)), rows, ring)


# ---- the sizes of groups
@lru_cache(maxsize=1024)
def levels(rows: int, count: int, bits: int, comparison: str) -> tuple[int, ...]:
    """Of the groups of each level, for ``count`` numbers in each of ``rows``."""
    best: dict[int, tuple[float, tuple[int, ...]]] = {1: (0.0, ())}

    def cheapest(left: int) -> tuple[float, tuple[int, ...]]:
        if left not in best:
            sizes = range(2, _LARGEST_GROUP + 1) if rows * left <= _MANY else _SIZES_OF_MANY
            found = []
            for size in (each for each in sizes if each <= left):
                further, then = cheapest(left // size + left % size)
                found.append((_cost(rows * (left // size), size, bits, comparison) + further, (size, *then)))
            best[left] = min(found)
        return best[left]

    return cheapest(count)[1] if rows else (2,) * (count - 1).bit_length()


def _cost(groups: int, size: int, bits: int, comparison: str) -> float:
    """Bytes that all parties send for a level of ``groups`` groups, and what its messages in a row are worth."""
    compared = groups * size * (size - 1) // 2
    plan = chosen_plan(comparison, bits, 1, compared)
    sent, depth = (-(-compared // 8) * plan.bits_sent(), plan.depth) if plan else (compared * bits, 2)
    if size == 2:
        return sent + 4 * groups * bits / 8 + WORTH_A_MESSAGE * (depth + 1)
    counted = (size - 1).bit_length()
    losses = (compared + 2 * size * groups) * counted
    found = size * groups * ((1 << counted) + 2) * bits
    return sent + (losses + found + 3 * groups * bits) / 8 + WORTH_A_MESSAGE * (depth + 3)
