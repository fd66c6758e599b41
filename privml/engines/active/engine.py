# SPDX-License-Identifier: Apache-2.0
"""The actively secure two-party engine: authenticated shares in Z_2^(k+s), protocols of the compiled core.

A share of a number is (low words[, high words]) of this party's share and of its MAC; a share of a bit is one word of
each. The value of a number is the lowest k bits of the shares' sum, the value of a bit is the lowest bit. Values of
rings narrower than k bits lie in the low bits; the bits above are unknown and never used.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np
import torch

import privml._core as _core
from privml.engines import failures, ring
from privml.engines.active import numbers
from privml.engines.active.lookup import lookup_many
from privml.engines.active.numbers import array, arrays, on_halves, tensors
from privml.engines.active.windows import convolution
from privml.engines.base import Operand, Share
from privml.engines.composed.maxima import argmax_last, max_last
from privml.engines.correlations import Correlations
from privml.engines.owned import SharedEngine
from privml.engines.pads import zero_share
from privml.engines.shape_tensor import ShapeTensor
from privml.engines.shares import NO_PROMISE, Promise, Window
from privml.errors import ConfigError
from privml.formats import FixedPoint

BOTH = -1
RINGS = (64, 32)
TRUNCATIONS = ("auto", "probabilistic", "faithful", "exact")
# An operation whose truncations go wrong with at most this probability takes the probabilistic protocol by itself; a
# session may do 4096 of them before it fails with probability 2^-20.
_NEGLIGIBLE = 2.0**-32
_NOTHING = {
    "masks": (0, 0),
    **dict.fromkeys(("randoms", "triples", "squares", "bits", "bit_triples"), 0),
    "edabits": {},
}
_protocols = _core.spdz2k


class ActiveEngine(SharedEngine):
    """One party's engine on an open ``_core.ActiveSession`` (or on a meter, which returns zeros).

    If the peer deviates, SecurityAbort is raised, here or at the latest when a value is revealed; after that every call
    raises it. ``truncation``: "exact" always rounds down, as engine ``plain`` does; "faithful" may give one unit of the
    last place more; "probabilistic" costs least and gives a far wrong result with probability |x| / 2^k; "auto" is
    probabilistic where that is negligible and faithful elsewhere. ``failure``: the sum of these probabilities so far.
    """

    name = "active"
    portable = False  # codes are under keys of the session
    parties = 2
    trivial_inputs = False
    stays_wide = sums_low_bits = True
    actively_secure = True

    def __init__(self, session: _core.ActiveSession, truncation: str = "auto", counts_only: bool = False) -> None:
        if truncation not in TRUNCATIONS:
            raise ConfigError(f"truncation must be one of {', '.join(TRUNCATIONS)} here, got {truncation!r}")
        self.session, self.rank, self.truncation = session, session.rank, truncation
        self.ring, self.components = session.ring, session.components
        self.floors, self.counts_only = truncation == "exact", counts_only
        self.failure = 0.0

    def close(self) -> None:
        self.session.close()

    def counters(self) -> dict[str, Any]:
        """See ``privml.session.ledger.Snapshot``; ``truncation_failure``: an upper bound of the
        probability that any truncation so far went wrong."""
        return {**self.session.counters(), "truncation_failure": self.failure}

    def follow(self, transcript: Any, accounts: Mapping[int, Any]) -> None:
        super().follow(transcript, accounts)
        self.session.set_account(accounts[1 - self.rank])

    def set_tags(self, tags: Sequence[tuple[int, int]]) -> None:
        self.session.set_tag(tags[0][1])

    def drawn(self) -> dict[str, Any]:
        """Numbers of correlations drawn so far, by kind."""
        return self.session.drawn()

    def refresh(self) -> None:
        self.session.reserve(_NOTHING)

    def reserve(self, correlations: Correlations | dict[str, Any]) -> None:
        if isinstance(correlations, dict):
            self.session.reserve(correlations)

    # ---- in and out
    def input(self, value: torch.Tensor | None, shape: Sequence[int], owner: int, bits: int) -> Share:
        if bits > self.ring:
            raise ConfigError(f"a value of {bits} bits does not fit the ring of {self.ring}: choose fewer, or ring=64")
        return self._tensors(_protocols.input(self.session, self._mine(value, shape, owner), list(shape), owner))

    def input_bits(self, value: torch.Tensor | None, shape: Sequence[int], owner: int) -> Share:
        return self._tensors(_protocols.input_bits(self.session, self._mine(value, shape, owner), list(shape), owner))

    def _mine(self, value: torch.Tensor | None, shape: Sequence[int], owner: int) -> Any:
        if self.rank != owner or value is None or self.counts_only:
            return None
        return array(value.to(torch.int64).expand(tuple(shape)))

    def public(self, value: torch.Tensor, bits: int) -> Share:
        if self.counts_only:
            return (ShapeTensor(value.shape),) * (self.components if value.dtype is not torch.uint8 else 2)
        if value.dtype is not torch.uint8:
            return self._tensors(_protocols.public_numbers(self.session, array(value)))
        zeros = (torch.zeros(value.shape, dtype=torch.int64),) * 2
        return self._with_bits(zeros, value)

    def reveal(self, a: Share, bits: int, to: int | None = None) -> torch.Tensor | None:
        bits = min(bits, self.ring)
        value = _protocols.reveal(self.session, arrays(self._masked(a)), bits, BOTH if to is None else to)
        return None if value is None else ring.wrap(self._tensors([value])[0], bits)

    def reveal_bits(self, a: Share, to: int | None = None) -> torch.Tensor | None:
        value = _protocols.reveal_bits(self.session, arrays(self._masked(a)), BOTH if to is None else to)
        return None if value is None else self._tensors([value])[0]

    def _masked(self, a: Share) -> Share:
        """The same value with fresh parts, so that a peer that computes something else learns nothing from them."""
        pads = zero_share(self, a[0].shape, len(a) // 2)
        if pads is None:
            return a
        value, mac = numbers.halves(a)
        return (*numbers.add(value, pads), *mac)

    def assert_zero(self, a: Share, bits: int) -> None:
        opened = self.reveal(a, bits)  # which checks all that was opened before it, and itself
        if opened is not None and bool(opened.any()):
            self.session.abort("an input is not what its owner had to prove that it is")

    # ---- linear, local
    def add(self, a: Share, b: Share, bits: int) -> Share:
        return on_halves(numbers.add, a, b)

    def negate(self, a: Share, bits: int) -> Share:
        return on_halves(numbers.negate, a)

    def subtract(self, a: Share, b: Share, bits: int) -> Share:
        return on_halves(numbers.subtract, a, b)

    def add_public(self, a: Share, value: torch.Tensor | int, bits: int) -> Share:
        if self.counts_only:
            shape = torch.broadcast_shapes(a[0].shape, torch.as_tensor(value).shape)
            return tuple(c.expand(shape) for c in a)
        constants = torch.as_tensor(value, dtype=torch.int64)
        shape = torch.broadcast_shapes(a[0].shape, constants.shape)
        wide = tuple(c.expand(shape) for c in a)
        return self._tensors(_protocols.add_public(self.session, arrays(wide), array(constants.expand(shape))))

    def multiply_public(self, a: Share, factor: torch.Tensor | int, bits: int) -> Share:
        return on_halves(lambda x: numbers.multiply_public(x, factor), a)

    def sum(self, a: Share, dims: Sequence[int], keepdim: bool, bits: int) -> Share:
        return on_halves(lambda x: numbers.total(x, dims, keepdim), a) if dims else a

    def additive(self, function: Callable[..., torch.Tensor], *shares: Share) -> Share:
        if len(shares[0]) < self.components or self.ring < 64:  # what carries out of a word is lost
            return super().additive(function, *shares)
        return on_halves(partial(numbers.additive, function), *shares)

    def matmul_public(self, a: Share, b: torch.Tensor, bits: int, left: bool = False) -> Share:
        return on_halves(lambda x: numbers.matmul_public(x, b, left), a)

    def conv2d_public(self, x: Share, w: torch.Tensor, window: Window, bits: int) -> Share:
        def products(rows: Share, columns: Share) -> Share:
            return on_halves(lambda c: numbers.matmul_public(c, rows[0], left=True), columns)

        return convolution(x, (w,), window, products)

    # ---- products
    def multiply(self, a: Operand, b: Operand, out_bits: int) -> Share:
        return self._call("multiply", self._wide(a, out_bits), self._wide(b, out_bits))

    def matmul(self, a: Operand, b: Operand, out_bits: int) -> Share:
        return self._matmul(self._wide(a, out_bits), self._wide(b, out_bits))

    def _matmul(self, a: Share, b: Share) -> Share:
        if a[0].shape[:-2] != b[0].shape[:-2] or a[0].shape[-1] != b[0].shape[-2]:
            raise ValueError(f"matmul: shapes {tuple(a[0].shape)} and {tuple(b[0].shape)} do not fit")
        return self._call("matmul", a, b)

    def conv2d(self, x: Operand, w: Operand, window: Window, out_bits: int) -> Share:
        image, kernel = self._wide(x, out_bits), self._wide(w, out_bits)
        return convolution(image, kernel, window, self._matmul)

    def _wide(self, a: Operand, out_bits: int) -> Share:
        """An operand in the ring of the product."""
        if a.bits >= min(out_bits, self.ring):
            return a.share
        return self.extend(a.share, a.bits, out_bits, a.signed, Promise(a.nonnegative))

    # ---- width and scale
    def truncate(self, a: Share, bits: int, shift: int, promise: Promise = NO_PROMISE, nearest: bool = False) -> Share:
        bits = min(bits, self.ring)
        shift = min(shift, bits - 1)
        if shift == 0:
            return a
        if nearest:
            a, bits, promise = self.with_half(a, bits, shift, promise)
        if self._probabilistic(a, bits, promise.bound):
            return self._shifted(a, bits, shift, "probable")
        # Of rings of 63 and 64 bits two are taken to be left, unless results are to be exact.
        room = bits >= 63 and not self.floors
        bound = promise.bound
        small = (room or (bound is not None and bound <= 1 << (bits - 2))) and shift <= bits - 2
        if self.floors:
            return self._shifted(a, bits, shift, "exact_bounded" if small else "exact")
        return self._shifted(a, bits, shift, "bounded" if small else "exact_high")

    def _shifted(self, a: Share, bits: int, shift: int, kind: str, signed: bool = True) -> Share:
        """x / 2^shift for a number x of ``bits`` bits; the result is an element of the whole ring."""
        return self._call("truncate", a, bits, shift, kind, signed)

    def _probabilistic(self, a: Share, bits: int, bound: int | None) -> bool:
        limit = 1 << (bits - 1) if bound is None else bound
        failure = min(1.0, a[0].numel() * limit / 2.0**bits)
        if self.truncation == "probabilistic" or (self.truncation == "auto" and failure <= _NEGLIGIBLE):
            self.failure = failures.added(self.failure, failure)
            return True
        return False

    def floor(self, a: Share, bits: int, shift: int, promise: Promise = NO_PROMISE) -> Share:
        return self._exact().truncate(a, bits, shift, promise)

    def _exact(self) -> ActiveEngine:
        """The same party, rounding down always."""
        return self if self.floors else ActiveEngine(self.session, "exact", self.counts_only)

    def truncate_reduce(self, a: Share, bits: int, shift: int) -> Share:
        bits = min(bits, self.ring)
        if shift == 0:
            return a
        return self._shifted(a, bits, shift, "exact_low" if self.floors else "probable")  # higher bits do not matter

    def extend(self, a: Share, bits: int, to_bits: int, signed: bool = True, promise: Promise = NO_PROMISE) -> Share:
        if min(to_bits, self.ring) <= bits:
            return a
        # 2 x of a bit more, shifted back: no fraction falls away.
        double, signed = self.multiply_public(a, 2, self.ring), signed or promise.nonnegative
        bound = promise.bound
        small = signed and bound is not None and bound <= 1 << (bits - 2)
        return self._shifted(double, bits + 1, 1, "bounded" if small else "exact_high", signed)

    def divide_public(self, a: Share, bits: int, divisor: int, promise: Promise = NO_PROMISE) -> Share:
        self._need_wide("a quotient by a public number")
        # only exact steps give an exact quotient
        return super(ActiveEngine, self._exact()).divide_public(a, bits, divisor, promise)

    def _need_wide(self, what: str) -> None:
        if self.ring < 64:
            raise ConfigError(f"{what} needs the ring of 64 bits: open the session with ring=64")

    # ---- bits
    def less_than_zero(self, a: Share, bits: int) -> Share:
        return self._call("less_than_zero", a, min(bits, self.ring))

    def equal_zero(self, a: Share, bits: int) -> Share:
        return self._call("equal_zero", a, min(bits, self.ring))

    def xor(self, a: Share, b: Share) -> Share:
        return tuple(x + y for x, y in zip(a, b, strict=True))

    def logical_not(self, a: Share) -> Share:
        return self._with_bits(a, torch.ones((), dtype=torch.uint8).expand(a[0].shape))

    def _with_bits(self, a: Share, constants: torch.Tensor) -> Share:
        if self.counts_only:
            return a
        return self._tensors(_protocols.add_public_bits(self.session, arrays(a), array(constants)))

    def logical_and(self, a: Share, b: Share) -> Share:
        return self._call("bit_and", a, b)

    def bits_to_ring(self, a: Share, bits: int) -> Share:
        return self._call("bits_to_ring", a)

    def select(self, bit: Share, a: Share, bits: int) -> Share:
        return self._call("multiply", self.bits_to_ring(bit, bits), a)

    # ---- compositions
    def max_last(self, a: Share, bits: int, one_hot: bool = False) -> tuple[Share, Share | None]:
        return max_last(self, a, bits, one_hot)

    def argmax_last(self, a: Share, bits: int) -> Share:
        return argmax_last(self, a, bits)

    def lookup(self, table: torch.Tensor, index: Share, in_bits: int, out_bits: int) -> Share:
        return tuple(c[0] for c in self.lookup_many(table[None], index, in_bits, out_bits))

    def lookup_many(self, tables: torch.Tensor, index: Share, in_bits: int, out_bits: int) -> Share:
        return lookup_many(self, tables, index, in_bits)

    def function(self, name: str, a: Share, source: FixedPoint, target: FixedPoint) -> Share:
        from privml.engines.composed.functions import function

        self._need_wide(f"the function {name}")
        return function(self, name, a, source, target)

    def random_bits(self, shape: Sequence[int]) -> Share:
        """Bits that no party knows, as numbers."""
        return self._tensors(_protocols.random_bits(self.session, list(shape)))

    def open(self, a: Share, bits: int) -> torch.Tensor:
        """Opens the low bits of masked values inside protocols; their MACs are checked before a value is revealed."""
        return self._tensors([_protocols.open(self.session, arrays(a), bits)])[0]

    def _tensors(self, results: Sequence[np.ndarray]) -> Share:
        return tensors(results, self.counts_only)

    def _call(self, name: str, *args: Any) -> Share:
        passed = (arrays(a) if isinstance(a, tuple) else a for a in args)
        return self._tensors(getattr(_protocols, name)(self.session, *passed))
