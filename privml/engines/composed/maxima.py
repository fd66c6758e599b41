# SPDX-License-Identifier: Apache-2.0
"""Maxima by tournament: max(x, y) = x + [x < y] (y - x) for |x|, |y| < 2^(bits-2); the first of equal values wins."""

from __future__ import annotations

import torch

from privml.engines.base import Engine
from privml.engines.shares import Share, each, joined, part, stack


def pairs(a: Share) -> tuple[Share, Share, Share]:
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
        left, right, rest = pairs(a)
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
        half = count // 2
        winner, rest = each(position, lambda c, n=half: c[..., :n]), each(position, lambda c, n=half: c[..., n:])
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
        left, right, rest = pairs(a)
        first, second, others = pairs(index)
        difference = engine.subtract(left, right, bits)
        below = engine.less_than_zero(difference, bits)
        both = stack([difference, engine.subtract(first, second, 64)])
        twice = stack([below, below])
        chosen = engine.select(twice, both, 64)
        a = joined([engine.subtract(left, part(chosen, 0), bits), rest], -1)
        index = joined([engine.subtract(first, part(chosen, 1), 64), others], -1)
    return each(index, lambda c: c.squeeze(-1).clone())
