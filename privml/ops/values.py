# SPDX-License-Identifier: Apache-2.0
"""What the rules share: bringing operands to one format, placement and shape, and wrapping results.

Rules read formats and never guess them. The scale of a sum is the larger one of its operands (a shift to the left is
free); the scale of a product is brought back to the working scale, or to what the current node asks for.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import Any

import torch

from privml.context import Session
from privml.encoding import encode_constant
from privml.engines.base import Engine, Operand, Share
from privml.formats import Boolean, FixedPoint, Float, Format, Integer, Owned, Placement, current_node
from privml.ops.rescaling import calibrated, convert, finished
from privml.ops.ring_formats import (
    RingFormat,
    bit_value,
    in_ring,
    interval,
    public_format,
    rescaled,
    ring_format,
    together,
)
from privml.ops.unopened import Product
from privml.ops.words import public_words
from privml.tensor import SHARED, SecretTensor

BOOLEAN = Boolean()


def is_secret(value: Any) -> bool:
    return isinstance(value, SecretTensor)


@lru_cache(maxsize=256)
def _stand_in(dtype: torch.dtype, scalar: bool) -> torch.Tensor:
    return torch.empty((), dtype=dtype) if scalar else torch.empty(1, dtype=dtype)


def result_dtype(a: Any, b: Any) -> torch.dtype:
    """torch's promotion of two operands (torch.result_type itself would dispatch on a secret)."""
    if isinstance(a, torch.Tensor):
        if isinstance(b, torch.Tensor):
            if a.dtype is b.dtype:
                return a.dtype
            return torch.result_type(_stand_in(a.dtype, a.dim() == 0), _stand_in(b.dtype, b.dim() == 0))
        return torch.result_type(_stand_in(a.dtype, a.dim() == 0), b)
    return torch.result_type(a, _stand_in(b.dtype, b.dim() == 0))


def working_format(session: Session) -> FixedPoint:
    """The format operands of products are brought to."""
    return current_node().working or session.working


def join(a: Placement, b: Placement) -> Placement:
    """The placement of what depends on both."""
    return a if a is b or a == b else SHARED


def like(x: SecretTensor, share: Share, fmt: Format | None = None, dtype: torch.dtype | None = None) -> SecretTensor:
    """A new tensor in the session and placement of ``x``."""
    return SecretTensor(share, x.format if fmt is None else fmt, x.placement, x.session, dtype or x.dtype)


def engine_of(x: SecretTensor) -> Engine:
    return x.session.engine_for(x.placement)


def owner_of(placement: Placement) -> int | None:
    return placement.party if isinstance(placement, Owned) else None


# ---- results
def claimed(x: SecretTensor, fmt: RingFormat) -> SecretTensor:
    """``x``, of which its rule has proved what ``fmt`` says, for whatever lies in the rings of its operands."""
    share = engine_of(x).claim(x.share, *interval(fmt))
    return SecretTensor(share, fmt, x.placement, x.session, x.dtype)


def finish(
    engine: Engine, share: Share, fmt: RingFormat, placement: Placement, session: Session, dtype: torch.dtype
) -> SecretTensor:
    """Wraps a result in the format the current node asks for, or as it is."""
    output = current_node().output
    if isinstance(output, FixedPoint) and isinstance(fmt, FixedPoint):
        share, fmt = calibrated(engine, share, fmt, output)
        share = convert(engine, share, fmt, output)
        fmt = rescaled(fmt, output, engine.floors)
    return SecretTensor(share, fmt, placement, session, dtype)


def finish_product(
    engine: Engine,
    share: Product | Share,
    fmt: RingFormat,
    placement: Placement,
    session: Session,
    dtype: torch.dtype,
    to_bits: int | None = None,
) -> SecretTensor:
    """Wraps a product in fixed-point format ``fmt``: truncated to the working scale, or as the node asks. ``to_bits``:
    the ring of a result that was not requested, if it is not that of the product."""
    output = current_node().output
    if not dtype.is_floating_point:
        target: RingFormat = ring_format(to_bits or fmt.bits, 0, False)
    elif isinstance(output, FixedPoint):
        target = ring_format(output.bits, output.scale, True)
        share, fmt = calibrated(engine, share, fmt, output)
    else:
        target = ring_format(to_bits or fmt.bits, working_format(session).scale, True)
    share, to = finished(engine, share, fmt, target), rescaled(fmt, target, engine.floors)
    return SecretTensor(share, to, placement, session, dtype)


