# SPDX-License-Identifier: Apache-2.0
"""Products divided by 2^s in one protocol: each of parties 0 and 1 shifts its part of the product before the opening.

With the parts z0 + z1 = z mod 2^b, a = floor(z0 / 2^s) and c = floor((-z1 mod 2^b) / 2^s), a - c is floor(z / 2^s) or
one above it, modulo 2^(b-s), with the probability of the fraction, because z1 is uniform; what is opened is short.
  "reduced"        a - c, in Z_2^(b-s). Never fails.
  "probabilistic"  a - c opened in Z_2^(b-s) under a mask whose integer parties 0 and 1 have parts of in Z_2^b. Off by
                   2^(b-s) if the opened number wraps around, which has probability |z| / 2^b.
  "faithful"       for |z| < 2^(b-2) or z >= 0: after what makes z positive is added, a - c wraps where z0 has no top
                   bit and -z1 has one: a product of a bit that party 0 knows and one that party 1 knows. Never fails.
Leakage: none; parties 0 and 1 see uniform masks of what they do not know, the dealer sees nothing. Who learns a result
  and knows z0 or z1 learns z up to a unit, with a place of its own for the units' ends, as in ``width``.
Assumption: as for products.
Cost per element of the result: b bits dealt, and b - s bits each way, depth 1, if "reduced"; s bits dealt more if
  "probabilistic"; s bits dealt more and 1 + b bits each way, depth 2, if "faithful".
Source: parts shifted before they are added after SecureML (Mohassel, Zhang, IEEE S&P 2017); with a dealer, the wrap by
  top bits of the parts and the short openings are ours.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch

from privml.engines.base import Share
from privml.engines.threepc.links import DEALER
from privml.engines.threepc.party import Party
from privml.engines.threepc.products import Opening
from privml.engines.threepc.width import high, low

Parts = torch.Tensor | None


def added(party: Party, parts: Parts, addend: Share | None) -> Parts:
    """Additive parts of a product (None at the dealer) plus a share, which is broadcast."""
    if parts is None or addend is None:
        return parts
    m, r = addend
    return parts + (m - r if party.rank == 0 else -r)


def reduced(party: Party, parts: Parts, shape: Sequence[int], bits: int, shift: int) -> Opening:
    """The quotient in Z_2^(bits - shift)."""
    return Opening(_shifted(party, parts, bits, shift), shape, bits - shift)


def probabilistic(party: Party, parts: Parts, shape: Sequence[int], bits: int, shift: int) -> Opening:
    """The quotient in Z_2^bits."""
    ring = bits - shift
    mask = party.masks(shape, ring)
    carry = party.deal((mask >> ring) & 1 if party.deals else None, shape, shift)

    def rest(opened: Share) -> Share:
        if party.deals:
            return opened[0], low(mask, ring)
        return low(opened[0], ring), mask - (carry << ring)

    return Opening(_shifted(party, parts, bits, shift), shape, ring, rest=rest, mask=mask)


def faithful(party: Party, parts: Parts, shape: Sequence[int], bits: int, shift: int, nonnegative: bool) -> Opening:
    """The same, up to the opening of the top bits of the parts."""
    offset = 0 if nonnegative else 1 << (bits - 2)
    if party.rank == 0 and parts is not None:
        parts = parts + offset
    mask, both = _private_masks(party, shape, shift)
    bit = None if parts is None else _top_bit(party, parts, bits)

    def rest(opened: Share) -> Opening:
        if bit is None or parts is None:
            return Opening(None, shape, bits)
        wraps = _product_of_bits(party, bit, opened, both)
        part = _shifted(party, parts, bits, shift) + (wraps << (bits - shift))
        return Opening(part - (offset >> shift) if party.rank == 0 else part, shape, bits)

    return Opening(bit, shape, 1, True, rest, mask)


def _shifted(party: Party, parts: Parts, bits: int, shift: int) -> Parts:
    if parts is None:
        return None
    return high(parts, bits, shift) if party.rank == 0 else -high(-parts, bits, shift)


def _top_bit(party: Party, parts: torch.Tensor, bits: int) -> torch.Tensor:
    """Party 0: whether its part has no top bit. Party 1: whether minus its part has one."""
    top = ((parts if party.rank == 0 else -parts) >> (bits - 1)) & 1
    return (1 - top if party.rank == 0 else top).to(torch.uint8)


def _private_masks(party: Party, shape: Sequence[int], bits: int) -> tuple[torch.Tensor, Parts]:
    """Fresh masks of a bit of party 0 and of one of party 1 (their sum at the dealer), and additive parts in Z_2^bits
    of the masks' product."""
    if not party.deals:
        mask = party.streams[DEALER].bits(shape)
        return mask, party.deal(None, shape, bits)
    of_0, of_1 = (party.streams[peer].bits(shape) for peer in (0, 1))
    party.deal((of_0 & of_1).long(), shape, bits)
    return of_0 ^ of_1, None


def _product_of_bits(party: Party, bit: torch.Tensor, opened: Share, both: Parts) -> torch.Tensor:
    """Additive parts of p q, where party 0 has p, party 1 has q, and both know p ^ q under their masks' sum:
    p q = p Q + (1 - 2 Q) (P b + (1 - 2 P) a b) with the masks a and b, P = p ^ a, Q = q ^ b."""
    total, mask = opened
    mine = bit ^ mask
    theirs = (total ^ mine).long()
    p, q = (mine.long(), theirs) if party.rank == 0 else (theirs, mine.long())
    part = (1 - 2 * p) * (1 - 2 * q) * both
    return part + (bit * q if party.rank == 0 else (1 - 2 * q) * p * mask)
