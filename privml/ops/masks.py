# SPDX-License-Identifier: Apache-2.0
"""Public masks: minus infinity added or written at public places.

A ring has no infinity. The masked elements get a constant far below what a ring of comparisons takes, and the tensor
remembers which they are, so that softmax leaves them out exactly. No party knows the places of secret masks: see
``HIDES`` and ``privml.graph.passes.bound_masks``.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch

from privml.encoding import is_never
from privml.tensor import SecretTensor

# What stands for infinity where a secret chooses it, and it is unknown how large scores are: its exponential is zero in
# every format unless all of a row is hidden.
HIDES = 1024.0


@dataclass(frozen=True, slots=True)
class PublicMask:
    """Set on a result: True if it represents minus infinity."""

    hidden: torch.Tensor


def hidden_by(value: Any, bits: int, scale: int) -> torch.Tensor | None:
    """The places at which a public tensor represents minus infinity in this ring; None if there are none."""
    if not isinstance(value, torch.Tensor) or not value.dtype.is_floating_point or value.numel() == 0:
        return None
    hidden = is_never(value, bits, scale) & (value < 0)
    return hidden if bool(hidden.any()) else None


def lowered(value: Any) -> Any:
    """A public real tensor with ``HIDES`` in the place of infinities, for a secret to choose from."""
    if not isinstance(value, torch.Tensor) or not value.dtype.is_floating_point or value.numel() == 0:
        return value
    return torch.where(is_never(value, 64, 0), torch.sign(value) * HIDES, value)


def mask_of(x: Any) -> torch.Tensor | None:
    """The mask that a tensor carries."""
    aux = x.aux if isinstance(x, SecretTensor) else None
    return aux.hidden if isinstance(aux, PublicMask) else None


def masked(result: SecretTensor, *masks: torch.Tensor | None) -> SecretTensor:
    """``result`` with the union of ``masks`` (broadcast to its shape) left on it."""
    known = [mask for mask in masks if mask is not None]
    if known:
        hidden = known[0]
        for mask in known[1:]:
            hidden = hidden | mask
        result.aux = PublicMask(hidden.expand(result.shape))
    return result
