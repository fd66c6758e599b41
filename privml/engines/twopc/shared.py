# SPDX-License-Identifier: Apache-2.0
"""Products both factors of which the parties share, and batches of products: by lattice ciphertexts or by transfers.

Both parties choose alike, from public numbers alone, as ``linear`` does for products with weights; the choice does not
depend on keys that are there already, so that every query draws the correlations that its count says.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import lru_cache
from math import prod
from typing import TYPE_CHECKING, Any

import torch

import privml._core as _core
from privml.engines.base import Operand
from privml.engines.shares import Share, Window
from privml.engines.twopc.linear import (
    LATTICE,
    TRANSFERS,
    ByTransfers,
    Form,
    Linear,
    Predicted,
    by_transfers,
    new_meter,
    predicted,
    zeros,
)
from privml.engines.twopc.operands import owned_array, owned_format, tensor
from privml.engines.twopc.weights import output_size, patches_of

if TYPE_CHECKING:
    from privml.engines.twopc.engine import TwoPartyEngine

# Seconds of one core for each residue: of a column of a factor that is transformed and multiplied with a ciphertext;
# of a key switch; of a ciphertext that is made or opened. The own time of a thread, over the products of
# csrc/twopc/product/product_bench.cpp, on a two-core x86-64 server (AVX-512).
_COLUMN, _SWITCH, _CIPHERTEXT = 1.5e-9, 6e-9, 2.5e-8
# Products that keys serve, in the weight of what these cost.
_KEYS_SERVE = 4


@dataclass(frozen=True, slots=True)
class SharedProduct:
    """``batch`` products x [rows, inner] times y [inner, columns] mod 2^bits; formats as operands (owner, bits,
    signed), owner -1 for shared factors, which have ``bits``."""

    batch: int
    rows: int
    inner: int
    columns: int
    bits: int
    x_format: tuple[int, int, bool]
    y_format: tuple[int, int, bool]

    @property
    def sizes(self) -> tuple[int, int, int, int]:
        return self.batch, self.rows, self.inner, self.columns


def multiplied(engine: TwoPartyEngine, a: Operand, b: Operand, out_bits: int, otherwise: ByTransfers) -> Share | None:
    """a [..., n, k] times b [..., k, m] with equal leading dimensions; None where transfers make it, as ``otherwise``
    says. Shared factors are of out_bits."""
    *batch, rows, inner = a.share[0].shape
    sizes = prod(batch), rows, inner, b.share[0].shape[-1]
    product = SharedProduct(*sizes, out_bits, owned_format(a), owned_format(b))
    if not _by_ciphertexts(engine, product, otherwise):
        return None
    return (_product(engine, product, a, b).reshape(*batch, rows, sizes[-1]),)


def convolved(
    engine: TwoPartyEngine, x: Operand, w: Operand, window: Window, out_bits: int, otherwise: ByTransfers
) -> Share | None:
    """x [n, c, h, w] with w [o, c / groups, kh, kw], zero padding: the products of its patches, a batch of as many as
    there are groups; None where transfers make it, as ``otherwise`` says."""
    (count, _, height, width), (outputs, inner, *kernel) = x.share[0].shape, w.share[0].shape
    groups, size = window.groups, output_size((height, width), kernel, window)
    rows, terms, columns = count * prod(size), inner * prod(kernel), outputs // groups
    product = SharedProduct(groups, rows, terms, columns, out_bits, owned_format(x), owned_format(w))
    if not _by_ciphertexts(engine, product, otherwise):
        return None

    def by_group(c: torch.Tensor) -> torch.Tensor:
        patches = patches_of(c.reshape(count * groups, inner, height, width), kernel, size, window)
        return patches.reshape(count, groups, -1, terms).transpose(0, 1).reshape(groups, rows, terms)

    factors = tuple(c.reshape(groups, columns, terms).transpose(1, 2) for c in w.share)
    out = _product(engine, product, replace(x, share=tuple(map(by_group, x.share))), replace(w, share=factors))
    return (out.reshape(groups, count, *size, columns).permute(1, 0, 4, 2, 3).reshape(count, outputs, *size),)


def _by_ciphertexts(engine: TwoPartyEngine, product: SharedProduct, otherwise: ByTransfers) -> bool:
    form = form_of(product, engine.transfers, engine.linear, otherwise)
    engine.note(form)
    return form.name != TRANSFERS


def _product(engine: TwoPartyEngine, product: SharedProduct, a: Operand, b: Operand) -> torch.Tensor:
    """[batch, rows, columns]."""
    keys, factors = engine.products.shared, [(owned_array(each, engine.rank), owned_format(each)) for each in (a, b)]
    out = _core.twopc.shared_matmul(engine.session, keys, *factors[0], *factors[1], product.sizes, product.bits)
    return tensor(engine.session, out)


def form_of(product: SharedProduct, ot: tuple[str, int, str], linear: Linear, otherwise: ByTransfers) -> Form:
    """How a product is made in a session with the transfers ``ot``; ``otherwise``: how transfers would make it."""
    if linear.mode == "ot" or 0 in product.sizes:
        return Form(TRANSFERS)
    if linear.noise != "tail":
        return Form(TRANSFERS, f"noise={linear.noise} is for weights that one party knows")
    if _plan(product) is None:
        return Form(TRANSFERS, f"no lattice parameters fit {' x '.join(map(str, product.sizes))}")
    if linear.mode == "lattice":
        return Form(LATTICE)
    ciphertexts = by_ciphertexts(product, ot, linear)
    return Form(LATTICE if ciphertexts.seconds < by_transfers(otherwise, ot, linear).seconds else TRANSFERS)


@lru_cache(maxsize=4096)
def _plan(product: SharedProduct) -> Mapping[str, Any] | None:
    """Of a first product in a session."""
    keys = _core.twopc.ProductKeys()
    return _core.twopc.shared_matmul_plan(keys, product.sizes, product.x_format, product.y_format, product.bits)


@lru_cache(maxsize=4096)
def by_ciphertexts(product: SharedProduct, ot: tuple[str, int, str], linear: Linear) -> Predicted:
    """What both parties predict of ciphertexts, with a part of what the keys cost."""
    plan, keys = _plan(product), _core.twopc.ProductKeys()
    if plan is None:
        raise ValueError("no lattice parameters serve this product")
    sides = [side for side in plan["sides"] if side is not None]
    # Two sides compute at the same time.
    computing = max(
        side["factors"] * _COLUMN + side["switches"] * _SWITCH + side["ciphertexts"] * _CIPHERTEXT for side in sides
    )
    found = []
    for _ in range(2):
        one = new_meter()
        x = zeros((product.batch, product.rows, product.inner), product.x_format)
        y = zeros((product.batch, product.inner, product.columns), product.y_format)
        factors = x, product.x_format, y, product.y_format
        _core.twopc.shared_matmul(one, keys, *factors, product.sizes, product.bits)
        found.append(predicted(one, ot, linear, computing))
    first, further = found
    return Predicted(
        further.seconds + (first.seconds - further.seconds) / _KEYS_SERVE,
        further.bytes + (first.bytes - further.bytes) / _KEYS_SERVE,
    )
