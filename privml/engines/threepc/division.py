# SPDX-License-Identifier: Apache-2.0
"""Quotients by a public number, rounded down.

u = x + offset is not negative, and u = m - r + w 2^b with w = [m < r]. Divided by d, m less the offset has a quotient M
and a rest m', and r - w 2^b has R and r'; floor(x / d) = M - R - [m' < r'] and a public number. Parties 0 and 1 know M
and m', the dealer R and r' for either w. Of w, too, parties 0 and 1 know a part and the dealer another one: it prepares
both cases, and they take the one of their part.
Functionality: floor(x / d) in Z_2^b for every x.
Leakage: none; parties 0 and 1 see uniform masks of what they do not know, the dealer sees nothing.
Assumption: as for products.
Cost per element of Z_2^b: two comparisons of numbers below d, with a bit more than these have; 4 b bits dealt; b bits
  each way, depth 1 more than the comparisons. Unless |x| < 2^(b-2) or x >= 0 is proved, a comparison of b + 1 bits
  before it; with b = 64 one of 64 bits, and four cases instead of two.
Source: shares of masked values with a dealer from MIZAR, Section 2.2; the quotient is ours.
"""

from __future__ import annotations

import torch

from privml.engines.base import Share
from privml.engines.ring import word
from privml.engines.threepc.comparison import sign
from privml.engines.threepc.party import Party
from privml.engines.threepc.products import opened, ring_parts
from privml.engines.threepc.width import high, lifted, low, top


def quotient(party: Party, a: Share, bits: int, divisor: int, nonnegative: bool, small: bool) -> Share:
    """``nonnegative``: 0 <= x < 2^(bits-1); ``small``: |x| < 2^(bits-2)."""
    m, r, offset = lifted(party, a, bits, nonnegative, small)
    case, wraps = _cases(party, m, r, bits, nonnegative or small)
    whole, rest = _divided(m, bits, divisor, offset)
    count = len(wraps)
    dealt, hidden = _of_masks(r, wraps, bits, divisor) if party.deals else (None, r.expand(count, *r.shape))
    below = sign(party, rest.expand(hidden.shape).contiguous(), hidden, (divisor - 1).bit_length() + 1)
    parts = party.deal(dealt, hidden.shape, bits)
    lent = ring_parts(party, below, bits)
    part = None
    if parts is not None and lent is not None:
        part = (parts - lent).gather(0, case.unsqueeze(0)).squeeze(0)
        if party.rank == 0:
            part = part + whole - offset // divisor
    return opened(party, part, r.shape, bits)


def _cases(
    party: Party, m: torch.Tensor, r: torch.Tensor, bits: int, one_free: bool
) -> tuple[torch.Tensor, torch.Tensor]:
    """The case that parties 0 and 1 know, and what [m < r] is in each case, [cases, ...], as the dealer knows it.
    ``one_free``: m - r modulo 2^bits has no top bit."""
    none, mask, free = torch.zeros_like(r), top(r, bits), 1 - top(m, bits)
    if one_free:
        return free, torch.stack([none, mask])
    if bits < 64:
        known, hidden = (c.long() for c in sign(party, low(m, bits), low(r, bits), bits + 1))
        return known, torch.stack([hidden, 1 - hidden])
    # [m < r] is the majority of NOT top(m), top(r) and the top bit of the difference, which is x >= 0.
    known, hidden = (c.long() for c in sign(party, m + word(1 << 63), r, 64))
    other = 1 - hidden
    return 2 * free + known, torch.stack([mask & other, mask & hidden, mask | other, mask | hidden])


def _divided(value: torch.Tensor, bits: int, divisor: int, less: int) -> tuple[torch.Tensor, torch.Tensor]:
    """Quotient and rest of the low ``bits`` bits, without sign, minus ``less`` modulo the divisor."""
    value = low(value, bits)
    if bits == 64:
        half = high(value, bits, 1)
        whole = half // divisor
        whole, rest = 2 * whole, 2 * (half - whole * divisor) + (value & 1)
    else:
        whole = value // divisor
        rest = value - whole * divisor
    rest = rest - less % divisor
    more = torch.div(rest, divisor, rounding_mode="floor")
    return whole + more, rest - more * divisor


def _of_masks(r: torch.Tensor, wraps: torch.Tensor, bits: int, divisor: int) -> tuple[torch.Tensor, torch.Tensor]:
    """What the dealer adds to the quotient in either case, and the rest that is compared."""
    of_ring, rest_of_ring = divmod(1 << bits, divisor)
    whole, rest = _divided(r, bits, divisor, 0)
    rest = rest - wraps * rest_of_ring
    negative = (rest < 0).long()
    return wraps * word(of_ring) + negative - whole, rest + negative * divisor
