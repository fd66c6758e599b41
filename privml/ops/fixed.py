# SPDX-License-Identifier: Apache-2.0
"""Computing with formats chosen step by step, for rules that are made of several functions and products.

Between the steps of such a rule a shared value may lie in a ring as narrow as its format says; ``settled`` brings
the result to what the node asks for, or to the session's working format.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch

from privml.context import Session, current_node, node
from privml.encoding import encode_factor
from privml.engines.ring import extremes
from privml.formats import FixedPoint
from privml.ops.quotients import quotient, whole_divisor
from privml.ops.rescaling import convert, promised
from privml.ops.ring_formats import RingFormat, limit, narrowed, rescaled, ring_format, width
from privml.ops.values import broadcast, engine_of, expand, join, operand, ring_value, working_format
from privml.tensor import SecretTensor

# The widths that the functions of the fixed-point library take and give.
NARROWEST, WIDEST = 8, 32
# Arguments of these forms of exp(x), x <= 0, may be wider: only their range is looked at.
_WIDE = ("exp_negative_spline", "exp_negative_exact", "exp_negative_product")
WIDEST_EXPONENT = 64
# What a function may exceed its mathematical bound by, in units of the last place.
SLACK = 16
# The largest scale of a result whose size nobody knows: 11 bits are left for the integers.
UNBOUNDED_SCALE = 20
# Functions whose values are never negative, and those that stay below a bound.
_NONNEGATIVE = {"exp_negative", *_WIDE, "exp", "sigmoid", "reciprocal", "rsqrt", "sqrt", "softplus"}
_BOUNDS = {"exp_negative": 1, "sigmoid": 1, "tanh": 1, "erf": 1, "sin": 1, "cos": 1, "log": 32}
_BOUNDS |= dict.fromkeys((*_WIDE, "sin_product", "cos_product"), 1)


def float_dtype(x: torch.Tensor) -> torch.dtype:
    """The dtype of a real function of ``x``."""
    return x.dtype if x.dtype.is_floating_point else torch.get_default_dtype()


def asked(session: Session) -> FixedPoint:
    """The format of the result that the current node wants."""
    output = current_node().output
    return output if isinstance(output, FixedPoint) else working_format(session)


@contextmanager
def inside() -> Iterator[None]:
    """Within, no rule takes the current node's request for its own."""
    here = current_node()
    with node(here.name, None, here.working):
        yield


def cast(x: SecretTensor, bits: int, scale: int) -> SecretTensor:
    """``x`` with this width and scale, rounded to the nearest."""
    to = ring_format(bits, scale, True)
    if to.bits == x.format.bits and to.scale == x.format.scale:
        return x
    share = convert(engine_of(x), x.share, x.format, to)
    return SecretTensor(share, rescaled(x.format, to), x.placement, x.session, float_dtype(x))


def real(x: SecretTensor, spare: int = 0) -> SecretTensor:
    """``x`` as fixed point of at most the working scale and width, in the smallest ring known to hold it, with
    ``spare`` bits left for differences."""
    dtype = float_dtype(x)
    share, fmt = ring_value(x, dtype)
    wide, working = engine_of(x).stays_wide, working_format(x.session)
    fmt = narrowed(fmt, spare, wide)
    scale = min(fmt.scale, working.scale)
    bits = working.bits + fmt.scale - scale
    if bits < fmt.bits and not wide:  # of a program: its values fit
        share = engine_of(x).reduce(share, fmt.bits, bits)
        fmt = ring_format(bits, fmt.scale, True, fmt.nonnegative, fmt.bound)
    result = SecretTensor(share, fmt, x.placement, x.session, dtype)
    return cast(result, fmt.bits - (0 if wide else fmt.scale - scale), scale) if scale < fmt.scale else result


def settled(x: SecretTensor, dtype: torch.dtype | None = None) -> SecretTensor:
    """``x`` in the format that the current node asks for, else the working one."""
    target = asked(x.session)
    fmt = promised(engine_of(x), x.share, x.format, target)
    share = convert(engine_of(x), x.share, fmt, target)
    to = rescaled(fmt, ring_format(target.bits, target.scale, True))
    return SecretTensor(share, to, x.placement, x.session, dtype or x.dtype)


def known(x: SecretTensor, bound: float | None = None, nonnegative: bool = False) -> SecretTensor:
    """``x``, of which the rule knows that |x| <= bound, up to a few units of the last place, or that it is >= 0."""
    fmt = x.format
    most = fmt.bound if bound is None else math.ceil(bound * 2.0**fmt.scale) + SLACK + 1
    if most is not None and fmt.bound is not None:
        most = min(most, fmt.bound)
    to = ring_format(fmt.bits, fmt.scale, True, nonnegative or fmt.nonnegative, most)
    return SecretTensor(x.share, to, x.placement, x.session, x.dtype)


