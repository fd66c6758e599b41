# SPDX-License-Identifier: Apache-2.0
"""Sine, cosine and tangent of secrets, in radians.

The argument is taken in at most 32 bits, so with s fractional bits it must stay below 2^(31 - s). Sine and cosine are
right to a unit of the last place of the format they are asked in (of 30 fractional bits at most). The tangent is their
quotient: an error of about t^2 units of the working format's last place, plus three.
"""

from __future__ import annotations

import torch

from privml.dispatch import implements
from privml.formats import FixedPoint
from privml.ops.division import divide
from privml.ops.fixed import asked, evaluate, known, real, settled, target_of
from privml.ops.values import engine_of, working_format
from privml.tensor import SecretTensor

aten = torch.ops.aten


def _form(x: SecretTensor, name: str) -> str:
    """The library's function: the one by products if the session asks for it."""
    product = x.session.numerics.exp == "product" and not engine_of(x).stays_wide
    return f"{name}_product" if product else name


def _wave(x: SecretTensor, name: str) -> SecretTensor:
    name = _form(x, name)
    return settled(known(evaluate(real(x), name, target_of(1, asked(x.session))), bound=1))


@implements(aten.sin.default)
def sin(x: SecretTensor) -> SecretTensor:
    return _wave(x, "sin")


@implements(aten.cos.default)
def cos(x: SecretTensor) -> SecretTensor:
    return _wave(x, "cos")


@implements(aten.tan.default)
def tan(x: SecretTensor) -> SecretTensor:
    x, fine = real(x), target_of(1, FixedPoint(64, working_format(x.session).scale))
    above, below = (known(evaluate(x, _form(x, name), fine), bound=1) for name in ("sin", "cos"))
    return settled(divide(above, below, asked(x.session).scale))
