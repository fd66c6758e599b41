# SPDX-License-Identifier: Apache-2.0
"""Shifts to the right and changes of the ring.

With M, R the high bits of m, r (the low s dropped), x = m - r has floor(x / 2^s) = M - R - borrow + 2^(b-s) wrap, where
borrow = [m mod 2^s < r mod 2^s] and wrap = [m < r]. R is dealt; who looks after the others makes the difference:
  "probabilistic"  neither: off by one LSB with the probability of the fraction, and by 2^(b-s) with probability
                   |x| / 2^b, whatever r is: a number u that is drawn in public is added to m and r before. Nothing is
                   sent online.
  "faithful"       wrap alone, for |x| < 2^(b-2): x + 2^(b-2) wraps where its m has no top bit and r has one. One more
                   round of s bits each way; and a comparison of b + 1 bits unless such an x or x >= 0 is proved. Off
                   by one LSB at most, always.
  "exact"          borrow too, by a comparison of s bits: floor, always. Two more rounds; and two more for the wrap, by
                   a comparison of b bits, unless |x| < 2^(b-2) or x >= 0 is proved.
Leakage: none; assumption as for products. Results keep the high bits of the masks, which only the dealer knows.
Source: MIZAR, Figure 10, with the sign of its error and the unnoticed wrap corrected.
"""

from __future__ import annotations

import torch

from privml.engines.base import Share
from privml.engines.ring import word
from privml.engines.threepc.comparison import sign
from privml.engines.threepc.party import Party
from privml.engines.threepc.products import Opening, opened, ring_parts

MODES = ("probabilistic", "faithful", "exact")


def low(value: torch.Tensor, bits: int) -> torch.Tensor:
    """Modulo 2^bits, without sign."""
    return value if bits == 64 else value & ((1 << bits) - 1)


def high(value: torch.Tensor, bits: int, shift: int) -> torch.Tensor:
    """The low ``bits`` bits without sign, shifted right."""
    return low(value, bits) >> shift if bits < 64 else (value >> shift) & ((1 << (64 - shift)) - 1)


def top(value: torch.Tensor, bits: int) -> torch.Tensor:
    return (value >> (bits - 1)) & 1


def _wrap_parts(party: Party, m: torch.Tensor, r: torch.Tensor, bits: int, ring: int) -> torch.Tensor | None:
    """Additive parts in Z_2^ring of [m < r] for 0 <= m - r mod 2^bits < 2^(bits-1)."""
    dealt = party.deal(top(r, bits) if party.deals else None, r.shape, ring)
    return None if party.deals else dealt * (1 - top(m, bits))


def _wrap_parts_of_any(
    party: Party, m: torch.Tensor, r: torch.Tensor, negative: Share, bits: int, ring: int
) -> torch.Tensor | None:
    """Additive parts in Z_2^ring of [m < r] for any m - r mod 2^bits, whose top bit is shared: the majority of
    M = NOT top(m), R = top(r) and that bit, v xor u, where parties 0 and 1 know v and the dealer u. It equals
    M R + (v + (1 - 2 v) u) (M + (1 - 2 M) R); the dealer deals R, u and R u."""
    known, hidden = negative
    mask = top(r, bits) if party.deals else None
    unknown = hidden.long() if party.deals else None
    dealt_mask = party.deal(mask, r.shape, ring)
    dealt_hidden = party.deal(unknown, r.shape, ring)
    dealt_both = party.deal(mask * unknown if party.deals else None, r.shape, ring)
    if party.deals:
        return None
    own, v = 1 - top(m, bits), known.long()
    part = (own + v * (1 - 2 * own)) * dealt_mask + (1 - 2 * v) * (own * dealt_hidden + (1 - 2 * own) * dealt_both)
    return part + v * own if party.rank == 0 else part


def truncate_probabilistic(party: Party, a: Share, bits: int, shift: int) -> Share:
    """A mask need not be uniform: it is 0 of a public value, and small after such a truncation. What is known to all
    moves m and r alike to anywhere in the ring."""
    offset = party.common_offset(bits)
    m, r = a[0] + offset, a[1] + offset
    dropped = high(r, bits, shift) if party.deals else None
    dealt = party.deal(dropped, r.shape, bits)
    return (a[0], dropped) if party.deals else (high(m, bits, shift), dealt)


def truncate_exact(party: Party, a: Share, bits: int, shift: int, nonnegative: bool, small: bool) -> Share:
    """Rounds down, for every x. ``nonnegative``: 0 <= x < 2^(bits-1); ``small``: |x| < 2^(bits-2). If neither is known,
    one comparison of ``bits`` bits more finds the wrap."""
    m, r, offset = lifted(party, a, bits, nonnegative, small)
    borrow = sign(party, low(m, shift), low(r, shift), shift + 1)
    dealt, _ = _dropped(party, r, bits, shift)
    if nonnegative or small:
        wraps = _wrap_parts(party, m, r, bits, shift)
    else:
        wraps = _wrap_parts_of_any(party, m, r, sign(party, m, r, bits), bits, shift)
    lent = ring_parts(party, borrow, bits)
    part = None
    if not party.deals:
        part = (wraps << (bits - shift)) - dealt - lent
        if party.rank == 0:
            part = part + high(m, bits, shift) - (offset >> shift)
    return opened(party, part, r.shape, bits)


