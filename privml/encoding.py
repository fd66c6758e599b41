# SPDX-License-Identifier: Apache-2.0
"""Real numbers to ring elements and back, with the checks that belong to it."""

from __future__ import annotations

import math
from typing import Any

import torch

from privml.errors import InvalidInput, OverflowDetected
from privml.float_words import float_values, float_words
from privml.formats import Boolean, FixedPoint, Float, Format, Integer, limit

# Constants of this size (and infinities) mean "never": torch.finfo(...).min; smaller ones down to 1e9, which attention
# masks are made of too, where they do not fit the ring.
_MASK = 1e30
_LARGE = 1e9


def format_for(dtype: torch.dtype, working: FixedPoint, real: FixedPoint | Float | None = None) -> Format:
    """The format of a tensor of this logical dtype: ``real`` (default ``working``), Integer of the working ring, or
    Boolean."""
    if dtype.is_floating_point:
        return real or working
    if dtype is torch.bool:
        return Boolean()
    if dtype.is_complex:
        raise InvalidInput("complex numbers have no secure representation; pass real and imaginary parts")
    return Integer(working.bits)


def encode_input(value: torch.Tensor, fmt: Format) -> torch.Tensor:
    """``value`` as ring elements (int64), bits (uint8) for Boolean or words (int64) for Float, rounded to nearest.

    Raises InvalidInput for NaN, infinity (unless Float), or what does not fit, naming the first index but never its
    value.
    """
    if isinstance(fmt, Boolean):
        if value.dtype is not torch.bool and not bool(((value == 0) | (value == 1)).all()):
            raise InvalidInput("a Boolean input may hold only 0 and 1 (or True and False)")
        return value.to(torch.uint8)
    if isinstance(fmt, Float):
        return float_words(value, fmt)
    most = min(limit(fmt), 1 << (fmt.bits - 1))
    least = 0 if fmt.nonnegative else -most
    if value.dtype.is_floating_point:
        scaled = _scaled(value, fmt.scale)
        low, high = map(float, torch.aminmax(scaled)) if scaled.numel() else (0.0, 0.0)
        if least <= low and high < most:  # also false for NaN
            return scaled.to(torch.int64)
        scaled = value.detach().double() * 2.0**fmt.scale
        bad = ~torch.isfinite(scaled)
        if bool(bad.any()):
            raise InvalidInput(f"{_where(bad)} NaN or infinite; clean the input first")
        scaled, end = scaled.round(), 2.0 ** (fmt.bits - 1)
        bad = (scaled >= end) | (scaled < -end)
        ring = scaled.to(torch.int64)
    else:
        ring = value.detach().to(torch.int64)
        end = 1 << (fmt.bits - 1 - fmt.scale)
        bad = (ring > end - 1) | (ring < -end)
        ring = ring << fmt.scale
    bad = bad | (ring < least) | (ring > most - 1)
    if not bool(bad.any()):
        return ring
    low, high = least * 2.0**-fmt.scale, most * 2.0**-fmt.scale
    raise InvalidInput(
        f"values must lie in [{low:g}, {high:g}), and {_where(bad)} not; rescale the input, or choose a format of "
        "more bits or a smaller scale (of a program: convert it with a calibration as large)"
    )


def _scaled(value: torch.Tensor, scale: int) -> torch.Tensor:
    """``value`` times 2^scale, rounded to nearest, in floats that hold it exactly, or as infinity."""
    real = value.detach() if value.dtype is torch.float32 else value.detach().double()
    return (real * 2.0**scale).round_()


def as_given(value: Any, dtype: torch.dtype) -> torch.Tensor:
    """``value`` as a tensor of an input's dtype; InvalidInput for what is none of its whole numbers or bits."""
    given = torch.as_tensor(value)
    tensor = given.to(dtype)
    if not dtype.is_floating_point and given.dtype is not dtype:
        bad = tensor.to(given.dtype) != given
        if bool(bad.any()):
            raise InvalidInput(f"values must be {str(dtype).removeprefix('torch.')}, and {_where(bad)} not")
    return tensor


