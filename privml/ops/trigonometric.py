# SPDX-License-Identifier: Apache-2.0
"""Sine and cosine of secrets, in radians.

The argument is taken in at most 32 bits, so with s fractional bits it must stay below 2^(31 - s). Results are right to
a unit of the last place of the format they are asked in (of 30 fractional bits at most).
"""

from __future__ import annotations

import torch

from privml.dispatch import implements
from privml.ops.fixed import asked, evaluate, known, real, settled, target_of
from privml.tensor import SecretTensor

aten = torch.ops.aten


def _wave(x: SecretTensor, name: str) -> SecretTensor:
    return settled(known(evaluate(real(x), name, target_of(1, asked(x.session))), bound=1))


@implements(aten.sin.default)
def sin(x: SecretTensor) -> SecretTensor:
    return _wave(x, "sin")


@implements(aten.cos.default)
def cos(x: SecretTensor) -> SecretTensor:
    return _wave(x, "cos")
