# SPDX-License-Identifier: Apache-2.0
"""The kernels of a party on a CPU: torch tensors in and out, the compiled core in between.

Another device offers the same functions in a module of its own.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import torch

import privml._core as _core
from privml.engines.threepc.comparison_plan import ComparisonPlan

_kernels = _core.threepc
device = torch.device("cpu")
# What of a deal of the sign bit a party has: (party 0's list, party 1's key, its block).
Dealt = tuple[np.ndarray | None, np.ndarray | None, int]
# Below this many elements a second thread costs more than it saves.
_WORTH_A_THREAD = 1 << 15


def _threads(count: int) -> int:
    return min(torch.get_num_threads(), max(count // _WORTH_A_THREAD, 1))


def _tensor(data: np.ndarray, shape: Sequence[int]) -> torch.Tensor:
    """numpy takes a fraction of the time that torch takes for another shape."""
    return torch.from_numpy(data.reshape(shape))


def _bytes(value: torch.Tensor) -> np.ndarray:
    return value.contiguous().numpy().reshape(-1)


def _words(value: torch.Tensor) -> np.ndarray:
    return value.contiguous().numpy().reshape(-1)


# ---- randomness
words_blocks = _kernels.words_blocks
bits_blocks = _kernels.bits_blocks
field_blocks = _kernels.field_blocks


def words(key: np.ndarray, start: int, shape: Sequence[int], bits: int) -> torch.Tensor:
    count = math.prod(shape)
    return _tensor(_kernels.prf_words(key, start, count, bits, _threads(count)), shape)


def bits(key: np.ndarray, start: int, shape: Sequence[int]) -> torch.Tensor:
    count = math.prod(shape)
    return _tensor(_kernels.prf_bits(key, start, count, _threads(count)), shape)


def numbers(key: np.ndarray, start: int, shape: Sequence[int], modulus: int) -> torch.Tensor:
    count = math.prod(shape)
    return _tensor(_kernels.prf_field(key, start, count, modulus, _threads(count)), shape)


def random_bytes(key: np.ndarray, start: int, count: int) -> torch.Tensor:
    """The first ``count`` bytes of what ``words`` of 64 bits draws there."""
    words = -(-count // 8)
    return torch.from_numpy(_kernels.prf_words(key, start, words, 64, _threads(words)).view(np.uint8)[:count])


# ---- what goes before and after a message; see csrc/threepc/kernels.h
def mask_words(
    part: torch.Tensor, key: np.ndarray, start: int, bits: int
) -> tuple[torch.Tensor, torch.Tensor, np.ndarray]:
    """What ``words`` draws there, its sum with ``part``, and ``pack`` of that sum."""
    if bits == 64:  # the wire is a view
        mask = words(key, start, part.shape, bits)
        masked = part + mask
        return mask, masked, pack(masked, bits)
    mask, masked, wire = _kernels.mask_words(_words(part), key, start, bits, _threads(part.numel()))
    return _tensor(mask, part.shape), _tensor(masked, part.shape), wire


def deal_packed(value: torch.Tensor, key: np.ndarray, start: int, bits: int) -> np.ndarray:
    """``pack`` of ``value`` minus what ``words`` draws there."""
    if bits == 64:  # the wire is a view
        return _kernels.deal_words(_words(value), key, start, bits, _threads(value.numel())).view(np.uint8)
    return _kernels.deal_packed(_words(value), key, start, bits, _threads(value.numel()))


def add_packed(value: torch.Tensor, data: np.ndarray, bits: int) -> torch.Tensor:
    """``value`` plus what ``unpack`` gives."""
    return _tensor(_kernels.add_packed(_words(value), data, bits), value.shape)


# ---- the wire
def pack(values: torch.Tensor, bits: int) -> np.ndarray:
    """The low ``bits`` bits of each element (int64 or uint8), without gaps."""
    if bits == 64:
        return _words(values).view(np.uint8)
    return _core.pack(_words(values), bits)


def unpack(data: np.ndarray, shape: Sequence[int], bits: int) -> torch.Tensor:
    if bits == 64:
        return _tensor(data.view(np.int64), shape)
    return _tensor(_core.unpack(data, math.prod(shape), bits), shape)


def unpack_bits(data: np.ndarray, shape: Sequence[int]) -> torch.Tensor:
    return _tensor(_core.unpack_bytes(data, math.prod(shape), 1), shape)


def to_wire(data: torch.Tensor) -> np.ndarray:
    """uint8 elements as the connections take them."""
    return _bytes(data)


def from_wire(data: np.ndarray) -> torch.Tensor:
    return torch.from_numpy(data)


def planes(words: torch.Tensor, bits: int) -> torch.Tensor:
    """The low ``bits`` bits of int64 [rows, n], lowest first: uint8 [bits, rows, ceil(n / 8)], eight elements to a
    byte."""
    rows, count = words.shape
    return torch.from_numpy(_kernels.bit_planes(_words(words), rows, count, bits, _threads(words.numel())))


# ---- comparisons from dealt tables; see comparison_planes and csrc/threepc/comparison.h
def deal_comparison(plan: ComparisonPlan, r: torch.Tensor, masks: torch.Tensor) -> torch.Tensor:
    _, several, size = masks.shape
    dealt = _kernels.deal_comparison(plan.blocks, plan.levels, _bytes(r), _bytes(masks), several, size)
    return torch.from_numpy(dealt)


class Comparison:
    """``comparison_planes.Comparison``, compiled; see csrc/threepc/comparison_steps.h."""

    def __init__(
        self, rank: int, plan: ComparisonPlan, form: tuple[int, int], masks: torch.Tensor, dealt: torch.Tensor
    ) -> None:
        self._steps = _kernels.Comparison(rank, plan.blocks, plan.levels, *form, masks.numpy(), dealt.numpy())
        self.join = self._steps.join

    def begin(self, m: torch.Tensor) -> np.ndarray:
        return self._steps.begin(_words(m), _threads(m.numel()))

    def finish(self, received: np.ndarray, shape: Sequence[int]) -> tuple[torch.Tensor, torch.Tensor]:
        known, mask = self._steps.finish(received)
        return _tensor(known, shape), _tensor(mask, shape)


# ---- the sign bit; see csrc/threepc/sign.h
deal_blocks = _kernels.deal_blocks
mask_blocks = _kernels.mask_blocks
deal_bytes = _kernels.deal_bytes
mask_bytes = _kernels.mask_bytes


def sign_deal(r: torch.Tensor, key: np.ndarray, start: int, ell: int, prime: int) -> np.ndarray:
    return _kernels.sign_deal(_words(r), key, start, ell, prime, _threads(r.numel()))


def sign_mask(
    rank: int, words: Sequence[torch.Tensor], dealt: Dealt, common: tuple[np.ndarray, int], ell: int, prime: int
) -> np.ndarray:
    """``words``: m, flip and rotation of the party; ``common``: (key, block) of parties 0 and 1."""
    threads = _threads(words[0].numel())
    return _kernels.sign_mask(rank, *map(_words, words), *dealt, *common, ell, prime, threads)


def sign_open(first: np.ndarray, second: np.ndarray, shape: Sequence[int], ell: int, prime: int) -> torch.Tensor:
    count = math.prod(shape)
    return torch.from_numpy(_kernels.sign_open(first, second, count, ell, prime, _threads(count))).view(tuple(shape))


# ---- elements of the ring; see csrc/threepc/ring.h
def selection_shares(
    rank: int,
    m_b: torch.Tensor,
    m_a: torch.Tensor,
    r_a: torch.Tensor,
    r_bit: torch.Tensor,
    r_product: torch.Tensor,
    bits: int,
) -> torch.Tensor:
    """This party's share of b * a for the bit b = m_b ^ r_b (``m_b``: uint8)."""
    operands = map(_words, (m_b, m_a, r_a, r_bit, r_product))
    return _tensor(_kernels.selection_shares(rank, *operands, bits, _threads(m_a.numel())), m_a.shape)