# ---- functions of the library
def source_of(x: SecretTensor, widest: int = WIDEST) -> FixedPoint:
    """The format in which a function takes ``x``."""
    fmt = narrowed(x.format, 0, engine_of(x).stays_wide)
    return FixedPoint(min(max(fmt.bits, NARROWEST), widest), min(fmt.scale, WIDEST - 2))


def evaluate(x: SecretTensor, name: str, target: FixedPoint) -> SecretTensor:
    """A function of the library in format ``target``, of a value that lies in a ring of at most ``WIDEST`` bits after
    it was reduced to one: a larger value overflows, as in any ring. On engines that stay wide the ring remains."""
    wide = engine_of(x).stays_wide
    source = source_of(x, WIDEST_EXPONENT if wide or name in _WIDE else WIDEST)
    x = cast(x, source.bits, source.scale)
    share = engine_of(x).function(name, x.share, source, target)
    bound = _BOUNDS.get(name)
    most = None if bound is None else (bound << target.scale) + SLACK + 1
    bits = max(source.bits, target.bits) if wide else target.bits
    most = 1 << (target.bits - 1) if wide and most is None else most
    to = ring_format(bits, target.scale, True, name in _NONNEGATIVE, most)
    return SecretTensor(share, to, x.placement, x.session, x.dtype)


def target_of(integer_bits: int | None, wanted: FixedPoint) -> FixedPoint:
    """The format of a function's result below 2^integer_bits (None: of unknown size) that is wanted in ``wanted``."""
    if integer_bits is None:
        integer_bits = max(wanted.bits - wanted.scale - 1, 0)
        if wanted.bits > WIDEST:
            integer_bits = WIDEST - 1 - min(wanted.scale, UNBOUNDED_SCALE)
    integer_bits = min(max(integer_bits, 1), WIDEST - 2)  # 1 is a number of every format
    scale = max(min(wanted.scale, WIDEST - 1 - integer_bits), 0)
    bits = min(max(scale + integer_bits + 1, NARROWEST), WIDEST)
    return FixedPoint(bits, min(scale, bits - 2))


def integer_bits(x: SecretTensor) -> int:
    """The smallest k known to have |x| < 2^k, at most what the functions of the library take."""
    fmt = x.format
    return min(width(fmt), WIDEST) - 1 - fmt.scale


# ---- arithmetic that cannot overflow where rings below 64 bits suffice
def times(a: SecretTensor, b: SecretTensor, scale: int) -> SecretTensor:
    """The product at ``scale``, in the ring that holds it (64 bits at most)."""
    placement = join(a.placement, b.placement)
    engine = a.session.engine_for(placement)
    wide, shape = engine.stays_wide, broadcast(a, b)
    fa, fb = narrowed(a.format, 0, wide), narrowed(b.format, 0, wide)
    bits = min(fa.bits + fb.bits, 64)
    left = operand(expand(a.share, shape), fa, a.placement)
    if 0 < b.dim() == len(shape) and b.shape[-1] < shape[-1] and b.shape[:-1] == shape[:-1]:
        share = engine.multiply_rows(left, operand(b.share, fb, b.placement), bits)
    else:
        share = engine.multiply(left, operand(expand(b.share, shape), fb, b.placement), bits)
    positive = (fa.nonnegative and fb.nonnegative) or a is b
    exact = ring_format(bits, fa.scale + fb.scale, True, positive, (limit(fa) - 1) * (limit(fb) - 1) + 1)
    result = SecretTensor(share, exact, placement, a.session, float_dtype(a))
    return rounded(result, scale)


def scaled(x: SecretTensor, factor: torch.Tensor | float, scale: int) -> SecretTensor:
    """The product with a public number or tensor, of which 22 significant bits are kept, at ``scale``."""
    engine, share = engine_of(x), x.share
    fmt = narrowed(x.format, 0, engine.stays_wide)
    value, shift = encode_factor(factor, 22, 62)
    low, high = extremes(value) if isinstance(value, torch.Tensor) else (value, value)
    size = max(abs(low), abs(high))
    if low == high == 1:  # a power of two
        exact = ring_format(fmt.bits, fmt.scale + shift, True, fmt.nonnegative, fmt.bound)
        return rounded(SecretTensor(share, exact, x.placement, x.session, float_dtype(x)), scale)
    bits = min(fmt.bits + size.bit_length(), 64)
    share = engine.extend(share, fmt.bits, bits, True, fmt.nonnegative, fmt.bound) if bits > fmt.bits else share
    if isinstance(value, torch.Tensor):
        shape = broadcast(x, value)
        share, value = expand(share, shape), value.expand(shape)
    share = engine.multiply_public(share, value, bits)
    bound = None if fmt.bound is None else (fmt.bound - 1) * size + 1
    exact = ring_format(bits, fmt.scale + shift, True, fmt.nonnegative and low >= 0, bound)
    return rounded(SecretTensor(share, exact, x.placement, x.session, float_dtype(x)), scale)


