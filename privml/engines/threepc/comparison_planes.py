# SPDX-License-Identifier: Apache-2.0
"""What parties compute between the messages of a comparison from dealt tables, in operations of torch on any device;
the kernels of csrc/threepc/comparison.h do the same on a CPU.

Planes are uint8 tensors whose last dimension holds one bit of every element, eight to a byte. A level of k blocks, the
most significant first, is 2 k - 1 planes: g (greater) of all blocks, then p (equal) of all but the last.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch

from privml.engines.threepc.comparison_plan import ComparisonPlan, monomials, roles

Planes = torch.Tensor


def deal_comparison(plan: ComparisonPlan, r: Planes, masks: Planes) -> torch.Tensor:
    """Party 2: the tables of r and its top bit, then the products of the levels' masks, flat. ``r``: [bits, size], the
    lowest bit first; ``masks``: [planes, several, size]."""
    parts = [*(_greater(r[low : low + bits]) for low, bits in _cuts(plan.blocks)), r[-1:]]
    for level, nodes in zip(masks.split(plan.opened[:-1]), plan.levels, strict=True):
        blocks = sum(nodes)
        parts += _products(level[:blocks], level[blocks:], nodes)
    return torch.cat([part.reshape(-1) for part in parts])


def compare_blocks(rank: int, blocks: Sequence[int], m: Planes, table: Planes) -> Planes:
    """Parties 0 and 1: shares of the first level, [2 k - 1, several, size]. ``m``: [bits, several, size], the lowest
    bit first; ``table``: this party's part of the tables, [planes, 1, size]."""
    one, zero = _constant(rank, table, 1), _constant(rank, table, 0)
    results, begin = [], 0
    for low, bits in _cuts(blocks):
        above = table[begin : begin + (1 << bits) - 1]
        begin += (1 << bits) - 1
        rows = torch.stack([torch.cat([above, zero]), torch.cat([one, above])], 1)  # [r > v] and [r >= v]
        for bit in m[low : low + bits]:
            rows = rows[0::2] ^ ((rows[0::2] ^ rows[1::2]) & bit)
        results.append(rows[0])
    above, least = torch.stack(results, 1)
    return torch.cat([above, (above ^ least)[:-1]])


def join_blocks(rank: int, nodes: Sequence[int], opened: Planes, masks: Planes, products: Planes) -> Planes:
    """Parties 0 and 1: shares of the next level, [2 n - 1, ...]; ``opened``: what was opened of a level; ``masks``,
    ``products``: this party's parts of the masks and of their products."""
    blocks, one = sum(nodes), _constant(rank, opened, 1)[0]
    results, wholes, begin = [], [], 0
    for size, whole in roles(tuple(nodes)):
        g, p = slice(begin, begin + size), slice(blocks + begin, blocks + begin + size)
        names = monomials(size, whole)
        named = dict(zip(names, products[: len(names)], strict=True))
        node = _Node(opened[g], opened[p], masks[g], masks[p], named, one)
        products = products[len(names) :]
        results.append(node.joined())
        if whole:
            wholes.append(node.product(size, -1))
        begin += size
    return torch.stack(results + wholes)


