# SPDX-License-Identifier: Apache-2.0
"""Choices among the rows of a matrix: by secret bits, and by rows that must have a single one.

Operators beside ATen's, which a model calls as ``torch.ops.privml.<name>``; without secrets they compute the same.
"""

from __future__ import annotations

from typing import Any

import torch

from privml.dispatch import implements, implements_floating
from privml.engines.base import Engine, Operand, Share
from privml.errors import ConfigError
from privml.formats import Boolean, FixedPoint, Integer, current_node
from privml.ops.linear import is_bits
from privml.ops.ring_formats import added, in_ring, ring_format
from privml.ops.values import constant, engine_of, expand, is_secret, join, operand, owner_of
from privml.tensor import SecretTensor

_LIBRARY = torch.library.Library("privml", "DEF")
_LIBRARY.define("select_rows(Tensor bits, Tensor rows) -> Tensor")
_LIBRARY.define("select_of_each(Tensor bits, Tensor values) -> Tensor")
_LIBRARY.define("one_hot_rows(Tensor x) -> Tensor")
_LIBRARY.define("checked_index(Tensor index, int rows) -> Tensor")


def _select_rows(bits: torch.Tensor, rows: torch.Tensor) -> torch.Tensor:
    """bool [n, k], [k, m] -> [n, m]: the sum of the rows whose bits are 1."""
    return torch.matmul(bits.to(rows.dtype), rows)


def _select_of_each(bits: torch.Tensor, values: torch.Tensor) -> torch.Tensor:
    """bool [n, k], [n, k, m] -> [n, m]: of each matrix the sum of the rows whose bits are 1."""
    return torch.where(bits.unsqueeze(2), values, torch.zeros((), dtype=values.dtype)).sum(1)


def _checked_index(index: torch.Tensor, rows: int) -> torch.Tensor:
    """``index`` itself; IndexError unless all of it lies in [0, rows)."""
    wrong = (index < 0) | (index >= rows)
    if bool(wrong.any()):
        place = tuple(torch.nonzero(wrong)[0].tolist())
        raise IndexError(f"at index {place} is outside [0, {rows})")
    return index.clone()


_LIBRARY.impl("select_rows", _select_rows, "CompositeExplicitAutograd")
_LIBRARY.impl("select_rows", lambda bits, rows: rows.new_empty((bits.shape[0], rows.shape[1])), "Meta")
_LIBRARY.impl("select_of_each", _select_of_each, "CompositeExplicitAutograd")
_LIBRARY.impl("select_of_each", lambda bits, values: values.new_empty((values.shape[0], values.shape[2])), "Meta")
_LIBRARY.impl("one_hot_rows", torch.clone, "CompositeExplicitAutograd")
_LIBRARY.impl("checked_index", _checked_index, "CPU")
_LIBRARY.impl("checked_index", lambda index, rows: index.clone(), "Meta")
SELECT_ROWS = torch.ops.privml.select_rows.default
SELECT_OF_EACH = torch.ops.privml.select_of_each.default
ONE_HOT_ROWS = torch.ops.privml.one_hot_rows.default
CHECKED_INDEX = torch.ops.privml.checked_index.default


@implements(SELECT_ROWS)
def select_rows(bits: Any, rows: Any) -> SecretTensor:
    """Without truncation: the result has the scale of ``rows``, in the ring that the node asks for."""
    secret = is_secret(rows)
    if not is_bits(bits) or (secret and not isinstance(rows.format, (FixedPoint, Integer))):
        return _select_rows(bits, rows)
    session, working = bits.session, current_node().working or bits.session.working
    fmt = rows.format if secret else ring_format(working.bits, working.scale, rows.dtype.is_floating_point)
    if secret:
        placement, factor = join(bits.placement, rows.placement), operand(rows.share, fmt, rows.placement)
    else:
        placement = bits.placement
        factor = Operand(constant(rows, rows.shape, fmt, engine_of(bits)), fmt.bits)
    ring = working.bits if factor.owner is not None else max(working.bits, fmt.bits)
    engine, owner = session.engine_for(placement), owner_of(bits.placement)
    if owner is not None and factor.owner is not None and owner != factor.owner:
        # a product of what each side knows, which needs no choice per bit
        known = Operand(tuple(c.to(torch.int64) for c in bits.share), 1, owner, False)
        share = engine.matmul(known, factor, ring)
    else:
        share = engine.select_rows(bits.share, factor, ring)
    to = added(in_ring(fmt, ring), rows.shape[0])
    return SecretTensor(share, to, placement, session, rows.dtype)


