# SPDX-License-Identifier: Apache-2.0
"""Products both factors of which the parties share, batches of products, and sums of squares: by lattice ciphertexts or
by transfers."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import lru_cache
from math import prod
from typing import TYPE_CHECKING

import numpy as np
import torch

import privml._core as _core
from privml.engines.base import Operand
from privml.engines.shares import Promise, Share, Window
from privml.engines.twopc.linear import (
    TRANSFERS,
    WIDE,
    ByTransfers,
    Form,
    Linear,
    byte_price,
    computed,
    new_meter,
    predicted,
)
from privml.engines.twopc.operands import extended, extension, factor, is_bounded, owned_format
from privml.engines.twopc.weights import output_size, patches_of
from privml.engines.twopc.wide import WideProduct, by_ciphertexts, form_of, multiply, plan_of

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


def summed_squares(engine: TwoPartyEngine, a: Operand, square_bits: int, out_bits: int) -> Share | None:
    """The sum [..., 1] of the squares of a [..., n] mod 2^out_bits, as (x0 + x1)^2 = x0^2 + x1^2 + 2 x0 x1 of the
    shares x0, x1 in that ring: for each row one product of two vectors, of which each party knows one. None where
    squares of each element by transfers take no longer."""
    *lead, inner = a.share[0].shape
    rows, bits = prod(lead), out_bits - 1
    linear = engine.linear
    if linear.mode == "ot" or linear.noise != "tail" or a.owner is not None or 0 in (rows, inner):
        return None
    if not a.bits <= square_bits <= min(2 * a.bits - is_bounded(a), bits):
        return None
    formats = (0, bits, False), (1, bits, False)
    product = WideProduct(rows, 1, inner, 1, bits, *formats, byte_price(linear))
    form = replace(a, share=())
    if plan_of(product) is None or not _squares_pay(product, form, square_bits, engine.transfers, linear):
        return None
    engine.note(computed((Form(WIDE), by_ciphertexts(product, engine.transfers, linear))))
    (own,) = extended(engine, a, out_bits).share
    halves = own.reshape(rows, 1, inner), own.reshape(rows, inner, 1)
    left, right = (Operand((c,), bits, owner, False) for owner, c in enumerate(halves))
    crossed = multiply(engine, product, left, right).reshape(*lead, 1)
    return ((own * own).sum(-1, keepdim=True) + 2 * crossed,)


@lru_cache(maxsize=1024)
def _squares_pay(
    product: WideProduct, operand: Operand, square_bits: int, ot: tuple[str, int, str], linear: Linear
) -> bool:
    """Whether the ciphertexts of ``product`` and the extension of its factors have a smaller price than squares that
    are extended; with mode "lattice" but for the work on ciphertexts, so that messages count beside bytes."""
    x, out_bits = np.zeros(product.batch * product.inner, np.int64), product.bits + 1

    def price(work: Callable[[_core.TwoPartySession], object]) -> float:
        meter = new_meter()
        meter.set_planning(1, ciphertexts=True)
        work(meter)
        return predicted(meter, ot, linear, 0.0).price

    def squares(meter: _core.TwoPartySession) -> None:
        _core.twopc.square(meter, x, factor(operand), square_bits)
        _core.twopc.extend_nonnegative(meter, x, square_bits, out_bits)

    name, settings = extension(operand.bits, out_bits, operand.signed, Promise(operand.nonnegative, operand.bound))
    extended = price(lambda meter: getattr(_core.twopc, name)(meter, x, *settings))
    ciphertexts = by_ciphertexts(product, ot, linear)
    computing = ciphertexts.computing if linear.mode == "lattice" else 0.0
    return extended + ciphertexts.price - computing < price(squares)


def _by_ciphertexts(engine: TwoPartyEngine, product: WideProduct, otherwise: ByTransfers) -> bool:
    form = form_of(product, engine.transfers, engine.linear, otherwise)
    engine.note(form)
    return form.name != TRANSFERS