class Comparison:
    """One comparison at party 0 or 1, from message to message. ``form``: values of each mask, and masks; ``masks``,
    ``dealt``: this party's parts of the masks of all that is opened, in the order of the messages, and of what was
    dealt, as bytes; ``kernels``: of their device."""

    def __init__(
        self, kernels: Any, rank: int, plan: ComparisonPlan, form: tuple[int, int], masks: Planes, dealt: Planes
    ) -> None:
        several, self._count = form
        size = -(-self._count // 8)
        self._kernels, self._rank, self._plan, self._rows = kernels, rank, plan, (several, size)
        *levels, self._last = masks.view(-1, *self._rows).split(plan.opened)
        table, *products = dealt.split([plan.table_bits * size, *(n * several * size for n in plan.product_bits)])
        self._table = table.view(-1, 1, size)
        self._levels = list(zip(plan.levels, levels, (each.view(-1, *self._rows) for each in products), strict=True))
        self._done = 0

    def begin(self, m: torch.Tensor) -> np.ndarray:
        """The first message, of int64 elements in any shape."""
        known = self._kernels.planes(m.reshape(self._rows[0], -1), sum(self._plan.blocks) + 1)
        self._top = known[-1]
        return self._message(compare_blocks(self._rank, self._plan.blocks, known, self._table))

    def join(self, received: np.ndarray) -> np.ndarray:
        """The message after the peer's."""
        nodes, mask, products = self._levels[self._done]
        self._done += 1
        return self._message(join_blocks(self._rank, nodes, self._opened(received), mask, products))

    def finish(self, received: np.ndarray, shape: Sequence[int]) -> tuple[torch.Tensor, torch.Tensor]:
        """The public bits and this party's masks of them, uint8, after the peer's last message."""
        return self._bits(self._opened(received) ^ self._top, shape), self._bits(self._last, shape)

    def _message(self, part: Planes) -> np.ndarray:
        last = self._done == len(self._levels)
        self._sent = part ^ (self._table[-1] ^ self._last if last else self._levels[self._done][1])
        return self._kernels.to_wire(self._sent)

    def _opened(self, received: np.ndarray) -> Planes:
        return self._sent ^ self._kernels.from_wire(received).view(self._sent.shape)

    def _bits(self, planes: Planes, shape: Sequence[int]) -> torch.Tensor:
        return unpacked(self._kernels, planes, self._count).view(shape)


def unpacked(kernels: Any, planes: Planes, count: int) -> torch.Tensor:
    """One bit of each of [several, count] elements, of planes [1, several, size]."""
    rows = [kernels.unpack_bits(kernels.to_wire(row), (count,)) for row in planes[0]]
    return rows[0] if len(rows) == 1 else torch.stack(rows)


def _cuts(blocks: Sequence[int]) -> Iterator[tuple[int, int]]:
    """(lowest bit, bits) of each block, of as many bits as the blocks have in all."""
    low = sum(blocks)
    for bits in blocks:
        low -= bits
        yield low, bits


def _greater(bits: Planes) -> Planes:
    """[number > v] for v = 0 .. 2^k - 2; ``bits``: those of the number, lowest first."""
    table = bits[:1]
    for bit in bits[1:]:
        table = torch.cat([table | bit, bit.unsqueeze(0), table & bit])
    return table


def _products(g: Planes, p: Planes, nodes: Sequence[int]) -> Iterator[Planes]:
    """Products of the masks of a level, in the order of ``monomials``."""
    begin = 0
    for size, whole in roles(tuple(nodes)):
        of_p = {1 << i: p[begin + i] for i in range(size if whole else size - 1)}
        for chosen in range(1, 1 << len(of_p)):
            rest = chosen & (chosen - 1)
            if rest:
                of_p[chosen] = of_p[rest] & of_p[chosen ^ rest]
        for chosen, block in monomials(size, whole):
            yield of_p[chosen] if block < 0 else of_p[chosen] & g[begin + block]
        begin += size


def _constant(rank: int, like: Planes, bit: int) -> Planes:
    """A share of a public bit, one plane."""
    return torch.full_like(like[:1], 255 if bit and rank == 0 else 0)


@dataclass(frozen=True, slots=True)
class _Node:
    """Blocks that are joined: what is opened of their g and p; shares of the masks, of their products and of 1."""

    g: Planes
    p: Planes
    mask_g: Planes
    mask_p: Planes
    products: dict[tuple[int, int], Planes]
    one: Planes

    def joined(self) -> Planes:
        """A share of g_0 ^ p_0 g_1 ^ p_0 p_1 g_2 ^ ..."""
        g = self.product(0, 0)
        for block in range(1, len(self.g)):
            g = g ^ self.product(block, block)
        return g

    def product(self, factors: int, block: int) -> Planes:
        """A share of p_0 ... p_(factors - 1) g_block; without g if ``block`` is negative."""
        rows = torch.stack([self._share(chosen, block) for chosen in range(1 << factors)])
        for factor in range(factors):
            rows = rows[1::2] ^ (rows[0::2] & self.p[factor])
        return rows[0]

    def _share(self, chosen: int, block: int) -> Planes:
        """Of the product of the chosen blocks' masks of p and g_block."""
        without = self._masks(chosen, -1)
        return without if block < 0 else self._masks(chosen, block) ^ (without & self.g[block])

    def _masks(self, chosen: int, block: int) -> Planes:
        if chosen == 0:
            return self.one if block < 0 else self.mask_g[block]
        if block < 0 and chosen & (chosen - 1) == 0:
            return self.mask_p[chosen.bit_length() - 1]
        return self.products[chosen, block]
