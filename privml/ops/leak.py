# SPDX-License-Identifier: Apache-2.0
"""Operators whose result, or its shape, would reveal a secret."""

from __future__ import annotations

from typing import Any, NoReturn

import torch

from privml.dispatch import implements
from privml.errors import SecretLeakError

aten = torch.ops.aten

_INSTEAD = {
    aten._local_scalar_dense.default: "float(), int(), bool(), .item() and `if` on a secret would reveal "
    "it; choose with torch.where(condition, a, b), or privml.reveal(x, to=party) first",
    aten.item.default: "item() would reveal a secret; call privml.reveal(x, to=party) first",
    aten.is_nonzero.default: "`if` on a secret would reveal it; choose with torch.where(condition, a, b)",
    aten.nonzero.default: "nonzero() has a shape that depends on the secret; work with the mask itself",
    aten.argwhere.default: "argwhere() has a shape that depends on the secret; work with the mask itself",
    aten.masked_select.default: "masked_select() has a shape that depends on the secret; use torch.where",
    aten.equal.default: "torch.equal() returns a Python bool; compare with (a == b).all() and reveal that",
    aten.allclose.default: "torch.allclose() returns a Python bool; compare secretly and reveal the outcome",
    aten._unique2.default: "unique() has a shape that depends on the secret",
    aten.unique_dim.default: "unique() has a shape that depends on the secret",
    aten.unique_consecutive.default: "unique_consecutive() has a shape that depends on the secret",
    aten.bincount.default: "bincount() has a shape that depends on the secret; sum one-hot rows instead",
}


def _leak(operator: Any, message: str) -> None:
    @implements(operator)
    def rule(*args: Any, **kwargs: Any) -> NoReturn:
        raise SecretLeakError(f"{operator}: {message}")


for _operator, _message in _INSTEAD.items():
    _leak(_operator, _message)