def _where(bad: torch.Tensor) -> str:
    count = int(bad.sum())
    index = tuple(torch.nonzero(bad)[0].tolist()) if bad.dim() else ()
    return f"input index {index} (and {count - 1} more) is" if count > 1 else f"input index {index} is"


def encode_constant(value: torch.Tensor | float, bits: int, scale: int, headroom: int = 2) -> torch.Tensor | int:
    """A public constant at ``scale``, rounded to nearest: int for a number, int64 tensor for a tensor.

    Infinities and mask-like magnitudes saturate to +-2^(bits - headroom - 1), where comparisons with any
    value below 2^(bits - 2) still fit the ring. Raises OverflowDetected when a finite value does not fit.
    """
    limit = 1 << (bits - 1)
    saturated = 1 << (bits - headroom - 1)
    if not isinstance(value, torch.Tensor):
        if isinstance(value, (bool, int)):
            ring = int(value) << scale
        else:
            if math.isnan(value):
                raise InvalidInput("a NaN constant meets a secret tensor")
            if abs(value) >= _MASK or (abs(value) >= _LARGE and abs(value) * 2.0**scale >= limit):
                return saturated if value > 0 else -saturated
            ring = round(value * 2.0**scale)
        if not -limit <= ring < limit:
            raise OverflowDetected(_too_large(abs(ring).bit_length(), bits, scale))
        return ring
    if not value.dtype.is_floating_point:
        ring = value.to(torch.int64)
        room = 1 << (bits - 1 - scale)
        if ring.numel() and not (int(ring.max()) < room and int(ring.min()) >= -room):
            raise OverflowDetected(_too_large(int(ring.abs().max()).bit_length() + scale, bits, scale))
        return ring << scale
    real = value.detach().double()
    scaled = (real * 2.0**scale).round()
    largest = float(scaled.abs().amax()) if scaled.numel() else 0.0
    if largest < limit:  # also false for NaN
        return scaled.to(torch.int64)
    if bool(torch.isnan(real).any()):
        raise InvalidInput("a NaN constant meets a secret tensor")
    mask = is_never(real, bits, scale)
    finite = scaled.masked_fill(mask, 0.0)
    if float(finite.abs().amax()) >= limit:
        raise OverflowDetected(_too_large(int(math.log2(float(finite.abs().amax()))) + 1, bits, scale))
    return torch.where(mask, torch.where(real > 0, saturated, -saturated), finite.to(torch.int64))


def is_mask(value: torch.Tensor) -> bool:
    """Whether a tensor that a model keeps holds minus infinity, or what stands for it: no weight does, masks do."""
    return value.dtype.is_floating_point and bool((value.detach() <= -_LARGE).any())


def is_never(value: torch.Tensor, bits: int, scale: int) -> torch.Tensor:
    """Where a public real tensor holds what means plus or minus infinity in a ring of ``bits`` at ``scale``."""
    size = value.detach().double().abs()
    return (size >= _MASK) | ((size >= _LARGE) & ((size * 2.0**scale).round() >= 1 << (bits - 1)))


def _too_large(needed: int, bits: int, scale: int) -> str:
    return (
        f"a public constant needs {needed + 1} bits at scale {scale}, the ring has {bits}; "
        "use more bits, a smaller scale, or a smaller constant"
    )


