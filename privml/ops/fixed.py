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

from privml.context import Session
from privml.encoding import encode_factor
from privml.engines.ring import extremes
from privml.engines.shares import Share
from privml.formats import FixedPoint, current_node, node
from privml.ops import ring_formats
from privml.ops.quotients import quotient, whole_divisor
from privml.ops.rescaling import calibrated, convert, finished
from privml.ops.ring_formats import (
    RingFormat,
    in_ring,
    interval,
    limit,
    multiplied,
    narrowed,
    of_interval,
    plus,
    product_format,
    promise_of,
    proved,
    relabelled,
    rescaled,
    ring_format,
    sum_format,
    width,
)
from privml.ops.unopened import Product, product
from privml.ops.values import broadcast, claimed, engine_of, expand, join, operand, ring_value, working_format
from privml.tensor import SecretTensor

# The widths that the functions of the fixed-point library take and give.
NARROWEST, WIDEST = 8, 32
# Arguments of these forms of exp(x), x <= 0, may be wider: only their range is looked at.
_WIDE = ("exp_negative_spline", "exp_negative_exact")
WIDEST_EXPONENT = 64
# So many bits more, of which it is proved that they hold a value, are worth a comparison less for each of its products.
_WORTH_A_PROOF = 2
# What a function may exceed its mathematical bound by, in units of the last place.
SLACK = 16
# What engines compose inverses of, functions of [1/2, 1), are at most so many times their largest value there for any
# argument: pieces of a polynomial reach beyond their ends.
_BEYOND = 1.125
# Engines that compose reciprocals compare arguments below this size correctly: results of these saturate.
_COMPARED = 1 << WIDEST
# The largest scale of a result of unknown size: 11 bits are left for the integers.
UNBOUNDED_SCALE = 20
# Functions whose values are never negative, those that stay below a bound, and those that grow with their arguments.
_NONNEGATIVE = {
    "exp_negative", *_WIDE, "exp", "sigmoid", "reciprocal", "reciprocal1p", "rsqrt", "rsqrt_significant",
    "rsqrt_significant_14", "sqrt",
}  # fmt: skip
_BOUNDS = {"exp_negative": 1, "sigmoid": 1, "tanh": 1, "erf": 1, "sin": 1, "cos": 1, "log": 32, "reciprocal1p": 1}
_BOUNDS |= dict.fromkeys(_WIDE, 1)
_LINES = {"gelu", "gelu_tanh", "silu", "softplus"}


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
    with node(here.name, None, here.working, here.keeps):
        yield


def cast(x: SecretTensor, bits: int, scale: int) -> SecretTensor:
    """``x`` with this width and scale, rounded to the nearest."""
    to = ring_format(bits, scale, True)
    if to.bits == x.format.bits and to.scale == x.format.scale:
        return x
    share = convert(engine_of(x), x.share, x.format, to)
    to = rescaled(x.format, to, engine_of(x).floors)
    return SecretTensor(share, to, x.placement, x.session, float_dtype(x))


def real(x: SecretTensor, spare: int = 0) -> SecretTensor:
    """``x`` as fixed point of at most the working scale and width, in the smallest ring known to hold it, with
    ``spare`` bits left for differences."""
    dtype = float_dtype(x)
    share, fmt = ring_value(x, dtype)
    wide, working = engine_of(x).stays_wide, working_format(x.session)
    fmt = narrowed(fmt, spare, wide)
    scale = min(fmt.scale, working.scale)
    bits = working.bits + fmt.scale - scale
    if bits < fmt.bits and not wide:  # of a program, whose values fit
        share, fmt = engine_of(x).reduce(share, fmt.bits, bits), in_ring(fmt, bits)
    result = SecretTensor(share, fmt, x.placement, x.session, dtype)
    return cast(result, fmt.bits - (0 if wide else fmt.scale - scale), scale) if scale < fmt.scale else result


def roomy(x: SecretTensor, more: int, reserved: int) -> SecretTensor:
    """``x`` like ``real``, in a ring with ``more`` bits above those of its values, of which it is known that these hold
    them: sums of it fit, and its products need no comparison. ``reserved``: bits of the node's ring that are meant for
    sums and differences."""
    engine = engine_of(x)
    share, fmt = ring_value(x, float_dtype(x))
    working = working_format(x.session)
    if engine.stays_wide or fmt.scale > working.scale:
        return real(x, 1)
    seen = max(working.bits - reserved, 2)
    if seen + _WORTH_A_PROOF < width(fmt):  # of a program, whose values fit
        share, fmt = engine.reduce(share, fmt.bits, seen), in_ring(fmt, seen)
    bits = min(width(fmt) + more, 64)
    narrow = narrowed(fmt, more)
    share = engine.reduce(share, fmt.bits, narrow.bits)
    return cast(SecretTensor(share, narrow, x.placement, x.session, float_dtype(x)), bits, fmt.scale)


