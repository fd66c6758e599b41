# SPDX-License-Identifier: Apache-2.0
"""Dropout: the identity outside training, a public mask in training."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
import torch.nn.functional as F

from privml.dispatch import implements, intercepts
from privml.ops.values import is_secret
from privml.tensor import SecretTensor

aten = torch.ops.aten


def public_mask(x: SecretTensor, p: float, features: bool = False) -> torch.Tensor:
    """Which elements (or whole channels) stay; all parties draw the same, see Session.public_generator."""
    shape = x.shape if not features else [*x.shape[:2], *[1] * (x.dim() - 2)]
    return torch.rand(shape, generator=x.session.public_generator()) >= p


def _dropout(features: bool, *functions: Callable) -> None:
    @intercepts(*functions)
    def rule(input: Any, p: float = 0.5, training: bool = True, inplace: bool = False) -> Any:
        """torch would fill a secret tensor with the mask."""
        if not is_secret(input):
            return NotImplemented
        if not training or p == 0:
            return input
        factor = public_mask(input, p, features) / (1 - p) if p < 1 else torch.zeros(())
        return input.mul_(factor) if inplace else input * factor


_dropout(False, F.dropout, torch.dropout, torch.dropout_, aten.dropout.default)
_dropout(True, F.dropout1d, F.dropout2d, F.dropout3d, torch.feature_dropout, aten.feature_dropout.default)


@implements(aten.dropout.default)
def dropout(x: SecretTensor, p: float, train: bool) -> SecretTensor:
    return native_dropout(x, p, train)[0]


@implements(aten.native_dropout.default)
def native_dropout(x: SecretTensor, p: float, train: bool | None) -> tuple[SecretTensor, torch.Tensor]:
    if not train or p == 0:
        return x.clone(), torch.ones(x.shape, dtype=torch.bool)
    mask = public_mask(x, p)
    return x * (mask / (1 - p) if p < 1 else 0.0), mask


@implements(aten.native_dropout_backward.default)
def native_dropout_backward(grad: SecretTensor, mask: torch.Tensor, scale: float) -> SecretTensor:
    return grad * (mask * scale)
