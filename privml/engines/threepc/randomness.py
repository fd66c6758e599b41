# SPDX-License-Identifier: Apache-2.0
"""What two parties draw alike: a ChaCha20 key stream whose block counter both advance by the same amounts."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import torch

from privml.engines.threepc import kernels

KEY_BYTES = 32
_BLOCK_BYTES = 64


class Stream:
    """One pairwise key. Every draw takes whole blocks from the public counter on, so that no byte serves twice."""

    def __init__(self, key: bytes) -> None:
        if len(key) != KEY_BYTES:
            raise ValueError(f"a key has {KEY_BYTES} bytes, got {len(key)}")
        self._key = np.frombuffer(key, dtype=np.uint8).copy()
        self._counter = 0

    def _take(self, count: int) -> int:
        """The first of ``count`` blocks that nobody used before."""
        start = self._counter
        self._counter += count
        return start

    def words(self, shape: Sequence[int], bits: int) -> torch.Tensor:
        """Uniform elements of Z_2^bits as int64; what lies above is unspecified."""
        count = math.prod(shape)
        start = self._take(-(-8 * count // _BLOCK_BYTES))
        return torch.from_numpy(kernels.random_words(self._key, start, count)).view(tuple(shape))

    def bits(self, shape: Sequence[int]) -> torch.Tensor:
        """Uniform uint8 elements 0 and 1."""
        count = math.prod(shape)
        start = self._take(-(-count // (8 * _BLOCK_BYTES)))
        return torch.from_numpy(kernels.random_bits(self._key, start, count)).view(tuple(shape))

    def field(self, shape: Sequence[int], prime: int) -> np.ndarray:
        """Elements modulo ``prime`` (uint8), uniform up to 2^-56."""
        count = math.prod(shape)
        start = self._take(kernels.field_blocks(count))
        return kernels.random_field(self._key, start, count, prime).reshape(tuple(shape))

    def region(self, blocks: int) -> tuple[np.ndarray, int]:
        """(key, first block) of ``blocks`` blocks, for a kernel that draws them itself."""
        return self._key, self._take(blocks)

    def wipe(self) -> None:
        self._key.fill(0)


class Silence:
    """The stream of a meter: zeros, which cost nothing to make."""

    def words(self, shape: Sequence[int], bits: int) -> torch.Tensor:
        return torch.zeros(tuple(shape), dtype=torch.int64)

    def bits(self, shape: Sequence[int]) -> torch.Tensor:
        return torch.zeros(tuple(shape), dtype=torch.uint8)

    def field(self, shape: Sequence[int], prime: int) -> np.ndarray:
        return np.zeros(tuple(shape), np.uint8)

    def wipe(self) -> None:
        return None