def settled(x: SecretTensor, dtype: torch.dtype | None = None) -> SecretTensor:
    """``x`` in the format that the current node asks for, else the working one."""
    target = asked(x.session)
    engine = engine_of(x)
    share, fmt = calibrated(engine, x.share, x.format, target)
    to = rescaled(fmt, ring_format(target.bits, target.scale, True), engine.floors)
    return SecretTensor(convert(engine, share, fmt, target), to, x.placement, x.session, dtype or x.dtype)


def known(x: SecretTensor, bound: float) -> SecretTensor:
    """``x``, of which the rule has proved that |x| <= bound, up to a few units of the last place: for whatever lies in
    the rings of its operands, not only for what their formats are meant for."""
    most = math.ceil(bound * 2.0**x.format.scale) + SLACK
    low, high = interval(x.format)
    return claimed(x, of_interval(x.format, max(low, -most), min(high, most)))


# ---- functions of the library
def source_of(x: SecretTensor, widest: int = WIDEST) -> FixedPoint:
    """The format in which a function takes ``x``: with room for ones, also if ``x`` is known to be small."""
    fmt = narrowed(x.format, 0, engine_of(x).stays_wide)
    scale = min(fmt.scale, WIDEST - 2)
    return FixedPoint(min(max(fmt.bits, NARROWEST, scale + 2), widest), scale)


def evaluate(x: SecretTensor, name: str, target: FixedPoint, room: int = 0) -> SecretTensor:
    """A function of the library in format ``target``, of a value that lies in a ring of at most ``WIDEST`` bits after
    it was reduced to one: a larger value overflows, as in any ring. On engines that stay wide the ring remains, and if
    the function was computed in a larger one, as much of it as makes ``room`` bits."""
    wide = engine_of(x).stays_wide
    source = source_of(x, WIDEST_EXPONENT if wide or name in _WIDE else WIDEST)
    x = cast(x, source.bits, source.scale)
    argument = of_interval(source, *interval(x.format)) if wide else source
    share = engine_of(x).function(name, x.share, argument, target)
    ring = min(room, engine_of(x).function_ring(name, argument, target))
    to = result_format(name, argument, target, wide, ring)
    return claimed(SecretTensor(share, to, x.placement, x.session, x.dtype), to)


def result_format(name: str, source: FixedPoint, target: FixedPoint, wide: bool = False, ring: int = 0) -> RingFormat:
    """The format of a function's values in ``target``, or in a ``wide`` ring, for any argument of ``source``. ``ring``:
    bits of the values' ring, if it is larger."""
    bits = max(source.bits, target.bits, ring) if wide else target.bits
    low, high = _values(name, source, target)
    # The largest inverse that does not saturate is that of the least positive number.
    if wide and (name == "rsqrt" or (name == "reciprocal" and limit(source) > _COMPARED)):
        places = source.scale / 2 if name == "rsqrt" else source.scale
        high = max(high, math.ceil(2.0 ** (target.scale + places) * _BEYOND) + SLACK)
    return proved(bits, target.scale, True, low, high)


def _values(name: str, source: FixedPoint, target: FixedPoint) -> tuple[int, int]:
    one = 1 << target.scale
    if name in _LINES:  # near max(x, 0), where they are above zero
        shift = target.scale - source.scale
        largest = (1 << (source.bits - 1 + shift)) if source.bits - 1 + shift >= 0 else 1
        return (0 if name == "softplus" else -one), largest + one + SLACK
    most = (1 << (target.bits - 1)) - 1  # they saturate
    if name in _BOUNDS:
        most = (_BOUNDS[name] << target.scale) + SLACK
    return (0 if name in _NONNEGATIVE else -most), most


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
def times(a: SecretTensor, b: SecretTensor, scale: int, most: float | None = None, spare: int = 0) -> SecretTensor:
    """The product at ``scale``, in the ring that holds it (64 bits at most) with ``spare`` bits left. ``most``: it is
    proved that the product's magnitude exceeds this by a few units of the last place at most, for whatever lies in the
    rings of its operands."""
    placement = join(a.placement, b.placement)
    engine = a.session.engine_for(placement)
    wide, shape = engine.stays_wide, broadcast(a, b)
    fa, fb = _as_factor(a.format, wide), _as_factor(b.format, wide)
    bits = min(width(fa) + width(fb), 64)
    exact = product_format(fa, fb, 64, square=a is b)
    if most is not None and not wide:
        size = math.ceil(most * 2.0**exact.scale) + (SLACK << max(exact.scale - scale, 0))
        low, high = interval(exact)
        exact = of_interval(exact, max(low, -size), min(high, size))
        bits = min(bits, width(exact))
    bits = min(max(bits + spare, fa.bits, fb.bits), 64)
    left = operand(expand(a.share, shape), fa, a.placement)
    value: Product | Share
    if 0 < b.dim() == len(shape) and b.shape[-1] < shape[-1] and b.shape[:-1] == shape[:-1]:
        value = product(engine, "multiply_rows", (left, operand(b.share, fb, b.placement)), bits)
    else:
        value = engine.multiply(left, operand(expand(b.share, shape), fb, b.placement), bits)
    if most is None or wide:
        exact = product_format(fa, fb, bits, square=a is b)
    else:
        exact = in_ring(exact, bits)
        if not isinstance(value, Product):  # engines that look at values do not let products wait
            value = engine.claim(value, *interval(exact))
    to = _rounded_format(exact, scale, wide)
    share = finished(engine, value, exact, to)
    return SecretTensor(share, rescaled(exact, to, engine.floors), placement, a.session, float_dtype(a))


