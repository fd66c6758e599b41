# SPDX-License-Identifier: Apache-2.0
"""All parties' computation in the clear, with the formats, roundings and ties of the secure engines.

The oracle of the tests, the fast way to measure a model's accuracy, and the place where overflow is found.
A share is one int64 tensor holding the signed value.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import torch

from privml.engines import ring
from privml.engines.base import Engine, Operand, Share
from privml.engines.catalogue import check_divisor
from privml.engines.composed import maxima
from privml.engines.formulas import Formula
from privml.engines.shape_tensor import elementwise
from privml.engines.shares import NO_PROMISE, Promise, Window
from privml.errors import OverflowDetected
from privml.formats import FixedPoint, Float, Integer, current_node


class PlainEngine(Engine):
    """``check_overflow``: raise OverflowDetected where a secure engine would silently wrap; without it, wrap
    as the ring does. ``parties``: how many owners there may be. ``like``: the engine whose rings and functions
    these are."""

    name = "plain"
    rank = None
    components = 1

    def __init__(self, check_overflow: bool = True, parties: int = 2, like: str = "twopc") -> None:
        if like not in ("twopc", "threepc", "active"):
            raise ValueError(f"like must be twopc, threepc or active, got {like!r}")
        self.check_overflow = check_overflow
        self.parties = parties
        self.composed = self.stays_wide = like != "twopc"
        self.trivial_inputs = not self.composed

    def owned(self, party: int) -> Engine:
        return self

    def knows(self, party: int) -> tuple[bool, ...]:
        return (True,)

    # ---- in and out
    def input(self, value: torch.Tensor | None, shape: Sequence[int], owner: int, bits: int) -> Share:
        assert value is not None
        return (value.expand(tuple(shape)).contiguous(),)

    def input_bits(self, value: torch.Tensor | None, shape: Sequence[int], owner: int) -> Share:
        assert value is not None
        return (value.expand(tuple(shape)).contiguous(),)

    def public(self, value: torch.Tensor, bits: int) -> Share:
        return (value.clone(),)

    def reveal(self, a: Share, bits: int, to: int | None = None) -> torch.Tensor | None:
        return a[0].clone()

    def reveal_bits(self, a: Share, to: int | None = None) -> torch.Tensor | None:
        return a[0].clone()

    # ---- linear
    def add(self, a: Share, b: Share, bits: int) -> Share:
        result = a[0] + b[0]
        if bits == 64 and self.check_overflow:
            carried = ((a[0] ^ result) & (b[0] ^ result)) < 0
            if bool(carried.any()):
                self._fail(65, bits)
            return (result,)
        return self._fit(result, bits)

    def negate(self, a: Share, bits: int) -> Share:
        return self._fit(-a[0], bits)

    def subtract(self, a: Share, b: Share, bits: int) -> Share:
        result = a[0] - b[0]
        if bits == 64 and self.check_overflow:
            carried = ((a[0] ^ b[0]) & (a[0] ^ result)) < 0
            if bool(carried.any()):
                self._fail(65, bits)
            return (result,)
        return self._fit(result, bits)

    def add_public(self, a: Share, value: torch.Tensor | int, bits: int) -> Share:
        return self.add(a, (value,), bits)

    def multiply_public(self, a: Share, factor: torch.Tensor | int, bits: int) -> Share:
        return self._fit(a[0] * factor, bits, a[0].double() * factor if self.check_overflow else None)

    def sum(self, a: Share, dims: Sequence[int], keepdim: bool, bits: int) -> Share:
        if not dims:
            return a
        result = a[0].sum(tuple(dims), keepdim)
        return self._fit(result, bits, a[0].double().sum(tuple(dims), keepdim) if self.check_overflow else None)

    # ---- products
    def multiply(self, a: Operand, b: Operand, out_bits: int) -> Share:
        x, y = a.share[0], b.share[0]
        return self._fit(x * y, out_bits, x.double() * y.double() if self.check_overflow else None)

    def matmul(self, a: Operand, b: Operand, out_bits: int) -> Share:
        return self.matmul_public(a.share, b.share[0], out_bits)

    def matmul_public(self, a: Share, b: torch.Tensor, bits: int, left: bool = False) -> Share:
        x, y = (b, a[0]) if left else (a[0], b)
        if not self.check_overflow:  # also at an owner of secrets: the time must not depend on them
            return self._fit(ring.matmul(x, y, bits), bits)
        return self._fit_estimated(ring.estimated_matmul(x, y), bits)

    def conv2d(self, x: Operand, w: Operand, window: Window, out_bits: int) -> Share:
        return self.conv2d_public(x.share, w.share[0], window, out_bits)

    def conv2d_public(self, x: Share, w: torch.Tensor, window: Window, bits: int) -> Share:
        if not self.check_overflow:
            return self._fit(ring.conv2d(x[0], w, window, bits), bits)
        return self._fit_estimated(ring.estimated_conv2d(x[0], w, window), bits)

    # ---- width and scale
    def truncate(self, a: Share, bits: int, shift: int, promise: Promise = NO_PROMISE, nearest: bool = False) -> Share:
        self._expect(a, promise)
        if not nearest:
            return (a[0] >> min(shift, 63),)
        if promise == NO_PROMISE:
            return (self.add_public(a, 1 << (shift - 1), bits)[0] >> shift,)
        return ((a[0] >> shift) + (a[0] >> (shift - 1) & 1),)

    def truncate_reduce(self, a: Share, bits: int, shift: int) -> Share:
        return (a[0] >> min(shift, 63),)

    def extend(self, a: Share, bits: int, to_bits: int, signed: bool = True, promise: Promise = NO_PROMISE) -> Share:
        self._expect(a, promise)
        if signed or bits == 64:
            return (ring.wrap(a[0], bits),)
        return (a[0] & ((1 << bits) - 1),)

    def reduce(self, a: Share, bits: int, to_bits: int) -> Share:
        return self._fit(a[0], to_bits)

    def divide_public(self, a: Share, bits: int, divisor: int, promise: Promise = NO_PROMISE) -> Share:
        check_divisor(divisor)
        self._expect(a, promise)
        return (a[0].div(divisor, rounding_mode="floor"),)

    # ---- bits
    def less_than_zero(self, a: Share, bits: int) -> Share:
        return ((a[0] < 0).to(torch.uint8),)

    def equal_zero(self, a: Share, bits: int) -> Share:
        return ((a[0] == 0).to(torch.uint8),)

    def xor(self, a: Share, b: Share) -> Share:
        return (a[0] ^ b[0],)

    def logical_not(self, a: Share) -> Share:
        return (a[0] ^ 1,)

    def logical_and(self, a: Share, b: Share) -> Share:
        return (a[0] & b[0],)

    def logical_or(self, a: Share, b: Share) -> Share:
        return (a[0] | b[0],)

    def bits_to_ring(self, a: Share, bits: int) -> Share:
        return (a[0].to(torch.int64),)

    def select(self, bit: Share, a: Share, bits: int) -> Share:
        return (a[0] * bit[0],)

    def relu(self, a: Share, bits: int) -> tuple[Share, Share]:
        return (a[0].clamp(min=0),), ((a[0] >= 0).to(torch.uint8),)

    def max_last(self, a: Share, bits: int, one_hot: bool = False) -> tuple[Share, Share | None]:
        if not self._comparable(a[0], bits):
            return maxima.max_last(self, a, bits, one_hot)
        if not one_hot:
            return (a[0].amax(-1),), None
        first = a[0].argmax(-1, keepdim=True)
        position = torch.zeros_like(a[0], dtype=torch.uint8).scatter_(-1, first, 1)
        return (a[0].gather(-1, first).squeeze(-1),), (position,)

    def argmax_last(self, a: Share, bits: int) -> Share:
        if not self._comparable(a[0], bits):
            return maxima.argmax_last(self, a, bits)
        return (a[0].argmax(-1),)

    def lookup(self, table: torch.Tensor, index: Share, in_bits: int, out_bits: int) -> Share:
        return (ring.wrap(table[index[0] & ((1 << in_bits) - 1)], out_bits),)

    def function(self, name: str, a: Share, source: FixedPoint, target: FixedPoint) -> Share:
        if name == "exp":
            self._require_room_for_powers(a[0], source, target)
        if self.composed:
            from privml.engines.composed.functions import function

            return function(PlainEngine(check_overflow=False, parties=self.parties), name, a, source, target)
        compute = getattr(_core().fixmath, f"clear_{name}")
        settings = source.bits, source.scale, target.bits, target.scale
        return (elementwise(compute, [self._fit(a[0], source.bits)[0]], *settings),)

    def _require_room_for_powers(self, argument: torch.Tensor, source: FixedPoint, target: FixedPoint) -> None:
        """OverflowDetected where an exponential does not fit ``target``: the function would saturate there."""
        if self.check_overflow and argument.numel():
            bits = int(argument.max()) * 2.0**-source.scale / math.log(2.0) + target.scale
            if bits >= target.bits - 1:
                self._fail(math.floor(bits) + 2, target.bits)

    # ---- floating point
    def float_operation(self, name: str, fmt: Float, *operands: Share) -> Share:
        return self._words(name, [operand[0] for operand in operands], fmt.exponent, fmt.mantissa)

    def float_cast(self, a: Share, fmt: Float, to: Float) -> Share:
        return self._words("cast", [a[0]], fmt.exponent, fmt.mantissa, to.exponent, to.mantissa)

    def float_from_ring(self, a: Share, fmt: FixedPoint | Integer, to: Float) -> Share:
        value = self._fit(a[0], fmt.bits)
        return self._words("from_fixed", [value[0]], fmt.bits, fmt.scale, to.exponent, to.mantissa)

    def float_to_ring(self, a: Share, fmt: Float, to: FixedPoint | Integer) -> Share:
        share = self._words("to_fixed", [a[0]], fmt.exponent, fmt.mantissa, to.bits, to.scale)
        return (ring.wrap(share[0], to.bits),)

    def float_select(self, bit: Share, a: Share, fmt: Float) -> Share:
        return (a[0] * bit[0],)

    def reveal_words(self, a: Share, fmt: Float, to: int | None = None) -> torch.Tensor | None:
        return a[0].clone()

    def float_align(self, a: Share, shifts: Share, fmt: Float, guard: int, bits: int) -> Share:
        return self._words("align", [a[0], shifts[0]], fmt.exponent, fmt.mantissa, guard)

    def float_from_sum(self, a: Share, exponents: Share, fmt: Float, bits: int, fraction: int) -> Share:
        return self._words("from_sum", [a[0], exponents[0]], fmt.exponent, fmt.mantissa, bits, fraction)

    def _words(self, name: str, operands: Sequence[torch.Tensor], *settings: int) -> Share:
        compute = getattr(_core().secfloat, f"clear_{name}")
        return (elementwise(compute, operands, *settings),)

    def formula(self, a: Share, formula: Formula) -> Share:
        return self._fit(elementwise(formula.clear, a), formula.result_bits)

    # ---- overflow
    def claim(self, a: Share, low: int, high: int) -> Share:
        least, most = ring.extremes(a[0])
        if a[0].numel() and (least < low or most > high):
            raise AssertionError(f"a rule claims values in [{low}, {high}], but they are in [{least}, {most}]")
        return a

    def _expect(self, a: Share, promise: Promise) -> None:
        """Raises OverflowDetected unless -bound <= value < bound."""
        bound = promise.bound
        if bound is None or not self.check_overflow or a[0].numel() == 0:
            return
        low, high = int(a[0].min()), int(a[0].max())
        if low < -bound or high >= bound:
            name = current_node().name
            place = f" in node {name!r}" if name else ""
            raise OverflowDetected(
                f"a value{place} is {high if high >= bound else low}, beyond the bound of {bound} that its protocol "
                "relies on; use more bits, calibrate on more representative data or with a larger margin, or set "
                "numerics.bounds=proved"
            )

    def _fit(self, value: torch.Tensor, bits: int, estimate: torch.Tensor | None = None) -> Share:
        """``value`` (exact modulo 2^64) in the ring; the float64 ``estimate`` tells whether it wrapped."""
        if not self.check_overflow:
            return (ring.wrap(value, bits),)
        if estimate is not None and estimate.numel():
            largest = float(estimate.abs().amax())
            if largest >= 2.0**62 and bool(ring.wrapped(value, estimate).any()):
                self._fail(_bit_length(largest), bits)
        low, high = ring.extremes(value)
        if bits < 64 and (low < -(1 << (bits - 1)) or high >= 1 << (bits - 1)):
            self._fail(max(abs(low), abs(high)).bit_length() + 1, bits)
        return (value,)

    def _fit_estimated(self, product: tuple[torch.Tensor, torch.Tensor | None], bits: int) -> Share:
        return self._fit(product[0], bits, product[1])

    def _comparable(self, value: torch.Tensor, bits: int) -> bool:
        """Whether differences of values are known to fit the ring; otherwise the tournament decides which one comes
        out. An owner of secrets always takes it: the time must not depend on them."""
        if not self.check_overflow:
            return False
        low, high = ring.extremes(value)
        if not -(1 << (bits - 2)) <= low <= high <= 1 << (bits - 2):
            self._fail(max(abs(low), abs(high)).bit_length() + 2, bits)
        return True

    def _fail(self, needed: int, bits: int) -> None:
        name = current_node().name
        place = f" in node {name!r}" if name else ""
        raise OverflowDetected(
            f"a value{place} needs {needed} bits, its ring has {bits}; use a ring with more bits "
            "(numerics bits=...), a smaller scale, or smaller weights and inputs"
        )


def _core() -> Any:
    """The compiled core, which only functions with tables need."""
    import privml._core as _core

    return _core


def _bit_length(value: float) -> int:
    return int(value).bit_length() + 1
