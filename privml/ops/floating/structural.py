# SPDX-License-Identifier: Apache-2.0
"""Rules for both fixed point and floating point: those that move elements, and those written in torch operators."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch._decomp import decomposition_table
from torch._ops import OpOverload

from privml.dispatch import FLOATING, TABLE, implements_floating, resolver_of_floats
from privml.ops import creation, dropout, in_place, losses, structural
from privml.ops.floating.arithmetic import to_ring
from privml.ops.values import is_secret
from privml.tensor import SecretTensor

aten = torch.ops.aten


@implements_floating(aten._to_copy.default)
def to_copy(x: SecretTensor, dtype: torch.dtype | None = None, **options: Any) -> SecretTensor:
    """The format stays when the logical dtype changes from one floating dtype to another."""
    dtype = dtype or x.dtype
    if dtype is torch.bool:
        return x != 0
    if not dtype.is_floating_point:
        return to_ring(x, dtype)
    return structural.to_copy(x, dtype, **options)


@implements_floating(aten.index_put.default, aten._unsafe_index_put.default)
def index_put(x: Any, indices: Sequence[Any], values: Any, accumulate: bool = False) -> Any:
    return NotImplemented if accumulate else in_place.index_put(x, indices, values)


@implements_floating(aten.scatter_add.default)
def scatter_add(x: Any, dim: int, index: Any, source: Any) -> Any:
    """One addition of all targets for every place of the index."""
    if is_secret(index):
        return NotImplemented
    source = source[tuple(slice(0, n) for n in index.shape)]
    for place, part in zip(index.split(1, dim), source.split(1, dim), strict=True):
        x = x + torch.zeros_like(x).scatter(dim, place, part)
    return x


@implements_floating(aten.index_add.default)
def index_add(x: Any, dim: int, index: Any, source: Any, *, alpha: float = 1) -> Any:
    if is_secret(index):
        return NotImplemented
    source = source if alpha == 1 else source * alpha
    shape = [-1 if d == dim % x.dim() else 1 for d in range(x.dim())]
    return scatter_add(x, dim, index.view(shape).expand(source.shape), source)


# ---- rules of the other table that never look at a format, or are made of torch operators alone
_MOVING = (structural, creation)
_COMPOSED = (dropout, losses)
_OTHER = (
    aten.copy_.default, aten.zero_.default, aten.fill_.Scalar, aten.fill_.Tensor, aten.copy.default,
    aten.fill.Scalar, aten.fill.Tensor, aten.detach_.default, *in_place.IN_PLACE_VIEWS, aten.scatter.src,
    aten.scatter.value, aten.index_copy.default, aten.index_fill.int_Scalar, aten.slice_scatter.default,
    aten.select_scatter.default,
)  # fmt: skip
# These count on the ring of their values.
_OF_RINGS = {
    aten.floor.default, aten.ceil.default, aten.trunc.default, aten.unfold_backward.default,
    aten.embedding_dense_backward.default, aten.nan_to_num.default,
}  # fmt: skip


def _adopt() -> None:
    names = {module.__name__ for module in (*_MOVING, *_COMPOSED)}
    for operator, rule in TABLE.items():
        if operator in FLOATING or operator in _OF_RINGS:
            continue
        if rule.__module__ in names or operator in _OTHER:
            FLOATING[operator] = rule


_adopt()


@resolver_of_floats
def torch_decomposition(operator: OpOverload) -> Callable[..., Any] | None:
    """What torch takes apart itself, as far as it leads to operators that have rules."""
    return decomposition_table.get(operator)
