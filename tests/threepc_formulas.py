# SPDX-License-Identifier: Apache-2.0
"""What the protocols cost, in closed form: bytes that party 0 is dealt, sends and receives, and the depth online.

Party 1 sends and receives as party 0 does but is dealt nothing; the dealer receives both lists of a comparison and
sends both answers. ``n``: elements of the result, ``bits``: of their ring. Tests hold these to what sessions count.
"""

from __future__ import annotations

from dataclasses import dataclass

from privml.engines.threepc import addition
from privml.engines.threepc.comparison import chosen_plan
from privml.engines.threepc.maxima import levels
from privml.engines.threepc.party import packed_bytes
from privml.engines.threepc.pieces import pieces, sizes
from privml.engines.threepc.sign import prime_for
from privml.formats import FixedPoint


@dataclass(frozen=True, slots=True)
class Cost:
    """Bytes at party 0 and one-way messages on the critical path."""

    dealt: int = 0
    sent: int = 0
    received: int = 0
    depth: int = 0

    def __add__(self, other: Cost) -> Cost:
        """One after the other."""
        return Cost(
            self.dealt + other.dealt,
            self.sent + other.sent,
            self.received + other.received,
            self.depth + other.depth,
        )


def dealt(n: int, bits: int) -> Cost:
    return Cost(dealt=packed_bytes(n, bits))


def opened(n: int, bits: int) -> Cost:
    size = packed_bytes(n, bits)
    return Cost(sent=size, received=size, depth=1)


def entered(n: int, bits: int, owner: int) -> Cost:
    """An input; its owner is party 0, 1 or 2. Party 0 sees no depth where it sends."""
    size = packed_bytes(n, bits)
    return Cost(sent=size) if owner == 0 else Cost(received=size, depth=1)


def revealed(n: int, bits: int, to: int | None) -> Cost:
    size = packed_bytes(n, bits)
    learns, tells = to in (None, 0), (to in (None, 1)) + (to in (None, 2))
    return Cost(sent=tells * size, received=learns * size, depth=int(learns))


def product(n: int, bits: int) -> Cost:
    """Elementwise products, matrix products, convolutions: n counts the outputs alone."""
    return dealt(n, bits) + opened(n, bits)


def shifted_product(n: int, bits: int, shift: int, mode: str, reduces: bool = False) -> Cost:
    """A product of which |x| < 2^(bits-2) is known, or that it is not negative, and its truncation, as one."""
    if mode == "exact":
        return product(n, bits) + (truncate_reduce if reduces else truncate)(n, bits, shift, mode)
    if reduces:
        return dealt(n, bits) + opened(n, bits - shift)
    if mode == "probabilistic":
        return dealt(n, bits) + dealt(n, shift) + opened(n, bits - shift)
    return dealt(n, bits) + dealt(n, shift) + opened(n, 1) + opened(n, bits)


def sign(n: int, bits: int, several: int = 1, comparison: str = "few_bytes") -> Cost:
    """A comparison with each of ``several`` thresholds."""
    if (plan := chosen_plan(comparison, bits, several, n)) is not None:
        plane = packed_bytes(n, 1)
        online = several * sum(plan.opened) * plane
        return Cost((plan.table_bits + several * sum(plan.product_bits)) * plane, online, online, plan.depth)
    width = prime_for(bits).bit_length()
    return Cost(
        n * packed_bytes(bits - 1, width),
        several * n * packed_bytes(bits, width),
        packed_bytes(several * n, 1),
        2,
    )


def equal_zero(n: int, bits: int) -> Cost:
    return sign(2 * n, bits) + logical_and(n)


def logical_and(n: int) -> Cost:
    return dealt(n, 1) + opened(n, 1)


def bits_to_ring(n: int, bits: int) -> Cost:
    return dealt(n, bits) + opened(n, bits)


def select(n: int, bits: int) -> Cost:
    return dealt(n, bits) + dealt(n, bits) + opened(n, bits)


def relu(n: int, bits: int) -> Cost:
    return sign(n, bits) + select(n, bits)


def truncate(n: int, bits: int, shift: int, mode: str, small: bool = True) -> Cost:
    """``small``: |x| < 2^(bits-2) is known, or that it is not negative; ``mode`` as in ``width``."""
    if mode == "probabilistic":
        return dealt(n, bits)
    if mode == "faithful":
        return (Cost() if small else sign(n, bits + 1)) + dealt(n, bits) + dealt(n, shift) + opened(n, shift)
    wraps = dealt(n, shift) if small else sign(n, bits) + dealt(n, shift) + dealt(n, shift) + dealt(n, shift)
    return sign(n, shift + 1) + dealt(n, bits) + wraps + dealt(n, bits) + opened(n, bits)


