# SPDX-License-Identifier: Apache-2.0
"""Functions with an addition formula at x = m - r: public factors of m times dealt ones of r, no message.

Functionality: additive parts of S in Z_2^ring, S / 2^shift the value at the target's scale. sin(m - r) =
  sin m cos r - cos m sin r of the bits of a turn, whatever wraps beyond. 2^(m - r) = 2^m 2^-r of the low bits of m and
  r, whose difference is an integer that may be negative; the bits above choose one of 2^groups powers of two by their
  unit vector, dealt times 2^-r.
Result: within 2^-scale of the value, and for powers 2^-20 of it; not the same for every mask.
Leakage: none; parties 0 and 1 see nothing, the dealer sees nothing. Assumption: as for products.
Cost per value, in bits dealt: sine 2 ring; power 2^groups ring. Depth 0.
Source: ours; shares of masked values with a dealer from MIZAR, Section 2.2.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import torch

from privml.engines.composed.steps import COEFFICIENT_SCALE, INDEX_BITS, Spline, power_polynomial, spline
from privml.engines.shares import Share
from privml.engines.threepc.party import Party
from privml.engines.threepc.pieces import Sum, dealt
from privml.engines.threepc.width import low
from privml.formats import FixedPoint

# Fractional bits of log2(e), and the least ones of 1 / (2 pi).
_FACTOR_SCALE = 28
# 2^64 / (2 pi), rounded down.
_TURNS = 0x28BE60DB9391054A
# Arguments of sines are integers of so many bits and a sign; 1 / (2 pi), rounded, adds 2^-4 of a unit then at most.
_LARGEST_ARGUMENT, _SPARE_OF_TURNS = 31, 6
# Of the results' scales.
FINEST = 24
# Bits below the last place of the result.
_SPARE = 2
# Exponents within a group, as bits, and fractional bits of 2^-r, which is at least 2^-8.
_IN_GROUP = 3
_POWER_SCALE = 28
# Public exponents have so many fractional bits.
_FRACTION = 28
# Of powers.
RELATIVE_ERROR = 2.0**-20


def turn_bits(scale: int, target: int) -> int:
    """Of a ring in which an argument of ``scale`` fractional bits is found on the circle, for results of ``target``
    ones."""
    return max(_LARGEST_ARGUMENT + target + _SPARE_OF_TURNS, scale + _FACTOR_SCALE)


def sine(party: Party, x: Share, scale: int, target: int, cosine: bool) -> Sum:
    """sin(x), or cos(x), of a share of a ring of ``turn_bits`` at least; |x| < 2^31 before it is scaled."""
    (m, r), bits = x, turn_bits(scale, target)
    factor = (_TURNS >> (63 + scale - bits)) + 1 >> 1  # rounded
    fine = target + _SPARE
    ring, shift = 2 * fine + 3, 2 * fine - target
    known = dealt(party, lambda: _circle(low(r * factor, bits), bits, fine), (2, *r.shape), ring)
    if party.deals:
        return Sum(None, ring, shift)
    if party.metering:
        return Sum(party.nothing(r.shape), ring, shift)
    turn = m * factor + ((1 << (bits - 2)) if cosine else 0)
    sines, cosines = (_clear_sine(low(turn + quarter, bits), bits, fine) for quarter in (0, 1 << (bits - 2)))
    assert known is not None
    return Sum(sines * known[1] - cosines * known[0], ring, shift)


def _circle(turn: torch.Tensor, bits: int, scale: int) -> torch.Tensor:
    """Sine and cosine at the dealer."""
    angle = turn.double() * (2.0 * math.pi * 2.0**-bits)
    return (torch.stack([angle.sin(), angle.cos()]) * 2.0**scale).round().long()


def _clear_sine(turn: torch.Tensor, bits: int, scale: int) -> torch.Tensor:
    """By integers alone, so that parties 0 and 1 get the same numbers on any machine."""
    table: Spline = spline("sine")
    width = bits - INDEX_BITS
    index, place = turn >> width, low(turn, width)
    place = place >> (width - _FRACTION) if width > _FRACTION else place << (_FRACTION - width)
    rows = table.coefficients.to(turn.device)[:, index]
    return _rounded(_horner(list(rows), place, _FRACTION), COEFFICIENT_SCALE - scale)


class PowerForm(NamedTuple):
    """Exponents from ``lowest`` to ``highest`` count; ``groups``: bits that choose among the groups of exponents;
    ``scale``: of the public factors; ``ring``, ``shift``: of the sum."""

    lowest: int
    highest: int
    groups: int
    scale: int
    ring: int
    shift: int


def power_form(target: FixedPoint, both_signs: bool) -> PowerForm:
    """Of e^x for a target of at most 32 bits, and x <= 0 unless it may have ``both_signs``."""
    highest = target.bits - 1 - target.scale if both_signs else 0
    scale = target.scale + _SPARE
    lowest = -(target.scale + 2)
    # a difference of places may be one group more than it is
    groups = (highest - lowest + 1 + (1 << _IN_GROUP)).bit_length() - _IN_GROUP
    # largest value 2^highest, 2 for e^x with x <= 0 because its sum is a little above 1 at most
    ring = max(highest, 1) + scale + _POWER_SCALE + 2
    return PowerForm(lowest, highest, groups, scale, ring, scale + _POWER_SCALE - target.scale)


def exponent_bits(form: PowerForm, scale: int) -> int:
    """Of a ring in which an exponent finds its group."""
    return scale + _FACTOR_SCALE + form.groups + _IN_GROUP


def power(party: Party, x: Share, scale: int, form: PowerForm) -> Sum:
    """e^x of a share of a ring of ``exponent_bits`` at least, for x log2(e) from ``lowest`` to ``highest``."""
    m, r = x
    factor, bits = round(2.0**_FACTOR_SCALE / math.log(2.0)), scale + _FACTOR_SCALE
    count, width = 1 << form.groups, bits + _IN_GROUP
    mask = r * factor

    def scaled_unit() -> torch.Tensor:
        index, place = (mask >> width) & (count - 1), low(mask, width)
        size = torch.exp2(_POWER_SCALE - place.double() * 2.0**-bits).round().long()
        return size.new_zeros((*r.shape, count)).scatter_(-1, index.unsqueeze(-1), size.unsqueeze(-1))

    hot = dealt(party, scaled_unit, (*r.shape, count), form.ring)
    if party.deals:
        return Sum(None, form.ring, form.shift)
    if party.metering:
        return Sum(party.nothing(r.shape), form.ring, form.shift)
    assert hot is not None
    # the lowest exponents lie in group 0, whose numbers start one above where they would
    start = form.lowest - 1
    place = m * factor - (start << bits)
    index, whole = (place >> width) & (count - 1), low(place, width) >> bits
    fraction = low(place, bits)
    fraction = fraction >> (bits - _FRACTION) if bits > _FRACTION else fraction << (_FRACTION - bits)
    precision, coefficients = power_polynomial()
    mantissa = _horner([torch.full_like(fraction, c) for c in coefficients], fraction, _FRACTION)
    total = None
    for group in range(count):
        exponent = (group << _IN_GROUP) + whole + (start + form.scale - precision)
        known = torch.where(
            exponent >= 0, mantissa << exponent.clamp(0, 62), _halved(mantissa, (-exponent).clamp(1, 62))
        )
        term = known * hot.gather(-1, ((index - group) & (count - 1)).unsqueeze(-1)).squeeze(-1)
        total = term if total is None else total + term
    return Sum(total, form.ring, form.shift)


def _horner(rows: list[torch.Tensor], place: torch.Tensor, scale: int) -> torch.Tensor:
    value = rows[-1]
    for row in reversed(rows[:-1]):
        value = row + (value * place >> scale)
    return value


def _rounded(value: torch.Tensor, shift: int) -> torch.Tensor:
    return (value + (1 << (shift - 1))) >> shift if shift > 0 else value << -shift


def _halved(value: torch.Tensor, shift: torch.Tensor) -> torch.Tensor:
    return ((value >> (shift - 1)) + 1) >> 1