# ---- operands
def ring_operand(x: SecretTensor, session: Session) -> tuple[Share, RingFormat]:
    """Share and ring format of a factor: its scale is at most the working one."""
    fmt = x.format
    if isinstance(fmt, Boolean):
        to: RingFormat = bit_value(session.working.bits)
        return convert(engine_of(x), x.share, fmt, to), to
    working = working_format(session)
    if fmt.scale > working.scale:
        to = rescaled(fmt, ring_format(fmt.bits, working.scale, True), engine_of(x).floors)
        known = x._operand  # truncated already, for other products
        if known is None or known[0] != x.cell.version:
            known = x._operand = (x.cell.version, {})
        if to not in known[1]:
            known[1][to] = convert(engine_of(x), x.share, fmt, to)
        return known[1][to], to
    return x.share, fmt


def kept_operands(x: SecretTensor) -> int:
    """How many conversions of ``x`` the products so far have left for later ones."""
    return 0 if x._operand is None else len(x._operand[1])


def operand(share: Share, fmt: RingFormat, placement: Placement) -> Operand:
    owner = owner_of(placement)
    if owner is not None and fmt.nonnegative:  # its owner leaves out the sign, which would cost a choice per value
        return Operand(share, fmt.bits - 1, owner, False, True)
    return Operand(share, fmt.bits, owner, True, fmt.nonnegative, fmt.bound if owner is None else None)


def product_bits(session: Session, *operands: tuple[RingFormat, Placement]) -> int:
    """The ring of a product: that of its shared operands, at least the working one."""
    bits = working_format(session).bits
    for fmt, placement in operands:
        if not isinstance(placement, Owned) and fmt.bits > bits:
            bits = fmt.bits
    return bits


def constant(
    value: torch.Tensor | float, shape: Sequence[int], fmt: Format, engine: Engine, headroom: int = 2
) -> Share:
    """A public value (broadcast to ``shape``) as a share in ``fmt``."""
    if isinstance(fmt, Boolean):
        bits = torch.as_tensor(value, dtype=torch.uint8)
        return engine.public(bits.expand(tuple(shape)), 1)
    if isinstance(fmt, Float):
        return public_words(engine, value, shape, fmt)
    encoded = encode_constant(value, fmt.bits, fmt.scale, headroom)
    return engine.public(torch.as_tensor(encoded).expand(tuple(shape)), fmt.bits)


def signed(value: Any) -> Any:
    """A public uint8 tensor as int64, so that its negative does not wrap at 8 bits; anything else unchanged."""
    narrow = isinstance(value, torch.Tensor) and not isinstance(value, SecretTensor) and value.dtype is torch.uint8
    return value.long() if narrow else value


def as_number(value: Any) -> Any:
    """A public zero-dimensional tensor as a Python number, anything else unchanged."""
    if isinstance(value, torch.Tensor) and not isinstance(value, SecretTensor) and value.dim() == 0:
        return value.item()
    return value


def expand(share: Share, shape: Sequence[int]) -> Share:
    if share[0].shape == shape:
        return share
    return tuple(component.expand(tuple(shape)) for component in share)


def broadcast(a: torch.Tensor, b: torch.Tensor) -> torch.Size:
    return a.shape if a.shape == b.shape else torch.broadcast_shapes(a.shape, b.shape)


def ring_value(x: SecretTensor, dtype: torch.dtype) -> tuple[Share, RingFormat]:
    """``x`` as a ring value of the logical dtype, ready for arithmetic.

    Bits and integers are lifted to the working scale of a floating dtype. An owned value narrower than the ring
    is widened by its label alone: its owner holds it sign-extended.
    """
    fmt = x.format
    working = x.session.working
    floating = dtype.is_floating_point
    if isinstance(fmt, Boolean) or (floating and isinstance(fmt, Integer)):
        source = bit_value(working.bits) if isinstance(fmt, Boolean) else fmt
        to = rescaled(source, ring_format(source.bits, working.scale if floating else 0, floating))
        return convert(engine_of(x), x.share, fmt, to), to
    if fmt.bits < working.bits and isinstance(x.placement, Owned):
        return x.share, in_ring(fmt, working.bits)
    return x.share, fmt


