# SPDX-License-Identifier: Apache-2.0
"""Formats: what number a ring element stands for and who knows it, those of a session, and those asked of a node."""

from __future__ import annotations

from contextvars import ContextVar
from dataclasses import dataclass

from privml.errors import ConfigError


@dataclass(frozen=True, slots=True)
class FixedPoint:
    """Signed fixed point: the ring element ``v`` of Z_2^bits (two's complement) stands for ``v / 2**scale``.

    2 <= bits <= 64 and 0 <= scale < 64; ValueError for others. ``nonnegative``: the value is known to be >= 0 (after
    ReLU, softmax, ...), which makes truncation and extension cheaper. ``bound``: if given, it is known that
    -bound <= v < bound.
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


def limit(fmt: FixedPoint | Integer) -> int:
    """The m of which -m <= value < m is known."""
    return 1 << (fmt.bits - 1) if fmt.bound is None else fmt.bound


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
        raise ConfigError(f"{name!r} is not a floating-point format; there are {', '.join(FLOATS)}")
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


def format_text(fmt: Format) -> str:
    """A format for people: what its numbers are, and from where to where they reach."""
    if isinstance(fmt, Boolean):
        return "bit"
    if isinstance(fmt, Float):
        return f"float, {fmt.exponent} bits of exponent, {fmt.mantissa} of mantissa"
    most = min(1 << (fmt.bits - 1), fmt.bound or 1 << 63) / 2.0**fmt.scale
    low = "0" if fmt.nonnegative else f"{-most:g}"
    fraction = f"{fmt.scale} of them fractional" if isinstance(fmt, FixedPoint) else "whole numbers"
    return f"{fmt.bits} bits, {fraction}, in [{low}, {most:g})"


# Forms of e^x for x <= 0 (docs/fixed-point-math.md); "auto" takes the one of the first three with the fewest bits on
# the wire.
EXPONENTIALS = ("table", "spline", "exact", "auto")


def check_exponential(form: str) -> None:
    """ConfigError unless ``form`` is one of ``EXPONENTIALS``."""
    if form == "product":
        raise ConfigError(
            "numerics: exp=product is withdrawn, because the last place of its results depended on the shares; use "
            "exp=exact, whose results do not, or exp=auto"
        )
    if form not in EXPONENTIALS:
        raise ConfigError(f"numerics: exp must be one of {', '.join(EXPONENTIALS)}, got {form!r}")


@dataclass(frozen=True, slots=True)
class Numerics:
    """The formats a session uses where nothing more precise is said.

    ``bits``, ``scale``: ring and fractional bits of activations and public constants. ``weight_bits``,
    ``weight_scale``: those of a module's parameters (default: the same). Parameters known to one party may be
    narrower than the ring, which makes products with them cheaper. ``floating``: the Float format that real numbers
    have instead, if any. ``dot``: whether products of matrices of floats are integer sums of aligned mantissas, rounded
    once ("fused"; see ``privml.ops.floating.dot``), or chains of correctly rounded operations ("exact"). ``exp``: how
    exponentials of what is not positive are computed, one of ``EXPONENTIALS``.

    8 <= bits <= 64 and 0 <= scale < bits - 2; ConfigError for others and for names that are none.
    """

    bits: int = 64
    scale: int = 16
    weight_bits: int | None = None
    weight_scale: int | None = None
    floating: Float | None = None
    dot: str = "fused"
    exp: str = "auto"

    def __post_init__(self) -> None:
        if self.floating is not None and not isinstance(self.floating, Float):
            raise ConfigError(f"numerics: floating must be a Float format, got {self.floating!r}")
        if self.dot not in ("exact", "fused"):
            raise ConfigError(f"numerics: dot must be exact or fused, got {self.dot!r}")
        check_exponential(self.exp)
        if not 8 <= self.bits <= 64 or not 0 <= self.scale < self.bits - 2:
            raise ConfigError(
                f"numerics: need 8 <= bits <= 64 and 0 <= scale < bits - 2, got bits={self.bits}, scale={self.scale}"
            )

    @property
    def working(self) -> FixedPoint:
        return FixedPoint(self.bits, self.scale)

    @property
    def real(self) -> FixedPoint | Float:
        """The format of real numbers."""
        return self.floating or self.working

    @property
    def weight(self) -> FixedPoint | Float:
        return self.floating or FixedPoint(
            self.bits if self.weight_bits is None else self.weight_bits,
            self.scale if self.weight_scale is None else self.weight_scale,
        )


@dataclass(frozen=True, slots=True)
class Node:
    """The graph node (or layer) being computed and what is asked of it.

    ``output``: the format its result must have; None leaves the choice to the rule (the working scale). A
    product asked for its doubled scale is not truncated. ``working``: the format its operands are brought to
    before a product when their scale is larger; None means the session's. ``keeps``: operators leave by-products for
    their backward operators, as they do under autograd. ``place``: names it among all nodes of its graph, where it has
    one. ``rectified``: the format that ReLU is asked for if it alone uses the result; the rule may give the result of
    that ReLU in place of its own.
    """

    name: str = ""
    output: Format | None = None
    working: FixedPoint | None = None
    keeps: bool = False
    place: str = ""
    rectified: Format | None = None


_NOWHERE = Node()
_node: ContextVar[Node] = ContextVar("privml_node", default=_NOWHERE)
current_node = _node.get


class node:
    """``with node(name, ...)``: names the operators inside for errors and ledgers; what is asked of them: see Node."""

    __slots__ = ("_token", "_value")

    def __init__(
        self,
        name: str,
        output: Format | None = None,
        working: FixedPoint | None = None,
        keeps: bool = False,
        place: str = "",
        rectified: Format | None = None,
    ) -> None:
        self._value = Node(name, output, working, keeps, place, rectified)

    def __enter__(self) -> Node:
        self._token = _node.set(self._value)
        return self._value

    def __exit__(self, *exception: object) -> None:
        _node.reset(self._token)
