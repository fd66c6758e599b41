# SPDX-License-Identifier: Apache-2.0
"""Changes of a share's format: to another ring, another scale, from and to bits and floats."""

from __future__ import annotations

from typing import TypeVar

import torch

from privml.engines.base import Engine, Share
from privml.engines.shares import NO_PROMISE, Shift
from privml.formats import Boolean, FixedPoint, Float, Format
from privml.ops.ring_formats import RingFormat, bit_value, in_ring, plus, promise_of, says_more, truncated, width
from privml.ops.unopened import Product, as_share
from privml.ops.words import reformatted


def convert(engine: Engine, share: Share, fmt: Format, to: RingFormat) -> Share:
    """The same value in ring format ``to``, rounded to the nearest (halves up) when its scale is smaller; from and to
    Float to the nearest, ties to even."""
    nothing = not share[0].numel() and share[0].dtype is torch.int64  # what grows begins so
    if nothing and not isinstance(fmt, Boolean):  # shares of bits have other components on some engines
        return share
    if isinstance(fmt, Float) or isinstance(to, Float):
        return reformatted(engine, share, fmt, to)
    if isinstance(fmt, Boolean):
        share, fmt = engine.bits_to_ring(share, to.bits), bit_value(to.bits)
    shift = fmt.scale - to.scale
    if shift == 0 and fmt.bits == to.bits:
        return share
    if shift > 0:
        share, fmt = _shifted(engine, share, fmt, to.bits, shift)
    if to.bits > fmt.bits:
        share = engine.extend(share, fmt.bits, to.bits, True, promise_of(fmt))
    elif to.bits < fmt.bits:
        share = engine.reduce(share, fmt.bits, to.bits)
    if shift < 0:
        share = engine.multiply_public(share, 1 << -shift, to.bits)
    return share


def finished(engine: Engine, product: Product | Share, fmt: RingFormat, to: RingFormat) -> Share:
    """``convert`` of a product of which ``fmt`` is the format, which may wait for it."""
    shift = fmt.scale - to.scale
    if not isinstance(product, Product) or shift <= 0 or shift >= fmt.bits:
        return convert(engine, as_share(engine, product), fmt, to)
    return convert(engine, *_shifted(engine, product, fmt, to.bits, shift), to)


def _shifted(
    engine: Engine, share: Product | Share, fmt: RingFormat, wanted: int, shift: int
) -> tuple[Share, RingFormat]:
    """The value divided by 2^shift in the ring that is cheapest on the way to one of ``wanted`` bits. Of a product what
    is dropped afterwards is not computed."""
    half = 1 << (shift - 1) if engine.floors else 0  # makes a floor a rounding to the nearest
    raised, bits = plus(fmt, 0, half), fmt.bits
    known = width(raised)
    if known < bits and fmt.nonnegative and known - shift >= 2 and not engine.stays_wide:
        bits = known  # high bits cost less to bring back than to shift
    elif wanted + shift < bits:  # what is dropped afterwards is not shifted
        bits = wanted + shift
    if half and shift >= fmt.bits:
        return engine.multiply_public(as_share(engine, share), 0, fmt.bits), truncated(fmt, fmt.bits, shift)
    reduces = wanted <= bits - shift or bits < fmt.bits
    if not reduces:
        to = truncated(fmt, bits, shift, engine.floors)
    else:
        to = truncated(in_ring(fmt, bits), bits - shift, shift, engine.floors)
    if isinstance(share, Product):
        promise = NO_PROMISE if reduces else promise_of(fmt)
        return share.shifted(engine, bits, Shift(shift, promise, reduces, half > 0)), to
    if not reduces:
        return engine.truncate(share, bits, shift, promise_of(fmt), half > 0), to
    if half:
        share = engine.add_public(share, half, fmt.bits)
    if bits < fmt.bits:
        share = engine.reduce(share, fmt.bits, bits)
    return engine.truncate_reduce(share, bits, shift), to


_Value = TypeVar("_Value", Product, Share, Product | Share)


def calibrated(engine: Engine, share: _Value, fmt: RingFormat, output: FixedPoint) -> tuple[_Value, RingFormat]:
    """The value in the ring that what calibration saw needs, where the node's output format tells it and shifts get
    cheaper by it. A larger value wraps around there, whatever its shares are."""
    shift = fmt.scale - output.scale
    if output.bound is None or engine.stays_wide or shift <= 0 or says_more(fmt):
        return share, fmt
    bits = max(((output.bound << shift) - 1).bit_length() + 1, output.bits)
    if bits >= fmt.bits:
        return share, fmt
    reduced = share.reduced(bits) if isinstance(share, Product) else engine.reduce(share, fmt.bits, bits)
    return reduced, in_ring(fmt, bits)
