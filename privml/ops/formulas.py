# SPDX-License-Identifier: Apache-2.0
"""Functions of secrets that a user writes as addition formulas (``privml.engines.formulas``)."""

from __future__ import annotations

from privml.engines.formulas import Formula
from privml.errors import InvalidInput
from privml.formats import Shared
from privml.ops.fixed import cast, real
from privml.ops.ring_formats import ring_format
from privml.ops.values import engine_of
from privml.tensor import SecretTensor


def evaluate_formula(x: SecretTensor, formula: Formula) -> SecretTensor:
    """F(x) at ``formula.out_scale``, off by about a unit of its last place and by what f and g are rounded to.

    x is taken in the formula's format: unless F has a period, a value that does not fit gives a meaningless result.
    InvalidInput for a tensor that one party knows, since that party computes F locally;
    ConfigError on engines without formulas.
    """
    if not isinstance(x.placement, Shared):
        raise InvalidInput("a formula is for shared tensors; the owner of this one computes it in the clear")
    x = real(x)
    wider = min(x.format.bits + formula.scale - x.format.scale, 64)
    x = cast(x, wider if formula.periodic else formula.bits, formula.scale)
    share = engine_of(x).formula(x.share, formula)
    to = ring_format(formula.result_bits, formula.out_scale, True)
    return SecretTensor(share, to, x.placement, x.session, x.dtype)
