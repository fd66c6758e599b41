# SPDX-License-Identifier: Apache-2.0
"""How a comparison of public with masked bits is cut into blocks and joined again, and what that costs.

Bits, from the most significant one, are cut into blocks; a block says whether it is greater (g) and whether it is equal
(p). A level joins the blocks of its nodes: g = g_0 ^ p_0 g_1 ^ p_0 p_1 g_2 ^ ..., p = p_0 p_1 ... The least significant
block of a level needs no p.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache, cached_property
from itertools import product

# Tables of 2^6 entries for a block; products of up to 6 masked bits.
_LARGEST_BLOCK = 6
_LARGEST_NODE = 6


@dataclass(frozen=True)
class ComparisonPlan:
    """``blocks``: bits of each, the most significant first; ``levels``: for each level the number of blocks that each
    of its nodes joins."""

    blocks: tuple[int, ...]
    levels: tuple[tuple[int, ...], ...]

    @cached_property
    def opened(self) -> tuple[int, ...]:
        """Bits that parties 0 and 1 open in each message, per comparison."""
        return (*(2 * sum(nodes) - 1 for nodes in self.levels), 1)

    @cached_property
    def table_bits(self) -> int:
        """Bits dealt for each mask, whatever it is compared with: those of the blocks' tables and the top bit."""
        return sum((1 << bits) - 1 for bits in self.blocks) + 1

    @cached_property
    def product_bits(self) -> tuple[int, ...]:
        """Bits dealt for each comparison, for each level: products of the masks of opened bits."""
        return tuple(sum(len(monomials(*role)) for role in roles(nodes)) for nodes in self.levels)

    @property
    def depth(self) -> int:
        return len(self.opened)

    def bits_sent(self, several: int = 1) -> int:
        """By all parties, for ``several`` comparisons with one mask."""
        return self.table_bits + several * (sum(self.product_bits) + 2 * sum(self.opened))


def roles(nodes: tuple[int, ...]) -> Iterator[tuple[int, bool]]:
    """Size of each node of a level, and whether its p is needed too."""
    return ((size, index < len(nodes) - 1) for index, size in enumerate(nodes))


@cache
def monomials(size: int, whole: bool) -> tuple[tuple[int, int], ...]:
    """The products of two masks or more that a node of ``size`` blocks needs: (set of the blocks whose p is a factor,
    as bits; the block whose g is a factor, or -1)."""
    with_g = ((chosen, block) for block in range(1, size) for chosen in range(1, 1 << block))
    without = ((chosen, -1) for chosen in range(1 << (size if whole else size - 1)) if chosen & (chosen - 1))
    return (*with_g, *without)


@cache
def plan(bits: int, depth: int, several: int = 1) -> ComparisonPlan | None:
    """The plan for ``several`` comparisons of one masked number of ``bits`` bits that sends least, among those of at
    most ``depth`` messages in a row; the one of fewest messages if several plans send as much; None if there is
    none."""
    return min(_plans(bits, depth), key=lambda each: (each.bits_sent(several), each.depth), default=None)


def _plans(bits: int, depth: int) -> Iterator[ComparisonPlan]:
    for levels in range(depth):
        sizes_of_nodes = product(range(2, _LARGEST_NODE + 1), repeat=levels)
        for first, sizes in product(range(1, _LARGEST_BLOCK + 1), sizes_of_nodes):
            blocks = _cut(bits, -(-bits // first))
            count, joined = len(blocks), []
            for size in sizes:
                if count > 1:
                    joined.append(_cut(count, -(-count // size)))
                    count = len(joined[-1])
            if count == 1:
                yield ComparisonPlan(blocks, tuple(joined))


def _cut(count: int, parts: int) -> tuple[int, ...]:
    """``count`` in so many parts that differ by one at most, the larger ones first."""
    each, more = divmod(count, parts)
    return (each + 1,) * more + (each,) * (parts - more)
