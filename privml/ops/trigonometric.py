# SPDX-License-Identifier: Apache-2.0
"""Sine, cosine and tangent of secrets, in radians.

The argument is taken in at most 32 bits, so with s fractional bits it must stay below 2^(31 - s). Sine and cosine are
right to a unit of the last place of the format they are asked in (of 30 fractional bits at most); on ``active``, and on
``threepc`` with exact truncations or more than 24 fractional bits, an error of 2^-31 |x| adds to it. The tangent is
their quotient: an error of about t^2 units of the working format's last place, plus three.
"""

from __future__ import annotations

import torch

from privml.dispatch import implements
from privml.formats import FixedPoint
from privml.ops.division import divide
from privml.ops.fixed import asked, evaluate, real, settled, target_of
from privml.ops.values import working_format
from privml.tensor import SecretTensor

aten = torch.ops.aten


def _wave(x: SecretTensor, name: str) -> SecretTensor:
    return settled(evaluate(real(x), name, target_of(1, asked(x.session))))


@implements(aten.sin.default)
def sin(x: SecretTensor) -> SecretTensor:
    return _wave(x, "sin")


@implements(aten.cos.default)
def cos(x: SecretTensor) -> SecretTensor:
    return _wave(x, "cos")


@implements(aten.tan.default)
def tan(x: SecretTensor) -> SecretTensor:
    x, fine = real(x), target_of(1, FixedPoint(64, working_format(x.session).scale))
    above, below = (evaluate(x, name, fine) for name in ("sin", "cos"))
    return settled(divide(above, below, asked(x.session).scale))