def bit_shares(rank: int, m_b: torch.Tensor, r_bit: torch.Tensor, bits: int) -> torch.Tensor:
    """This party's share in the ring of the bit b = m_b ^ r_b (``m_b``: uint8)."""
    shares = _kernels.bit_shares(rank, _words(m_b), _words(r_bit), bits, _threads(m_b.numel()))
    return _tensor(shares, m_b.shape)


def lookup_shares(tables: torch.Tensor, m: torch.Tensor, dealt: torch.Tensor, bits: int) -> torch.Tensor:
    """This party's share of tables[:, (m - r) mod size], [k, *m.shape]; ``dealt``: its share of r's unit vector."""
    turned = tables.flip(-1).repeat(1, 2).contiguous().numpy()
    threads = _threads(dealt.numel())
    shares = _kernels.lookup_shares(turned, _words(m), _words(dealt), bits, threads)
    return torch.from_numpy(shares).view(tables.shape[0], *m.shape)


# ---- polynomials by pieces; see csrc/threepc/pieces.h
def piece_sums(
    rank: int,
    coefficients: torch.Tensor,
    shifts: tuple[int, int],
    index: torch.Tensor,
    place: torch.Tensor,
    hot: torch.Tensor,
) -> torch.Tensor:
    """``piece_sums.piece_sums``; ``hot``: this party's parts of unit vectors, without the first place."""
    threads = _threads(coefficients.numel() * index.numel())
    operands = map(_words, (index, place, hot))
    return torch.from_numpy(_kernels.piece_sums(coefficients.numpy(), *shifts, *operands, int(rank == 0), threads))
