# SPDX-License-Identifier: Apache-2.0
"""Shares as tuples of tensors: what is done to each of their components alike."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import torch

Share = tuple[torch.Tensor, ...]


class Window(NamedTuple):
    """How the kernel of a two-dimensional convolution moves over an image, each (vertical, horizontal); the padding is
    of zeros."""

    stride: tuple[int, int] = (1, 1)
    padding: tuple[int, int] = (0, 0)
    dilation: tuple[int, int] = (1, 1)
    groups: int = 1


class Promise(NamedTuple):
    """What the caller has proved of a signed value: that it is not negative, and -bound <= value < bound. Protocols are
    cheaper for it; if it does not hold, their results may depend on the shares."""

    nonnegative: bool = False
    bound: int | None = None


NO_PROMISE = Promise()


class Shift(NamedTuple):
    """How a product is divided by 2^count: of a product of which ``promise`` holds, in the same ring, or in the ring of
    so many bits fewer (``reduces``). ``nearest``: rounded as in ``truncate``, else down."""

    count: int
    promise: Promise = NO_PROMISE
    reduces: bool = False
    nearest: bool = False


def is_share(value: Any) -> bool:
    """Whether an argument of an operation is a share."""
    return isinstance(value, tuple) and bool(value) and isinstance(value[0], torch.Tensor)


def each(a: Share, function: Callable[[torch.Tensor], torch.Tensor]) -> Share:
    return tuple(function(c) for c in a)


def part(a: Share, index: int) -> Share:
    """``a[index]``."""
    return tuple(c[index] for c in a)


def stack(parts: Sequence[Share], dim: int = 0) -> Share:
    return tuple(torch.stack(components, dim) for components in zip(*parts, strict=True))


def joined(parts: Sequence[Share], dim: int) -> Share:
    return tuple(torch.cat(components, dim) for components in zip(*parts, strict=True))
