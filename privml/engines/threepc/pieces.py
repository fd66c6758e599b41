# SPDX-License-Identifier: Apache-2.0
"""A polynomial by pieces at x = m - r, from what the dealer knows of r.

Functionality: additive parts of S in Z_2^ring, S / 2^shift the value at the target's scale. x times a public factor
  goes to pieces of 2^L; with M, R the bits above, x lies in (M - R + u) 2^L, where u = (m mod 2^L - r mod 2^L) / 2^L is
  in (-1, 1): every piece is fitted there, so nothing is compared. For each piece, its polynomial in u is one in the
  mask's own low part with coefficients that parties 0 and 1 make of their m. The dealer deals the unit vector of R;
  what it picks of these coefficients is opened under masks, and multiplied by the powers of the low part, which are
  dealt, as is the sum of the masks times the powers. An opened number wraps where its mask has a top bit and it has
  none, as in ``width``.
Result: within the table's ``error`` and 2^-scale of the function, and not the same for every mask: where an index is
  one too large the neighbouring polynomial is taken.
Leakage: none; parties 0 and 1 see numbers under fresh uniform masks, the dealer sees nothing.
Assumption: as for products.
Cost per value: ``Sizes.dealt`` bits dealt, the sum of ``Sizes.widths`` each way, depth 1.
Source: ours; shares of masked values with a dealer from MIZAR, Section 2.2.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Sequence
from functools import cache
from importlib.resources import files
from typing import NamedTuple

import torch

from privml.engines.ring import word
from privml.engines.shares import Share
from privml.engines.threepc.party import Party
from privml.engines.threepc.products import Opening, opened_together
from privml.engines.threepc.width import low

COEFFICIENT_SCALE = 30
# Bits that the opened coefficients have below the last place of the result, and the powers below that of a coefficient.
_SPARE, _SPARE_OF_POWERS = 1, 1
# Up to this scale of the result the coarser tables are as good as the rounding.
_COARSE = 17
# Of the results' scales, and of those of functions of [1/2, 1).
FINEST, FINEST_OF_MANTISSAS = 20, 26
MANTISSA = "_mantissa"


class Pieces(NamedTuple):
    """A table of scripts/make_pieces.py: ``coefficients`` [degree + 1, 2^index_bits]."""

    index_bits: int
    width: int
    factor: int
    above: str
    below: str
    middle: float
    magnitude: int
    steepness: int
    error: float
    coefficients: tuple[tuple[int, ...], ...]

    @property
    def reach(self) -> float:
        """Beyond which the function is what it is ``above`` or ``below``."""
        return ((1 << self.index_bits) - 1) * 2.0 ** (self.width - 1) / self.factor


class Sum(NamedTuple):
    """Additive parts (None at the dealer) of a value of Z_2^ring, at most 2^(ring - 2) in size, that is to be divided
    by 2^shift."""

    part: torch.Tensor | None
    ring: int
    shift: int


class Sizes(NamedTuple):
    """Of a table and a scale of results: scales of opened coefficients and of the mask's place, the coefficients'
    widths, and the ring of their products."""

    scale: int
    powers: int
    widths: tuple[int, ...]
    ring: int

    @property
    def coarser(self) -> tuple[int, ...]:
        """Bits that each power has fewer than the place: a short coefficient needs no more of it."""
        return (0, *(max(self.powers - width - _SPARE_OF_POWERS, 0) for width in self.widths[1:]))

    @property
    def rings(self) -> tuple[int, ...]:
        """Bits that are dealt of each power but the first, whose product is shifted by ``coarser``, and of what is
        taken away from their sum."""
        return (*(self.ring - less for less in self.coarser[1:]), self.ring)

    @property
    def wraps(self) -> tuple[int, ...]:
        """Bits that are dealt for the wrap of each opened coefficient."""
        first, *others = self.widths
        pairs = zip(self.rings, others, strict=False)
        return (max(self.ring - first - self.powers, 0), *(ring - width for ring, width in pairs))

    def dealt(self, index_bits: int) -> int:
        """Bits for each value."""
        return self.widths[0] * ((1 << index_bits) - 1) + sum(self.rings) + sum(self.wraps)


@cache
def _tables() -> dict[str, list[Pieces]]:
    text = files("privml.engines.threepc").joinpath("pieces.json").read_text()
    rows = {name: [(each.pop("coefficients"), each) for each in of_name] for name, of_name in json.loads(text).items()}
    return {
        name: [Pieces(coefficients=tuple(map(tuple, columns)), **each) for columns, each in of_name]
        for name, of_name in rows.items()
    }


def names() -> frozenset[str]:
    return frozenset(_tables())


def pieces(name: str, scale: int) -> Pieces:
    """The table for results of ``scale`` fractional bits, at most ``FINEST``, or of a function of [1/2, 1)."""
    tables = _tables()[name]
    return tables[0] if scale <= _COARSE else tables[-1]


@cache
def sizes(table: Pieces, scale: int) -> Sizes:
    above, powers = scale + _SPARE, scale + table.steepness
    widths = tuple(_size(table, i, above).bit_length() + 2 for i in range(len(table.coefficients)))
    return Sizes(above, powers, widths, above + powers + table.magnitude + 2)


def _size(table: Pieces, power: int, scale: int) -> int:
    """The largest size of a coefficient of (2 r')^power, where u = m' - r' and both are at most 1/2."""
    columns = zip(*table.coefficients, strict=True)
    most = max(sum(math.comb(k, power) * abs(c) * 2.0 ** (power - k) for k, c in enumerate(column) if k >= power)
               for column in columns)  # fmt: skip
    return math.ceil(most * 2.0 ** (scale - COEFFICIENT_SCALE - power)) + 1


def needed_bits(table: Pieces, scale: int) -> int:
    """Of a ring in which an argument of ``scale`` fractional bits finds its piece."""
    return scale + table.width + table.index_bits


def piecewise(party: Party, x: Share, table: Pieces, scale: int, target: int) -> Sum:
    """The table at x, a share of a ring of ``needed_bits`` at least, at scale ``target``: the function less its
    ``middle``; arbitrary beyond its reach."""
    m, r = x
    width, count = scale + table.width, 1 << table.index_bits
    form = sizes(table, target)
    index, place = _placed(m, table, width, form.powers)
    of_mask, mask_place = _placed(r, table, width, form.powers, mask=True)
    hot = dealt(party, lambda: _unit(of_mask, count)[..., 1:], (*r.shape, count - 1), form.widths[0])
    parts = _picked(party, table, form, index, place, hot)
    shares = opened_together(
        party, [Opening(part, r.shape, bits) for part, bits in zip(parts, form.widths, strict=True)]
    )
    return Sum(_combined(party, form, shares, mask_place, r.shape), form.ring, form.scale + form.powers - target)


def dealt(party: Party, make: Callable[[], torch.Tensor], shape: Sequence[int], bits: int) -> torch.Tensor | None:
    """Additive parts in Z_2^bits of what the dealer makes."""
    value = None
    if party.deals:
        value = party.nothing(shape) if party.metering else make()
    return party.deal(value, shape, bits)


def _placed(
    value: torch.Tensor, table: Pieces, width: int, powers: int, mask: bool = False
) -> tuple[torch.Tensor, torch.Tensor]:
    """(index of the piece, place in it less 1/2 at scale ``powers``) of m, or of r."""
    value = value * table.factor
    if not mask:
        value = value + (1 << (width - 1))
    index = (value >> width) & ((1 << table.index_bits) - 1)
    place, more = low(value, width), width - powers
    place = (place + (1 << (more - 1))) >> more if more > 0 else place << -more
    return index, place - (1 << (powers - 1))


def _unit(index: torch.Tensor, count: int) -> torch.Tensor:
    return index.new_zeros((*index.shape, count)).scatter_(-1, index.unsqueeze(-1), 1)


# ---- parties 0 and 1: coefficients
def _picked(
    party: Party, table: Pieces, form: Sizes, index: torch.Tensor, place: torch.Tensor, hot: torch.Tensor | None
) -> list[torch.Tensor | None]:
    """Additive parts of the coefficients of (2 r')^i, made positive by a public number."""
    degree = len(table.coefficients)
    if party.deals:
        return [None] * degree
    if party.metering:
        return [party.nothing(index.shape)] * degree
    assert hot is not None
    # u = m' - r' has (2 r')^i times (-1/2)^i
    shifts = form.powers, COEFFICIENT_SCALE - form.scale
    hot = hot.reshape(-1, (1 << table.index_bits) - 1)
    flat = index.reshape(-1), place.reshape(-1), hot
    sums = party.kernels.piece_sums(party.rank, _columns(table), shifts, *flat)
    parts = [row.view(index.shape) for row in sums]
    if party.rank == 0:
        parts = [part + (1 << (width - 2)) for part, width in zip(parts, form.widths, strict=True)]
    return list(parts)


@cache
def _columns(table: Pieces) -> torch.Tensor:
    return torch.tensor(table.coefficients)


# ---- products with the mask's powers
def _combined(
    party: Party, form: Sizes, shares: Sequence[Share], place: torch.Tensor, shape: torch.Size
) -> torch.Tensor | None:
    """Additive parts of the sum of the opened coefficients times the powers of 2 r', of which the dealer knows
    ``place``."""
    degree, masks = len(form.widths) - 1, [share[1] for share in shares]
    powers = _powers(place, form, degree) if party.deals and not party.metering else []
    given = _with_masks(powers, masks, form) if powers else [party.nothing(shape)] * (degree + 1)
    known = [party.deal(value if party.deals else None, shape, b) for value, b in zip(given, form.rings, strict=True)]
    wraps = []
    for i, (width, room) in enumerate(zip(form.widths, form.wraps, strict=True)):
        top = _top(masks[i], width) if party.deals else None
        value = top * powers[i] if i and powers else top
        wraps.append(party.deal(value, shape, room) if room else 0)
    if party.deals:
        return None
    total = -known[degree]
    for i, (opening, width) in enumerate(zip((share[0] for share in shares), form.widths, strict=True)):
        opening = low(opening, width)
        value, unlikely = opening - (1 << (width - 2)), 1 - _top(opening, width)
        if i:
            total = total + (value * known[i - 1] + (unlikely * wraps[i] << width) << form.coarser[i])
            continue
        total = total + (unlikely * wraps[i] << (width + form.powers))
        if party.rank == 0:
            total = total + (value << form.powers)
    return total


def _powers(place: torch.Tensor, form: Sizes, count: int) -> list[torch.Tensor]:
    """1, 2 r', (2 r')^2, ... at the place's scale less what each is ``coarser``."""
    scale = form.powers
    powers = [torch.full_like(place, 1 << scale), 2 * place]
    while len(powers) <= count:
        powers.append((powers[-1] * powers[1] + (1 << (scale - 1))) >> scale)
    halves = [1 << (less - 1) if less else 0 for less in form.coarser]
    return [(power + half) >> less for power, half, less in zip(powers, halves, form.coarser, strict=True)]


def _with_masks(powers: Sequence[torch.Tensor], masks: Sequence[torch.Tensor], form: Sizes) -> list[torch.Tensor]:
    """The powers but for the first, and the sum of all of them times the masks."""
    rows = zip(powers, masks, form.widths, form.coarser, strict=True)
    total = sum((power * low(mask, width) << less for power, mask, width, less in rows), torch.zeros_like(powers[0]))
    return [*powers[1:], total]


def _top(value: torch.Tensor, bits: int) -> torch.Tensor:
    return (value >> (bits - 1)) & 1


def offset_of(ring: int) -> int:
    """What makes a ``Sum`` positive."""
    return word(1 << (ring - 2))
