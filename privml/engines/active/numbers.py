# SPDX-License-Identifier: Apache-2.0
"""Local arithmetic on the words that shares and their MACs consist of: numbers modulo 2^64 in one int64 tensor, and
modulo 2^128 in two, the low and the high words.

Of a share (value..., MAC...) both halves are numbers, and every linear operation does the same to both.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import torch

import privml._core as _core
from privml.engines import ring
from privml.engines.base import Share
from privml.engines.shape_tensor import ShapeTensor, array_of, shape_of

Number = tuple[torch.Tensor, ...]


def halves(share: Share) -> tuple[Number, Number]:
    """Value and MAC."""
    middle = len(share) // 2
    return share[:middle], share[middle:]


def on_halves(function: Callable[..., Number], *shares: Share) -> Share:
    """``function`` of the values, and of the MACs."""
    return tuple(part for parts in zip(*(halves(s) for s in shares), strict=True) for part in function(*parts))


def array(tensor: torch.Tensor) -> np.ndarray:
    return array_of(tensor)


def arrays(tensors: Sequence[torch.Tensor]) -> tuple[np.ndarray, ...]:
    return tuple(array(t) for t in tensors)


def tensors(results: Sequence[np.ndarray], counts_only: bool = False) -> Share:
    return tuple(shape_of(r) if counts_only else torch.from_numpy(r) for r in results)


# What the core's operations on numbers modulo 2^128 do to shapes.
_SHAPES: dict[str, Callable[..., torch.Tensor]] = {
    "sum": lambda lines: lines.sum(1),
    "matmul": lambda a, b, left: torch.matmul(b, a) if left else torch.matmul(a, b),
}


def _wide(name: str, a: Number, *args: Any) -> Number:
    if isinstance(a[0], ShapeTensor):
        shaped = _SHAPES.get(name, lambda a, *args: a)
        return tuple(shaped(x, *args) for x in a)
    args = tuple(arrays(x) if isinstance(x, tuple) else array(x) if isinstance(x, torch.Tensor) else x for x in args)
    return tensors(getattr(_core.linear, f"wide_{name}")(arrays(a), *args))


def _alike(a: Number, b: Number) -> tuple[Number, Number]:
    if a[0].shape == b[0].shape:
        return a, b
    shape = torch.broadcast_shapes(a[0].shape, b[0].shape)
    return tuple(x.expand(shape) for x in a), tuple(x.expand(shape) for x in b)


def add(a: Number, b: Number) -> Number:
    if len(a) == 1:
        return (a[0] + b[0],)
    a, b = _alike(a, b)
    return _wide("add", a, b)


def subtract(a: Number, b: Number) -> Number:
    if len(a) == 1:
        return (a[0] - b[0],)
    a, b = _alike(a, b)
    return _wide("subtract", a, b)


def negate(a: Number) -> Number:
    return (-a[0],) if len(a) == 1 else _wide("negate", a)


def multiply_public(a: Number, factor: torch.Tensor | int) -> Number:
    """Times public words, taken from 0 to 2^64 - 1: value and MAC are multiplied by the same numbers."""
    if isinstance(factor, int):
        factor = torch.tensor((factor + 2**63) % 2**64 - 2**63)
    factor = factor.to(torch.int64)
    if len(a) == 1:
        return (a[0] * factor,)
    if factor.dim():
        shape = torch.broadcast_shapes(a[0].shape, factor.shape)
        a, factor = tuple(x.expand(shape) for x in a), factor.expand(shape)
    return _wide("multiply", a, factor)


def total(a: Number, dims: Sequence[int], keepdim: bool) -> Number:
    """The sum over ``dims``."""
    if len(a) == 1:
        return (a[0].sum(tuple(dims), keepdim),)
    rank, shape = a[0].dim(), a[0].shape
    summed = sorted(d % rank for d in dims)
    kept = [d for d in range(rank) if d not in summed]
    count, rest = math.prod(shape[d] for d in summed), math.prod(shape[d] for d in kept)
    lines = tuple(x.permute(*summed, *kept).reshape(1, count, rest) for x in a)
    left = [1 if d in summed else n for d, n in enumerate(shape) if keepdim or d not in summed]
    return tuple(x.view(left) for x in _wide("sum", lines))


_HALF = (1 << 32) - 1


def additive(function: Callable[..., torch.Tensor], *parts: Number) -> Number:
    """A function that moves elements and adds fewer than 2^31 of them up, of numbers modulo 2^128: of pieces of 32
    bits, whose carries are counted afterwards."""
    words = [[piece for word in number for piece in (word & _HALF, (word >> 32) & _HALF)] for number in parts]
    sums = [function(*pieces) for pieces in zip(*words, strict=True)]
    carry, pieces = torch.zeros_like(sums[0]), []
    for total in sums:
        total = total + carry
        pieces.append(total & _HALF)
        carry = total >> 32
    return pieces[0] | pieces[1] << 32, pieces[2] | pieces[3] << 32


def matmul_public(a: Number, b: torch.Tensor, left: bool = False) -> Number:
    """a @ b, or b @ a, of [..., n, k] and [..., k, m], leading dimensions broadcast; b as in ``multiply_public``."""
    if len(a) == 1:
        return (ring.matmul(b, a[0]) if left else ring.matmul(a[0], b),)
    leading = torch.broadcast_shapes(a[0].shape[:-2], b.shape[:-2])
    count = math.prod(leading)
    flat = tuple(x.expand(*leading, *x.shape[-2:]).reshape(count, *x.shape[-2:]) for x in a)
    factor = b.expand(*leading, *b.shape[-2:]).reshape(count, *b.shape[-2:])
    return tuple(x.view(*leading, *x.shape[-2:]) for x in _wide("matmul", flat, factor, left))
