# SPDX-License-Identifier: Apache-2.0
"""Computation on values one party knows: in clear at the owner, on zeros elsewhere, without communication.

Every component is treated alike. Results that are not zero at zero (comparisons, tables) are masked with the
owner's indicator, so that the invariant of Owned shares holds: the value at the owner, zeros elsewhere.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import torch

from privml.engines import ring
from privml.engines.base import Engine, Operand, Share
from privml.engines.plain.engine import PlainEngine
from privml.engines.shape_tensor import ShapeTensor
from privml.formats import FixedPoint, Float, Integer


class OwnedEngine(Engine):
    """The engine of party ``owner`` alone, on the shares of ``base``; wraps as the ring does."""

    def __init__(self, base: Engine, owner: int) -> None:
        self.base, self.owner = base, owner
        self.name = f"{base.name} (in clear at party {owner})"
        self.parties, self.rank, self.components = base.parties, base.rank, base.components
        self.counts_only = base.counts_only
        self._clear = PlainEngine(check_overflow=False, parties=base.parties)

    def owned(self, party: int) -> Engine:
        return self.base.owned(party)

    def _each(self, function: Callable[..., Share], *shares: Share) -> Share:
        return tuple(function(*((c,) for c in parts))[0] for parts in zip(*shares, strict=True))

    def indicator(self, shape: Sequence[int]) -> Share:
        """Bits that are 1 at the owner and 0 elsewhere."""
        known = self.base.knows(self.owner)
        if self.counts_only:
            return (ShapeTensor(shape, torch.uint8),) * len(known)
        return tuple(torch.full(tuple(shape), int(k), dtype=torch.uint8) for k in known)

    def _masked(self, bits: Share) -> Share:
        return tuple(c & i for c, i in zip(bits, self.indicator(bits[0].shape), strict=True))

    # ---- in and out
    def input(self, value: torch.Tensor | None, shape: Sequence[int], owner: int, bits: int) -> Share:
        return self.base.input(value, shape, owner, bits)

    def input_bits(self, value: torch.Tensor | None, shape: Sequence[int], owner: int) -> Share:
        return self.base.input_bits(value, shape, owner)

    def public(self, value: torch.Tensor, bits: int) -> Share:
        known = self.base.knows(self.owner)
        if self.counts_only:
            return (ShapeTensor(value.shape, value.dtype),) * len(known)
        return tuple(value.clone() if k else torch.zeros_like(value) for k in known)

    def reveal(self, a: Share, bits: int, to: int | None = None) -> torch.Tensor | None:
        return self.base.reveal(a, bits, to)

    def reveal_bits(self, a: Share, to: int | None = None) -> torch.Tensor | None:
        return self.base.reveal_bits(a, to)

    # ---- linear and products: zero at zero
    def add(self, a: Share, b: Share, bits: int) -> Share:
        return self._each(lambda x, y: self._clear.add(x, y, bits), a, b)

    def negate(self, a: Share, bits: int) -> Share:
        return self._each(lambda x: self._clear.negate(x, bits), a)

    def multiply_public(self, a: Share, factor: torch.Tensor | int, bits: int) -> Share:
        return self._each(lambda x: self._clear.multiply_public(x, factor, bits), a)

    def sum(self, a: Share, dims: Sequence[int], keepdim: bool, bits: int) -> Share:
        return self._each(lambda x: self._clear.sum(x, dims, keepdim, bits), a)

    def multiply(self, a: Operand, b: Operand, out_bits: int) -> Share:
        return tuple(ring.wrap(x * y, out_bits) for x, y in zip(a.share, b.share, strict=True))

    def matmul(self, a: Operand, b: Operand, out_bits: int) -> Share:
        return tuple(ring.wrap(ring.matmul(x, y, out_bits), out_bits) for x, y in zip(a.share, b.share, strict=True))

    def matmul_public(self, a: Share, b: torch.Tensor, bits: int, left: bool = False) -> Share:
        return self._each(lambda x: self._clear.matmul_public(x, b, bits, left), a)

    def conv2d(
        self,
        x: Operand,
        w: Operand,
        stride: Sequence[int],
        padding: Sequence[int],
        dilation: Sequence[int],
        groups: int,
        out_bits: int,
    ) -> Share:
        return tuple(
            ring.wrap(ring.conv2d(a, b, stride, padding, dilation, groups, out_bits), out_bits)
            for a, b in zip(x.share, w.share, strict=True)
        )

    def conv2d_public(
        self,
        x: Share,
        w: torch.Tensor,
        stride: Sequence[int],
        padding: Sequence[int],
        dilation: Sequence[int],
        groups: int,
        bits: int,
    ) -> Share:
        return self._each(lambda a: self._clear.conv2d_public(a, w, stride, padding, dilation, groups, bits), x)

    # ---- width and scale
    def truncate(
        self,
        a: Share,
        bits: int,
        shift: int,
        nonnegative: bool = False,
        bound: int | None = None,
        nearest: bool = False,
    ) -> Share:
        return self._each(lambda x: self._clear.truncate(x, bits, shift, nonnegative, bound, nearest), a)

    def truncate_reduce(self, a: Share, bits: int, shift: int) -> Share:
        return self._each(lambda x: self._clear.truncate(x, bits, shift), a)

    def extend(
        self,
        a: Share,
        bits: int,
        to_bits: int,
        signed: bool = True,
        nonnegative: bool = False,
        bound: int | None = None,
    ) -> Share:
        return self._each(lambda x: self._clear.extend(x, bits, to_bits, signed), a)

    def divide_public(
        self, a: Share, bits: int, divisor: int, nonnegative: bool = False, bound: int | None = None
    ) -> Share:
        return self._each(lambda x: self._clear.divide_public(x, bits, divisor), a)

    def reduce(self, a: Share, bits: int, to_bits: int) -> Share:
        return tuple(ring.wrap(c, to_bits) for c in a)

    # ---- bits
    def less_than_zero(self, a: Share, bits: int) -> Share:
        return self._each(lambda x: self._clear.less_than_zero(x, bits), a)

    def equal_zero(self, a: Share, bits: int) -> Share:
        return self._masked(self._each(lambda x: self._clear.equal_zero(x, bits), a))

    def xor(self, a: Share, b: Share) -> Share:
        return self._each(self._clear.xor, a, b)

    def logical_not(self, a: Share) -> Share:
        return self._each(self._clear.xor, a, self.indicator(a[0].shape))

    def logical_and(self, a: Share, b: Share) -> Share:
        return self._each(self._clear.logical_and, a, b)

    def bits_to_ring(self, a: Share, bits: int) -> Share:
        return self._each(lambda x: self._clear.bits_to_ring(x, bits), a)

    def select(self, bit: Share, a: Share, bits: int) -> Share:
        return self._each(lambda b, x: self._clear.select(b, x, bits), bit, a)

    def max_last(self, a: Share, bits: int, one_hot: bool = False) -> tuple[Share, Share | None]:
        parts = [self._clear.max_last((c,), bits, one_hot) for c in a]
        values = tuple(value[0] for value, _ in parts)
        if not one_hot:
            return values, None
        return values, self._masked(tuple(position[0] for _, position in parts if position is not None))

    def argmax_last(self, a: Share, bits: int) -> Share:
        return self._each(lambda x: self._clear.argmax_last(x, bits), a)

    def function(self, name: str, a: Share, source: FixedPoint, target: FixedPoint) -> Share:
        return self._at_owner(lambda x: self._clear.function(name, x, source, target), a)

    def lookup(self, table: torch.Tensor, index: Share, in_bits: int, out_bits: int) -> Share:
        entries = self._each(lambda i: self._clear.lookup(table, i, in_bits, out_bits), index)
        return self.select(self.indicator(index[0].shape), entries, out_bits)

    # ---- floating point: not all of it is zero at zero
    def float_operation(self, name: str, fmt: Float, *operands: Share) -> Share:
        return self._at_owner(lambda *x: self._clear.float_operation(name, fmt, *x), *operands)

    def float_cast(self, a: Share, fmt: Float, to: Float) -> Share:
        return self._at_owner(lambda x: self._clear.float_cast(x, fmt, to), a)

    def float_from_ring(self, a: Share, fmt: FixedPoint | Integer, to: Float) -> Share:
        return self._at_owner(lambda x: self._clear.float_from_ring(x, fmt, to), a)

    def float_to_ring(self, a: Share, fmt: Float, to: FixedPoint | Integer) -> Share:
        return self._at_owner(lambda x: self._clear.float_to_ring(x, fmt, to), a)

    def float_select(self, bit: Share, a: Share, fmt: Float) -> Share:
        return self._each(lambda b, x: self._clear.float_select(b, x, fmt), bit, a)

    def float_align(self, a: Share, shifts: Share, fmt: Float, guard: int, bits: int) -> Share:
        return self._at_owner(lambda x, d: self._clear.float_align(x, d, fmt, guard, bits), a, shifts)

    def float_from_sum(self, a: Share, exponents: Share, fmt: Float, bits: int, fraction: int) -> Share:
        return self._at_owner(lambda x, e: self._clear.float_from_sum(x, e, fmt, bits, fraction), a, exponents)

    def reveal_words(self, a: Share, fmt: Float, to: int | None = None) -> torch.Tensor | None:
        return self.base.reveal_words(a, fmt, to)

    def _at_owner(self, function: Callable[..., Share], *shares: Share) -> Share:
        """The function at the owner, zeros elsewhere."""
        results = []
        for known, parts in zip(self.base.knows(self.owner), zip(*shares, strict=True), strict=True):
            result = function(*((c,) for c in parts))[0]  # for its dtype
            results.append(result if known else torch.zeros_like(result))
        return tuple(results)


class SharedEngine(Engine):
    """An engine whose shares hide values: on those that one party owns, that party computes in clear."""

    def owned(self, party: int) -> Engine:
        return OwnedEngine(self, party)
