# SPDX-License-Identifier: Apache-2.0
"""Variances and norms of floats."""

from __future__ import annotations

import math
from typing import Any

import torch

from privml.dispatch import implements_floating
from privml.ops.floating.arithmetic import mean, square, total
from privml.ops.linear import dims_of
from privml.tensor import SecretTensor

aten = torch.ops.aten


@implements_floating(aten.var_mean.correction)
def var_mean(
    x: SecretTensor, dim: Any = None, *, correction: float | None = None, keepdim: bool = False
) -> tuple[SecretTensor, SecretTensor]:
    dims = dims_of(x, dim)
    center = mean(x, dims, True)
    freedom = math.prod(x.shape[d] for d in dims) - (1 if correction is None else correction)
    spread = total(square(x - center), dims, keepdim) / float(max(freedom, 0))
    return spread, center if keepdim else center.squeeze(dims)


@implements_floating(aten.var.correction)
def var(x: SecretTensor, dim: Any = None, *, correction: float | None = None, keepdim: bool = False) -> SecretTensor:
    return var_mean(x, dim, correction=correction, keepdim=keepdim)[0]


@implements_floating(aten.std.correction)
def std(x: SecretTensor, dim: Any = None, *, correction: float | None = None, keepdim: bool = False) -> SecretTensor:
    return torch.sqrt(var(x, dim, correction=correction, keepdim=keepdim))


@implements_floating(aten.linalg_vector_norm.default)
def vector_norm(
    x: SecretTensor, ord: float = 2, dim: Any = None, keepdim: bool = False, *, dtype: torch.dtype | None = None
) -> Any:
    if ord <= 0 or math.isinf(ord):
        return NotImplemented
    sizes = square(x) if ord == 2 else torch.abs(x) ** ord
    return total(sizes, dims_of(x, dim), keepdim) ** (1 / ord)
