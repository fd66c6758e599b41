# SPDX-License-Identifier: Apache-2.0
"""The sign bit of x = m - r from dealt tables: no party waits for the dealer.

Functionality: a Boolean share of [x < 0] in Z_2^ell: msb(m) ^ msb(r) ^ [m^ < r^], m^ and r^ the lower ell - 1 bits.
  The bits are cut into blocks (``comparison_plan``). For each block the dealer deals shares of all [r_block > v]; those
  at v = m_block and below give parties 0 and 1 shares of g = [r_block > m_block] and p = [r_block = m_block]. They open
  them under masks and join them: a product of masked bits is linear in the products of their masks, which are dealt.
Leakage: none; parties 0 and 1 see bits under fresh uniform masks, the dealer sees nothing. The tables may serve several
  m with the same r: what is made of them is opened under masks of its own each time.
Assumption: as for products.
Cost per comparison: that of the plan: ``table_bits`` dealt once per mask, ``product_bits`` dealt, ``opened`` bits each
  way in as many messages; with elements padded to a multiple of 8. 64 bits: 41.1 bytes dealt, 4.9 each way, depth 3.
  Few values have a plan with fewer messages, if there is one that sends little more for all of them.
Source: products of masked bits in one round after ABY2.0 (Patra, Schneider, Suresh, Yalame, USENIX Security 2021); the
  dealt tables, and plans of both, are ours.
"""

from __future__ import annotations

import numpy as np
import torch

from privml.engines.base import Share
from privml.engines.threepc.comparison_plan import ComparisonPlan, plan
from privml.engines.threepc.comparison_planes import unpacked
from privml.engines.threepc.links import DEALER, Message
from privml.engines.threepc.party import Party
from privml.engines.threepc.sign import sign_by_dealer

# Messages in a row of a comparison, at most.
_LONGEST = 3
# Bytes, of all parties together, that are sent to have one message fewer in a row: what a network of 1 Gbit/s carries
# in the time of a message and of what parties do around it.
WORTH_A_MESSAGE = 1 << 16


def sign(party: Party, m: torch.Tensor, r: torch.Tensor, ell: int) -> Share:
    """[m - r < 0] in Z_2^ell, 2 <= ell <= 64, by the protocol that ``party.comparison`` chooses; ``m`` may have a first
    dimension more than ``r``: several values of one mask."""
    if not 2 <= ell <= 64:  # refused by all alike before anything is drawn, so that their streams stay together
        raise ValueError(f"a comparison has 2 to 64 bits, got {ell}")
    if m.numel() == 0:
        return party.nothing(m.shape, torch.uint8), party.nothing(m.shape, torch.uint8)
    chosen = chosen_plan(party.comparison, ell, m.numel() // r.numel(), r.numel())
    return sign_by_dealer(party, m, r, ell) if chosen is None else sign_from_tables(party, m, r, ell, chosen)


def chosen_plan(comparison: str, ell: int, several: int = 1, count: int | None = None) -> ComparisonPlan | None:
    """The plan for ``several`` values of ``ell`` bits under each of ``count`` masks (None: of very many) that
    ``comparison``, one of ``COMPARISONS``, chooses; None: the dealer's answer."""
    if comparison != "few_bytes":
        return plan(ell - 1, 2, several)
    if count is None:
        return plan(ell - 1, _LONGEST, several)
    plans = (plan(ell - 1, depth, several) for depth in range(1, _LONGEST + 1))
    planes = -(-count // 8)
    return min(
        (each for each in plans if each is not None),
        key=lambda each: planes * each.bits_sent(several) + WORTH_A_MESSAGE * each.depth,
    )


def equal_zero(party: Party, a: Share, ell: int) -> tuple[Share, Share]:
    """[a < 0] and [-a < 0] in one call; a is zero where neither holds (-2^(ell-1) has both)."""
    m, r = torch.stack([a[0], -a[0]]), torch.stack([a[1], -a[1]])
    below = sign(party, m, r, ell)
    return tuple(c[0] for c in below), tuple(c[1] for c in below)


def sign_from_tables(party: Party, m: torch.Tensor, r: torch.Tensor, ell: int, plan: ComparisonPlan) -> Share:
    """``sign`` by this module's protocol; ``plan``: for ell - 1 bits."""
    count = r.numel()
    several, size = m.numel() // count, -(-count // 8)  # values of each mask, bytes of a plane
    if party.metering:
        return _metered(party, m, plan, several, size)
    masks = _masks(party, sum(plan.opened) * several * size)
    if party.deals:
        planes = party.kernels.planes(r.reshape(1, -1), ell)[:, 0]
        masks = masks.view(-1, several, size)
        _deal(party, party.kernels.deal_comparison(plan, planes, masks[:-1]))
        return party.masked(None, unpacked(party.kernels, masks[-1:], count).view(m.shape))
    dealt = _dealt(party, (plan.table_bits + sum(plan.product_bits) * several) * size)
    steps = party.kernels.Comparison(party.rank, plan, (several, count), masks, dealt)
    received = _exchanged(party, steps.begin(m))
    for _ in plan.levels:
        received = _exchanged(party, steps.join(received))
    return steps.finish(received, m.shape)


def _metered(party: Party, m: torch.Tensor, plan: ComparisonPlan, several: int, size: int) -> Share:
    party.links.deal(None, (plan.table_bits + sum(plan.product_bits) * several) * size)
    for bits in plan.opened:
        sent = bits * several * size
        party.exchange([Message(0, 1, sent), Message(1, 0, sent)], {})
    return party.nothing(m.shape, torch.uint8), party.nothing(m.shape, torch.uint8)


def _masks(party: Party, count: int) -> torch.Tensor:
    """Fresh masks of opened bytes: this party's part, or the whole at the dealer."""
    if party.deals:
        return party.streams[0].bytes(count) ^ party.streams[1].bytes(count)
    return party.streams[DEALER].bytes(count)


def _deal(party: Party, value: torch.Tensor) -> None:
    party.links.deal(party.kernels.to_wire(value ^ party.streams[1].bytes(value.numel())), value.numel())


def _dealt(party: Party, size: int) -> torch.Tensor:
    """This party's part of what is dealt."""
    if party.rank == 1:
        return party.streams[DEALER].bytes(size)
    return party.kernels.from_wire(party.links.deal(None, size))


def _exchanged(party: Party, part: np.ndarray) -> np.ndarray:
    """The peer's message, for one as long."""
    messages = [Message(0, 1, part.size), Message(1, 0, part.size)]
    return party.exchange(messages, {1 - party.rank: part})[1 - party.rank]
