# SPDX-License-Identifier: Apache-2.0
"""Products of rows with one number each, as norms and softmax take them: element by element, by transfers that carry
whole rows, or by lattice ciphertexts, where a row is a polynomial and its number a constant.

Both parties make the same choice, from public numbers alone, as ``linear`` does for products with weights: by the
price, with mode "lattice" too but for the work on ciphertexts: these take more messages than they save bytes where rows
are few.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import lru_cache
from math import prod
from typing import TYPE_CHECKING

import torch

import privml._core as _core
from privml.engines.base import Operand
from privml.engines.shape_tensor import ShapeTensor
from privml.engines.shares import Share
from privml.engines.twopc import wide
from privml.engines.twopc.linear import Linear, Predicted, byte_price, computed, layout_price, predicted
from privml.engines.twopc.operands import array, call, factor, fit, owned_format, uniform

if TYPE_CHECKING:
    from privml.engines.twopc.engine import TwoPartyEngine

# Bits of the field by whose degree SoftSpoken's correlations get cheaper; other providers' hardly cost anything.
_FIELD_BITS = 128


def multiply_rows(
    engine: TwoPartyEngine, a: Operand, b: Operand, out_bits: int, noisy: bool
) -> tuple[Share, int] | None:
    """a [..., n] times b [..., 1], as ``products.matmul_with_noise`` gives it; None where element by element is
    cheaper."""
    a, b = fit(a, out_bits), fit(b, out_bits)
    if a.owner is not None or b.owner is not None:
        return None
    if engine.linear.mode != "ot":
        made = _by_ciphertexts(engine, a, b, out_bits, noisy)
        if made is not None:
            return made, int(noisy)
    if not _rows_pay(a, b, out_bits, _correlation_bits(engine)):
        return None
    return call(engine.session, "multiply_rows", array(a.share), factor(a), array(b.share), b.bits, out_bits), 0


def _correlation_bits(engine: TwoPartyEngine) -> int:
    """What a correlation takes on the wire, by the provider that both parties have."""
    provider, degree = engine.transfers[:2]
    return _FIELD_BITS // degree if provider == "softspoken" else 1


def _rows_pay(a: Operand, b: Operand, out_bits: int, correlation: int) -> bool:
    """Whether the bits of b [..., 1] carry whole rows of a [..., n], which is cheaper than the shorter factor of each
    element with its ``correlation`` bits and choices."""
    if not b.nonnegative:
        return False

    def streams(choices: int) -> int:
        return choices * out_bits - choices * (choices - 1) // 2

    shorter = min(a.bits, b.bits)
    return streams(b.bits) <= streams(shorter) + (correlation + 1) * shorter


def _by_ciphertexts(engine: TwoPartyEngine, a: Operand, b: Operand, out_bits: int, noisy: bool) -> Share | None:
    """A batch of products 1 x 1 times 1 x n; None where transfers cost less."""
    shape, linear = tuple(a.share[0].shape), engine.linear
    formats = owned_format(replace(b, bits=out_bits)), owned_format(replace(a, bits=out_bits))
    sizes = prod(shape[:-1]), 1, 1, shape[-1]
    # Without a price of work, columns would be polynomials of their own, which takes more bytes of a number and a row.
    worth = layout_price(linear) if linear.mode == "lattice" else byte_price(linear)
    product = wide.WideProduct(*sizes, out_bits, *formats, worth, noisy)
    found = wide.candidates(product, engine.transfers, linear)
    if not found:
        return None
    form, ciphertexts = found[0]
    rows = _Rows(shape, replace(a, share=()), replace(b, share=()), out_bits)
    extensions, transfers = _predicted(type(engine), rows, engine.transfers, linear)
    free = ciphertexts.computing if linear.mode == "lattice" else 0.0
    if ciphertexts.plus(extensions).price - free >= transfers.price:
        return None
    engine.note(computed((form, ciphertexts)))
    factors = uniform(engine, b, out_bits), uniform(engine, a, out_bits)
    stacked = (replace(each, share=tuple(c.reshape(product.batch, 1, -1) for c in each.share)) for each in factors)
    return (wide.multiply(engine, product, *stacked).reshape(shape),)


@dataclass(frozen=True, slots=True)
class _Rows:
    """A product of rows of this ``shape``, of factors without their shares."""

    shape: tuple[int, ...]
    a: Operand
    b: Operand
    out_bits: int

    def factors(self) -> tuple[Operand, Operand]:
        """With shares of the right shapes, for a meter."""
        shapes = self.shape, (*self.shape[:-1], 1)
        a, b = (ShapeTensor(shape, torch.int64) for shape in shapes)
        return replace(self.a, share=(a,)), replace(self.b, share=(b,))


@lru_cache(maxsize=4096)
def _predicted(
    kind: type[TwoPartyEngine], rows: _Rows, ot: tuple[str, int, str], linear: Linear
) -> tuple[Predicted, Predicted]:
    """What both parties predict: of bringing both factors into the ring of the product, and of the product made of
    transfers."""
    engine = _metered(kind, ot)
    for each in rows.factors():
        uniform(engine, each, rows.out_bits)
    extensions = predicted(engine.session, ot, linear, 0.0)
    engine = _metered(kind, ot)
    engine.multiply_rows(*rows.factors(), rows.out_bits)
    return extensions, predicted(engine.session, ot, linear, 0.0)


def _metered(kind: type[TwoPartyEngine], ot: tuple[str, int, str]) -> TwoPartyEngine:
    """An engine that counts, and makes all products of transfers."""
    return kind(_core.TwoPartySession.meter(0, *ot, 1, False, True))
