# SPDX-License-Identifier: Apache-2.0
"""What somebody on the network sees of a session in this process: direction and length of every message, and on request
the bytes; and statistics that uniform bytes pass."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any
from unittest import mock

import mpmath
import numpy as np

import privml
from privml import _core

# A test that uniform bytes fail so rarely; the seeds are fixed, so they pass or fail for good.
LEAST_P = 1e-6


class Wire:
    """``channels``: the ends of a session's connections, in the order in which they are made."""

    def __init__(self) -> None:
        self.channels: list[_core.TracedChannel] = []
        self._from = [0] * 100

    def passages(self) -> list[list[tuple[bool, int]]]:
        """(sent or not, bytes) of every message at each end."""
        return [channel.passages() for channel in self.channels]

    def forget(self) -> None:
        """What was sent so far, the set-up, is not asked for."""
        self._from = [len(channel.sent()) for channel in self.channels]

    def sent(self) -> bytes:
        """All bytes that were sent since, end by end."""
        return b"".join(c.sent()[start:] for c, start in zip(self.channels, self._from, strict=False))


@contextlib.contextmanager
def recorded(engine: str, keep_bytes: bool = False, **settings: Any) -> Iterator[tuple[Any, Wire]]:
    """A session of ``privml.local`` (which this opens) and its wire."""
    wire = Wire()

    def pair(*shape: float) -> tuple[Any, ...]:
        ends = [_core.TracedChannel(end, keep_bytes) for end in memory_pair(*shape)]
        wire.channels.extend(ends)
        return tuple(ends)

    memory_pair = _core.memory_pair
    with mock.patch.object(_core, "memory_pair", pair):
        session = privml.local(engine, **settings)
    with session:
        yield session, wire


# ---- statistics: each gives the probability that uniform bytes deviate so much
def _tail(statistic: float, freedom: int) -> float:
    """Of the chi-square distribution."""
    return float(mpmath.gammainc(freedom / 2, statistic / 2, regularized=True))


def _uniform_p(values: np.ndarray, cells: int) -> float:
    counts = np.bincount(values, minlength=cells)
    expected = values.size / cells
    assert expected >= 5, f"{values.size} values are too few for {cells} cells"
    return _tail(float(((counts - expected) ** 2).sum() / expected), cells - 1)


def p_values(data: bytes) -> dict[str, float]:
    """By name: of all bytes, of the lowest and highest bits of 8-byte words, and of neighbouring half bytes."""
    values = np.frombuffer(data, np.uint8)
    words = values[: values.size // 8 * 8].reshape(-1, 8)
    pairs = values[: values.size // 2 * 2].reshape(-1, 2)
    neighbours = (pairs[:, 0] >> 4).astype(np.int64) * 16 + (pairs[:, 1] >> 4)
    return {
        "bytes": _uniform_p(values, 256),
        "lowest bits of words": _uniform_p(words[:, 0] & 1, 2),
        "highest bits of words": _uniform_p(words[:, 7] >> 7, 2),
        "highest bytes of words": _uniform_p(words[:, 7], 256),
        "neighbours": _uniform_p(neighbours, 256),
    }


def difference_p(first: bytes, second: bytes) -> float:
    """That two strings of uniform bytes of equal length differ so much in how often each byte occurs."""
    a, b = (np.bincount(np.frombuffer(data, np.uint8), minlength=256).astype(float) for data in (first, second))
    assert len(first) == len(second) and (a + b).min() >= 10
    return _tail(float(((a - b) ** 2 / (a + b)).sum()), 255)


def looks_uniform(data: bytes) -> bool:
    return all(p >= LEAST_P for p in p_values(data).values())
