# SPDX-License-Identifier: Apache-2.0
"""What number a ring element stands for, and who knows it. Immutable; travels with the tensor."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class FixedPoint:
    """Signed fixed point: the ring element ``v`` of Z_2^bits (two's complement) stands for ``v / 2**scale``.

    ``nonnegative``: the value is known to be >= 0 (after ReLU, softmax, ...), which makes truncation and
    extension cheaper. ``bound``: if given, ``|v| < bound`` is known.
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
    """Signed integer of Z_2^bits in two's complement."""

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
    """Floating point with ``exponent`` and ``mantissa`` bits (float32 is ``Float(8, 23)``)."""

    exponent: int = 8
    mantissa: int = 23


Format = FixedPoint | Integer | Boolean | Float


@dataclass(frozen=True, slots=True)
class Shared:
    """Nobody knows the value; every party holds a share."""


@dataclass(frozen=True, slots=True)
class Owned:
    """Party ``party`` knows the value in clear; the others learn nothing. In the additive engines the owner's
    share is the value itself and the others' shares are zero, so linear operators need no special case."""

    party: int


Placement = Shared | Owned