def unify(
    values: Sequence[Any], dtype: torch.dtype, sums: bool = False
) -> tuple[list[Share], Format, Placement, Session]:
    """Shares of secret and public tensors in one format: the largest scale, the widest ring of a shared one; with a
    Float among them, the Float that holds all of these. ``sums``: only sums and differences are made of them, of which
    the node may ask for low bits alone."""
    secrets = [v for v in values if is_secret(v)]
    session, placement = secrets[0].session, secrets[0].placement
    for other in secrets[1:]:
        placement = join(placement, other.placement)
    engine = session.engine_for(placement)
    if dtype is torch.bool:
        bits = [v.share if is_secret(v) else constant(v, v.shape, BOOLEAN, engine) for v in values]
        return bits, BOOLEAN, placement, session
    floats = [v.format for v in secrets if isinstance(v.format, Float)]
    if floats:
        to = widest(floats)
        shares = [
            convert(engine_of(v), v.share, v.format, to) if is_secret(v) else constant(v, v.shape, to, engine)
            for v in values
        ]
        return shares, to, placement, session
    rings = [ring_value(v, dtype) for v in secrets]
    formats = [fmt for _, fmt in rings]
    to = formats[0]
    if len(secrets) < len(values) or any(f is not to for f in formats):
        shared = [f.bits for v, f in zip(secrets, formats, strict=True) if not isinstance(v.placement, Owned)]
        scale = max(f.scale for f in formats)
        bits = max(shared or [f.bits for f in formats])
        if sums and engine.sums_low_bits and dtype.is_floating_point:
            bits = min(bits, _asked_bits(scale))
        to = ring_format(bits, scale, dtype.is_floating_point)
        public = [public_format(v, to) for v in values if not is_secret(v)]
        to = together(to, [rescaled(f, to) for f in formats] + public)
    known = iter(zip(secrets, rings, strict=True))
    shares = []
    for value in values:
        if is_secret(value):
            x, (share, fmt) = next(known)
            shares.append(convert(engine_of(x), share, fmt, to))
        else:
            shares.append(constant(value, value.shape, to, engine))
    return shares, to, placement, session


def _asked_bits(scale: int) -> int:
    """Of a value of this scale, on which the low bits that the node asks for depend."""
    output = current_node().output
    return output.bits + max(scale - output.scale, 0) if isinstance(output, FixedPoint) else 64


def widest(formats: Sequence[Float]) -> Float:
    """The smallest Float that holds all values of these."""
    if all(f == formats[0] for f in formats):
        return formats[0]
    return Float(max(f.exponent for f in formats), max(f.mantissa for f in formats))


def align(
    a: SecretTensor, b: SecretTensor, dtype: torch.dtype, sums: bool = False
) -> tuple[Share, Share, RingFormat, Placement, Engine]:
    """Both operands of an elementwise operator in one ring format and shape; ``sums`` as for ``unify``."""
    fmt = a.format
    if fmt is b.format and fmt.bits >= a.session.working.bits and fmt.scale and a.placement == b.placement:
        sa, sb = a.share, b.share  # the common case, without looking further
        shape = broadcast(sa[0], sb[0])
        return expand(sa, shape), expand(sb, shape), fmt, a.placement, engine_of(a)
    if dtype is torch.bool:
        dtype = torch.int64
    (sa, sb), fmt, placement, session = unify((a, b), dtype, sums)
    shape = broadcast(sa[0], sb[0])
    return expand(sa, shape), expand(sb, shape), fmt, placement, session.engine_for(placement)


def settle(engine: Engine, share: Share, fmt: RingFormat) -> Share:
    """Brings sums formed outside the engine back into the ring, where ``plain`` looks for overflow."""
    return engine.reduce(share, 64, fmt.bits)
