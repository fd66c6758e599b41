# SPDX-License-Identifier: Apache-2.0
"""What the rules of floating point share: operands in one format and shape, elementwise operations, results."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch

from privml.context import Session
from privml.engines.base import Engine, Share
from privml.engines.catalogue import FLOAT_FUNCTION_FORMAT
from privml.formats import Float, Owned, Placement, current_node
from privml.ops.rescaling import convert
from privml.ops.values import BOOLEAN, engine_of, expand, is_secret, result_dtype, unify
from privml.ops.words import public_words
from privml.tensor import SecretTensor


def operands(*values: Any) -> tuple[list[Share], Float, Placement, Session]:
    """Secret and public tensors and numbers as shares of one Float format and shape."""
    tensors = [v if isinstance(v, torch.Tensor) else torch.tensor(v, dtype=torch.float64) for v in values]
    secrets = [v for v in tensors if is_secret(v)]
    if not any(isinstance(v.format, Float) for v in secrets):
        tensors = [as_float(v, secrets[0].session) for v in tensors]
    shares, fmt, placement, session = unify(tensors, torch.float32)
    shape = shares[0][0].shape
    for share in shares[1:]:
        if share[0].shape != shape:
            shape = torch.broadcast_shapes(shape, share[0].shape)
    return [expand(share, shape) for share in shares], fmt, placement, session


def as_float(x: torch.Tensor, session: Session) -> SecretTensor:
    """A secret of another format, or a public tensor, as a float of the session."""
    fmt = session.real
    if is_secret(x):
        return SecretTensor(convert(engine_of(x), x.share, x.format, fmt), fmt, x.placement, session, torch.float32)
    everybody = Owned(0)  # whom it costs nothing to compute with what is public
    words = public_words(session.engine_for(everybody), x, x.shape, fmt)
    return SecretTensor(words, fmt, everybody, session, x.dtype if x.dtype.is_floating_point else torch.float32)


def finished(share: Share, fmt: Float, placement: Placement, session: Session, dtype: torch.dtype) -> SecretTensor:
    """A result, in the format that the current node asks for if that is a Float."""
    output = current_node().output
    if isinstance(output, Float) and output != fmt:
        share, fmt = session.engine_for(placement).float_cast(share, fmt, output), output
    return SecretTensor(share, fmt, placement, session, dtype)


def real_dtype(*values: Any) -> torch.dtype:
    """torch's promotion of one operand or two; the default dtype if that is integral."""
    dtype = values[0].dtype if len(values) == 1 else result_dtype(*values)
    return dtype if dtype.is_floating_point else torch.get_default_dtype()


def elementwise(name: str, *values: Any) -> SecretTensor:
    """An operation of ``FLOAT_ARITHMETIC`` on one operand or two, of which one is secret."""
    shares, fmt, placement, session = operands(*values)
    share = session.engine_for(placement).float_operation(name, fmt, *shares)
    return finished(share, fmt, placement, session, real_dtype(*values))


def compared(name: str, a: Any, b: Any, negate: bool = False) -> SecretTensor:
    """A comparison of ``FLOAT_COMPARISONS``, or its negation."""
    shares, fmt, placement, session = operands(a, b)
    engine = session.engine_for(placement)
    bit = engine.float_operation(name, fmt, *shares)
    return SecretTensor(engine.logical_not(bit) if negate else bit, BOOLEAN, placement, session, torch.bool)


def function(name: str, x: SecretTensor) -> SecretTensor:
    """A function of ``FLOAT_FUNCTIONS``, computed in their format."""
    fmt, to = x.format, FLOAT_FUNCTION_FORMAT
    engine = engine_of(x)
    share = engine.float_operation(name, to, convert(engine, x.share, fmt, to))
    return finished(convert(engine, share, to, fmt), fmt, x.placement, x.session, x.dtype)


def components(function: Any, *shares: Share) -> Share:
    """``function`` of the components of shares, one after the other."""
    return tuple(function(*parts) for parts in zip(*shares, strict=True))


def pairwise(combine: Any, parts: Sequence[Any]) -> Any:
    """``combine`` over a tree: neighbours first, the last of an odd number goes to the next level as it is."""
    parts = list(parts)
    while len(parts) > 1:
        joined = [combine(parts[i], parts[i + 1]) for i in range(0, len(parts) - 1, 2)]
        parts = joined + parts[len(parts) // 2 * 2 :]
    return parts[0]


def reduced_last(engine: Engine, share: Share, combine: Any) -> Share:
    """[..., n] to [...], n >= 1, over the tree of ``pairwise`` with one call of ``combine`` per level."""
    while share[0].shape[-1] > 1:
        n = share[0].shape[-1]
        left = components(lambda c, n=n: c[..., 0 : n - 1 : 2], share)
        right = components(lambda c, n=n: c[..., 1:n:2], share)
        together = combine(left, right)
        share = components(lambda t, c, n=n: torch.cat([t, c[..., n // 2 * 2 :]], -1), together, share)
    return components(lambda c: c[..., 0], share)