def encode_factor(value: torch.Tensor | float, scale: int, bits: int) -> tuple[torch.Tensor | int, int]:
    """A public factor as (integers m, shift k) with value ~ m / 2^k and the smallest such k.

    ``scale`` significant fractional bits are kept (more for factors below one, so that 1/n loses nothing);
    integers and powers of two come out exact, integers with k = 0.
    """
    if isinstance(value, torch.Tensor):
        if not value.dtype.is_floating_point:
            return value.to(torch.int64), 0
        real = value.detach().double()
        largest = float(real.abs().amax()) if real.numel() else 0.0
    else:
        if isinstance(value, (bool, int)):
            return int(value), 0
        real, largest = value, abs(value)
    if not math.isfinite(largest):
        raise InvalidInput("a public factor is NaN or infinite")
    if largest == 0.0:
        return (torch.zeros_like(real, dtype=torch.int64) if isinstance(real, torch.Tensor) else 0), 0
    exponent = math.frexp(largest)[1]  # largest in [2^(exponent-1), 2^exponent)
    if exponent > bits - 2:
        raise OverflowDetected(_too_large(exponent, bits, 0))
    shift = min(max(scale, scale - exponent), bits - 2)
    if exponent + shift > 62:
        shift = max(0, 62 - exponent)
    if isinstance(real, torch.Tensor):
        ring = (real * 2.0**shift).round().to(torch.int64)
        combined = _or_all(ring)
    else:
        ring = round(real * 2.0**shift)
        combined = ring
    if combined == 0:
        return ring, 0
    spare = min((combined & -combined).bit_length() - 1, shift)
    return ring >> spare, shift - spare


def _or_all(ring: torch.Tensor) -> int:
    """Bitwise or of all elements' magnitudes (for their common trailing zeros)."""
    flat = ring.abs().reshape(-1)
    while flat.numel() > 1:
        half = (flat.numel() + 1) // 2
        flat = torch.cat([flat[: flat.numel() - half] | flat[half:], flat[flat.numel() - half : half]])
    return int(flat[0])


def decode(ring: torch.Tensor, fmt: Format, dtype: torch.dtype) -> torch.Tensor:
    """Signed ring elements, uint8 bits or words as a tensor of the logical dtype."""
    if isinstance(fmt, Float):
        return float_values(ring, fmt, dtype)
    if isinstance(fmt, FixedPoint):
        return (ring.double() * 2.0**-fmt.scale).to(dtype)
    return ring.to(dtype)


def encode_exact(value: torch.Tensor | float, bits: int, scale: int) -> tuple[torch.Tensor, torch.Tensor]:
    """Public values as ring elements (0 where they are none), and where they are ring values exactly."""
    value = torch.as_tensor(value)
    if value.dtype.is_floating_point:
        scaled = value.detach().double() * 2.0**scale
        if bool(torch.isnan(scaled).any()):
            raise InvalidInput("a comparison of a secret tensor with NaN")
        exact = (scaled == scaled.round()) & (scaled.abs() < 2.0 ** (bits - 1))
        return torch.where(exact, scaled, 0.0).to(torch.int64), exact
    whole, room = value.to(torch.int64), 1 << (bits - 1 - scale)
    exact = (whole < room if room < 1 << 63 else torch.ones_like(whole, dtype=torch.bool)) & (whole >= -room)
    return torch.where(exact, whole, 0) << scale, exact


def encode_threshold(value: torch.Tensor | float, bits: int, scale: int, round_up: bool) -> torch.Tensor | int:
    """The smallest ring value >= ``value`` (``round_up``) or the largest <= it, saturated to +-2^(bits - 2).

    With it an order relation between a secret and a real constant is exact, infinities included.
    """
    limit = 1 << (bits - 2)
    if not isinstance(value, torch.Tensor):
        if math.isnan(value):
            raise InvalidInput("a comparison of a secret tensor with NaN")
        if math.isinf(value):
            return limit if value > 0 else -limit
        scaled = value * 2**scale if isinstance(value, int) else value * 2.0**scale
        ring = math.ceil(scaled) if round_up else math.floor(scaled)
        return max(-limit, min(limit, ring))
    if not value.dtype.is_floating_point:
        room = limit >> scale
        return value.to(torch.int64).clamp(-room, room) << scale
    scaled = value.detach().double() * 2.0**scale
    if bool(torch.isnan(scaled).any()):
        raise InvalidInput("a comparison of a secret tensor with NaN")
    scaled = scaled.ceil() if round_up else scaled.floor()
    return scaled.clamp(-float(limit), float(limit)).to(torch.int64)
