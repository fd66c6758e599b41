# SPDX-License-Identifier: Apache-2.0
"""Products by lattice ciphertexts of factors of any width, shared or known to a party, in batches.

Both parties make the same choice, from public numbers alone, as ``linear`` does for products with weights; the choice
does not depend on keys that are there already, so that every query draws the correlations that its count says.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Any

import torch

import privml._core as _core
from privml.engines.base import Operand
from privml.engines.twopc.linear import (
    TRANSFERS,
    WIDE,
    ByTransfers,
    Form,
    Linear,
    Predicted,
    Product,
    by_transfers,
    byte_price,
    computed,
    new_meter,
    predicted,
    zeros,
)
from privml.engines.twopc.operands import tensor, words_of

if TYPE_CHECKING:
    from privml.engines.twopc.engine import TwoPartyEngine

# Products that keys serve, in the weight of what these cost: some queries, of which each has several.
_KEYS_SERVE = 8


@dataclass(frozen=True, slots=True)
class WideProduct:
    """``batch`` products x [rows, inner] times y [inner, columns] mod 2^bits; formats as operands (owner, bits,
    signed), owner -1 for shared factors, which have ``bits``; ``byte_price``: nanoseconds of work that a byte is
    worth, None where bytes count alone; ``noisy``: of one bit more, in which noise is."""

    batch: int
    rows: int
    inner: int
    columns: int
    bits: int
    x_format: tuple[int, int, bool]
    y_format: tuple[int, int, bool]
    byte_price: int | None
    noisy: bool = False

    @property
    def sizes(self) -> tuple[int, int, int, int]:
        return self.batch, self.rows, self.inner, self.columns


def of_weights(product: Product, count: int, linear: Linear, noisy: bool = False) -> WideProduct:
    """``count`` products with weights that one party knows."""
    sizes = count, product.rows, product.inner, product.columns
    return WideProduct(*sizes, product.bits, product.x_format, product.weight_format, byte_price(linear), noisy)


def multiply(engine: TwoPartyEngine, product: WideProduct, a: Operand, b: Operand) -> torch.Tensor:
    """a [..., rows, inner] times b [..., inner, columns], of ``batch`` matrices, of which shared ones have ``bits``:
    [batch, rows, columns]."""
    x, y = words_of(a, engine.rank), words_of(b, engine.rank)
    if x is not None:
        x = x.reshape(product.batch, product.rows, product.inner)
    if y is not None:
        y = y.reshape(product.batch, product.inner, product.columns)
    factors = x, product.x_format, y, product.y_format
    out = _core.twopc.wide_matmul(engine.session, engine.products.wide, *factors, *_settings(product))
    return tensor(engine.session, out)


def candidates(product: WideProduct, ot: tuple[str, int, str], linear: Linear) -> list[tuple[Form, Predicted]]:
    """Such ciphertexts as a form among others, if they serve, and what is predicted of them."""
    if linear.mode == "ot" or linear.noise != "tail" or 0 in product.sizes or plan_of(product) is None:
        return []
    return [(Form(WIDE), by_ciphertexts(product, ot, linear))]


def form_of(product: WideProduct, ot: tuple[str, int, str], linear: Linear, otherwise: ByTransfers) -> Form:
    """How a product is made in a session with the transfers ``ot``; ``otherwise``: how transfers would make it."""
    if linear.mode == "ot" or 0 in product.sizes:
        return Form(TRANSFERS)
    if linear.noise != "tail":
        return Form(TRANSFERS, f"noise={linear.noise} is for weights that one party knows")
    if plan_of(product) is None:
        return Form(TRANSFERS, f"no lattice parameters fit {' x '.join(map(str, product.sizes))}")
    if linear.mode == "lattice":
        return computed((Form(WIDE), by_ciphertexts(product, ot, linear)))
    ciphertexts = by_ciphertexts(product, ot, linear)
    pays = ciphertexts.price < by_transfers(otherwise, ot, linear).price
    return computed((Form(WIDE), ciphertexts)) if pays else Form(TRANSFERS)


@lru_cache(maxsize=4096)
def plan_of(product: WideProduct) -> Mapping[str, Any] | None:
    """Of a first product in a session."""
    keys = _core.twopc.WideKeys()
    formats = product.x_format, product.y_format
    return _core.twopc.wide_plan(keys, product.sizes, *formats, *_settings(product)[1:])


def _settings(product: WideProduct) -> tuple[Any, ...]:
    return product.sizes, product.bits, product.noisy, product.byte_price


@lru_cache(maxsize=4096)
def by_ciphertexts(product: WideProduct, ot: tuple[str, int, str], linear: Linear) -> Predicted:
    """What both parties predict of ciphertexts, with a part of what the keys cost."""
    plan, keys = plan_of(product), _core.twopc.WideKeys()
    if plan is None:
        raise ValueError("no lattice parameters serve this product")
    sides = [side for side in plan["sides"] if side is not None]
    # Two sides compute at the same time.
    computing = max(side["nanoseconds"] for side in sides) * 1e-9
    found = []
    for _ in range(2):
        one = new_meter()
        x = zeros((product.batch, product.rows, product.inner), product.x_format)
        y = zeros((product.batch, product.inner, product.columns), product.y_format)
        factors = x, product.x_format, y, product.y_format
        _core.twopc.wide_matmul(one, keys, *factors, *_settings(product))
        found.append(predicted(one, ot, linear, computing))
    first, further = found
    return Predicted(
        further.seconds + (first.seconds - further.seconds) / _KEYS_SERVE,
        further.bytes + (first.bytes - further.bytes) / _KEYS_SERVE,
        computing,
    )