def truncate_reduce(n: int, bits: int, shift: int, mode: str) -> Cost:
    if mode != "exact":
        return dealt(n, bits - shift)
    return sign(n, shift + 1) + dealt(n, bits - shift) + bits_to_ring(n, bits - shift)


def quotient(n: int, bits: int, divisor: int, small: bool) -> Cost:
    """By a number that is no power of two; ``small`` as for ``truncate``."""
    cases = 4 if bits == 64 and not small else 2
    wrap = Cost() if small else sign(n, min(bits + 1, 64))
    compared = sign(cases * n, (divisor - 1).bit_length() + 1)
    return wrap + compared + dealt(cases * n, bits) + dealt(cases * n, bits) + opened(n, bits)


def extend(n: int, bits: int, to_bits: int, small: bool) -> Cost:
    """``small``: |x| < 2^(bits-2) is known, or that it is not negative."""
    found = Cost() if small else sign(n, bits + 1)
    return found + dealt(n, to_bits - bits) + dealt(n, to_bits) + opened(n, to_bits - bits)


def lookup(n: int, in_bits: int, out_bits: int, tables: int = 1) -> Cost:
    return dealt(n << in_bits, out_bits) + opened(tables * n, out_bits)


def maximum_last(rows: int, count: int, bits: int) -> Cost:
    """The largest of ``count`` in each of ``rows``."""
    total = Cost()
    for size in levels(rows, count, bits, "few_bytes"):
        groups = rows * (count // size)
        count = count // size + count % size
        if size == 2:
            total = total + relu(groups, bits)
            continue
        compared, counted = groups * size * (size - 1) // 2, (size - 1).bit_length()
        losses = dealt(compared, counted) + opened(groups * size, counted)
        total = total + sign(compared, bits) + losses + lookup(groups * size, counted, bits) + product(groups, bits)
    return total


# ---- functions from masks, of arguments in a ring of 64 bits with ``scale`` fractional ones, for 32 bits of that scale
def piecewise(n: int, name: str, scale: int) -> Cost:
    table = pieces(name, scale)
    form = sizes(table, scale)
    unit = dealt(n * ((1 << table.index_bits) - 1), form.widths[0])
    powers = sum((dealt(n, bits) for bits in form.rings), Cost())
    wraps = sum((dealt(n, bits) for bits in form.wraps if bits), Cost())
    size = sum(packed_bytes(n, width) for width in form.widths)
    return unit + powers + wraps + Cost(sent=size, received=size, depth=1)


def settled(n: int, ring: int, shift: int, cases: int = 0, line: bool = False, chosen: bool = True) -> Cost:
    """A sum opened, truncated, chosen with ``cases`` public values or a line, and extended to 64 bits."""
    narrow = ring - shift
    total = opened(n, narrow)
    if chosen:
        total = total + dealt(n, narrow) + dealt(n, narrow) + opened(n, narrow)
    for _ in range(cases):
        total = total + dealt(n, narrow)
    lifted = dealt(n, 64 - narrow) + dealt(n, 64 - narrow)  # the wrap, and the carry of the mask's parts
    if line:
        return total + lifted + dealt(n, 64) + dealt(n, 64) + opened(n, 64)
    return total + lifted + opened(n, 64 - narrow)


def function(n: int, name: str, scale: int) -> Cost:
    if name in ("sin", "cos"):
        ring, shift = 2 * (scale + 2) + 3, scale + 4
        return dealt(2 * n, ring) + settled(n, ring, shift, chosen=False)
    if name in ("exp", "exp_negative"):
        form = addition.power_form(FixedPoint(32, scale), name == "exp")
        signs = sign(n, 64, 2) if name == "exp" else sign(n, 64 - (scale - 3))
        return signs + dealt(n << form.groups, form.ring) + settled(n, form.ring, form.shift, cases=name == "exp")
    table, form = pieces(name, scale), sizes(pieces(name, scale), scale)
    cases = (table.above == "one") + (table.below == "minus one")
    shift = form.scale + form.powers - scale
    signs = sign(n, 64 - (scale - 4), 2)
    return signs + piecewise(n, name, scale) + settled(n, form.ring, shift, cases, table.above == "argument")
