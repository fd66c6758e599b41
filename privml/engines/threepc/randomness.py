# SPDX-License-Identifier: Apache-2.0
"""What two parties draw in common: a ChaCha20 key stream whose block counter both advance by the same amounts."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch

from privml.engines.shape_tensor import zeros
from privml.engines.threepc import kernels_cpu, kernels_shapes

KEY_BYTES = 32
# Odd, so that the order of draws counts.
_FACTOR = 6364136223846793005


class Stream:
    """One pairwise key. Every draw takes whole blocks from the public counter on, so that no byte serves twice.
    ``trail``: a public number below 2^64 that two ends have alike if they have drawn the same amounts in one order."""

    def __init__(self, key: bytes, kernels: Any = kernels_cpu) -> None:
        if len(key) != KEY_BYTES:
            raise ValueError(f"a key has {KEY_BYTES} bytes, got {len(key)}")
        self._key = np.frombuffer(key, dtype=np.uint8).copy()
        self._kernels = kernels
        self._counter = self.trail = 0

    def region(self, blocks: int) -> tuple[np.ndarray, int]:
        """(key, first block) of ``blocks`` blocks that were not used before."""
        start = self._counter
        self._counter += blocks
        if blocks:
            self.trail = (self.trail * _FACTOR + blocks) % (1 << 64)
        return self._key, start

    def words(self, shape: Sequence[int], bits: int) -> torch.Tensor:
        """Uniform elements of Z_2^bits as int64."""
        count = torch.Size(shape).numel()
        return self._kernels.words(*self.region(self._kernels.words_blocks(count, bits)), shape, bits)

    def deal_packed(self, value: torch.Tensor, bits: int) -> np.ndarray:
        """``value`` minus what ``words`` draws, as it goes on the wire."""
        blocks = self._kernels.words_blocks(value.numel(), bits)
        return self._kernels.deal_packed(value, *self.region(blocks), bits)

    def mask(self, part: torch.Tensor, bits: int) -> tuple[torch.Tensor, torch.Tensor, np.ndarray]:
        """What ``words`` draws, its sum with ``part``, and that sum as it goes on the wire."""
        blocks = self._kernels.words_blocks(part.numel(), bits)
        return self._kernels.mask_words(part, *self.region(blocks), bits)

    def bits(self, shape: Sequence[int]) -> torch.Tensor:
        """Uniform uint8 elements 0 and 1."""
        return self._kernels.bits(*self.region(self._kernels.bits_blocks(torch.Size(shape).numel())), shape)

    def bytes(self, count: int) -> torch.Tensor:
        """Uniform uint8 elements."""
        blocks = self._kernels.words_blocks(-(-count // 8), 64)
        return self._kernels.random_bytes(*self.region(blocks), count)

    def numbers(self, shape: Sequence[int], modulus: int) -> torch.Tensor:
        """Uniform uint8 elements below ``modulus`` <= 128."""
        blocks = self._kernels.field_blocks(torch.Size(shape).numel())
        return self._kernels.numbers(*self.region(blocks), shape, modulus)

    def wipe(self) -> None:
        self._key.fill(0)


class Silence(Stream):
    """The stream of a meter: zeros, which cost nothing to make, or their shapes alone."""

    def __init__(self, counts_only: bool = False) -> None:
        super().__init__(bytes(KEY_BYTES))
        self._counts_only = counts_only

    def words(self, shape: Sequence[int], bits: int) -> torch.Tensor:
        return zeros(shape, torch.int64, self._counts_only)

    def deal_packed(self, value: torch.Tensor, bits: int) -> np.ndarray:
        return kernels_shapes.pack(value, bits)

    def mask(self, part: torch.Tensor, bits: int) -> tuple[torch.Tensor, torch.Tensor, np.ndarray]:
        return self.words(part.shape, bits), part, kernels_shapes.pack(part, bits)

    def bits(self, shape: Sequence[int]) -> torch.Tensor:
        return zeros(shape, torch.uint8, self._counts_only)

    def bytes(self, count: int) -> torch.Tensor:
        return zeros((count,), torch.uint8, self._counts_only)

    def numbers(self, shape: Sequence[int], modulus: int) -> torch.Tensor:
        return zeros(shape, torch.uint8, self._counts_only)
