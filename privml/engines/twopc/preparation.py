# SPDX-License-Identifier: Apache-2.0
"""Which products of a query are prepared, many queries together, and in what pieces they come to a store."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

import privml._core as _core
from privml.engines.stores import Kind
from privml.engines.twopc.convolutions import Convolution, pieces_of, saves
from privml.engines.twopc.linear import (
    Linear,
    Product,
    Wanted,
    at_once,
    by_preparation,
    fits,
    halves_of,
    prepare,
)
from privml.engines.twopc.weights import stored_bytes
from privml.engines.twopc.wide import candidates, of_weights

if TYPE_CHECKING:
    from privml.engines.twopc.engine import TwoPartyEngine

_PREFIX = "product "
# Products of a query that a store has room for: their kinds stand beside those of transfers.
MOST_PRODUCTS = 120
# Words of x and of the results that are prepared at a time, and rows that fill polynomials.
_WORDS, _ROWS = 1 << 25, 1 << 14


def place_of(kind: Kind) -> str | None:
    """Of the product that a store's kind is about; None for transfers."""
    return kind.name.removeprefix(_PREFIX) if kind.name.startswith(_PREFIX) else None


def kind_name(place: str) -> str:
    """Of the kind that is about the product at ``place``."""
    return _PREFIX + place


def kind_of(wanted: Wanted, rank: int, noise: str) -> Kind:
    """The kind of what party ``rank`` keeps for one query of a product."""
    return Kind(kind_name(wanted.place), 1, stored_bytes(wanted.product, rank, noise) - _core.Seal.overhead)


def found(engine: TwoPartyEngine, run: Callable[[], Any]) -> list[Wanted]:
    """The products with weights of party 0 that ``run()`` makes on ``engine``, a meter, in order."""
    engine.record.wanted = wanted = []
    run()
    engine.record.wanted = None
    return [each for each in wanted if each.place]


def worthwhile(wanted: Sequence[Wanted], queries: int, ot: tuple[str, int, str], linear: Linear) -> list[Wanted]:
    """Those that are prepared for so many queries: all that fit a parameter set with linear=lattice, and with
    linear=auto those whose ``price`` is lower so; at most MOST_PRODUCTS, those that save the most."""
    if linear.mode == "ot":
        return []
    saved: dict[int, float] = {}
    start = 0  # of the products of one convolution, which are prepared together or not at all
    while start < len(wanted):
        each = wanted[start]
        if isinstance(each.product, Convolution):
            saved[start] = saves(each.product, each.otherwise, queries, ot, linear)
        elif fits(each.product, linear.noise):
            further = candidates(of_weights(each.product, each.parts, linear, each.noisy), ot, linear)
            other = at_once(each.product, each.parts, ot, linear, each.otherwise, further=further)[1]
            saved[start] = other.price - each.parts * by_preparation(each.product, queries, ot, linear).price
        start += each.parts
    kept: list[int] = []
    for start in sorted(saved, key=lambda start: -saved[start]):
        parts = range(start, start + wanted[start].parts)
        if (linear.mode == "lattice" or saved[start] > 0) and len(kept) + len(parts) <= MOST_PRODUCTS:
            kept += parts
    return [wanted[index] for index in sorted(kept)]


def batches(product: Product | Convolution, queries: int) -> list[int]:
    """How many queries are prepared at a time: as many as memory holds, or as fill polynomials well."""
    most = max(min(_ROWS, _WORDS // (product.inner + product.columns)) // max(product.rows, 1), 1)
    calls = -(-queries // most)
    return [queries * (i + 1) // calls - queries * i // calls for i in range(calls)]


def pieces(engine: TwoPartyEngine, wanted: Wanted, queries: int, label: bytes) -> Iterator[Any]:
    """A ``PreparedProduct`` for each query, one after the other; both parties make the same calls. Only party 0 has
    weights."""
    product, linear = wanted.product, engine.linear
    if isinstance(product, Convolution):
        yield from pieces_of(engine, wanted, batches(product, queries))
        return
    halves = halves_of(engine.session, product, wanted.weights, label, linear.noise, engine.products.threads)
    for count in batches(product, queries):
        made = prepare(engine.session, halves, product, wanted.weights, count * product.rows)
        for _ in range(count):
            yield made.take(product.rows)
