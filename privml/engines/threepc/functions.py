# SPDX-License-Identifier: Apache-2.0
"""Functions of fixed-point numbers from what the dealer knows of their masks, where truncations need not be exact.

Functionality: a share of f(x) at the scale of a target, in the larger of source's and target's rings.
  Smooth activations: a polynomial by pieces (``pieces``) between two thresholds, with which the high bits are compared
  as they lie in the shares. Functions of [1/2, 1), of which ``composed`` makes reciprocals, roots and logarithms: the
  same without thresholds. Exponentials, sines and cosines: addition formulas (``addition``). The sum that these give
  is truncated with its opening (``scaled``), chosen by the thresholds' bits in a ring that just holds it, and then
  extended.
Result: at most one unit of the last place and the error of the tables away from f, for every mask; not the same for
  every mask. With exact truncations the engine takes ``privml.engines.composed`` instead.
Leakage: none, but for what ``width`` says of truncations; assumption as for products.
Cost: docs/three-party.md; tests hold ``tests/threepc_formulas.py`` to it.
Source: ours; comparisons as in ``comparison``.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

import torch

from privml.engines.shares import NO_PROMISE, Promise, Share, part
from privml.engines.threepc import addition
from privml.engines.threepc.comparison import sign
from privml.engines.threepc.party import Party
from privml.engines.threepc.pieces import (
    FINEST,
    FINEST_OF_MANTISSAS,
    MANTISSA,
    Sum,
    names,
    needed_bits,
    offset_of,
    pieces,
    piecewise,
)
from privml.engines.threepc.products import opened, opened_together, select_parts
from privml.engines.threepc.scaled import reduced
from privml.engines.threepc.width import extension_begun, extension_parts, high
from privml.formats import FixedPoint, limit

if TYPE_CHECKING:
    from privml.engines.threepc.engine import ThreePartyEngine

# Thresholds of activations are multiples of 2^-4.
_GRANULE = 4
_WIDEST_TARGET = 32
# Of the last place, that an exponential may err by besides its relative error.
_UNITS = 2
_LARGEST_RING = 64


class _Case(NamedTuple):
    """A public value where a bit is 1."""

    value: int
    bit: Share


class _Choice(NamedTuple):
    """Where ``inside`` is 1 a sum counts, and ``middle``; ``cases`` and the share in ``line`` where their bits are
    1."""

    inside: Share
    cases: Sequence[_Case]
    line: tuple[Share, Share] | None = None
    middle: int = 0


def offers(name: str, source: FixedPoint, target: FixedPoint) -> bool:
    """Whether this module computes the function for these formats."""
    if name.endswith(MANTISSA):
        return target.scale == FINEST_OF_MANTISSAS and needed_bits(pieces(name, 0), source.scale) <= source.bits
    if target.bits > _WIDEST_TARGET:
        return False
    if name in names():
        return target.scale <= FINEST and needed_bits(pieces(name, target.scale), source.scale) <= _LARGEST_RING
    if name in ("sin", "cos"):
        return target.scale <= addition.FINEST and addition.turn_bits(source.scale, target.scale) <= _LARGEST_RING
    if name not in ("exp", "exp_negative") or target.scale > addition.FINEST:
        return False
    form = addition.power_form(target, name == "exp")
    return addition.exponent_bits(form, source.scale) <= _LARGEST_RING


def function(engine: ThreePartyEngine, name: str, a: Share, source: FixedPoint, target: FixedPoint) -> Share:
    """``Engine.function`` of a name that is offered."""
    out = max(source.bits, target.bits)
    if name in ("sin", "cos"):
        x = _wide(engine, a, source, addition.turn_bits(source.scale, target.scale))
        total = addition.sine(engine.party, x, source.scale, target.scale, name == "cos")
        return _settled(engine, total, a[1].shape, out)
    if name.endswith(MANTISSA):
        table = pieces(name, target.scale)
        total = piecewise(engine.party, a, table, source.scale, target.scale)
        result = _settled(engine, total, a[1].shape, out)
        return engine.add_public(result, round(table.middle * 2.0**target.scale), out)
    if name in ("exp", "exp_negative"):
        return _exponential(engine, name, a, source, target)
    return _between(engine, name, a, source, target)


def _wide(engine: ThreePartyEngine, a: Share, source: FixedPoint, bits: int) -> Share:
    """``a`` in a ring of ``bits`` at least."""
    return a if source.bits >= bits else engine.extend(a, source.bits, bits, True, Promise(bound=source.bound))


def _compared_bits(source: FixedPoint, thresholds: Sequence[int], dropped: int) -> int:
    """How many bits a ring has in which ``_signs`` compares."""
    room = (max(map(abs, thresholds)) + int(dropped > 0)) << dropped
    return min((limit(source) + room).bit_length() + 1, _LARGEST_RING)


def _signs(engine: ThreePartyEngine, a: Share, source: FixedPoint, thresholds: Sequence[int], dropped: int) -> Share:
    """[x < t 2^dropped], with an x that may be taken for one of up to 2^dropped more, at the width that x is known to
    have, of a share in a ring of ``_compared_bits`` at least; values of rings of 63 and 64 bits leave two bits free."""
    bits = _compared_bits(source, thresholds, dropped)
    ring = bits - dropped
    m, r = (high(c, bits, dropped) for c in a)
    steps = torch.tensor(thresholds, device=r.device).view(-1, *[1] * r.dim())
    party = engine.party
    return sign(party, party.nothing((len(thresholds), *r.shape)) if party.deals else m - steps, r, ring)


def _between(engine: ThreePartyEngine, name: str, a: Share, source: FixedPoint, target: FixedPoint) -> Share:
    table, one = pieces(name, target.scale), 1 << target.scale
    dropped = max(source.scale - _GRANULE, 0)
    end = math.floor(table.reach * 2.0 ** (source.scale - dropped))
    spare = int(dropped > 0)  # what is compared may be one too large
    ends = [spare - end, end + 1 - spare]
    # in one ring for all that follows, so that it is extended once
    needed = max(needed_bits(table, source.scale), _compared_bits(source, ends, dropped))
    out = max(source.bits, target.bits)
    x = _wide(engine, a, source, max(needed, out) if table.above == "argument" else needed)
    bits = _signs(engine, x, source, ends, dropped)
    low_bit, above = part(bits, 0), engine.logical_not(part(bits, 1))
    inside = engine.logical_not(engine.xor(low_bit, above))
    total = piecewise(engine.party, x, table, source.scale, target.scale)
    cases, line = [], None
    if table.above == "one":
        cases.append(_Case(one, above))
    if table.below == "minus one":
        cases.append(_Case(-one, low_bit))
    if table.above == "argument":
        line = above, _rescaled(engine, x, out, source, target.scale)
    middle = round(table.middle * 2.0**target.scale)
    return _settled(engine, total, a[1].shape, out, _Choice(inside, cases, line, middle))


def _rescaled(engine: ThreePartyEngine, a: Share, bits: int, source: FixedPoint, scale: int) -> Share:
    if scale >= source.scale:
        return engine.multiply_public(a, 1 << (scale - source.scale), bits)
    promise = NO_PROMISE if source.bound is None else Promise(bound=min(source.bound, 1 << (bits - 1)))
    return engine.truncate(a, bits, source.scale - scale, promise)


def _exponential(engine: ThreePartyEngine, name: str, a: Share, source: FixedPoint, target: FixedPoint) -> Share:
    out = max(source.bits, target.bits)
    form = addition.power_form(target, name == "exp")
    unit = math.log(2.0) * 2.0**source.scale
    dropped = 0 if name == "exp" else max(source.scale - 3, 0)
    ends = [math.floor(form.lowest * unit) >> dropped]
    if name == "exp":
        ends.append(math.floor(_saturation(target) * 2.0**source.scale))
    # in one ring for all that follows, so that it is extended once
    needed = max(addition.exponent_bits(form, source.scale), _compared_bits(source, ends, dropped))
    x = _wide(engine, a, source, needed)
    bits = _signs(engine, x, source, ends, dropped)
    if name == "exp":
        above = engine.logical_not(part(bits, 1))
        outside = engine.xor(part(bits, 0), above)
        cases = [_Case((1 << (target.bits - 1)) - 1, above)]
    else:
        outside, cases = part(bits, 0), []
    total = addition.power(engine.party, x, source.scale, form)
    return _settled(engine, total, a[1].shape, out, _Choice(engine.logical_not(outside), cases))


def _saturation(target: FixedPoint) -> float:
    """Below it e^x fits the target with all that the result may err by."""
    largest = ((1 << (target.bits - 1)) - 1 - _UNITS) / (1.0 + addition.RELATIVE_ERROR)
    return math.log(max(largest, 1.0) * 2.0**-target.scale)


# ---- from a sum to a share
def _settled(engine: ThreePartyEngine, total: Sum, shape: torch.Size, out: int, choice: _Choice | None = None) -> Share:
    """total / 2^shift, or what is chosen, in Z_2^out. All values lie as near to the choice's middle as the sum may lie
    to zero."""
    party, offset = engine.party, offset_of(total.ring)
    value = total.part + offset if party.rank == 0 and total.part is not None else total.part
    ring = total.ring - total.shift
    (result,) = opened_together(party, [reduced(party, value, shape, total.ring, total.shift)])
    result = engine.add_public(result, -(offset >> total.shift), ring)
    if choice is None:
        return _extended(party, result, ring, out)
    result = engine.add_public(_chosen(party, result, ring, choice), -choice.middle, ring)
    if choice.line is None:
        return engine.add_public(_extended(party, result, ring, out), choice.middle, out)
    bit, x = choice.line
    if out <= ring:
        return engine.add(engine.add_public(result, choice.middle, out), engine.select(bit, x, out), out)
    chosen, wide = select_parts(party, bit, x, out), extension_parts(party, result, ring, out, True)
    whole = opened(party, None if party.deals else chosen + wide, shape, out)
    return engine.add_public(whole, choice.middle, out)


def _extended(party: Party, a: Share, bits: int, to_bits: int) -> Share:
    """Of a value that was just opened."""
    if to_bits <= bits:
        return a
    return opened_together(party, [extension_begun(party, a, bits, to_bits, small=True, drawn=True)])[0]


def _chosen(party: Party, value: Share, ring: int, choice: _Choice) -> Share:
    """The share ``value`` plus the middle where ``inside`` is 1, plus the cases, in Z_2^ring."""
    (known, of_value), (m, r) = value, choice.inside
    shape, mask = of_value.shape, r.long() if party.deals else None
    of_bit = party.deal(mask, shape, ring)
    of_both = party.deal(mask * of_value if party.deals else None, shape, ring)
    parts = None
    if not party.deals:
        known, flip = known + choice.middle, m.long()
        parts = (1 - 2 * flip) * (known * of_bit - of_both) - flip * of_value
        if party.rank == 0:
            parts = parts + flip * known
    for case in choice.cases:
        m, r = case.bit
        of_bit = party.deal(r.long() if party.deals else None, shape, ring)
        if not party.deals:
            parts = parts + case.value * party.kernels.bit_shares(party.rank, m, of_bit, ring)
    return opened(party, parts, shape, ring)
