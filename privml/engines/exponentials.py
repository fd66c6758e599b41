# SPDX-License-Identifier: Apache-2.0
"""Which function of the fixed-point library computes e^x for x <= 0."""

from __future__ import annotations

from functools import lru_cache

from privml.formats import FixedPoint


@lru_cache(maxsize=4096)
def exp_negative_function(form: str, source: FixedPoint, target: FixedPoint) -> str:
    """The name of the function of ``form`` (``privml.formats.EXPONENTIALS``), or where these formats have no such
    form of the cheapest. It depends on formats alone, so that every engine and a cost's prediction take the same."""
    import privml._core as _core

    return _core.fixmath.exp_negative_function(form, source.bits, source.scale, target.bits, target.scale)
