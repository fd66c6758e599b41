# SPDX-License-Identifier: Apache-2.0
"""Shares of floating-point words: changes of format, and local operations."""

from __future__ import annotations

from collections.abc import Sequence

import torch

from privml.engines.base import Engine, Share
from privml.engines.ring import add_words, subtract_words
from privml.float_words import float_words, nonzero_of, sign_of
from privml.formats import Boolean, Float, Format


def public_words(engine: Engine, value: torch.Tensor | float, shape: Sequence[int], fmt: Float) -> Share:
    """A public value (broadcast to ``shape``) as a share."""
    return engine.public(float_words(value, fmt).expand(tuple(shape)), 64)


def reformatted(engine: Engine, share: Share, fmt: Format, to: Format) -> Share:
    """The same value in format ``to``, rounded to nearest (ties to even); one of the two formats is Float."""
    if fmt == to:
        return share
    if isinstance(fmt, Float):
        return engine.float_cast(share, fmt, to) if isinstance(to, Float) else engine.float_to_ring(share, fmt, to)
    if isinstance(fmt, Boolean):
        return engine.float_select(share, public_words(engine, 1.0, share[0].shape, to), to)
    return engine.float_from_ring(share, fmt, to)


# ---- without communication
def negated(engine: Engine, share: Share, fmt: Float) -> Share:
    signs = torch.full(share[0].shape, 1, dtype=torch.int64) << fmt.sign_bit
    return engine.xor(share, engine.public(signs, 64))


def magnitude(share: Share, fmt: Float) -> Share:
    return tuple(c & ~(1 << fmt.sign_bit) for c in share)


def signs(share: Share, fmt: Float) -> Share:
    """Boolean shares of the sign bits; zeros have signs too."""
    return tuple(sign_of(c, fmt) for c in share)


def nonzeros(share: Share, fmt: Float) -> Share:
    """Boolean shares of [a != 0]."""
    return tuple(nonzero_of(c, fmt) for c in share)


def selected(engine: Engine, bit: Share, a: Share, b: Share, fmt: Float) -> Share:
    """``a`` if bit is 1, else ``b``: one selection between words."""
    difference = tuple(subtract_words(x, y, fmt) for x, y in zip(a, b, strict=True))
    chosen = engine.float_select(bit, difference, fmt)
    return tuple(add_words(x, y, fmt) for x, y in zip(chosen, b, strict=True))
