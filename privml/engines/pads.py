# SPDX-License-Identifier: Apache-2.0
"""Masks on what parties send each other to open a value.

Sender and receiver draw the same numbers from the hash of all that the session has computed. If the two have computed
different things, their numbers have nothing in common, and what is received is noise. Between two parties with additive
parts, one adds the numbers and the other subtracts them, which leaves the value as it is.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import torch

import privml._core as _core
from privml.engines.base import Engine
from privml.engines.shares import Share

_kernels = _core.threepc


def _words(key: bytes, start: int, shape: Sequence[int]) -> torch.Tensor:
    drawn = _kernels.prf_words(np.frombuffer(key, np.uint8), start, math.prod(shape), 64, 1)
    return torch.from_numpy(drawn).view(tuple(shape))


def zero_share(engine: Engine, shape: Sequence[int], words: int = 1) -> Share | None:
    """This party's part of a sharing of zero in numbers of so many words; None without a transcript."""
    if engine.transcript is None or engine.rank is None:
        return None
    key, blocks = engine.transcript.pad_key(1 - engine.rank), _kernels.words_blocks(math.prod(shape), 64)
    drawn = tuple(_words(key, i * blocks, shape) for i in range(words))
    if engine.rank == 0:
        return drawn
    carry, parts = torch.ones(tuple(shape), dtype=torch.bool), []  # minus the number that all words make up
    for word in drawn:
        parts.append(~word + carry)
        carry = carry & (word == 0)
    return tuple(parts)


def masked(engine: Engine, a: Share) -> Share:
    """A share of one word per value, masked for its opening."""
    zero = zero_share(engine, a[0].shape)
    return a if zero is None else (a[0] + zero[0],)


def masked_bits(engine: Engine, a: Share) -> Share:
    """A share of bits, masked for its opening."""
    if engine.transcript is None or engine.rank is None:
        return a
    key, shape = engine.transcript.pad_key(1 - engine.rank), tuple(a[0].shape)
    drawn = _kernels.prf_bits(np.frombuffer(key, np.uint8), 0, math.prod(shape), 1)
    return (a[0] ^ torch.from_numpy(drawn).view(shape),)


def message_pad(transcript: Any, peer: int, size: int) -> np.ndarray:
    """What hides a message of so many bytes between this party and ``peer`` by exclusive or."""
    return _words(transcript.pad_key(peer), 0, (-(-size // 8),)).numpy().view(np.uint8)[:size]
