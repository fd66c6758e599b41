# SPDX-License-Identifier: Apache-2.0
"""Tensors created like a secret one: they are secret too, because secrets will be written to them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch

from privml.dispatch import implements
from privml.encoding import format_for
from privml.formats import Float
from privml.ops.values import constant
from privml.tensor import SHARED, SecretTensor

aten = torch.ops.aten


def filled(x: SecretTensor, shape: Sequence[int], value: Any, dtype: torch.dtype | None) -> SecretTensor:
    """A public value as a shared tensor in the working format of the session of ``x``, or in the Float format of x."""
    dtype = dtype or x.dtype
    session = x.session
    fmt = format_for(dtype, session.working, x.format if isinstance(x.format, Float) else session.real)
    share = constant(value, shape, fmt, session.engine)
    return SecretTensor(tuple(c.contiguous() for c in share), fmt, SHARED, session, dtype)


@implements(aten.zeros_like.default, aten.empty_like.default)
def zeros_like(x: SecretTensor, dtype: torch.dtype | None = None, **options: Any) -> SecretTensor:
    return filled(x, x.shape, 0, dtype)


@implements(aten.ones_like.default)
def ones_like(x: SecretTensor, dtype: torch.dtype | None = None, **options: Any) -> SecretTensor:
    return filled(x, x.shape, 1, dtype)


@implements(aten.full_like.default)
def full_like(x: SecretTensor, value: Any, dtype: torch.dtype | None = None, **options: Any) -> SecretTensor:
    return filled(x, x.shape, value, dtype)


@implements(aten.new_zeros.default, aten.new_empty.default)
def new_zeros(x: SecretTensor, size: Sequence[int], dtype: torch.dtype | None = None, **options: Any) -> SecretTensor:
    return filled(x, size, 0, dtype)


@implements(aten.new_ones.default)
def new_ones(x: SecretTensor, size: Sequence[int], dtype: torch.dtype | None = None, **options: Any) -> SecretTensor:
    return filled(x, size, 1, dtype)


@implements(aten.new_full.default)
def new_full(
    x: SecretTensor, size: Sequence[int], value: Any, dtype: torch.dtype | None = None, **options: Any
) -> SecretTensor:
    return filled(x, size, value, dtype)


@implements(aten.new_empty_strided.default)
def new_empty_strided(
    x: SecretTensor,
    size: Sequence[int],
    stride: Sequence[int],
    dtype: torch.dtype | None = None,
    **options: Any,
) -> SecretTensor:
    zeros = filled(x, size, 0, dtype)
    share = tuple(torch.empty_strided(size, stride, dtype=c.dtype).copy_(c) for c in zeros.share)
    return SecretTensor(share, zeros.format, SHARED, x.session, zeros.dtype)
