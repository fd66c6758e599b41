# SPDX-License-Identifier: Apache-2.0
"""Input, opening, products and bit operations.

Products: the dealer knows r_x r_y and deals it plus nothing else; parties 0 and 1 open the result under a fresh mask.
  Leakage: none; each of parties 0 and 1 sees uniform masks of what it does not know, the dealer sees nothing.
  Assumption: one party at most is corrupted, and follows the protocol; ChaCha20 is a pseudo-random function.
  Cost per element of the result in Z_2^b: b bits dealt; b bits each way, depth 1, online.
Source: MIZAR, Section 2.2.2; weights that stay masked are paid for once, when they enter.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import torch

from privml.engines.base import Share
from privml.engines.pads import message_pad
from privml.engines.threepc.links import DEALER, Message
from privml.engines.threepc.party import Masked, Party, packed_bytes

Bilinear = Callable[[torch.Tensor, torch.Tensor], torch.Tensor]


@dataclass(frozen=True, slots=True)
class Opening:
    """What is left of an operation: opening additive parts that parties 0 and 1 hold (None at the dealer) of a value of
    this shape in Z_2^bits, or of a bit. ``rest`` makes of the opened share the result, or what is to be opened next.
    ``mask``: a fresh one of its own kind, as ``Party.masks`` has them; None: any."""

    part: torch.Tensor | None
    shape: Sequence[int]
    bits: int
    boolean: bool = False
    rest: Callable[[Share], Share | Opening] | None = None
    mask: torch.Tensor | None = None


# ---- in and out
def enter(party: Party, value: torch.Tensor | None, shape: Sequence[int], owner: int, bits: int) -> Share:
    """The share of a value that ``owner`` knows. A computing party masks it by what it draws with the dealer and
    sends the sum to the other one (one element); the dealer's own value becomes -r, of which party 0 is sent a part."""
    size = packed_bytes(math.prod(shape), bits)
    if owner == 0 and party.weights is not None:
        return party.weights.enter(party, value, shape, bits)
    if owner == DEALER:
        return _enter_from_dealer(party, value, shape, bits, size)
    message = Message(owner, 1 - owner, size)
    if party.deals:
        if party.metering:
            party.exchange([message], {})
        return party.nothing(shape), party.streams[owner].words(shape, bits)
    if party.rank != owner:
        received = party.exchange([message], {})
        return party.kernels.unpack(received[owner], shape, bits), party.unmasked(shape)
    assert value is not None
    mask, m, packed = party.streams[DEALER].mask(value, bits)
    party.exchange([message], {1 - owner: packed})
    return m, mask


def _enter_from_dealer(party: Party, value: torch.Tensor | None, shape: Sequence[int], bits: int, size: int) -> Share:
    message, zeros = Message(DEALER, 0, size), party.nothing(shape)
    if party.rank == 1:
        if party.metering:
            party.exchange([message], {})
        return zeros, party.streams[DEALER].words(shape, bits)
    if party.rank == 0:
        return zeros, party.kernels.unpack(party.exchange([message], {})[DEALER], shape, bits)
    part = party.streams[1].deal_packed(-value, bits)
    party.in_order(lambda: party.exchange([message], {0: part}))
    return zeros, -value


def enter_bits(party: Party, value: torch.Tensor | None, shape: Sequence[int], owner: int) -> Share:
    """``enter`` of bits, with exclusive or."""
    if owner == 0 and party.weights is not None:
        return party.weights.enter(party, value, shape, 1, boolean=True)
    size = packed_bytes(math.prod(shape), 1)
    zeros = party.nothing(shape, torch.uint8)
    target = 0 if owner == DEALER else 1 - owner
    message = Message(owner, target, size)
    if party.rank == owner:
        if owner == DEALER:
            part = party.kernels.pack(value ^ party.streams[1].bits(shape), 1)
            party.in_order(lambda: party.exchange([message], {0: part}))
            return zeros, value
        mask = party.streams[DEALER].bits(shape)
        m = value ^ mask
        party.exchange([message], {target: party.kernels.pack(m, 1)})
        return m, mask
    if party.rank == target:
        received = party.kernels.unpack_bits(party.exchange([message], {})[owner], shape)
        return (zeros, received) if owner == DEALER else (received, zeros)
    if party.metering:
        party.exchange([message], {})
    return zeros, party.streams[DEALER if owner == DEALER else owner].bits(shape)


def reveal(party: Party, a: Share, bits: int, to: int | None) -> torch.Tensor | None:
    """m - r at party ``to`` (None: at all), modulo 2^bits: each sends what the other lacks, in one message."""
    m, r = a
    received = _disclose(party, [m, r], bits, to)
    if received is None:
        return None
    return received[0] - r if party.deals else m - r - received[1 - party.rank]


def reveal_bits(party: Party, a: Share, to: int | None) -> torch.Tensor | None:
    m, r = a
    received = _disclose(party, [m, r], 1, to)
    if received is None:
        return None
    return received[0] ^ r if party.deals else m ^ r ^ received[1 - party.rank]


def _disclose(party: Party, a: Sequence[torch.Tensor], bits: int, to: int | None) -> dict[int, torch.Tensor] | None:
    m, r = a
    shape, size = m.shape, packed_bytes(m.numel(), bits)
    needed = [Message(1, 0, size), Message(0, 1, size), Message(0, DEALER, size)]
    messages = [message for message in needed if to is None or message.target == to]
    payloads = {message.target: m if message.target == DEALER else r for message in messages}
    pads = _pads(party, messages)

    def exchange() -> dict[int, torch.Tensor]:
        mine = [message for message in messages if message.source == party.rank]
        packed = {message.target: party.kernels.pack(payloads[message.target], bits) for message in mine}
        received = party.exchange(messages, {to: data ^ pads[party.rank, to] for to, data in packed.items()})
        received = {source: data ^ pads[source, party.rank] for source, data in received.items()}
        open_ = (
            party.kernels.unpack_bits
            if m.dtype is torch.uint8
            else lambda data, shape: party.kernels.unpack(data, shape, bits)
        )
        return {source: open_(data, shape) for source, data in received.items()}

    if not party.deals:
        received = exchange()
    elif to in (None, DEALER) or party.metering:
        received = party.in_order(exchange)()
    else:
        return None
    return received if to in (None, party.rank) else None


