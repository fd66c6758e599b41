# SPDX-License-Identifier: Apache-2.0
"""Shares and operands as what the compiled core takes and gives."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
import torch

import privml._core as _core
from privml.engines import ring
from privml.engines.base import Operand
from privml.engines.shape_tensor import array_of, shape_of, strided_array_of
from privml.engines.shares import Promise, Share

if TYPE_CHECKING:
    from privml.engines.twopc.engine import TwoPartyEngine

SHARED = -1


def array(share: Share) -> np.ndarray:
    return array_of(share[0])


def tensor(session: _core.TwoPartySession, array: np.ndarray | None) -> torch.Tensor | None:
    if array is None:
        return None
    return shape_of(array) if session.counts_only else torch.from_numpy(array)


def call(session: _core.TwoPartySession, name: str, *args: Any) -> Share:
    """A protocol of one result."""
    return (tensor(session, getattr(_core.twopc, name)(session, *args)),)


def is_bounded(a: Operand) -> bool:
    """Whether a shared factor is known to lie in a quarter of its ring, where its wrap takes no comparison."""
    known = a.owner is None and a.signed and not a.nonnegative
    return known and a.bound is not None and a.bits >= 2 and a.bound <= 1 << (a.bits - 2)


def factor(a: Operand) -> tuple[int, bool, bool, bool]:
    return a.bits, a.signed, a.nonnegative, is_bounded(a)


def owned_format(a: Operand) -> tuple[int, int, bool]:
    return SHARED if a.owner is None else a.owner, a.bits, a.signed


def known(a: Operand) -> torch.Tensor:
    """The owner's value as a number (zeros at the other party), whatever the bits above its width are."""
    x = a.share[0]
    if a.signed or a.bits == 64:
        return ring.wrap(x, a.bits)
    return x & ((1 << a.bits) - 1)


def owned_array(a: Operand, rank: int) -> np.ndarray | None:
    """What party ``rank`` passes for an operand: nothing when the other one owns it. Bits above the operand's width may
    be anything, as the core reads words by their format."""
    return array(a.share) if a.owner in (None, rank) else None


def words_of(a: Operand, rank: int) -> np.ndarray | None:
    """As ``owned_array``, for protocols that read a number by its format wherever it stands: nothing is copied."""
    return strided_array_of(a.share[0]) if a.owner is None or a.owner == rank else None


def fit(a: Operand, out_bits: int) -> Operand:
    """``a`` with at most ``out_bits`` bits: higher ones do not matter for the product."""
    if a.bits <= out_bits:
        return a
    fits = a.bound is not None and a.bound <= 1 << (out_bits - 1)
    return replace(a, bits=out_bits, nonnegative=False, bound=a.bound if fits else None)


def extension(bits: int, to_bits: int, signed: bool, promise: Promise) -> tuple[str, tuple[int, ...]]:
    """The cheapest call of the core that extends such a number, and what it takes besides the session and shares."""
    nonnegative, bound = promise
    if signed and not nonnegative and bound is not None and 2 * bound < 1 << bits:
        return "extend_bounded", (bits, bound, to_bits)
    name = "extend_nonnegative" if nonnegative else "sign_extend" if signed else "zero_extend"
    return name, (bits, to_bits)


def extended(engine: TwoPartyEngine, a: Operand, bits: int) -> Operand:
    promise = Promise(a.nonnegative, a.bound)
    return replace(a, share=engine.extend(a.share, a.bits, bits, a.signed, promise), bits=bits)


def uniform(engine: TwoPartyEngine, a: Operand, out_bits: int) -> Operand:
    """Shared operands of bilinear protocols live in the output's ring."""
    a = fit(a, out_bits)
    return extended(engine, a, out_bits) if a.owner is None and a.bits < out_bits else a
