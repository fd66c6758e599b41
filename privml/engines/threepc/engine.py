# SPDX-License-Identifier: Apache-2.0
"""The semi-honest three-party engine: two parties compute, a dealer helps; see ``party`` for what a share is."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import torch

from privml.engines import failures, ring
from privml.engines.base import Engine, Operand
from privml.engines.catalogue import check_divisor
from privml.engines.composed import maxima as tournament
from privml.engines.composed.steps import RING
from privml.engines.owned import SharedEngine
from privml.engines.shares import NO_PROMISE, Promise, Share, Shift, Window, each, joined, part
from privml.engines.threepc import division, functions, maxima, opening, products, scaled, width
from privml.engines.threepc.comparison import equal_zero, sign
from privml.engines.threepc.links import DEALER, set_tags
from privml.engines.threepc.party import Party
from privml.errors import ConfigError
from privml.formats import FixedPoint

# An operation whose truncations go wrong with at most this probability takes the probabilistic protocol by itself; a
# session may do 4096 of them before it fails with probability 2^-20.
_NEGLIGIBLE = 2.0**-32
TRUNCATIONS = ("auto", *width.MODES)


def _proved_small(bits: int, bound: int | None) -> bool:
    """Whether |x| < 2^(bits-2) is proved."""
    return bound is not None and bound <= 1 << (bits - 2)


def _extension_of(a: Operand, to_bits: int) -> tuple[Any, ...]:
    """What ``extend`` is given for a factor."""
    return a.share, a.bits, to_bits, a.signed, Promise(a.nonnegative, a.bound)


def _extended_alike(a: Operand) -> tuple[Any, ...]:
    """What is equal of factors that one extension brings to another ring."""
    return a.bits, a.signed, a.nonnegative, _proved_small(a.bits, a.bound)


class ThreePartyEngine(SharedEngine):
    """One party's engine (or a meter's, which computes on zeros). All parties call the same operations in the same
    order; every operation raises PeerDisconnected when another party is gone.

    ``truncation``: "exact" rounds down always, as ``plain``; "faithful" may be one unit of the last place above;
    "probabilistic" costs least and fails with probability |x| / 2^bits; "auto" is probabilistic where that is
    negligible and faithful elsewhere. ``failure``: the sum of these probabilities so far.
    """

    name = "threepc"
    parties = 3
    components = 2
    trivial_inputs = False
    stays_wide = sums_low_bits = True
    composes = True

    def __init__(self, party: Party, truncation: str = "auto") -> None:
        if truncation not in TRUNCATIONS:
            raise ConfigError(f"truncation must be one of {', '.join(TRUNCATIONS)}, got {truncation!r}")
        self.party, self.rank, self.truncation = party, party.rank, truncation
        self.counts_only = party.counts_only
        self.floors = truncation == "exact"
        self.shifts_products = frozenset() if self.floors else frozenset(opening.BILINEAR)
        self.opened_together = frozenset(opening.BEGINNINGS) | (
            {"extend"} if self.floors else {"extend", "truncate", "shifted_product"}
        )
        self.failure = 0.0

    def finish(self) -> None:
        self.party.drain()

    def follow(self, transcript: Any, accounts: Mapping[int, Any]) -> None:
        super().follow(transcript, accounts)
        self.party.transcript = transcript
        self.party.links.set_accounts(accounts)

    def set_tags(self, tags: Sequence[tuple[int, int]]) -> None:
        set_tags(tags)

    def close(self) -> None:
        self.party.close()

    def counters(self) -> dict[str, Any]:
        """See ``privml.session.ledger.Snapshot``; bytes are those this party sent and received. ``truncation_failure``:
        the probability that any truncation so far went wrong, at most."""
        return {**self.party.links.counts.as_dict(), "truncation_failure": self.failure}

    # ---- time, of meters alone
    def set_link(self, delay: float, seconds_per_byte: float, seconds_per_correlation: float = 0.0) -> None:
        """Messages take time from here on: one way, and of each direction's bytes. Nothing is made beforehand."""
        self.party.links.set_link(delay, seconds_per_byte)

    def compute(self, seconds: float) -> None:
        """All parties compute for so long."""
        self.party.links.compute(seconds)

    def elapsed(self) -> float:
        """Seconds that the messages and ``compute`` have taken, until party 0 and 1 are there."""
        return max(self.party.links.times[:2])

    # ---- in and out
    def input(self, value: torch.Tensor | None, shape: Sequence[int], owner: int, bits: int) -> Share:
        return products.enter(self.party, self._mine(value, shape, owner, torch.int64), tuple(shape), owner, bits)

    def input_bits(self, value: torch.Tensor | None, shape: Sequence[int], owner: int) -> Share:
        return products.enter_bits(self.party, self._mine(value, shape, owner, torch.uint8), tuple(shape), owner)

    def keep(self, share: Share) -> None:
        for component in share:
            self.party.keep_unmasked(component)

    def _mine(self, value: Any, shape: Sequence[int], owner: int, dtype: torch.dtype) -> torch.Tensor | None:
        if self.rank != owner:
            return None
        if value is None:
            raise ValueError(f"party {owner} owns this input and must pass its value")
        return self._here(value.to(dtype)).expand(tuple(shape)).contiguous()

    def _here(self, value: Any) -> Any:
        """A public tensor where this party computes; numbers as they are."""
        return value.to(self.party.device) if isinstance(value, torch.Tensor) else value

    def public(self, value: torch.Tensor, bits: int) -> Share:
        zeros = self.party.nothing(value.shape, value.dtype)
        if self.counts_only:
            return zeros, zeros
        if self.rank == DEALER:
            return zeros, self.party.nothing(value.shape, value.dtype)
        return self._here(value).clone(memory_format=torch.contiguous_format), zeros

    def reveal(self, a: Share, bits: int, to: int | None = None) -> torch.Tensor | None:
        value = products.reveal(self.party, a, bits, to)
        return None if value is None else ring.wrap(value, bits).cpu()

    def reveal_bits(self, a: Share, to: int | None = None) -> torch.Tensor | None:
        value = products.reveal_bits(self.party, a, to)
        return None if value is None else value.cpu()

    # ---- linear, local
    def _m(self, shape: Sequence[int], compute: Any) -> torch.Tensor:
        """The first component of a local result, zeros at the dealer."""
        return self.party.nothing(shape) if self.rank == DEALER else compute()

    def add(self, a: Share, b: Share, bits: int) -> Share:
        r = a[1] + b[1]
        return self._m(r.shape, lambda: a[0] + b[0]), r

    def negate(self, a: Share, bits: int) -> Share:
        return self._m(a[1].shape, lambda: -a[0]), -a[1]

    def subtract(self, a: Share, b: Share, bits: int) -> Share:
        r = a[1] - b[1]
        return self._m(r.shape, lambda: a[0] - b[0]), r

    def add_public(self, a: Share, value: torch.Tensor | int, bits: int) -> Share:
        return a if self.rank == DEALER else (a[0] + self._here(value), a[1])

    def multiply_public(self, a: Share, factor: torch.Tensor | int, bits: int) -> Share:
        if isinstance(factor, int):
            factor = ring.word(factor)
        factor = self._here(factor)
        r = a[1] * factor
        return self._m(r.shape, lambda: a[0] * factor), r

    def sum(self, a: Share, dims: Sequence[int], keepdim: bool, bits: int) -> Share:
        if not dims:
            return a
        r = a[1].sum(tuple(dims), keepdim)
        return self._m(r.shape, lambda: a[0].sum(tuple(dims), keepdim)), r

    def matmul_public(self, a: Share, b: torch.Tensor, bits: int, left: bool = False) -> Share:
        b = self._here(b)
        r = ring.matmul(b, a[1], bits) if left else ring.matmul(a[1], b, bits)
        return self._m(r.shape, lambda: ring.matmul(b, a[0], bits) if left else ring.matmul(a[0], b, bits)), r

    def conv2d_public(self, x: Share, w: torch.Tensor, window: Window, bits: int) -> Share:
        w = self._here(w)
        r = ring.conv2d(x[1], w, window, bits)
        return self._m(r.shape, lambda: ring.conv2d(x[0], w, window, bits)), r

    # ---- products, and sums that are opened once
    def multiply(self, a: Operand, b: Operand, out_bits: int) -> Share:
        return self._opened("multiply", a, b, out_bits)

    def matmul(self, a: Operand, b: Operand, out_bits: int) -> Share:
        left, right = a.share[0].shape, b.share[0].shape
        if left[:-2] != right[:-2] or left[-1] != right[-2]:
            raise ValueError(f"matmul: shapes {tuple(left)} and {tuple(right)} do not fit")
        return self._opened("matmul", a, b, out_bits)

    def conv2d(self, x: Operand, w: Operand, window: Window, out_bits: int) -> Share:
        return self._opened("conv2d", x, w, window, out_bits)

    def bits_to_ring(self, a: Share, bits: int) -> Share:
        return self._opened("bits_to_ring", a, bits)

    def select(self, bit: Share, a: Share, bits: int) -> Share:
        return self._opened("select", bit, a, bits)

    def select_sum(self, bits: Share, a: Share, ring_bits: int) -> Share:
        return self._opened("select_sum", bits, a, ring_bits)

    def weighted_bits(self, a: Share, weights: torch.Tensor, bits: int) -> Share:
        return self._opened("weighted_bits", a, weights, bits)

    def inner(self, a: Share, b: Share, bits: int) -> Share:
        return self._opened("inner", a, b, bits)

    def together(self, calls: Sequence[tuple[str, Sequence[Any]]]) -> list[Any]:
        results = [self._begun(name, *args) for name, args in calls]
        while waiting := [i for i, each in enumerate(results) if isinstance(each, products.Opening)]:
            opened = products.opened_together(self.party, [results[i] for i in waiting])
            for i, result in zip(waiting, opened, strict=True):
                results[i] = result
        return results

    def _opened(self, name: str, *args: Any) -> Share:
        return self.together([(name, args)])[0]

    def _begun(self, name: str, *args: Any) -> products.Opening | Share:
        """An operation up to its opening; as a whole if there is none."""
        if name == "truncate":
            return self._truncation(*args)
        if name == "extend":
            return self._extension(*args)
        if name == "shifted_product":
            return self._shifted_product(*args)
        if name in opening.BILINEAR:
            return opening.begun(self.party, name, *self._factors(args[0], args[1], args[-1]), *args[2:])
        return opening.begun(self.party, name, *(self._here(a) for a in args))

    def shifted_product(
        self,
        name: str,
        a: Operand,
        b: Operand,
        bits: int,
        shift: Shift,
        addend: Share | None = None,
        window: Window | None = None,
    ) -> Share:
        if self.floors:
            return super().shifted_product(name, a, b, bits, shift, addend, window)
        return self._opened("shifted_product", name, a, b, bits, shift, addend, window)

    def _shifted_product(
        self,
        name: str,
        a: Operand,
        b: Operand,
        bits: int,
        shift: Shift,
        addend: Share | None = None,
        window: Window | None = None,
    ) -> products.Opening:
        party, count, promise, reduces = self.party, shift.count, shift.promise, shift.reduces
        parts, shape = opening.product_parts(party, name, *self._factors(a, b, bits), window, bits)
        parts = scaled.added(party, parts, addend)
        if reduces:
            return scaled.reduced(party, parts, shape, bits, count)
        if self._probabilistic(shape, bits, promise.bound):
            return scaled.probabilistic(party, parts, shape, bits, count)
        whole = promise.nonnegative or count <= bits - 2  # what makes the product positive is a multiple of 2^count
        if self._small(bits, promise) and whole:
            return scaled.faithful(party, parts, shape, bits, count, promise.nonnegative)
        return products.Opening(parts, shape, bits, rest=lambda opened: self._truncation(opened, bits, count, promise))

    def multiply_rows(self, a: Operand, b: Operand, out_bits: int) -> Share:
        left, right = self._factors(a, b, out_bits)  # rows' numbers are brought to the ring before they are repeated
        bits = max(a.bits, b.bits, out_bits)
        return super().multiply_rows(replace(a, share=left, bits=bits), replace(b, share=right, bits=bits), out_bits)

    def _factors(self, a: Operand, b: Operand, out_bits: int) -> tuple[Share, Share]:
        """Both operands in the ring of the product, with the messages of one where that can be."""
        if all(mine is other for mine, other in zip(a.share, b.share, strict=True)):
            wide = self._wide(a, out_bits)
            return wide, wide
        if a.bits >= out_bits or _extended_alike(a) != _extended_alike(b):
            left, right = self.together([("extend", _extension_of(factor, out_bits)) for factor in (a, b)])
            return left, right
        both = joined([each(factor.share, torch.flatten) for factor in (a, b)], 0)
        bound = None if a.bound is None or b.bound is None else max(a.bound, b.bound)
        wide = self._wide(replace(a, share=both, bound=bound), out_bits)
        sizes = [a.share[1].numel(), b.share[1].numel()]
        first, second = zip(*(c.split(sizes) for c in wide), strict=True)
        return each(first, lambda c: c.view(a.share[1].shape)), each(second, lambda c: c.view(b.share[1].shape))

    def _wide(self, a: Operand, out_bits: int) -> Share:
        """An operand in the ring of the product."""
        return self.extend(*_extension_of(a, out_bits))

    # ---- width and scale
    def truncate(self, a: Share, bits: int, shift: int, promise: Promise = NO_PROMISE, nearest: bool = False) -> Share:
        return self._opened("truncate", a, bits, shift, promise, nearest)

    def _truncation(
        self, a: Share, bits: int, shift: int, promise: Promise = NO_PROMISE, nearest: bool = False
    ) -> products.Opening | Share:
        if shift == 0:
            return a
        shift = min(shift, bits - 1)
        if nearest:
            a, bits, promise = self.with_half(a, bits, shift, promise)
        if self._probabilistic(a[1].shape, bits, promise.bound):
            return width.truncate_probabilistic(self.party, a, bits, shift)
        if self.truncation == "exact":
            small = _proved_small(bits, promise.bound)
            if small and not promise.nonnegative:  # what is added to make x positive must be whole after the shift
                shift = min(shift, max(bits - 2, 1))
            return width.truncate_exact(self.party, a, bits, shift, promise.nonnegative, small)
        small = self._small(bits, promise)
        if small and not promise.nonnegative:  # as above; nothing is left beyond it
            shift = min(shift, max(bits - 2, 1))
        return width.truncation_begun(self.party, a, bits, shift, promise.nonnegative, small)

    def _small(self, bits: int, promise: Promise) -> bool:
        """Whether |x| < 2^(bits-2) is known, or x >= 0. Rings of 63 and 64 bits are taken to have two bits left."""
        return promise.nonnegative or bits >= 63 or _proved_small(bits, promise.bound)

    def _probabilistic(self, shape: Sequence[int], bits: int, bound: int | None) -> bool:
        limit = 1 << (bits - 1) if bound is None else bound
        failure = width.failure(limit, bits, math.prod(shape))
        if self.truncation == "probabilistic" or (self.truncation == "auto" and failure <= _NEGLIGIBLE):
            self.failure = failures.added(self.failure, failure)
            return True
        return False

    def truncate_reduce(self, a: Share, bits: int, shift: int) -> Share:
        if shift == 0:
            return a
        return width.truncate_reduce(self.party, a, bits, shift, self.truncation == "exact")

    def extend(self, a: Share, bits: int, to_bits: int, signed: bool = True, promise: Promise = NO_PROMISE) -> Share:
        return self._opened("extend", a, bits, to_bits, signed, promise)

    def _extension(
        self, a: Share, bits: int, to_bits: int, signed: bool = True, promise: Promise = NO_PROMISE
    ) -> products.Opening | Share:
        if to_bits <= bits:
            return a
        small = _proved_small(bits, promise.bound)
        return width.extension_begun(self.party, a, bits, to_bits, signed, promise.nonnegative, small)

    def floor(self, a: Share, bits: int, shift: int, promise: Promise = NO_PROMISE) -> Share:
        return self._exact().truncate(a, bits, shift, promise)

    def _exact(self) -> ThreePartyEngine:
        """The same party, rounding down always."""
        return self if self.truncation == "exact" else ThreePartyEngine(self.party, "exact")

    def divide_public(self, a: Share, bits: int, divisor: int, promise: Promise = NO_PROMISE) -> Share:
        check_divisor(divisor)
        small = _proved_small(bits, promise.bound)
        if divisor & (divisor - 1):
            return division.quotient(self.party, a, bits, divisor, promise.nonnegative, small)
        if divisor > 1 and self.truncation != "exact":  # only exact steps give an exact quotient
            return self._exact().divide_public(a, bits, divisor, promise)
        return super().divide_public(a, bits, divisor, promise)

    # ---- bits
    def less_than_zero(self, a: Share, bits: int) -> Share:
        return sign(self.party, a[0], a[1], bits)

    def less_than_many(self, a: Share, thresholds: Sequence[int], bits: int) -> Share:
        steps = torch.tensor(thresholds, device=self.party.device).view(-1, *[1] * a[1].dim())
        m = self.party.nothing((len(thresholds), *a[1].shape)) if self.rank == DEALER else a[0] - steps
        return sign(self.party, m, a[1], bits)

    def equal_zero(self, a: Share, bits: int) -> Share:
        below, above = equal_zero(self.party, a, bits)
        return self.logical_and(self.logical_not(below), self.logical_not(above))

    def xor(self, a: Share, b: Share) -> Share:
        return a[0] ^ b[0], a[1] ^ b[1]

    def logical_not(self, a: Share) -> Share:
        return a if self.rank == DEALER else (a[0] ^ 1, a[1])

    def logical_and(self, a: Share, b: Share) -> Share:
        return self._opened("logical_and", a, b)

    # ---- compositions
    def max_last(self, a: Share, bits: int, one_hot: bool = False) -> tuple[Share, Share | None]:
        if one_hot:
            return tournament.max_last(self, a, bits, one_hot)
        return maxima.max_last(self, a, bits), None

    def argmax_last(self, a: Share, bits: int) -> Share:
        return maxima.argmax_last(self, a, bits)

    def lookup(self, table: torch.Tensor, index: Share, in_bits: int, out_bits: int) -> Share:
        return part(self.lookup_many(table[None], index, in_bits, out_bits), 0)

    def lookup_many(self, tables: torch.Tensor, index: Share, in_bits: int, out_bits: int) -> Share:
        return self._opened("lookup_many", tables, index, in_bits, out_bits)

    def function(self, name: str, a: Share, source: FixedPoint, target: FixedPoint) -> Share:
        if self.computes_whole("function", name, a, source, target):
            return functions.function(self, name, a, source, target)
        from privml.engines.composed.functions import function

        return function(self, name, a, source, target)

    def function_ring(self, name: str, source: FixedPoint, target: FixedPoint) -> int:
        whole = not self.floors and functions.offers(name, source, target)
        return super().function_ring(name, source, target) if whole else RING

    def computes_whole(self, name: str, *args: Any) -> bool:
        if name != "function" or self.floors:
            return False
        called, _, source, target = args
        return functions.offers(called, source, target)

    def composed(self, name: str, through: Engine, *args: Any) -> Any:
        from privml.engines.composed.functions import function

        if name in ("max_last", "argmax_last"):
            return getattr(tournament, name)(through, *args)
        return function(through, *args) if name == "function" else getattr(Engine, name)(through, *args)
