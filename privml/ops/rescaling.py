# SPDX-License-Identifier: Apache-2.0
"""Changes of a share's format: to another ring, another scale, from and to bits and floats."""

from __future__ import annotations

from privml.engines.base import Engine, Share
from privml.formats import Boolean, FixedPoint, Float, Format
from privml.ops.ring_formats import RingFormat, bit_value, ring_format, shifted, width
from privml.ops.words import reformatted


def convert(engine: Engine, share: Share, fmt: Format, to: RingFormat) -> Share:
    """The same value in ring format ``to``, rounded to the nearest (halves up) when its scale is smaller; from and to
    Float to the nearest, ties to even."""
    if isinstance(fmt, Float) or isinstance(to, Float):
        return reformatted(engine, share, fmt, to)
    if isinstance(fmt, Boolean):
        share, fmt = engine.bits_to_ring(share, to.bits), bit_value(to.bits)
    shift = fmt.scale - to.scale
    if shift == 0 and fmt.bits == to.bits:
        return share
    bits = fmt.bits
    if shift > 0:
        raised = fmt
        if engine.floors:
            share, raised = _with_half(engine, share, fmt, shift)
        known = width(raised)
        comes_back = fmt.nonnegative and known - shift >= 2 and not engine.stays_wide
        if known < bits and comes_back:  # high bits cost less to bring back than to shift
            share, bits = engine.reduce(share, bits, known), known
        elif to.bits + shift < bits:  # what is dropped afterwards is not shifted
            share, bits = engine.reduce(share, bits, to.bits + shift), to.bits + shift
        if to.bits <= bits - shift or bits < fmt.bits:
            share, bits = engine.truncate_reduce(share, bits, shift), bits - shift
        else:
            share = engine.truncate(share, bits, shift, fmt.nonnegative, raised.bound)
    if to.bits > bits:
        share = engine.extend(share, bits, to.bits, True, fmt.nonnegative, _bound_after(fmt, shift, bits))
    elif to.bits < bits:
        share = engine.reduce(share, bits, to.bits)
    if shift < 0:
        share = engine.multiply_public(share, 1 << -shift, to.bits)
    return share


def _with_half(engine: Engine, share: Share, fmt: RingFormat, shift: int) -> tuple[Share, RingFormat]:
    """Half a unit of what a shift by ``shift`` bits leaves, added: a floor after it rounds to the nearest."""
    half = 1 << (shift - 1)
    bound = None if fmt.bound is None else fmt.bound + half
    if bound is not None and bound > 1 << (fmt.bits - 1):
        bound = None
    to = ring_format(fmt.bits, fmt.scale, isinstance(fmt, FixedPoint), fmt.nonnegative, bound)
    return engine.add_public(share, half, fmt.bits), to


def promised(engine: Engine, share: Share, fmt: RingFormat, output: FixedPoint) -> RingFormat:
    """``fmt`` with the bound that the node asks for by its output's format, if it says more."""
    if output.bound is None:
        return fmt
    shift = fmt.scale - output.scale
    bound = output.bound << shift if shift >= 0 else (output.bound >> -shift) + 1
    if fmt.bound is not None and fmt.bound <= bound:
        return fmt
    engine.expect_bound(share, bound)
    return ring_format(fmt.bits, fmt.scale, True, fmt.nonnegative, bound)


def _bound_after(fmt: RingFormat, shift: int, bits: int) -> int | None:
    """The bound of a value of ``fmt`` shifted right, if it says more than a ring of ``bits`` bits."""
    bound = None if fmt.bound is None else shifted(fmt.bound, max(shift, 0))
    return None if bound is None or bound >> (bits - 1) else bound
