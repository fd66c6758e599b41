# SPDX-License-Identifier: Apache-2.0
"""The steps that composed functions consist of, in the ring of 64 bits where nothing else is said."""

from __future__ import annotations

import json
from collections.abc import Sequence
from functools import cache
from importlib.resources import files
from typing import NamedTuple

import torch

from privml.engines.base import Engine, Operand
from privml.engines.shares import Promise, Share, each, part, stack

RING = 64
# Bits of an index into the tables, fractional bits of their coefficients.
INDEX_BITS, COEFFICIENT_SCALE = 6, 26
# A distance within a piece has at least so many fractional bits.
FINEST = 20


class Spline(NamedTuple):
    """``coefficients`` [degree + 1, 64]; pieces are 2^-fine wide. ``error``: the largest, see scripts/make_splines."""

    fine: int
    error: float
    coefficients: torch.Tensor


@cache
def _tables() -> dict:
    return json.loads(files("privml.engines.composed").joinpath("splines.json").read_text())


@cache
def spline(name: str) -> Spline:
    table = _tables()[name]
    return Spline(table["fine"], table["error"], torch.tensor(table["coefficients"], dtype=torch.int64))


def power_polynomial() -> tuple[int, list[int]]:
    """(scale, coefficients) of 2^u on [-1, 1]."""
    return _tables()["power"]["scale"], _tables()["power"]["coefficients"]


# ---- arithmetic
def product(engine: Engine, a: Share, b: Share, ring: int = RING) -> Share:
    return engine.multiply(Operand(a, ring), Operand(b, ring), ring)


def shifted(engine: Engine, a: Share, shift: int, magnitude: int, ring: int = RING) -> Share:
    """a / 2^shift rounded down (times 2^-shift, if negative), for |a| < 2^magnitude."""
    if shift <= 0:
        return a if shift == 0 else engine.multiply_public(a, 1 << -shift, ring)
    return engine.truncate(a, ring, shift, Promise(bound=1 << min(magnitude, ring - 2)))


def linear(engine: Engine, terms: Sequence[Share], factors: Sequence[int], constant: int) -> Share:
    """The sum of public multiples, and a constant."""
    total = engine.multiply_public(terms[0], factors[0], RING)
    for term, factor in zip(terms[1:], factors[1:], strict=True):
        total = engine.add(total, engine.multiply_public(term, factor, RING), RING)
    return engine.add_public(total, constant, RING)


def powers(engine: Engine, u: Share, scale: int, count: int) -> list[Share]:
    """u, u^2, ..., u^count at ``scale``, for |u| <= 1, in about log2(count) steps."""
    known = [u]
    while len(known) < count:
        have = len(known)
        wanted = range(have + 1, min(2 * have, count) + 1)
        first = stack([known[have - 1]] * len(wanted))
        second = stack([known[n - have - 1] for n in wanted])
        fresh = shifted(engine, product(engine, first, second), scale, 2 * scale + 1)
        known += [part(fresh, i) for i in range(len(wanted))]
    return known


def located(engine: Engine, x: Share, scale: int, fine: int) -> tuple[Share, Share, int]:
    """(index of the piece of width 2^-fine, distance from its left end, the distance's scale) of x at ``scale``."""
    x = shifted(engine, x, -max(FINEST + fine - scale, 0), RING - 2)
    width = max(scale, FINEST + fine) - fine
    index = engine.truncate(x, RING, width)
    return index, engine.subtract(x, engine.multiply_public(index, 1 << width, RING), RING), width


def evaluate(engine: Engine, table: Spline, x: Share, scale: int, target: int, magnitude: int) -> Share:
    """A spline at x, itself at ``scale``, of values below 2^magnitude, at scale ``target``. Beyond the table the result
    is arbitrary."""
    index, u, width = located(engine, x, scale, table.fine)
    coefficients = engine.lookup_many(table.coefficients, index, INDEX_BITS, RING)
    degree = table.coefficients.shape[0] - 1
    monomials = stack(powers(engine, u, width, degree))
    rest = engine.inner(each(coefficients, lambda c: c[1:]), monomials, RING)
    first = engine.multiply_public(part(coefficients, 0), 1 << width, RING)
    total = engine.add(first, rest, RING)
    return shifted(engine, total, COEFFICIENT_SCALE + width - target, COEFFICIENT_SCALE + width + magnitude + 1)


def chosen(engine: Engine, cases: Sequence[tuple[Share, Share]], ring: int = RING) -> Share:
    """The sum of the values whose bits are 1."""
    return engine.select_sum(stack([bit for bit, _ in cases]), stack([value for _, value in cases]), ring)


def constant(engine: Engine, value: int, like: Share, ring: int = RING) -> Share:
    return engine.public(torch.full((), value).expand(like[0].shape), ring)
