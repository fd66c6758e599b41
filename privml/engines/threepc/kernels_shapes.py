# SPDX-License-Identifier: Apache-2.0
"""The kernels of a party that only counts: shapes in and out, messages of the right length that hold nothing."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch

from privml.engines.shape_tensor import ShapeTensor
from privml.engines.threepc import kernels_cpu

device = torch.device("cpu")
words_blocks, bits_blocks, field_blocks = kernels_cpu.words_blocks, kernels_cpu.bits_blocks, kernels_cpu.field_blocks
deal_blocks, mask_blocks = kernels_cpu.deal_blocks, kernels_cpu.mask_blocks
deal_bytes, mask_bytes = kernels_cpu.deal_bytes, kernels_cpu.mask_bytes


def words(key: np.ndarray, start: int, shape: Sequence[int], bits: int) -> torch.Tensor:
    return ShapeTensor(shape)


def bits(key: np.ndarray, start: int, shape: Sequence[int]) -> torch.Tensor:
    return ShapeTensor(shape, torch.uint8)


def numbers(key: np.ndarray, start: int, shape: Sequence[int], modulus: int) -> torch.Tensor:
    return ShapeTensor(shape, torch.uint8)


def pack(values: torch.Tensor, bits: int) -> np.ndarray:
    return np.zeros(-(-values.numel() * bits // 8), np.uint8)  # which take no memory until somebody looks


def unpack(data: np.ndarray, shape: Sequence[int], bits: int) -> torch.Tensor:
    return ShapeTensor(shape)


def unpack_bits(data: np.ndarray, shape: Sequence[int]) -> torch.Tensor:
    return ShapeTensor(shape, torch.uint8)


def add_packed(value: torch.Tensor, data: np.ndarray, bits: int) -> torch.Tensor:
    return value


def selection_shares(rank: int, m_b: torch.Tensor, m_a: torch.Tensor, *others: Any) -> torch.Tensor:
    return ShapeTensor(m_a.shape)


def bit_shares(rank: int, m_b: torch.Tensor, r_bit: torch.Tensor, bits: int) -> torch.Tensor:
    return ShapeTensor(m_b.shape)


def lookup_shares(tables: torch.Tensor, m: torch.Tensor, dealt: torch.Tensor, bits: int) -> torch.Tensor:
    return ShapeTensor((tables.shape[0], *m.shape))