def _as_factor(fmt: RingFormat, wide: bool) -> RingFormat:
    """The ring of a factor: one bit above its size, if that is there, saves the comparison that finds its wrap."""
    return narrowed(fmt, 0 if fmt.nonnegative else 1, wide)


def scaled(x: SecretTensor, factor: torch.Tensor | float, scale: int) -> SecretTensor:
    """The product with a public number or tensor, of which 22 significant bits are kept, at ``scale``."""
    engine, share = engine_of(x), x.share
    fmt = narrowed(x.format, 0, engine.stays_wide)
    value, shift = encode_factor(factor, 22, 62)
    low, high = extremes(value) if isinstance(value, torch.Tensor) else (value, value)
    size = max(abs(low), abs(high))
    if low == high == 1:  # a power of two
        exact = relabelled(fmt, fmt.scale + shift)
        return rounded(SecretTensor(share, exact, x.placement, x.session, float_dtype(x)), scale)
    bits = min(fmt.bits + size.bit_length(), 64)
    share = engine.extend(share, fmt.bits, bits, True, promise_of(fmt)) if bits > fmt.bits else share
    if isinstance(value, torch.Tensor):
        shape = broadcast(x, value)
        share, value = expand(share, shape), value.expand(shape)
    share = engine.multiply_public(share, value, bits)
    exact = relabelled(multiplied(fmt, low, high, bits), fmt.scale + shift)
    return rounded(SecretTensor(share, exact, x.placement, x.session, float_dtype(x)), scale)


def rounded(x: SecretTensor, scale: int) -> SecretTensor:
    """``x`` at ``scale``, without the bits that fall away."""
    to = _rounded_format(x.format, scale, engine_of(x).stays_wide)
    return cast(x, to.bits, to.scale)


def _rounded_format(fmt: RingFormat, scale: int, wide: bool) -> RingFormat:
    """``fmt`` at ``scale``; if not ``wide``, without the bits that fall away."""
    dropped = min(fmt.scale - scale, 0) if wide else fmt.scale - scale
    return ring_format(min(max(fmt.bits - dropped, 2), 64), scale, True)


def total(x: SecretTensor, dims: list[int], keepdim: bool = True, spare: int = 0) -> SecretTensor:
    """The sum over ``dims``, in a ring that holds it with ``spare`` bits left (64 bits at most)."""
    count = math.prod(x.shape[d] for d in dims)
    fmt, bits = _of_sum(x.format, count, spare, engine_of(x).stays_wide)
    if bits > x.format.bits:
        x = cast(x, bits, fmt.scale)
    bits = min(bits, x.format.bits)
    share = engine_of(x).sum(x.share, dims, keepdim, bits) if dims else x.share
    to = ring_formats.added(in_ring(fmt, bits), count)
    return SecretTensor(share, to, x.placement, x.session, x.dtype)


def _of_sum(fmt: RingFormat, count: int, spare: int, wide: bool) -> tuple[RingFormat, int]:
    """The narrowest format of the terms of a sum of ``count``, and the bits that hold it with ``spare`` left."""
    narrow = narrowed(fmt, 0, wide)
    bits = min(narrow.bits + (count - 1).bit_length() + spare, 64)
    return narrow, min(bits, max((limit(narrow) * count - 1).bit_length() + 1 + spare, narrow.bits))


