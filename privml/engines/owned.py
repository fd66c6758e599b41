# SPDX-License-Identifier: Apache-2.0
"""Computation on values one party knows: in clear at the owner, on zeros elsewhere, without communication.

Every component is treated alike. Results that are not zero at zero (comparisons, tables) are masked with the
owner's indicator, so that the invariant of Owned shares holds: the value at the owner, zeros elsewhere.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch

from privml.engines import ring
from privml.engines.base import Engine, Operand, Share
from privml.engines.operations import OPERATIONS, AtZero, Kind, offer
from privml.engines.plain.engine import PlainEngine
from privml.engines.shape_tensor import ShapeTensor
from privml.engines.shares import Window, is_share


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

    def _each(self, name: str, /, *args: Any, **kwargs: Any) -> Share:
        """The operation in clear on each component."""
        (width,) = {len(a) for a in (*args, *kwargs.values()) if is_share(a)}

        def component(value: Any, index: int) -> Any:
            return (value[index],) if is_share(value) else value

        operation = getattr(self._clear, name)
        return tuple(
            operation(*(component(a, i) for a in args), **{key: component(a, i) for key, a in kwargs.items()})[0]
            for i in range(width)
        )

    def _bit(self, name: str, /, *args: Any, **kwargs: Any) -> Share:
        return self._masked(self._each(name, *args, **kwargs))

    def _at_owner(self, name: str, /, *args: Any, **kwargs: Any) -> Share:
        results = self._each(name, *args, **kwargs)
        known = self.base.knows(self.owner)
        return tuple(c if k else torch.zeros_like(c) for k, c in zip(known, results, strict=True))

    def _through(self, name: str, /, *args: Any, **kwargs: Any) -> Any:
        return getattr(self.base, name)(*args, **kwargs)

    def indicator(self, shape: Sequence[int]) -> Share:
        """Bits that are 1 at the owner and 0 elsewhere."""
        known = self.base.knows(self.owner)
        if self.counts_only:
            return (ShapeTensor(shape, torch.uint8),) * len(known)
        return tuple(torch.full(tuple(shape), int(k), dtype=torch.uint8) for k in known)

    def _masked(self, bits: Share) -> Share:
        return tuple(c & i for c, i in zip(bits, self.indicator(bits[0].shape), strict=True))

    def public(self, value: torch.Tensor, bits: int) -> Share:
        known = self.base.knows(self.owner)
        if self.counts_only:
            return (ShapeTensor(value.shape, value.dtype),) * len(known)
        return tuple(value.clone() if k else torch.zeros_like(value) for k in known)

    # ---- products
    def multiply(self, a: Operand, b: Operand, out_bits: int) -> Share:
        return tuple(ring.wrap(x * y, out_bits) for x, y in zip(a.share, b.share, strict=True))

    def matmul(self, a: Operand, b: Operand, out_bits: int) -> Share:
        return tuple(ring.wrap(ring.matmul(x, y, out_bits), out_bits) for x, y in zip(a.share, b.share, strict=True))

    def conv2d(self, x: Operand, w: Operand, window: Window, out_bits: int) -> Share:
        return tuple(
            ring.wrap(ring.conv2d(a, b, window, out_bits), out_bits) for a, b in zip(x.share, w.share, strict=True)
        )

    # ---- width and scale
    def truncate_reduce(self, a: Share, bits: int, shift: int) -> Share:
        return self._each("truncate", a, bits, shift)

    def reduce(self, a: Share, bits: int, to_bits: int) -> Share:
        return tuple(ring.wrap(c, to_bits) for c in a)

    # ---- bits
    def logical_not(self, a: Share) -> Share:
        return self._each("xor", a, self.indicator(a[0].shape))

    def max_last(self, a: Share, bits: int, one_hot: bool = False) -> tuple[Share, Share | None]:
        parts = [self._clear.max_last((c,), bits, one_hot) for c in a]
        values = tuple(value[0] for value, _ in parts)
        if not one_hot:
            return values, None
        return values, self._masked(tuple(position[0] for _, position in parts if position is not None))

    def lookup(self, table: torch.Tensor, index: Share, in_bits: int, out_bits: int) -> Share:
        entries = self._each("lookup", table, index, in_bits, out_bits)
        return self.select(self.indicator(index[0].shape), entries, out_bits)


_AT_ZERO = {AtZero.ZERO: OwnedEngine._each, AtZero.BIT: OwnedEngine._bit, AtZero.ANYTHING: OwnedEngine._at_owner}
offer(OwnedEngine, {name: _AT_ZERO[each.at_zero] for name, each in OPERATIONS.items() if each.at_zero is not None})
offer(
    OwnedEngine,
    {name: OwnedEngine._through for name, each in OPERATIONS.items() if each.kind in (Kind.INPUT, Kind.OPENING)},
)


class SharedEngine(Engine):
    """An engine whose shares hide values: on those that one party owns, that party computes in clear."""

    def owned(self, party: int) -> Engine:
        return OwnedEngine(self, party)