def truncation_begun(party: Party, a: Share, bits: int, shift: int, nonnegative: bool, small: bool) -> Opening:
    """The faithful truncation of any x, up to the opening of the wrap."""
    m, r, offset = lifted(party, a, bits, nonnegative, small)
    if nonnegative or small:
        wraps = _wrap_parts(party, m, r, bits, shift)
    else:
        wraps = ring_parts(party, sign(party, low(m, bits), low(r, bits), bits + 1), shift)
    dealt, dropped = _dropped(party, r, bits, shift)
    factor = bits - shift

    def rest(opened_wraps: Share) -> Share:
        lifted, mask = opened_wraps
        if party.deals:
            return a[0], dropped + (mask << factor)
        return high(m, bits, shift) - (offset >> shift) + (lifted << factor), dealt + (mask << factor)

    return Opening(wraps, r.shape, shift, False, rest)


def lifted(party: Party, a: Share, bits: int, nonnegative: bool, small: bool) -> tuple[torch.Tensor, torch.Tensor, int]:
    """The share of x + offset, which is not negative as an unsigned number of ``bits`` bits, and the offset."""
    m, r = a
    offset = 0 if nonnegative else 1 << (bits - 2 if small else bits - 1)
    return (m + word(offset) if offset and not party.deals else m), r, offset


def _dropped(party: Party, r: torch.Tensor, bits: int, shift: int) -> tuple[torch.Tensor | None, torch.Tensor | None]:
    """Additive parts at parties 0 and 1 of the high bits of r, which the dealer knows."""
    dropped = high(r, bits, shift) if party.deals else None
    return party.deal(dropped, r.shape, bits), dropped


def truncate_reduce(party: Party, a: Share, bits: int, shift: int, exact: bool) -> Share:
    """The shifted value in Z_2^(bits-shift), where wraps do not matter; without ``exact`` nothing is sent online."""
    (m, r), ring = a, bits - shift
    borrow = sign(party, low(m, shift), low(r, shift), shift + 1) if exact else None
    dropped = high(r, bits, shift) if party.deals else None
    dealt = party.deal(dropped, r.shape, ring)
    if not exact:
        return (m, dropped) if party.deals else (high(m, bits, shift), dealt)
    lent = ring_parts(party, borrow, ring)
    part = None
    if not party.deals:
        part = -dealt - lent
        if party.rank == 0:
            part = part + high(m, bits, shift)
    return opened(party, part, r.shape, ring)


def extension_begun(
    party: Party,
    a: Share,
    bits: int,
    to_bits: int,
    signed: bool = True,
    nonnegative: bool = False,
    small: bool = False,
    drawn: bool = False,
) -> Opening:
    """The value in Z_2^to_bits, up to the opening of the wrap. ``small``: |x| < 2^(bits-2); otherwise, unless it is
    nonnegative, a comparison finds the wrap. ``drawn``: the parts of r are as ``Party.masks`` gave them, so that their
    carry is enough to deal."""
    m, r = a
    offset = 0 if nonnegative or not signed else 1 << (bits - 2 if small else bits - 1)
    if not party.deals and offset:
        m = m + offset
    ring = to_bits - bits
    if nonnegative or (small and signed):
        wraps = _wrap_parts(party, m, r, bits, ring)
    else:
        wraps = ring_parts(party, sign(party, low(m, bits), low(r, bits), bits + 1), ring)
    whole = _whole(party, r, bits, to_bits, drawn)

    def rest(opened_wraps: Share) -> Share:
        lifted, mask = opened_wraps
        if party.deals:
            return a[0], low(r, bits) + (mask << bits)
        return low(m, bits) - offset + (lifted << bits), whole + (mask << bits)

    return Opening(wraps, r.shape, ring, rest=rest)


def _whole(party: Party, r: torch.Tensor, bits: int, to_bits: int, drawn: bool) -> torch.Tensor | None:
    """Additive parts in Z_2^to_bits of r modulo 2^bits."""
    if not drawn:
        return party.deal(low(r, bits) if party.deals else None, r.shape, to_bits)
    carry = party.deal((r >> bits) & 1 if party.deals else None, r.shape, to_bits - bits)
    return None if carry is None else r - (carry << bits)


def extension_parts(party: Party, a: Share, bits: int, to_bits: int, drawn: bool = False) -> torch.Tensor | None:
    """Additive parts in Z_2^to_bits of such an x of Z_2^bits with |x| < 2^(bits-2); ``drawn`` as in ``extend``."""
    m, r, offset = lifted(party, a, bits, False, True)
    whole = _whole(party, r, bits, to_bits, drawn)
    wraps = _wrap_parts(party, m, r, bits, to_bits - bits)
    if party.deals:
        return None
    part = (wraps << bits) - whole
    return part + low(m, bits) - offset if party.rank == 0 else part


def failure(bound: int, bits: int, count: int) -> float:
    """The probability that a probabilistic truncation of ``count`` values below ``bound`` goes wrong, at most."""
    return min(1.0, count * bound / 2.0**bits)
