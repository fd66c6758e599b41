# SPDX-License-Identifier: Apache-2.0
"""An engine that computes between which numbers values lie, to check what protocols are promised.

A share is two int64 tensors: the least and the largest number that each value may be. Every operation takes what lies
between the extremes of its operands, over the integers; if that does not fit the ring of the result, the value may
have wrapped around and is anything of the ring. It knows nothing of formats: a promise that does not follow from its
own ranges, or from what a rule claims to have proved, is an error.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import torch

from privml.engines import ring
from privml.engines.base import Engine, Operand, Share
from privml.engines.formulas import Formula
from privml.engines.shares import NO_PROMISE, Promise, Window
from privml.errors import ConfigError
from privml.formats import FixedPoint, current_node

# Beyond it float64 does not hold every whole number.
_EXACT = 1 << 52


class IntervalEngine(Engine):
    """Two parties' computation; ConfigError, naming the layer, for a promise without a proof."""

    name = "intervals"
    rank = None
    parties = 2
    components = 2

    def owned(self, party: int) -> Engine:
        return self

    def knows(self, party: int) -> tuple[bool, ...]:
        return (False, False)

    # ---- ranges
    def _ends(self, a: Share, bits: int) -> tuple[int, int]:
        """What a value of the ring may be."""
        low, high = ring.extremes(a[0])[0], ring.extremes(a[1])[1]
        half = 1 << (bits - 1)
        return (low, high) if -half <= low and high < half else (-half, half - 1)

    def _wraps(self, low: torch.Tensor, high: torch.Tensor, bits: int) -> bool:
        half = 1 << (bits - 1)
        return ring.extremes(low)[0] < -half or ring.extremes(high)[1] >= half

    def between(self, shape: Sequence[int], low: int, high: int, bits: int) -> Share:
        """A value in [low, high], reduced to the ring."""
        half = 1 << (bits - 1)
        if low < -half or high >= half:
            low, high = -half, half - 1
        return tuple(torch.tensor(end, dtype=torch.int64).expand(tuple(shape)) for end in (low, high))

    def _promised(self, a: Share, bits: int, promise: Promise) -> tuple[int, int]:
        low, high = self._ends(a, bits)
        nonnegative, bound = promise
        wrong = f"is not negative, which may be {low}" if nonnegative and low < 0 else ""
        if bound is not None and not -bound <= low <= high < bound:
            wrong = f"lies within {bound}, which may be {low if low < -bound else high}"
        if wrong:
            raise ConfigError(
                f"layer {current_node().name!r}: a protocol requires that a value {wrong} in its ring of {bits} "
                "bits; nothing proves that, so this version of privml cannot compute the program: report it"
            )
        return low, high

    def _operand(self, a: Operand) -> tuple[int, int]:
        return self._promised(a.share, a.bits + (not a.signed), Promise(a.nonnegative, a.bound))

    def claim(self, a: Share, low: int, high: int) -> Share:
        return a[0].clamp(low, high), a[1].clamp(low, high)

    # ---- in and out
    def input(self, value: torch.Tensor | None, shape: Sequence[int], owner: int, bits: int) -> Share:
        return self.between(shape, -(1 << (bits - 1)), (1 << (bits - 1)) - 1, bits)

    def input_bits(self, value: torch.Tensor | None, shape: Sequence[int], owner: int) -> Share:
        return _bits(shape)

    def public(self, value: torch.Tensor, bits: int) -> Share:
        return (value.clone(), value.clone())

    def reveal(self, a: Share, bits: int, to: int | None = None) -> torch.Tensor | None:
        return a[0]

    def reveal_bits(self, a: Share, to: int | None = None) -> torch.Tensor | None:
        return a[0]

    # ---- linear
    def add(self, a: Share, b: Share, bits: int) -> Share:
        (low, high), (least, most) = self._ends(a, bits), self._ends(b, bits)
        return self.between(a[0].shape, low + least, high + most, bits)

    def add_public(self, a: Share, value: torch.Tensor | int, bits: int) -> Share:
        """Place by place, since masks replace values at some places by constants beyond the others' range."""
        if bits > 62 or self._wraps(*a, bits):
            return super().add_public(a, value, bits)
        low, high = (end + torch.as_tensor(value, dtype=torch.int64) for end in a)
        if self._wraps(low, high, bits):
            return self.between(low.shape, *self._ends((low, high), bits), bits)
        return low, high

    def negate(self, a: Share, bits: int) -> Share:
        low, high = self._ends(a, bits)
        return self.between(a[0].shape, -high, -low, bits)

    def multiply_public(self, a: Share, factor: torch.Tensor | int, bits: int) -> Share:
        least, most = ring.extremes(factor) if isinstance(factor, torch.Tensor) else (factor, factor)
        shape = torch.broadcast_shapes(a[0].shape, factor.shape) if isinstance(factor, torch.Tensor) else a[0].shape
        return self.between(shape, *_products(self._ends(a, bits), (least, most)), bits)

    def sum(self, a: Share, dims: Sequence[int], keepdim: bool, bits: int) -> Share:
        if not dims:
            return a
        low, high = self._ends(a, bits)
        shape = torch.empty(()).expand(a[0].shape).sum(tuple(dims), keepdim).shape
        count = a[0].numel() // max(torch.Size(shape).numel(), 1)
        return self.between(shape, low * count, high * count, bits)

    def additive(self, function: Callable[..., torch.Tensor], *shares: Share) -> Share:
        low, high = (function(*(component.double() for component in parts)) for parts in zip(*shares, strict=True))
        least = float(low.min()) if low.numel() else 0.0
        most = float(high.max()) if high.numel() else 0.0
        if max(-least, most) > _EXACT:
            return self.between(low.shape, -(1 << 63), (1 << 63) - 1, 64)
        return low.to(torch.int64), high.to(torch.int64)

    # ---- products
    def multiply(self, a: Operand, b: Operand, out_bits: int) -> Share:
        x, y = self._operand(a), self._operand(b)
        low, high = _products(x, y)
        if a.share[0] is b.share[0]:  # a square
            low = 0 if x[0] <= 0 <= x[1] else min(x[0] * x[0], x[1] * x[1])
        return self.between(a.share[0].shape, low, high, out_bits)

    def matmul(self, a: Operand, b: Operand, out_bits: int) -> Share:
        low, high = _products(self._operand(a), self._operand(b))
        count = a.share[0].shape[-1]
        shape = (*a.share[0].shape[:-1], b.share[0].shape[-1])
        return self.between(shape, low * count, high * count, out_bits)

    def conv2d(self, x: Operand, w: Operand, window: Window, out_bits: int) -> Share:
        low, high = _products(self._operand(x), self._operand(w))
        return self._convolved(x.share[0], w.share[0], window, (low, high), out_bits)

    def matmul_public(self, a: Share, b: torch.Tensor, bits: int, left: bool = False) -> Share:
        low, high = _products(self._ends(a, bits), ring.extremes(b))
        x, y = (b, a[0]) if left else (a[0], b)
        count = x.shape[-1]
        return self.between((*x.shape[:-1], y.shape[-1]), low * count, high * count, bits)

    def conv2d_public(self, x: Share, w: torch.Tensor, window: Window, bits: int) -> Share:
        ends = _products(self._ends(x, bits), ring.extremes(w))
        return self._convolved(x[0], w, window, ends, bits)

    def _convolved(self, x: torch.Tensor, w: torch.Tensor, window: Window, ends: tuple[int, int], bits: int) -> Share:
        images, kernels = (torch.empty(t.shape, device="meta") for t in (x, w))
        shape = torch.conv2d(images, kernels, None, *window).shape
        count = w.shape[1:].numel()
        return self.between(shape, min(ends[0], 0) * count, max(ends[1], 0) * count, bits)

    # ---- width and scale
    def truncate(self, a: Share, bits: int, shift: int, promise: Promise = NO_PROMISE, nearest: bool = False) -> Share:
        low, high = self._promised(a, bits, promise)
        if nearest and promise == NO_PROMISE:
            low, high = self._ends(self.between((), low + (1 << (shift - 1)), high + (1 << (shift - 1)), bits), bits)
        up = 1 << (shift - 1) if nearest and promise != NO_PROMISE else 0
        return self.between(a[0].shape, (low + up) >> shift, (high + up) >> shift, bits)

    def truncate_reduce(self, a: Share, bits: int, shift: int) -> Share:
        low, high = self._ends(a, bits)
        return self.between(a[0].shape, low >> shift, high >> shift, bits - shift)

    def extend(self, a: Share, bits: int, to_bits: int, signed: bool = True, promise: Promise = NO_PROMISE) -> Share:
        low, high = self._promised(a, bits, promise)
        if not signed and low < 0:
            low, high = 0, (1 << bits) - 1
        return self.between(a[0].shape, low, high, to_bits)

    def reduce(self, a: Share, bits: int, to_bits: int) -> Share:
        return self.between(a[0].shape, *self._ends(a, bits), to_bits)

    def divide_public(self, a: Share, bits: int, divisor: int, promise: Promise = NO_PROMISE) -> Share:
        low, high = self._promised(a, bits, promise)
        return self.between(a[0].shape, low // divisor, high // divisor, bits)

    # ---- bits
    def less_than_zero(self, a: Share, bits: int) -> Share:
        return _bits(a[0].shape)

    def equal_zero(self, a: Share, bits: int) -> Share:
        return _bits(a[0].shape)

    def xor(self, a: Share, b: Share) -> Share:
        return _bits(torch.broadcast_shapes(a[0].shape, b[0].shape))

    def logical_not(self, a: Share) -> Share:
        return _bits(a[0].shape)

    def logical_and(self, a: Share, b: Share) -> Share:
        return self.xor(a, b)

    def bits_to_ring(self, a: Share, bits: int) -> Share:
        return self.between(a[0].shape, 0, 1, bits)

    def select(self, bit: Share, a: Share, bits: int) -> Share:
        low, high = self._ends(a, bits)
        return self.between(a[0].shape, min(low, 0), max(high, 0), bits)

    def relu(self, a: Share, bits: int) -> tuple[Share, Share]:
        low, high = self._ends(a, bits)
        return self.between(a[0].shape, max(low, 0), max(high, 0), bits), _bits(a[0].shape)

    def maximum(self, a: Share, b: Share, bits: int) -> Share:
        (low, high), (least, most) = self._ends(a, bits), self._ends(b, bits)
        return self.between(a[0].shape, min(low, least), max(high, most), bits)

    def max_last(self, a: Share, bits: int, one_hot: bool = False) -> tuple[Share, Share | None]:
        place = _bits(a[0].shape) if one_hot else None
        return self.between(a[0].shape[:-1], *self._ends(a, bits), bits), place  # one of the values, whatever wraps

    def argmax_last(self, a: Share, bits: int) -> Share:
        return self.between(a[0].shape[:-1], 0, a[0].shape[-1] - 1, 64)

    # ---- tables
    def function(self, name: str, a: Share, source: FixedPoint, target: FixedPoint) -> Share:
        self._promised(a, source.bits, Promise(source.nonnegative, source.bound))
        return self.between(a[0].shape, -(1 << (target.bits - 1)), (1 << (target.bits - 1)) - 1, target.bits)

    def formula(self, a: Share, formula: Formula) -> Share:
        half = 1 << (formula.result_bits - 1)
        return self.between(a[0].shape, -half, half - 1, formula.result_bits)

    def lookup(self, table: torch.Tensor, index: Share, in_bits: int, out_bits: int) -> Share:
        return self.between(index[0].shape, *ring.extremes(table), out_bits)


def _bits(shape: Sequence[int]) -> Share:
    return tuple(torch.tensor(bit, dtype=torch.uint8).expand(tuple(shape)) for bit in (0, 1))


def _products(a: tuple[int, int], b: tuple[int, int]) -> tuple[int, int]:
    ends = [x * y for x in a for y in b]
    return min(ends), max(ends)