def total_of_squares(x: SecretTensor, dims: list[int], spare: int = 0) -> SecretTensor:
    """The sum of x^2 over ``dims``, exact, in a ring that holds it with ``spare`` bits left (64 bits at most)."""
    engine, last = engine_of(x), x.dim() - 1
    fmt = _as_factor(x.format, engine.stays_wide)
    square_bits = min(max(2 * width(fmt), fmt.bits), 64)
    exact = product_format(fmt, fmt, square_bits, square=True)
    narrow, bits = _of_sum(exact, x.shape[last] if x.dim() else 1, spare, engine.stays_wide)
    if engine.stays_wide:  # in the ring of the sum at once
        return total(times(x, x, 2 * x.format.scale, spare=max(bits - square_bits, 0)), dims, spare=spare)
    if [d % max(x.dim(), 1) for d in dims] != [last] or bits < square_bits:
        return total(times(x, x, 2 * x.format.scale), dims, spare=spare)
    factor = operand(x.share, fmt, x.placement)
    share = engine.sum_squares(factor, square_bits, promise_of(exact), bits)
    to = ring_formats.added(in_ring(narrow, bits), x.shape[last])
    return SecretTensor(share, to, x.placement, x.session, float_dtype(x))


def averaged(x: SecretTensor, dims: list[int], count: float, scale: int, bits: int | None = None) -> SecretTensor:
    """The sum over ``dims`` divided by a public ``count``, at ``scale``, at most that of x; rounded to the nearest,
    or down for a power of two. In ``bits`` bits, if these are given, else in the ring that holds it."""
    straight = bits is not None and math.frexp(count)[0] == 0.5 and count >= 1 and not engine_of(x).stays_wide
    spare = int(straight or whole_divisor(count) is not None)
    summed = total(x, dims, spare=spare)
    if bits is None:
        return _divided(summed, count, scale)
    if straight:  # a shift, which is cheaper with a bit to spare
        exact = relabelled(summed.format, summed.format.scale + math.frexp(count)[1] - 1)
        return cast(SecretTensor(summed.share, exact, x.placement, x.session, x.dtype), bits, scale)
    return cast(_divided(summed, count, scale, False), bits, scale)


def averaged_squares(x: SecretTensor, dims: list[int], count: float, scale: int) -> SecretTensor:
    """``averaged`` of x^2."""
    return _divided(total_of_squares(x, dims, int(whole_divisor(count) is not None)), count, scale)


def _divided(summed: SecretTensor, count: float, scale: int, rounds: bool = True) -> SecretTensor:
    """A sum divided by ``count``; without ``rounds`` a whole divisor may leave more fractional bits than ``scale``."""
    divisor = whole_divisor(count)
    if divisor is None:
        if math.frexp(count)[0] != 0.5:  # bits that do not matter make room for the factor's
            summed = rounded(summed, min(scale + max(math.ceil(math.log2(count)), 0), summed.format.scale))
        return scaled(summed, 1.0 / count, scale)
    share, fmt = quotient(engine_of(summed), summed.share, summed.format, divisor, scale)
    mean = SecretTensor(share, fmt, summed.placement, summed.session, summed.dtype)
    return rounded(mean, scale) if rounds else mean


def less(a: SecretTensor, b: SecretTensor) -> SecretTensor:
    """a - b of two values of one scale, in the larger of their rings."""
    fa, fb = a.format, b.format
    bits = max(fa.bits, fb.bits)
    placement = join(a.placement, b.placement)
    engine, shape = a.session.engine_for(placement), broadcast(a, b)
    a, b = cast(a, bits, fa.scale), cast(b, bits, fa.scale)
    share = engine.subtract(expand(a.share, shape), expand(b.share, shape), bits)
    return SecretTensor(share, ring_formats.less(a.format, b.format), placement, a.session, a.dtype)


def added(a: SecretTensor, b: SecretTensor) -> SecretTensor:
    """a + b of two values of one ring and scale, in that ring."""
    placement, shape = join(a.placement, b.placement), broadcast(a, b)
    engine, fmt = a.session.engine_for(placement), a.format
    share = engine.add(expand(a.share, shape), expand(b.share, shape), fmt.bits)
    return SecretTensor(share, sum_format(fmt, b.format), placement, a.session, a.dtype)


def shifted(x: SecretTensor, value: Any) -> SecretTensor:
    """``x`` plus a public number or tensor of small numbers, in the same ring if that holds twice these."""
    scale = x.format.scale
    encoded = torch.as_tensor((torch.as_tensor(value).double() * 2.0**scale).round()).to(torch.int64)
    low, high = extremes(encoded)
    x = cast(x, min(max(x.format.bits, max(high, -low).bit_length() + 2), 64), scale)
    share = engine_of(x).add_public(x.share, encoded.expand(x.shape), x.format.bits)
    return SecretTensor(share, plus(x.format, low, high), x.placement, x.session, x.dtype)
