# SPDX-License-Identifier: Apache-2.0
"""Sorting and the k largest: networks of comparisons whose places are public, so that nothing depends on the values.

Batcher's merge exchange, for any number of elements: about log2(n)^2 / 2 steps, one after another, with n log2(n)^2 / 4
comparisons in all; of the k largest alone those that these need. Equal elements come in any order, unless ``stable``
asks for the one that they had. Source: Knuth, The Art of Computer Programming, vol. 3, algorithm 5.2.2 M.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import Any

import torch

from privml.dispatch import implements, implements_floating
from privml.engines.base import Engine, Share
from privml.engines.shares import Promise
from privml.ops.ring_formats import interval, proved
from privml.ops.values import claimed, engine_of, is_secret, like, ring_value
from privml.tensor import SecretTensor

aten = torch.ops.aten

# Pairs (first, second) of places, in each step every place once at most: the smaller value goes to the first.
Step = tuple[tuple[int, int], ...]


@lru_cache(maxsize=64)
def network(count: int, kept: int) -> tuple[Step, ...]:
    """The steps that bring the ``kept`` smallest of ``count`` elements in order to the first places."""
    steps: list[Step] = []
    top = p = 1 << max(0, (count - 1).bit_length() - 1)
    while p:
        q, r, d = top, 0, p
        while True:
            steps.append(tuple((i, i + d) for i in range(count - d) if i & p == r))
            if q == p:
                break
            d, q, r = q - p, q >> 1, p
        p >>= 1
    needed, pruned = set(range(kept)), []
    for step in reversed(steps):
        pairs = tuple(pair for pair in step if needed & set(pair))
        needed |= {place for pair in pairs for place in pair}
        if pairs:
            pruned.append(pairs)
    return tuple(reversed(pruned)) if count > 1 else ()


def _sorted(x: SecretTensor, dim: int, kept: int, descending: bool, stable: bool) -> tuple[SecretTensor, SecretTensor]:
    """The first ``kept`` elements along ``dim`` in order, and their places."""
    engine, count = engine_of(x), x.shape[dim] if x.dim() else 1
    share, fmt = ring_value(x, x.dtype)
    last = tuple(c.movedim(dim, -1) if x.dim() else c.reshape(1) for c in share)
    bits = 64 if engine.stays_wide else count.bit_length() + 1
    numbers = torch.arange(count).expand(last[0].shape).contiguous()
    places = engine.public(numbers, bits)
    for step in network(count, kept):
        first, second = (torch.tensor(side) for side in zip(*step, strict=True))
        a, b = _at(last, first), _at(last, second)
        i, j = _at(places, first), _at(places, second)
        wrong = engine.subtract(a, b, fmt.bits) if descending else engine.subtract(b, a, fmt.bits)
        swap = engine.less_than_zero(wrong, fmt.bits)
        if stable:
            equal = engine.equal_zero(wrong, fmt.bits)
            later = engine.less_than_zero(engine.subtract(j, i, bits), bits)
            swap = engine.xor(swap, engine.logical_and(equal, later))
        last = _exchanged(engine, last, (first, second), (a, b, swap), fmt.bits)
        places = _exchanged(engine, places, (first, second), (i, j, swap), bits)
    values, places = (tuple(c[..., :kept] for c in part) for part in (last, places))
    # an exchange is exact in every ring, so these are elements and places, whatever a difference did
    values, places = engine.claim(values, *interval(fmt)), engine.claim(places, 0, max(count - 1, 0))
    if bits < 64:
        places = engine.extend(places, bits, 64, True, Promise(nonnegative=True))
    values, places = (
        tuple(c.movedim(-1, dim) if x.dim() else c.reshape(()) for c in part) for part in (values, places)
    )
    return like(x, values, fmt), like(x, places, proved(64, 0, False, 0, max(count - 1, 0)), torch.int64)


def _at(share: Share, places: torch.Tensor) -> Share:
    return tuple(c.index_select(-1, places) for c in share)


def _exchanged(
    engine: Engine, share: Share, at: Sequence[torch.Tensor], pair: tuple[Share, Share, Share], bits: int
) -> Share:
    """``share`` with the values of both places of a pair exchanged where its bit is 1."""
    a, b, swap = pair
    move = engine.select(swap, engine.subtract(b, a, bits), bits)
    pairs = engine.add(a, move, bits), engine.subtract(b, move, bits)
    count = share[0].shape[-1]
    rest = torch.tensor([n for n in range(count) if n not in set(torch.cat(list(at)).tolist())], dtype=torch.int64)
    order = torch.argsort(torch.cat([*at, rest]))
    return tuple(
        torch.cat([low, high, c.index_select(-1, rest)], -1).index_select(-1, order)
        for low, high, c in zip(*pairs, share, strict=True)
    )


@implements(aten.sort.default)
def sort(x: SecretTensor, dim: int = -1, descending: bool = False) -> tuple[SecretTensor, SecretTensor]:
    return _sorted(x, dim, x.shape[dim] if x.dim() else 1, descending, False)


@implements(aten.sort.stable)
def sort_stable(
    x: SecretTensor, *, stable: bool | None = None, dim: int = -1, descending: bool = False
) -> tuple[SecretTensor, SecretTensor]:
    return _sorted(x, dim, x.shape[dim] if x.dim() else 1, descending, bool(stable))


@implements(aten.topk.default)
def topk(
    x: SecretTensor, k: int, dim: int = -1, largest: bool = True, sorted: bool = True
) -> tuple[SecretTensor, SecretTensor]:
    return _sorted(x, dim, k, largest, False)


# ---- floats: by their own comparisons and choices
def _sorted_floats(
    x: SecretTensor, dim: int, kept: int, descending: bool, stable: bool
) -> tuple[SecretTensor, SecretTensor]:
    last = x.movedim(dim, -1)
    places: Any = torch.arange(x.shape[dim]).expand(last.shape)
    for step in network(x.shape[dim], kept):
        first, second = (torch.tensor(side) for side in zip(*step, strict=True))
        swap = last[..., first] < last[..., second] if descending else last[..., second] < last[..., first]
        if stable:
            later = places[..., second] < places[..., first]
            swap = swap | ((last[..., first] == last[..., second]) & later)
        last, places = (_chosen(part, first, second, swap) for part in (last, places))
    places = places[..., :kept].movedim(-1, dim)
    if is_secret(places):  # a single element is at a public place
        places = claimed(places, proved(places.format.bits, 0, False, 0, x.shape[dim] - 1))
    return last[..., :kept].movedim(-1, dim), places


def _chosen(values: Any, first: torch.Tensor, second: torch.Tensor, swap: SecretTensor) -> SecretTensor:
    a, b = values[..., first], values[..., second]
    rest = torch.tensor([n for n in range(values.shape[-1]) if n not in {*first.tolist(), *second.tolist()}])
    parts = [torch.where(swap, b, a), torch.where(swap, a, b)]
    parts += [values[..., rest]] if len(rest) else []
    return torch.cat(parts, -1)[..., torch.argsort(torch.cat([first, second, rest.long()]))]


@implements_floating(aten.sort.default)
def sort_floats(x: SecretTensor, dim: int = -1, descending: bool = False) -> tuple[SecretTensor, SecretTensor]:
    return _sorted_floats(x, dim, x.shape[dim], descending, False)


@implements_floating(aten.sort.stable)
def sort_stable_floats(
    x: SecretTensor, *, stable: bool | None = None, dim: int = -1, descending: bool = False
) -> tuple[SecretTensor, SecretTensor]:
    return _sorted_floats(x, dim, x.shape[dim], descending, bool(stable))


@implements_floating(aten.topk.default)
def topk_floats(
    x: SecretTensor, k: int, dim: int = -1, largest: bool = True, sorted: bool = True
) -> tuple[SecretTensor, SecretTensor]:
    return _sorted_floats(x, dim, k, largest, False)
