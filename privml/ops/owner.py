# SPDX-License-Identifier: Apache-2.0
"""Functions of values that one party knows: it computes them in float64, without communication."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch

from privml.encoding import encode_input
from privml.formats import FixedPoint, Owned
from privml.ops.values import is_secret, owner_of
from privml.tensor import SecretTensor


def sole_owner(values: Sequence[Any]) -> Owned | None:
    """The placement of all secrets among ``values`` if one party knows them all, else None."""
    placements = {v.placement for v in values if is_secret(v)}
    placement = placements.pop() if len(placements) == 1 else None
    return placement if isinstance(placement, Owned) else None


def in_clear(
    function: Callable[..., torch.Tensor], shape: Sequence[int], fmt: FixedPoint, *values: Any
) -> SecretTensor:
    """``function`` of ``values`` (secrets of one owner, public tensors, None) in float64, as the owner's.

    The result is rounded to nearest in ``fmt``; InvalidInput at the owner when it does not fit.
    """
    secret = next(v for v in values if is_secret(v))
    session, placement = secret.session, secret.placement
    share = []
    for i, known in enumerate(session.engine.knows(owner_of(placement))):
        if known:
            share.append(encode_input(function(*(_real(v, i) for v in values)), fmt))
        else:
            share.append(torch.zeros(tuple(shape), dtype=torch.int64))
    return SecretTensor(tuple(share), fmt, placement, session, torch.float32)


def _real(value: Any, component: int) -> torch.Tensor | None:
    if value is None or not isinstance(value, SecretTensor):
        return value if value is None else value.detach().double()
    return value.share[component].double() * 2.0**-value.format.scale
