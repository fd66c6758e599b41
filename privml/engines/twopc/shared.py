# SPDX-License-Identifier: Apache-2.0
"""Products both factors of which the parties share, and batches of products: by lattice ciphertexts or by transfers."""

from __future__ import annotations

from dataclasses import replace
from math import prod
from typing import TYPE_CHECKING

import torch

from privml.engines.base import Operand
from privml.engines.shares import Share, Window
from privml.engines.twopc.linear import TRANSFERS, ByTransfers, byte_price
from privml.engines.twopc.operands import owned_format
from privml.engines.twopc.weights import output_size, patches_of
from privml.engines.twopc.wide import WideProduct, form_of, multiply

if TYPE_CHECKING:
    from privml.engines.twopc.engine import TwoPartyEngine


def multiplied(
    engine: TwoPartyEngine, a: Operand, b: Operand, out_bits: int, otherwise: ByTransfers, noisy: bool
) -> tuple[Share, int] | None:
    """a [..., n, k] times b [..., k, m] with equal leading dimensions, as ``products.matmul_with_noise`` gives it; None
    where transfers make it, as ``otherwise`` says. Shared factors are of out_bits."""
    *batch, rows, inner = a.share[0].shape
    sizes = prod(batch), rows, inner, b.share[0].shape[-1]
    formats = owned_format(a), owned_format(b)
    product = WideProduct(*sizes, out_bits, *formats, byte_price(engine.linear), noisy)
    if not _by_ciphertexts(engine, product, otherwise):
        return None
    return (multiply(engine, product, a, b).reshape(*batch, rows, sizes[-1]),), int(noisy)


def convolved(
    engine: TwoPartyEngine, x: Operand, w: Operand, window: Window, out_bits: int, otherwise: ByTransfers
) -> Share | None:
    """x [n, c, h, w] with w [o, c / groups, kh, kw], zero padding: the products of its patches, a batch of as many as
    there are groups; None where transfers make it, as ``otherwise`` says."""
    (count, _, height, width), (outputs, inner, *kernel) = x.share[0].shape, w.share[0].shape
    groups, size = window.groups, output_size((height, width), kernel, window)
    rows, terms, columns = count * prod(size), inner * prod(kernel), outputs // groups
    sizes, formats = (groups, rows, terms, columns), (owned_format(x), owned_format(w))
    product = WideProduct(*sizes, out_bits, *formats, byte_price(engine.linear))
    if not _by_ciphertexts(engine, product, otherwise):
        return None

    def by_group(c: torch.Tensor) -> torch.Tensor:
        patches = patches_of(c.reshape(count * groups, inner, height, width), kernel, size, window)
        return patches.reshape(count, groups, -1, terms).transpose(0, 1).reshape(groups, rows, terms)

    factors = tuple(c.reshape(groups, columns, terms).transpose(1, 2) for c in w.share)
    out = multiply(engine, product, replace(x, share=tuple(map(by_group, x.share))), replace(w, share=factors))
    return (out.reshape(groups, count, *size, columns).permute(1, 0, 4, 2, 3).reshape(count, outputs, *size),)


def _by_ciphertexts(engine: TwoPartyEngine, product: WideProduct, otherwise: ByTransfers) -> bool:
    form = form_of(product, engine.transfers, engine.linear, otherwise)
    engine.note(form)
    return form.name != TRANSFERS
