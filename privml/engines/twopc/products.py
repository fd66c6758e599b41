# SPDX-License-Identifier: Apache-2.0
"""Which protocol makes a product: by who knows the factors, and by their widths."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
import torch

from privml.engines import ring
from privml.engines.base import Operand
from privml.engines.shape_tensor import zeros
from privml.engines.shares import Share, Window
from privml.engines.twopc.linear import ByTransfers
from privml.engines.twopc.operands import (
    array,
    call,
    extended,
    factor,
    fit,
    is_bounded,
    known,
    owned_array,
    owned_format,
    uniform,
)
from privml.engines.twopc.shared import convolved as shared_convolved
from privml.engines.twopc.shared import multiplied
from privml.engines.twopc.weights import convolved, with_weights

if TYPE_CHECKING:
    from privml.engines.twopc.engine import TwoPartyEngine


def multiply(engine: TwoPartyEngine, a: Operand, b: Operand, out_bits: int) -> Share:
    """Elementwise, of equal shapes, mod 2^out_bits."""
    a, b = fit(a, out_bits), fit(b, out_bits)
    if a.owner is not None and a.owner == b.owner:
        return (known(a) * known(b),)
    if a.owner is not None and b.owner is not None:
        mine = a if a.owner == engine.rank else b
        formats = (a.bits, a.signed), (b.bits, b.signed)
        return call(engine.session, "cross_term", a.owner, array(mine.share), *formats, out_bits)
    if a.owner is not None:
        a, b = b, a
    # SiRNN's products need max(m, n) <= ell <= m + n.
    if b.owner is not None:
        width = max(b.bits, out_bits - a.bits)  # a clear value is widened for nothing
        # The core takes the whole wider number, so what stands above the value's own width must go first.
        clear = array((known(b),)) if b.owner == engine.rank else None, (width, b.signed)
        return call(engine.session, "multiply_owned", b.owner, array(a.share), factor(a), *clear, out_bits)
    if a.share[0] is b.share[0] and a.bits == b.bits and a.bits >= 2 and out_bits <= a.bits + b.bits - is_bounded(a):
        return call(engine.session, "square", array(a.share), factor(a), out_bits)
    bounded = is_bounded(a) or is_bounded(b)
    room = a.bits + b.bits - bounded
    if room < out_bits:
        a = extended(engine, a, a.bits + out_bits - room)
        if not bounded:  # now it may be, which would take a bit of the room
            a = replace(a, bound=None)
    return call(engine.session, "multiply", array(a.share), factor(a), array(b.share), factor(b), out_bits)


def matmul_with_noise(engine: TwoPartyEngine, a: Operand, b: Operand, out_bits: int, noisy: bool) -> tuple[Share, int]:
    """[..., n, k] by [..., k, m] with equal leading dimensions, mod 2^out_bits, and 0; or, if it may be ``noisy`` and
    that saves messages, twice that or one more, mod 2^(out_bits + 1), and 1: noise decides, so that nothing of it is
    opened before an exact truncation by one bit or more. ValueError for other shapes."""
    x, y = a.share[0], b.share[0]
    if a.owner is not None and a.owner == b.owner:
        return (ring.matmul(known(a), known(b), out_bits),), 0
    a, b = uniform(engine, a, out_bits), uniform(engine, b, out_bits)
    *batch, rows, inner = x.shape
    columns = y.shape[-1]
    if y.shape[-2] != inner or list(y.shape[:-2]) != batch:
        raise ValueError(f"matmul: shapes {tuple(x.shape)} and {tuple(y.shape)} do not fit")
    if batch and 0 in (*batch, *x.shape[-2:], columns):
        return (zeros([*batch, rows, columns], torch.int64, engine.counts_only),), 0
    shape = rows, inner, columns, out_bits
    left, right = owned_format(a), owned_format(b)
    if not batch:
        otherwise = ByTransfers("matmul", (tuple(x.shape), left), (tuple(y.shape), right), shape)
        shared = a.owner is None and b.owner is None
        made = (multiplied if shared else with_weights)(engine, a, b, out_bits, otherwise, noisy)
        if made is not None:
            return made
        factors = owned_array(a, engine.rank), left, owned_array(b, engine.rank), right
        return call(engine.session, "matmul", *factors, *shape), 0
    # Of transfers a batch of products is one convolution with a group for each of them.
    count = int(np.prod(batch))
    shapes = [1, count * inner, columns, 1], [count * rows, inner, 1, 1]
    settings = *shapes, [1, 1], [0, 0, 0, 0], [1, 1], count, out_bits
    sizes = tuple(map(tuple, shapes))
    otherwise = ByTransfers("conv2d", (sizes[0], right), (sizes[1], left), _hashable(settings))
    made = multiplied(engine, a, b, out_bits, otherwise, noisy)
    if made is not None:
        return made
    factors = owned_array(b, engine.rank), right, owned_array(a, engine.rank), left
    out = call(engine.session, "conv2d", *factors, *settings)
    return (out[0].reshape(*batch, rows, columns),), 0


def _hashable(settings: tuple[Any, ...]) -> tuple[Any, ...]:
    return tuple(tuple(each) if isinstance(each, list) else each for each in settings)


def conv2d(engine: TwoPartyEngine, x: Operand, w: Operand, window: Window, out_bits: int) -> Share:
    """x [n, c, h, w] with w [o, c / groups, kh, kw], zero padding, mod 2^out_bits."""
    if x.owner is not None and x.owner == w.owner:
        return (ring.conv2d(known(x), known(w), window, out_bits),)
    x, w = uniform(engine, x, out_bits), uniform(engine, w, out_bits)
    image, kernel = owned_format(x), owned_format(w)
    shapes = tuple(x.share[0].shape), tuple(w.share[0].shape)
    top, left = window.padding
    sides = (top, top, left, left)
    place = tuple(window.stride), sides, tuple(window.dilation), window.groups
    settings = *shapes, *place, out_bits
    otherwise = ByTransfers("conv2d", (shapes[0], image), (shapes[1], kernel), settings)
    made = None
    if w.owner is not None:
        made = convolved(engine, x, w, window, out_bits, otherwise)
    else:
        made = shared_convolved(engine, x, w, window, out_bits, otherwise)
    if made is not None:
        return made
    factors = owned_array(x, engine.rank), image, owned_array(w, engine.rank), kernel
    return call(engine.session, "conv2d", *factors, *shapes, *place, out_bits)


def select_owned_rows(engine: TwoPartyEngine, bits: Share, rows: Operand, out_bits: int) -> Share:
    """The sum [n, m] of rows [k, m] that one party knows whose bits [n, k] are 1: b = b0 xor b1 picks w as
    b0 w + b1 (1 - 2 b0) w when party 0 knows w, where b1 is a choice between two vectors; likewise with the parties
    exchanged. One correlation for each bit."""
    owner, mine = rows.owner, bits[0].to(torch.int64)
    value = known(rows).unsqueeze(0)
    turned = value * (1 - 2 * mine).unsqueeze(-1) if engine.rank == owner else value.expand(mine.shape[0], -1, -1)
    choice = Operand((mine.unsqueeze(1),), 1, 1 - owner, False)
    width = min(rows.bits + 1, out_bits)  # one more: of either sign
    share = engine.matmul(choice, Operand((turned,), width, owner), out_bits)[0].squeeze(1)
    return (share + ring.matmul(mine, value[0], out_bits),) if engine.rank == owner else (share,)
