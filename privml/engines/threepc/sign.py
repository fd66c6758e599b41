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


import torch

from privml.engines.base import Share
from privml.engines.threepc import kernels
from privml.engines.threepc.links import DEALER, Message
from privml.engines.threepc.party import Party, packed_bytes, unpack_bits

# The largest primes of 2 to 7 bits; the field of a comparison of ell bits is the first above ell.
_PRIMES = (3, 7, 13, 31, 61, 127)


def prime_for(ell: int) -> int:
    """The prime modulus of comparisons of ``ell`` bits."""
    return next(p for p in _PRIMES if p > ell)


def sign(party: Party, m: torch.Tensor, r: torch.Tensor, ell: int) -> Share:
    """[m - r < 0] in Z_2^ell, 2 <= ell <= 64; ``m`` may have a first dimension more than ``r``: several values of one
    mask."""
    prime = prime_for(ell)
    width, count = prime.bit_length(), r.numel()
    shape = m.shape
    several = m.numel() // max(count, 1)
    dealt = _deal_bits_of_mask(party, r, ell, prime)
    flip = None if party.deals else party.streams[1 - party.rank].bits(shape)
    mask = party.bit_masks(shape)
    size, answer_size = packed_bytes(m.numel() * ell, width), packed_bytes(m.numel(), 1)
    lists = [Message(0, DEALER, size), Message(1, DEALER, size)]
    answers = [Message(DEALER, 0, answer_size), Message(DEALER, 1, answer_size)]
    if party.metering:
        party.talk(lists, {})
        party.talk(answers, {})
        return party.masked(None, mask)
    if party.deals:
        negative = (((-r) >> (ell - 1)) & 1).to(torch.uint8).expand(shape)

        def answer() -> None:
            received = party.talk(lists, {})
            found = kernels.sign_open(received[0], received[1], m.numel(), ell, prime)
            zero = torch.from_numpy(found).view(shape)
            reply = packed_answer(negative ^ 1 ^ zero ^ mask)
            party.talk(answers, {0: reply, 1: reply})

        party.in_order(answer)
        return party.masked(None, mask)
    key, start = party.streams[1 - party.rank].region(kernels.sign_blocks(m.numel(), ell))
    flat = m.reshape(several, count).contiguous().numpy()
    masked = kernels.sign_mask(party.rank, flat, dealt, flip.view(several, count).numpy(), ell, prime, key, start)
    party.talk(lists, {DEALER: masked})
    reply = unpack_bits(party.talk(answers, {})[DEALER], shape)
    return reply ^ flip, mask


def _deal_bits_of_mask(party: Party, r: torch.Tensor, ell: int, prime: int):
    """Shares over F_p of the bits of NOT r^, [n, ell - 1] most significant first; None at the dealer."""
    count, width = r.numel(), prime.bit_length()
    size = packed_bytes(count * (ell - 1), width)
    if party.rank == 1:
        return party.streams[DEALER].field((count, ell - 1), prime)
    if not party.deals:
        data = party.links.deal(None, size)
        return None if party.metering else kernels.sign_unpack(data, count, ell, prime)
    other = party.streams[1].field((count, ell - 1), prime)
    flat = r.reshape(-1).contiguous().numpy()
    party.links.deal(None if party.metering else kernels.sign_deal(flat, ell, prime, other), size)
    return None


def packed_answer(bits: torch.Tensor):
    from privml import _core

    return _core.pack(bits.contiguous().numpy().reshape(-1), 1)


def equal_zero(party: Party, a: Share, ell: int) -> tuple[Share, Share]:
    """[a < 0] and [-a < 0] in one call; a is zero where neither holds (-2^(ell-1) has both)."""
    m, r = torch.stack([a[0], -a[0]]), torch.stack([a[1], -a[1]])
    below = sign(party, m, r, ell)
    return tuple(c[0] for c in below), tuple(c[1] for c in below)


def cost_sign(count: int, ell: int, several: int = 1) -> dict[str, int]:
    """Bits: ``dealt`` from party 2 to party 0, ``online`` of both parties 0 and 1 together, and the depth."""
    width = prime_for(ell).bit_length()
    lists = 8 * packed_bytes(count * several * ell, width)
    return {
        "dealt": 8 * packed_bytes(count * (ell - 1), width),
        "online": 2 * lists + 2 * 8 * packed_bytes(count * several, 1),
        "depth": 2,
    }
