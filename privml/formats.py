# SPDX-License-Identifier: Apache-2.0
"""What number a ring element stands for, and who knows it. Immutable; travels with the tensor."""

from __future__ import annotations

from dataclasses import dataclass

from privml.errors import ConfigError


@dataclass(frozen=True, slots=True)
class FixedPoint:
    """Signed fixed point: the ring element ``v`` of Z_2^bits (two's complement) stands for ``v / 2**scale``.

    2 <= bits <= 64 and 0 <= scale < 64; ValueError for others. ``nonnegative``: the value is known to be >= 0 (after
    ReLU, softmax, ...), which makes truncation and extension cheaper. ``bound``: if given, ``|v| < bound`` is known.
    """

    bits: int = 64
    scale: int = 16
    nonnegative: bool = False
    bound: int | None = None

    def __post_init__(self) -> None:
        if not 2 <= self.bits <= 64:
            raise ValueError(f"FixedPoint: bits must be in [2, 64], got {self.bits}")
        if not 0 <= self.scale < 64:
            raise ValueError(f"FixedPoint: scale must be in [0, 64), got {self.scale}")


@dataclass(frozen=True, slots=True)
class Integer:
    """Signed integer of Z_2^bits in two's complement; ``nonnegative``, ``bound``: as of FixedPoint."""

    bits: int = 64
    nonnegative: bool = False
    bound: int | None = None

    @property
    def scale(self) -> int:
        return 0


@dataclass(frozen=True, slots=True)
class Boolean:
    """A bit, shared by exclusive or; containers are uint8 tensors of 0 and 1."""

    bits: int = 1

    @property
    def scale(self) -> int:
        return 0


@dataclass(frozen=True, slots=True)
class Float:
    """Floating point with ``exponent`` and ``mantissa`` bits (float32 is ``Float(8, 23)``): 3 to 11 of the exponent, 2
    and more of the mantissa, as many as shifts and words of 64 bits leave room for; ValueError for others.

    No NaN and no denormals: what would be one is zero. An infinity stands for what is too large, at 2^2^(exponent - 1)
    and not beyond all bounds: products and sums with it give numbers again. A value's container is one int64, its word:
    see ``word_bits``.
    """

    exponent: int = 8
    mantissa: int = 23

    def __post_init__(self) -> None:
        if type(self.exponent) is not int or type(self.mantissa) is not int:
            raise ValueError(f"Float: exponent and mantissa must be whole numbers, got {self!r}")
        if not 3 <= self.exponent <= 11:
            raise ValueError(f"Float: exponent must have 3 to 11 bits, got {self.exponent}")
        most = min((1 << self.exponent) - 4, 59 - self.exponent)  # shifts fit exponents, words 64 bits
        if not 2 <= self.mantissa <= most:
            raise ValueError(
                f"Float: mantissa must have 2 to {most} bits beside an exponent of {self.exponent}, got {self.mantissa}"
            )

    @property
    def word_bits(self) -> int:
        """Bits of a word, from the lowest: mantissa with its leading one (mantissa + 1), biased exponent
        (exponent + 2), sign, and whether the value is not zero; the first two shared by addition in rings of these
        widths, the bits by exclusive or. The zero word is +0."""
        return self.exponent + self.mantissa + 5

    @property
    def sign_bit(self) -> int:
        """The place of the sign in a word."""
        return self.exponent + self.mantissa + 3

    @property
    def bias(self) -> int:
        """What is added to an exponent in a word, as in IEEE 754."""
        return (1 << (self.exponent - 1)) - 1


# What formats are called in settings.
FLOATS = {"float32": Float(8, 23), "bfloat16": Float(8, 7), "tf32": Float(8, 10), "float16": Float(5, 10)}


def float_format(name: str | Float | None) -> Float | None:
    """The format called so; ConfigError for a name that is none."""
    if name is None or isinstance(name, Float):
        return name
    if name not in FLOATS:
        raise ConfigError(f"{name!r} is no floating-point format; there are {', '.join(FLOATS)}")
    return FLOATS[name]


Format = FixedPoint | Integer | Boolean | Float
# What files call a kind of format.
FORMATS = {kind.__name__: kind for kind in (FixedPoint, Integer, Boolean, Float)}


@dataclass(frozen=True, slots=True)
class Shared:
    """Nobody knows the value; every party holds a share."""


@dataclass(frozen=True, slots=True)
class Owned:
    """Party ``party`` knows the value in clear; the others learn nothing. In the additive engines the owner's
    share is the value itself and the others' shares are zero, so linear operators need no special case."""

    party: int


Placement = Shared | Owned
