# SPDX-License-Identifier: Apache-2.0
"""Fused products of matrices and convolutions of floats: one integer product of aligned mantissas, one rounding.

Every row of the left operand and every column of the right one gets one exponent, the largest of its elements', and its
mantissas are shifted to it, towards zero, in integers of q + 1 + guard bits. Before that, what is multiplied by all of
row k of the right operand (column k of the left one) takes over the scale of that row: with w_k the largest exponent of
row k of the operand that gives the scales, its elements are divided by 2^w_k and the other operand's multiplied. So a
feature may have any unit if the weights that it meets make up for it.

With r_i and s_j the exponents of row i and column j after that, every output differs from the exact sum by less than
4 n 2^(r_i + s_j - q - guard) before it is rounded, n being the number of products summed; r_i + s_j is at least the
largest exponent of a product in the sum, and exceeds it by what element ik is below the largest of its column times
that of row k.

The work on floats is one alignment per element of either operand and one rounding per output. Elements of an operand
that one party knows are aligned in clear if they give the scales themselves.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import torch

from privml.context import Session
from privml.engines.base import Operand, Share
from privml.engines.shares import Window
from privml.float_words import exponent_of
from privml.formats import Float, Owned, Placement
from privml.ops.floating.values import components, finished
from privml.ops.rescaling import convert
from privml.ops.values import engine_of, is_secret, join, owner_of, result_dtype
from privml.ops.words import public_words
from privml.tensor import SecretTensor

# More guard bits have no effect.
_GUARD = 8
_RING = 64
# Mantissa and guard bits that engines align.
_ALIGNED = 29


@dataclass(frozen=True, slots=True)
class Factor:
    """One operand: words, exponents (biased, in Z_2^(p + 2), including any scale), and which party knows each."""

    words: Share
    exponents: Share
    known: Placement  # of the words
    scaled: Placement  # of the exponents


def guard_bits(fmt: Float, count: int) -> int | None:
    """Guard bits of sums of ``count`` products, so that they fit a ring of 64 bits and exponents theirs; None if there
    is no room for any."""
    most = (_RING - 1 - max(count - 1, 0).bit_length()) // 2 - fmt.mantissa - 1
    within = (1 << (fmt.exponent - 1)) - fmt.mantissa
    guard = min(_GUARD, _ALIGNED - fmt.mantissa, most, within)
    return guard if guard >= 0 else None


def factor(x: Any, session: Session, fmt: Float) -> Factor:
    """Of a secret, or of a public tensor, which party 0 passes as its own."""
    if is_secret(x):
        words, placement = convert(engine_of(x), x.share, x.format, fmt), x.placement
    else:
        placement = Owned(0)
        words = public_words(session.engine_for(placement), x, x.shape, fmt)
    return Factor(words, components(lambda c: exponent_of(c, fmt), words), placement, placement)


def largest(session: Session, share: Share, placement: Placement, dims: Sequence[int], bits: int) -> Share:
    """The maxima over ``dims``, which stay as dimensions of one."""
    rank = share[0].dim()
    dims = [d % rank for d in dims]
    order = [d for d in range(rank) if d not in dims] + dims
    lead = [share[0].shape[d] for d in range(rank) if d not in dims]
    flat = components(lambda c: c.permute(order).reshape(*lead, -1), share)
    values, _ = session.engine_for(placement).max_last(flat, bits)
    shape = [1 if d in dims else n for d, n in enumerate(share[0].shape)]
    return components(lambda c: c.reshape(shape), values)


def gives_scales(a: Factor, b: Factor) -> bool:
    """Whether the left operand does: the one that a party knows, else the one with fewer maxima to find, or, of two
    that are known, the one whose alignment in shares would cost more."""
    known = isinstance(a.known, Owned), isinstance(b.known, Owned)
    smaller = a.words[0].numel() <= b.words[0].numel()
    if known[0] != known[1]:
        return known[0]
    return not smaller if all(known) else smaller


def moved(session: Session, x: Factor, scale: Share, placement: Placement, sign: int, offset: int) -> Factor:
    """The factor with sign * scale + offset added to its exponents."""
    placement = join(x.scaled, placement)
    constant = session.engine_for(placement).public(torch.tensor(offset), 64)
    exponents = components(lambda e, w, c: e + sign * w + c, x.exponents, scale, constant)
    return Factor(x.words, exponents, x.known, placement)


def aligned(session: Session, x: Factor, top: Share, fmt: Float, guard: int, bits: int) -> Operand:
    """The integers of a factor whose blocks have exponents ``top``, for a product of ``bits`` bits."""
    shifts = components(lambda t, e: (t - e).contiguous(), top, x.exponents)
    placement = join(x.known, x.scaled)
    share = session.engine_for(placement).float_align(x.words, shifts, fmt, guard, bits)
    owner = owner_of(placement)
    return Operand(share, bits if owner is None else fmt.mantissa + 2 + guard, owner)


def shared_scales(
    session: Session,
    a: Factor,
    b: Factor,
    fmt: Float,
    rest: tuple[Sequence[int], Sequence[int]],
    turn: tuple[Any, Any],
) -> tuple[Factor, Factor]:
    """The factors after the scales of their common dimension moved from one to the other; sums of their exponents are
    those of the products then, without bias. ``rest``: the dimensions of either operand that are not common;
    ``turn``: brings scales found on a to the shape of b, and on b to that of a."""
    width, offset = fmt.exponent + 2, 2 - (1 << fmt.exponent)
    if gives_scales(a, b):
        scale = largest(session, a.exponents, a.scaled, rest[0], width)
        there = components(turn[0], scale)
        return moved(session, a, scale, a.scaled, -1, 0), moved(session, b, there, a.scaled, 1, offset)
    scale = largest(session, b.exponents, b.scaled, rest[1], width)
    there = components(turn[1], scale)
    return moved(session, a, there, b.scaled, 1, offset), moved(session, b, scale, b.scaled, -1, 0)


def summed(
    session: Session, share: Share, placement: Placement, top: Share, fmt: Float, bits: int, guard: int, dtype: Any
) -> SecretTensor:
    """Integer sums of ``bits`` bits as floats; ``top``: the exponents of their blocks, broadcast."""
    exponents = components(lambda t, c: t.expand(c.shape).contiguous(), top, share)
    words = session.engine_for(placement).float_from_sum(share, exponents, fmt, bits, 2 * (fmt.mantissa + guard))
    return finished(words, fmt, placement, session, dtype)


def sum_bits(fmt: Float, guard: int, count: int) -> int:
    """The ring of a sum of ``count`` products."""
    return 2 * (fmt.mantissa + 1 + guard) + max(count - 1, 0).bit_length() + 1


def _swapped(c: torch.Tensor) -> torch.Tensor:
    return c.transpose(-1, -2)


def matmul(a: Any, b: Any, session: Session, fmt: Float, guard: int) -> SecretTensor:
    """[..., m, k] @ [..., k, n] with equal leading dimensions."""
    bits, width = sum_bits(fmt, guard, a.shape[-1]), fmt.exponent + 2
    left, right = factor(a, session, fmt), factor(b, session, fmt)
    left, right = shared_scales(session, left, right, fmt, ([-2], [-1]), (_swapped, _swapped))
    rows = largest(session, left.exponents, left.scaled, [-1], width)
    columns = largest(session, right.exponents, right.scaled, [-2], width)
    x, y = aligned(session, left, rows, fmt, guard, bits), aligned(session, right, columns, fmt, guard, bits)
    placement = join(join(left.known, left.scaled), join(right.known, right.scaled))
    share = session.engine_for(placement).matmul(x, y, bits)
    top = components(lambda r, c: r + c, rows, columns)
    return summed(session, share, placement, top, fmt, bits, guard, result_dtype(a, b))


def conv2d(
    x: Any,
    weight: Any,
    window: Window,
    session: Session,
    fmt: Float,
    guard: int,
) -> SecretTensor:
    """x [n, c, h, w] with weight [o, c / groups, kh, kw]: a scale per input channel, an exponent per image and group,
    and one per output channel."""
    groups, bits, width = window.groups, sum_bits(fmt, guard, weight[0].numel()), fmt.exponent + 2
    batch, channels, outputs = x.shape[0], x.shape[1], weight.shape[0]
    image, kernel = factor(x, session, fmt), factor(weight, session, fmt)
    grouped = lambda c: c.reshape(batch, groups, channels // groups, -1)  # noqa: E731
    image = Factor(*(components(grouped, s) for s in (image.words, image.exponents)), image.known, image.scaled)
    grouped = lambda c: c.reshape(groups, outputs // groups, channels // groups, -1)  # noqa: E731
    kernel = Factor(*(components(grouped, s) for s in (kernel.words, kernel.exponents)), kernel.known, kernel.scaled)
    turn = (lambda c: c.reshape(groups, 1, -1, 1), lambda c: c.reshape(1, groups, -1, 1))
    image, kernel = shared_scales(session, image, kernel, fmt, ([0, 3], [1, 3]), turn)
    tops = largest(session, image.exponents, image.scaled, [2, 3], width)
    columns = largest(session, kernel.exponents, kernel.scaled, [2, 3], width)
    left = aligned(session, image, tops, fmt, guard, bits)
    right = aligned(session, kernel, columns, fmt, guard, bits)
    left = replace(left, share=components(lambda c: c.reshape(x.shape), left.share))
    right = replace(right, share=components(lambda c: c.reshape(weight.shape), right.share))
    placement = join(join(image.known, image.scaled), join(kernel.known, kernel.scaled))
    share = session.engine_for(placement).conv2d(left, right, window, bits)
    across = lambda r, c: (r.reshape(batch, groups, 1) + c.reshape(1, groups, -1)).reshape(batch, outputs, 1, 1)  # noqa: E731
    return summed(
        session, share, placement, components(across, tops, columns), fmt, bits, guard, result_dtype(x, weight)
    )