def rounded(x: SecretTensor, scale: int) -> SecretTensor:
    """``x`` at ``scale``, without the bits that fall away."""
    fmt = x.format
    dropped = fmt.scale - scale
    if engine_of(x).stays_wide:
        dropped = min(dropped, 0)
    return cast(x, min(max(fmt.bits - dropped, 2), 64), scale)


def total(x: SecretTensor, dims: list[int], keepdim: bool = True, spare: int = 0) -> SecretTensor:
    """The sum over ``dims``, in a ring that holds it with ``spare`` bits left (64 bits at most)."""
    count = math.prod(x.shape[d] for d in dims)
    fmt: RingFormat = narrowed(x.format, 0, engine_of(x).stays_wide)
    bits = min(fmt.bits + (count - 1).bit_length() + spare, 64)
    if fmt.bound is not None:
        bits = min(bits, max((fmt.bound * count).bit_length() + 1 + spare, fmt.bits))
    if bits > x.format.bits:
        x = cast(x, bits, fmt.scale)
    bits = min(bits, x.format.bits)
    share = engine_of(x).sum(x.share, dims, keepdim, bits) if dims else x.share
    bound = None if fmt.bound is None else fmt.bound * count
    to = ring_format(bits, fmt.scale, True, fmt.nonnegative, bound)
    return SecretTensor(share, to, x.placement, x.session, x.dtype)


def averaged(x: SecretTensor, dims: list[int], count: float, scale: int) -> SecretTensor:
    """The sum over ``dims`` divided by a public ``count``, at ``scale``, at most that of x; rounded to the nearest,
    or down for a power of two."""
    divisor = whole_divisor(count)
    if divisor is None:
        summed = total(x, dims)
        if math.frexp(count)[0] != 0.5:  # bits that do not matter make room for the factor's
            summed = rounded(summed, min(scale + max(math.ceil(math.log2(count)), 0), x.format.scale))
        return scaled(summed, 1.0 / count, scale)
    most = limit(x.format) * math.prod(x.shape[d] for d in dims)
    result = total(x, dims, spare=1)
    fmt = result.format
    fmt = ring_format(fmt.bits, fmt.scale, True, fmt.nonnegative, most if fmt.bound is None else fmt.bound)
    share, fmt = quotient(engine_of(x), result.share, fmt, divisor, scale)
    return rounded(SecretTensor(share, fmt, x.placement, x.session, x.dtype), scale)


def less(a: SecretTensor, b: SecretTensor) -> SecretTensor:
    """a - b of two values of one scale, which like every difference must fit the larger of their rings."""
    fa, fb = a.format, b.format
    bits = max(fa.bits, fb.bits)
    placement = join(a.placement, b.placement)
    engine, shape = a.session.engine_for(placement), broadcast(a, b)
    a, b = cast(a, bits, fa.scale), cast(b, bits, fa.scale)
    share = engine.subtract(expand(a.share, shape), expand(b.share, shape), bits)
    bound = None if fa.bound is None or fb.bound is None else fa.bound + fb.bound
    return SecretTensor(share, ring_format(bits, fa.scale, True, False, bound), placement, a.session, a.dtype)


def added(a: SecretTensor, b: SecretTensor) -> SecretTensor:
    """a + b of two values of one format, which the sum must fit."""
    placement, shape = join(a.placement, b.placement), broadcast(a, b)
    engine, fmt = a.session.engine_for(placement), a.format
    share = engine.add(expand(a.share, shape), expand(b.share, shape), fmt.bits)
    bound = None if fmt.bound is None or b.format.bound is None else fmt.bound + b.format.bound
    to = ring_format(fmt.bits, fmt.scale, True, fmt.nonnegative and b.format.nonnegative, bound)
    return SecretTensor(share, to, placement, a.session, a.dtype)


def shifted(x: SecretTensor, value: Any) -> SecretTensor:
    """``x`` plus a public number or tensor of small numbers, in the same ring."""
    fmt = x.format
    encoded = torch.as_tensor((torch.as_tensor(value).double() * 2.0**fmt.scale).round()).to(torch.int64)
    share = engine_of(x).add_public(x.share, encoded.expand(x.shape), fmt.bits)
    positive = fmt.nonnegative and bool((encoded >= 0).all())
    bound = None if fmt.bound is None else fmt.bound + int(encoded.abs().max())
    return SecretTensor(share, ring_format(fmt.bits, fmt.scale, True, positive, bound), x.placement, x.session, x.dtype)
