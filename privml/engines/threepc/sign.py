# SPDX-License-Identifier: Apache-2.0
"""The sign bit of x = m - r in two rounds, and one value against many thresholds.

Functionality: a Boolean share of [x < 0], the most significant bit of x in Z_2^ell.
  sgn(m - r) = sgn(m) ^ sgn(-r) ^ carry with carry = [m^ > NOT r^], r^ the low bits of -r. Parties 0 and 1 compare bit
  by bit, most significant first, on shares over F_p of the bits of NOT r^, padded by (0, 1): of the
  t_i = sum_{k <= i} s_k - 2 s_i + 1, s = m^ xor NOT r^, exactly one is zero, where the first difference lies. They
  send the dealer w_i (t_i + (sgn(m) ^ m^_i ^ D)) in a common random order, with w_i random and not zero; it learns
  whether a zero is among them, which a common random bit D makes independent of x.
Leakage: none. The parts of the list are re-randomised by common random numbers that cancel in their sum: without them
  the dealer, who made the shares, learns x from the ratio of the two parts. Nothing but the shares of NOT r^ is used
  for more than one comparison.
Cost per comparison: (ell - 1) q bits dealt once per mask, q = ceil(log2 p); online 2 ell q bits to the dealer and one
  bit to each of the others, depth 2.
Source: MIZAR, Figures 4 and 5; NOT r^ instead of 2^(ell-1) - r^, the padding, and the re-randomisation are corrections
  of the protocol as printed.
"""

from __future__ import annotations

import numpy as np
import torch

from privml.engines.base import Share
from privml.engines.threepc.kernels_cpu import Dealt
from privml.engines.threepc.links import DEALER, Message
from privml.engines.threepc.party import Party, packed_bytes

# The largest primes of 2 to 7 bits; the field of a comparison of ell bits is the first above ell.
_PRIMES = (3, 7, 13, 31, 61, 127)


def prime_for(ell: int) -> int:
    """The prime modulus of comparisons of ``ell`` bits."""
    return next(p for p in _PRIMES if p > ell)


def sign_by_dealer(party: Party, m: torch.Tensor, r: torch.Tensor, ell: int) -> Share:
    """[m - r < 0] in Z_2^ell, 2 <= ell <= 64; ``m`` may have a first dimension more than ``r``: several values of one
    mask."""
    mask, flip = party.bit_masks(m.shape), _flip(party, m.shape)
    answer = _compare(party, m, r, ell, flip, mask)
    if answer is None:
        return party.masked(None, mask)
    return party.kernels.unpack_bits(answer, m.shape) ^ flip, mask


def _flip(party: Party, shape: torch.Size) -> torch.Tensor | None:
    """The common random bits D of parties 0 and 1."""
    return None if party.deals else party.streams[1 - party.rank].bits(shape)


def _compare(
    party: Party, m: torch.Tensor, r: torch.Tensor, ell: int, flip: torch.Tensor | None, mask: torch.Tensor | None
) -> np.ndarray | None:
    """The two rounds: the dealer's packed bits sgn(m - r) ^ flip ^ mask; None at the dealer and in a meter."""
    prime, shape, count = prime_for(ell), m.shape, r.numel()
    several = m.numel() // count
    deal = _deal_bits_of_mask(party, r, ell, prime)
    size, answer_size = several * party.kernels.mask_bytes(count, ell, prime), packed_bytes(m.numel(), 1)
    lists = [Message(0, DEALER, size), Message(1, DEALER, size)]
    answers = [Message(DEALER, 0, answer_size), Message(DEALER, 1, answer_size)]
    if party.metering:
        party.exchange(lists, {})
        party.exchange(answers, {})
        return None
    if party.deals:
        negative = ((-r) >> (ell - 1)).to(torch.uint8) & 1

        def answer() -> None:
            received = party.exchange(lists, {})
            zero = _found(party, received, several, r.shape, ell, prime).view(shape)
            reply = party.kernels.pack(negative ^ 1 ^ zero ^ mask, 1)
            party.exchange(answers, {0: reply, 1: reply})

        party.in_order(answer)
        return None
    common = party.streams[1 - party.rank]
    rotation = common.numbers(shape, ell)
    rows = zip(*(c.reshape(several, count) for c in (m, flip, rotation)), strict=True)
    masked = [
        party.kernels.sign_mask(
            party.rank, row, deal, common_region(party, party.kernels.mask_blocks(count, ell)), ell, prime
        )
        for row in rows
    ]
    party.exchange(lists, {DEALER: masked[0] if several == 1 else np.concatenate(masked)})
    return party.exchange(answers, {})[DEALER]


def common_region(party: Party, blocks: int) -> tuple[np.ndarray, int]:
    """Key and first block of what re-randomises the lists of parties 0 and 1. It comes from the hash of all that they
    have computed: if they have computed different things, their lists add up to noise at the dealer."""
    peer = 1 - party.rank
    if party.transcript is None:
        return party.streams[peer].region(blocks)
    return np.frombuffer(party.transcript.pad_key(peer), np.uint8), 0


def _found(
    party: Party, received: dict[int, np.ndarray], several: int, shape: torch.Size, ell: int, prime: int
) -> torch.Tensor:
    """Where a list has a zero, [several, ...]."""
    lists = zip(*(received[rank].reshape(several, -1) for rank in (0, 1)), strict=True)
    return torch.stack([party.kernels.sign_open(first, second, shape, ell, prime) for first, second in lists])


def _deal_bits_of_mask(party: Party, r: torch.Tensor, ell: int, prime: int) -> Dealt:
    """Shares over F_p of the bits of NOT r^: party 0 is sent a list, party 1 draws its own where it needs them."""
    count = r.numel()
    if party.rank == 0:
        return party.links.deal(None, party.kernels.deal_bytes(count, ell, prime)), None, 0
    key, start = party.streams[1 if party.deals else DEALER].region(party.kernels.deal_blocks(count, ell))
    if party.deals:
        dealt = None if party.metering else party.kernels.sign_deal(r, key, start, ell, prime)
        party.links.deal(dealt, party.kernels.deal_bytes(count, ell, prime))
        return None, None, 0
    return None, key, start