def _pads(party: Party, messages: Sequence[Message]) -> dict[tuple[int, int], Any]:
    """What hides each message of this party from one that computes something else, and its peer's: by source and
    target."""
    pads: dict[tuple[int, int], Any] = {}
    for source, target, size in messages:
        if party.rank in (source, target):
            peer = target if source == party.rank else source
            pads[source, target] = 0 if party.transcript is None else message_pad(party.transcript, peer, size)
    return pads


# ---- products
def bilinear_parts(
    party: Party, function: Bilinear, x: Share, y: Share, bits: int
) -> tuple[torch.Tensor | None, tuple[int, ...]]:
    """Additive parts of ``function(x, y)`` (elementwise product, matrix product, convolution) at parties 0 and 1, and
    its shape."""
    rx, ry = x[1], y[1]
    if party.metering:
        shape = tuple(function(rx.to("meta"), ry.to("meta")).shape)
        dealt = party.deal(party.nothing(shape), shape, bits)
        return dealt, shape
    if party.deals:
        product = function(rx, ry)
        party.deal(product, product.shape, bits)
        return None, tuple(product.shape)
    local = _local_parts(party, function, x, y)
    dealt = party.deal(None, local.shape, bits)
    return local + dealt, tuple(local.shape)


def _local_parts(party: Party, function: Bilinear, x: Share, y: Share) -> torch.Tensor:
    """What parties 0 and 1 compute of ``function(x, y)`` by themselves: mx (my - ry) - rx my, without mx my at party 1.
    A factor is never copied if the other one is smaller, and no product is taken with a mask that is none."""
    (mx, rx), (my, ry) = x, y
    if party.is_unmasked(rx):
        return function(mx, my - ry) if party.rank == 0 else -function(mx, ry)
    if party.is_unmasked(ry):
        return function(mx - rx, my) if party.rank == 0 else -function(rx, my)
    if party.rank == 1:
        return -function(mx, ry) - function(rx, my)
    if rx.numel() < ry.numel():
        return function(mx - rx, my) - function(mx, ry)
    return function(mx, my - ry) - function(rx, my)


def opened_together(party: Party, openings: Sequence[Opening]) -> list[Any]:
    """The results of several operations, or what each of them opens next, under fresh masks, with one message each
    way."""
    masks, masked = zip(*(_masked(party, o) for o in openings), strict=True)
    values = party.open_all(masked, [(o.shape, o.bits, o.boolean) for o in openings])
    shares = [party.masked(m, mask) for m, mask in zip(values, masks, strict=True)]
    return [share if o.rest is None else o.rest(share) for o, share in zip(openings, shares, strict=True)]


def _masked(party: Party, opening: Opening) -> tuple[torch.Tensor, Masked | None]:
    """A mask, and what is opened under it; None at the dealer."""
    part, shape, bits, mask = opening.part, opening.shape, opening.bits, opening.mask
    if part is not None and mask is None and not opening.boolean:
        mask, masked, packed = party.streams[DEALER].mask(part.expand(tuple(shape)), bits)
        return mask, (masked, packed)
    if mask is None:
        mask = party.bit_masks(shape) if opening.boolean else party.masks(shape, bits)
    if part is None:
        return mask, None
    masked = part ^ mask if opening.boolean else part + mask
    return mask, (masked, party.kernels.pack(masked, bits))


def opened(party: Party, part: torch.Tensor | None, shape: Sequence[int], bits: int) -> Share:
    """The share of a value of which parties 0 and 1 hold additive parts."""
    return opened_together(party, [Opening(part, shape, bits)])[0]


# ---- bits
def and_begun(party: Party, a: Share, b: Share) -> Opening:
    """The conjunction of bits. Per bit: 1 bit dealt, 1 bit each way."""
    (ma, ra), (mb, rb) = a, b
    dealt = party.deal_bits(ra & rb if party.deals else None, ra.shape)
    part = None
    if not party.deals:
        part = (ma & rb) ^ (mb & ra) ^ dealt
        if party.rank == 0:
            part = part ^ (ma & mb)
    return Opening(part, ra.shape, 1, True)


def ring_parts(party: Party, bit: Share, bits: int) -> torch.Tensor | None:
    """Additive parts in Z_2^bits of a shared bit: m + (1 - 2 m) r, for which r is dealt as a ring element."""
    m, r = bit
    dealt = party.deal(r.long() if party.deals else None, r.shape, bits)
    if party.deals:
        return None
    return party.kernels.bit_shares(party.rank, m, dealt, bits)


def select_parts(party: Party, bit: Share, a: Share, bits: int) -> torch.Tensor | None:
    """Additive parts of ``a`` where the bit is 1, else 0. Per element of Z_2^b: 2 b bits dealt."""
    (mb, rb), (ma, ra) = bit, a
    shape = ra.shape
    chosen, product = rb.long(), None
    if party.deals:
        product = chosen * ra
    dealt_bit = party.deal(chosen if party.deals else None, shape, bits)
    dealt = party.deal(product, shape, bits)
    if party.deals:
        return None
    return party.kernels.selection_shares(party.rank, mb, ma, ra, dealt_bit, dealt, bits)