@implements(SELECT_OF_EACH)
def select_of_each(bits: Any, values: Any) -> SecretTensor:
    """In the format of ``values``."""
    if not is_bits(bits) or not is_secret(values) or not isinstance(values.format, (FixedPoint, Integer)):
        return _select_of_each(bits, values)
    placement = join(bits.placement, values.placement)
    engine, fmt = bits.session.engine_for(placement), values.format
    first = values.movedim(1, 0)
    chosen = expand(bits.t().unsqueeze(2).share, first.shape)
    share = engine.select_sum(chosen, first.share, fmt.bits)
    return SecretTensor(share, added(fmt, len(first)), placement, bits.session, values.dtype)


class _Checked:
    """Set on a matrix whose rows were verified to have a single one."""


@implements(ONE_HOT_ROWS)
def one_hot_rows(x: SecretTensor) -> SecretTensor:
    """``x`` itself; against an active adversary its owner first proves that each row has one 1 and zeros else.

    c (1 - c) = 0 and a sum of 1 say so in any ring Z_2^k, for c and 1 - c are coprime. Semi-honest owners have nothing
    to prove, and their engines compute nothing. A shared matrix is checked once, before any output is opened.
    Source: Damgard et al., "New Primitives for Actively-Secure MPC over Rings", Fig. 14, steps 2 to 5.
    """
    engine = x.session.engine
    if engine.actively_secure and not isinstance(x.aux, _Checked):
        if x.format.scale != 0:
            raise ConfigError(
                "rows that hide a model's structure are checked as integers: convert the model with "
                "privml.convert, which shares them as integers, instead of calling it on secrets directly"
            )
        if isinstance(x.format, Boolean):
            _check_bits(engine, x.share)
        else:
            _check(engine, x.share, x.format.bits)
        x.aux = _Checked()
    result = SecretTensor(x.share, x.format, x.placement, x.session, x.dtype)
    result.aux = x.aux
    return result


def _check(engine: Engine, share: Share, bits: int) -> None:
    rest = engine.add_public(engine.negate(share, bits), 1, bits)
    product = engine.multiply(Operand(share, bits), Operand(rest, bits), bits)
    total = engine.add_public(engine.sum(share, [share[0].dim() - 1], False, bits), -1, bits)
    engine.assert_zero(tuple(torch.cat([p.flatten(), t.flatten()]) for p, t in zip(product, total, strict=True)), bits)


def _check_bits(engine: Engine, share: Share) -> None:
    """Bits need no proof; that there is a single one among them does. Numbers of 32 bits hold any count."""
    total = engine.sum(engine.bits_to_ring(share, 32), [share[0].dim() - 1], False, 32)
    engine.assert_zero(engine.add_public(total, -1, 32), 32)


@implements_floating(SELECT_ROWS)
def select_rows_of_floats(bits: Any, rows: Any) -> SecretTensor:
    return _select_rows(bits, rows)


@implements_floating(SELECT_OF_EACH)
def select_of_each_of_floats(bits: Any, values: Any) -> SecretTensor:
    return _select_of_each(bits, values)


@implements_floating(ONE_HOT_ROWS)
def one_hot_rows_of_floats(x: SecretTensor) -> SecretTensor:
    return x.clone()
