# SPDX-License-Identifier: Apache-2.0
"""The interface every engine offers: about thirty operations on shares of ring elements.

A *share* is a tuple of torch tensors of the tensor's logical shape (one component for one party of ``twopc``,
several for engines whose parties hold several, or that hold all parties at once). Ring elements live in int64
tensors whose bits above ``bits`` are unspecified: local operations are plain int64 arithmetic, every engine
reduces where it matters. Boolean shares are uint8 tensors of 0 and 1.
Structural operators (view, permute, cat, ...) act on each component and never reach the engine.
"""

from __future__ import annotations

import abc
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import torch

from privml.engines import ring
from privml.engines.correlations import Correlations
from privml.engines.division import divide_public
from privml.engines.formulas import Formula
from privml.engines.shares import NO_PROMISE, Promise, Share, Shift, Window, stack
from privml.errors import ConfigError
from privml.formats import FixedPoint, Float, Integer


@dataclass(frozen=True, slots=True)
class Operand:
    """One factor of a product. ``bits``: width of the value (two's complement if ``signed``). For an operand
    owned by one party (``owner`` 0, 1, ...) the width may be smaller than the output ring; a shared operand
    (``owner=None``) is shared in Z_2^bits, and ``bits`` may be smaller than the output ring too (the engine
    extends). ``nonnegative`` promises a value >= 0, ``bound`` that of a shared one -bound <= value < bound."""

    share: Share
    bits: int
    owner: int | None = None
    signed: bool = True
    nonnegative: bool = False
    bound: int | None = None


class Engine(abc.ABC):
    """One party's (or, for ``plain`` and ``joint``, all parties') side of the computation."""

    name: str
    parties: int
    rank: int | None  # None when this object acts for all parties (plain, joint)
    components: int  # tensors per share
    trivial_inputs: bool = True  # a share of an input is the value at its owner and zeros elsewhere (see Owned)
    stays_wide: bool = False  # a wide ring costs less than going from ring to ring: values stay where they are
    sums_low_bits: bool = False  # adds in the ring that the node asks for; what looks for overflow keeps terms whole
    ot: tuple = ()  # what its correlations are made by, where it needs any
    actively_secure: bool = False  # holds against parties that deviate from the protocol; their inputs are checked
    portable: bool = True  # shares are as good in another session of the same parties
    floors: bool = True  # truncations round down; False: to a neighbour at random, without bias
    lanes: int = 1  # how many operations can run side by side, each on an engine of its own (see lane)
    opened_together: frozenset[str] = frozenset()  # operations of which several cost the rounds of one (see together)
    transcript: Any = None  # a privml.transcript.Transcript, of real parties
    transcript_keys: Mapping[int, bytes] | None = None  # by peer, of engines that agree on keys themselves
    rectifies_maxima: bool = False  # maximum pooling with ReLU behind it takes fewer messages (rectified_maximum)
    shifts_products: frozenset[str] = frozenset()  # products that cost less with their truncation (shifted_product)
    composes: bool = False  # functions and maxima are made of other operations (see composed)
    counts_only: bool = False  # a meter whose shares have no values (see shape_tensor)
    # What was sent, received and drawn so far (see Snapshot.of), of engines that count.
    counters: Callable[[], dict[str, Any]]

    def lane(self, index: int) -> Engine:
        """The engine that computes on lane ``index`` alone; engines of different lanes may be used by different
        threads at once, while the whole is not in use."""
        if index != 0:
            raise ValueError(f"{self.name} has no lane {index}")
        return self

    def twin(self) -> Engine | None:
        """An engine of one lane that computes on zeros and counts what this one would send, the same at all parties;
        None where nothing is sent."""
        return None

    def clock(self) -> Any:
        """The longest chain of messages so far on the engine's lanes, as `advance` takes it."""
        return None

    def advance(self, clock: Any) -> None:
        """Says that what comes next on the engine's lanes depends on what had that clock."""
        return

    def together(self, calls: Sequence[tuple[str, Sequence[Any]]]) -> list[Any]:
        """The results of operations (name, arguments) of ``opened_together`` that need nothing of one another."""
        return [getattr(self, name)(*args) for name, args in calls]

    def composed(self, name: str, through: Engine, *args: Any) -> Any:
        """Where the engine composes: ``relu``, ``maximum``, ``max_last``, ``argmax_last`` or ``function`` by operations
        of ``through``, which stands in front of this engine."""
        raise ConfigError(f"the engine {self.name} does not make {name} of other operations")

    def computes_whole(self, name: str, *args: Any) -> bool:
        """Whether an engine that composes makes this call by a protocol of its own instead."""
        return False

    def owned(self, party: int) -> Engine:
        """The engine that computes on shares of placement Owned(party), in clear at the owner, without
        communication. Owned shares hold the sign-extended value at the owner and zeros elsewhere."""
        raise NotImplementedError

    def knows(self, party: int) -> tuple[bool, ...]:
        """Which of this process's components hold the value (the others zeros) in a share of Owned(party)."""
        if self.rank is not None:
            return (self.rank == party,) * self.components
        return tuple(i * self.parties // self.components == party for i in range(self.components))

    def reserve(self, correlations: Correlations | dict[str, Any]) -> None:  # noqa: B027 - most engines need none
        """Makes correlations available ahead of their use, in the preprocess phase; all parties make the same call."""

    def follow(self, transcript: Any, accounts: Mapping[int, Any]) -> None:
        """From here on frames carry the tags of ``transcript``, and what is opened is masked by its pads; ``accounts``:
        peer -> the ``_core.Account`` that it gets if the parties differ."""
        self.transcript = transcript

    def set_tags(self, tags: Sequence[tuple[int, int]]) -> None:  # noqa: B027 - most engines send nothing
        """(peer, tag) of what is computed from here on."""

    def refresh(self) -> None:  # noqa: B027 - most engines count protocols alone
        """Lets ``counters()`` show what crossed the channels since the last protocol, apart from any."""

    def finish(self) -> None:  # noqa: B027 - most engines owe nothing
        """Waits until the others have all that this party owes them, which may be behind its program; raises what
        went wrong with that. A program that ends well calls it before the engine is closed."""

    # ---- in and out
    @abc.abstractmethod
    def input(self, value: torch.Tensor | None, shape: Sequence[int], owner: int, bits: int) -> Share:
        """Share of ``value`` (int64 ring elements), which only ``owner`` passes (others pass None)."""

    @abc.abstractmethod
    def input_bits(self, value: torch.Tensor | None, shape: Sequence[int], owner: int) -> Share:
        """Boolean share of ``value`` (uint8 0/1), which only ``owner`` passes."""

    @abc.abstractmethod
    def public(self, value: torch.Tensor, bits: int) -> Share:
        """Share of a value all parties know (int64), or of public bits when ``value`` is uint8."""

    @abc.abstractmethod
    def reveal(self, a: Share, bits: int, to: int | None = None) -> torch.Tensor | None:
        """The signed int64 value to party ``to`` (None: to all); None at parties that learn nothing."""

    @abc.abstractmethod
    def reveal_bits(self, a: Share, to: int | None = None) -> torch.Tensor | None:
        """The uint8 bits to party ``to`` (None: to all)."""

    # ---- linear, local
    @abc.abstractmethod
    def add(self, a: Share, b: Share, bits: int) -> Share: ...

    @abc.abstractmethod
    def negate(self, a: Share, bits: int) -> Share: ...

    @abc.abstractmethod
    def multiply_public(self, a: Share, factor: torch.Tensor | int, bits: int) -> Share:
        """Product with public integers (broadcast), without truncation."""

    def subtract(self, a: Share, b: Share, bits: int) -> Share:
        return self.add(a, self.negate(b, bits), bits)

    def add_public(self, a: Share, value: torch.Tensor | int, bits: int) -> Share:
        public = torch.as_tensor(value, dtype=torch.int64).expand(a[0].shape)
        return self.add(a, self.public(public, bits), bits)

    @abc.abstractmethod
    def sum(self, a: Share, dims: Sequence[int], keepdim: bool, bits: int) -> Share: ...

    def additive(self, function: Callable[..., torch.Tensor], *shares: Share) -> Share:
        """A ``function`` of tensors that moves elements and adds them up, of shares component by component."""
        return tuple(function(*parts) for parts in zip(*shares, strict=True))

    # ---- products (mod 2^out_bits, no truncation)
    @abc.abstractmethod
    def multiply(self, a: Operand, b: Operand, out_bits: int) -> Share:
        """Elementwise product of equal shapes."""

    def multiply_rows(self, a: Operand, b: Operand, out_bits: int) -> Share:
        """a [..., n] times b [..., 1], one number per row."""
        wide = tuple(c.expand(a.share[0].shape) for c in b.share)
        return self.multiply(a, replace(b, share=wide), out_bits)

    def sum_squares(self, a: Operand, square_bits: int, promise: Promise, out_bits: int) -> Share:
        """The sum [..., 1] of the squares of a [..., n]; ``promise``: of one square in ``square_bits``, which hold it,
        at most ``out_bits``."""
        squares = self.multiply(a, a, square_bits)
        return self.sum(self.extend(squares, square_bits, out_bits, True, promise), [-1], True, out_bits)

    @abc.abstractmethod
    def matmul(self, a: Operand, b: Operand, out_bits: int) -> Share:
        """Product of [..., n, k] and [..., k, m] with equal leading dimensions (2-D or batched)."""

    @abc.abstractmethod
    def conv2d(self, x: Operand, w: Operand, window: Window, out_bits: int) -> Share:
        """x [n, c, h, w] with w [o, c / groups, kh, kw]; zero padding."""

    def matmul_public(self, a: Share, b: torch.Tensor, bits: int, left: bool = False) -> Share:
        """a @ b (``left``: b @ a) with public integers b, without truncation; dimensions as in matmul."""
        return tuple(ring.matmul(b, c, bits) if left else ring.matmul(c, b, bits) for c in a)

    def conv2d_public(self, x: Share, w: torch.Tensor, window: Window, bits: int) -> Share:
        """conv2d with a public integer weight, without truncation."""
        return tuple(ring.conv2d(c, w, window, bits) for c in x)

    # ---- width and scale
    @abc.abstractmethod
    def truncate(self, a: Share, bits: int, shift: int, promise: Promise = NO_PROMISE, nearest: bool = False) -> Share:
        """floor(value / 2^shift), exactly (arithmetic shift of the signed value), in the same ring. A ``promise`` (its
        bound at most 2^(bits - 1)) makes it cheaper. ``nearest``: of the value plus 2^(shift - 1), which without a
        promise is reduced to the ring first; 0 < shift < bits then."""

    def with_half(self, a: Share, bits: int, shift: int, promise: Promise) -> tuple[Share, int, Promise]:
        """For engines that add the half of ``truncate``'s ``nearest`` before it: the sum, its ring and its promise. A
        sum that need not fit goes to a larger ring; rings of 63 and 64 bits are taken to have room."""
        nonnegative, bound = promise
        half, most = 1 << (shift - 1), 1 << (bits - 1) if bound is None else bound
        if not nonnegative and bound is None:
            return self.add_public(a, half, bits), bits, NO_PROMISE
        if most + half > 1 << (bits - 1) and bits < 63:
            a, bits = self.extend(a, bits, bits + 1, True, promise), bits + 1
        known = most + half if most + half <= 1 << (bits - 1) else None
        return self.add_public(a, half, bits), bits, Promise(nonnegative, known)

    def shifted_product(
        self,
        name: str,
        a: Operand,
        b: Operand,
        bits: int,
        shift: Shift,
        addend: Share | None = None,
        window: Window | None = None,
    ) -> Share:
        """The ``truncate`` or ``truncate_reduce`` of an ``addend`` (broadcast) and of a product in Z_2^bits, which
        ``name`` says, one of ``shifts_products``; 0 < shift.count < bits. ``window``: of a convolution."""
        product = getattr(self, name)(a, b, *([] if window is None else [window]), bits)
        if addend is not None:
            shape = product[0].shape
            product = self.add(product, tuple(c.expand(shape) for c in addend), bits)
        return self.shifted(product, bits, shift)

    def shifted(self, a: Share, bits: int, shift: Shift) -> Share:
        """The ``truncate`` or ``truncate_reduce`` that ``shift`` says."""
        if not shift.reduces:
            return self.truncate(a, bits, shift.count, shift.promise, shift.nearest)
        if shift.nearest:
            a = self.add_public(a, 1 << (shift.count - 1), bits)
        return self.truncate_reduce(a, bits, shift.count)

    def floor(self, a: Share, bits: int, shift: int, promise: Promise = NO_PROMISE) -> Share:
        """``truncate`` where its result is what the caller asked for: exact also on engines whose truncations of
        products may be one unit too large."""
        return self.truncate(a, bits, shift, promise)

    @abc.abstractmethod
    def truncate_reduce(self, a: Share, bits: int, shift: int) -> Share:
        """floor(x / 2^shift) in the smaller ring Z_2^(bits - shift)."""

    @abc.abstractmethod
    def extend(self, a: Share, bits: int, to_bits: int, signed: bool = True, promise: Promise = NO_PROMISE) -> Share:
        """The same value in the larger ring Z_2^to_bits; ``promise`` as in ``truncate``."""

    def reduce(self, a: Share, bits: int, to_bits: int) -> Share:
        """The same value, which must fit, in the smaller ring Z_2^to_bits."""
        return a

    def divide_public(self, a: Share, bits: int, divisor: int, promise: Promise = NO_PROMISE) -> Share:
        """floor(value / divisor), exactly, in the same ring, for 1 <= divisor <= LARGEST_DIVISOR; promises as in
        ``truncate``."""
        return divide_public(self, a, bits, divisor, promise)

    def claim(self, a: Share, low: int, high: int) -> Share:
        """``a``, of which the caller has proved low <= value <= high for reasons that its operands' ranges do not show.
        Engines that look at values or ranges hold it to that."""
        return a

    def assert_zero(self, a: Share, bits: int) -> None:  # noqa: B027 - see below
        """Ends the session with SecurityAbort unless every value is zero mod 2^bits, before anything else is revealed.
        An actively secure engine opens and checks them. Nothing happens on the others: their parties follow the
        protocol, so that it would say nothing; they are not even asked, see ``actively_secure``."""

    # ---- bits
    @abc.abstractmethod
    def less_than_zero(self, a: Share, bits: int) -> Share:
        """Boolean share of [a < 0] (the most significant bit)."""

    def less_than_many(self, a: Share, thresholds: Sequence[int], bits: int) -> Share:
        """Boolean shares [k, ...] of [a < t] for public thresholds, |a - t| < 2^(bits - 1)."""
        shape = (len(thresholds), *a[0].shape)
        steps = torch.tensor([-t for t in thresholds]).view(-1, *[1] * a[0].dim()).expand(shape)
        return self.less_than_zero(self.add_public(tuple(c.expand(shape) for c in a), steps, bits), bits)

    @abc.abstractmethod
    def equal_zero(self, a: Share, bits: int) -> Share: ...

    @abc.abstractmethod
    def xor(self, a: Share, b: Share) -> Share: ...

    @abc.abstractmethod
    def logical_not(self, a: Share) -> Share: ...

    @abc.abstractmethod
    def logical_and(self, a: Share, b: Share) -> Share: ...

    @abc.abstractmethod
    def bits_to_ring(self, a: Share, bits: int) -> Share: ...

    @abc.abstractmethod
    def select(self, bit: Share, a: Share, bits: int) -> Share:
        """``a`` where bit is 1, else 0."""

    def select_sum(self, bits: Share, a: Share, ring_bits: int) -> Share:
        """The sum over the first dimension of the values whose bits are 1."""
        return self.sum(self.select(bits, a, ring_bits), [0], False, ring_bits)

    def weighted_bits(self, a: Share, weights: torch.Tensor, bits: int) -> Share:
        """Public combinations [w, ...] of bits [k, ...] with integer weights [w, k], in Z_2^bits."""
        lifted = self.bits_to_ring(a, bits)
        spread = weights.view(*weights.shape, *[1] * (a[0].dim() - 1))
        rows = self.multiply_public(tuple(c.expand(spread.shape[0], *c.shape) for c in lifted), spread, bits)
        return self.sum(rows, [1], False, bits)

    def select_rows(self, bits: Share, rows: Operand, out_bits: int) -> Share:
        """The sum [n, m] of the rows [k, m] whose bits [n, k] are 1, mod 2^out_bits."""
        lifted = Operand(self.bits_to_ring(bits, out_bits), out_bits, nonnegative=True)
        return self.matmul(lifted, rows, out_bits)

    def inner(self, a: Share, b: Share, bits: int) -> Share:
        """The sum over the first dimension of products in Z_2^bits."""
        return self.sum(self.multiply(Operand(a, bits), Operand(b, bits), bits), [0], False, bits)

    def logical_or(self, a: Share, b: Share) -> Share:
        return self.xor(self.xor(a, b), self.logical_and(a, b))

    # ---- hints
    def keep(self, share: Share) -> None:
        """Nothing writes to this share of an input any more."""
        return None

    # ---- defaults that engines override when they do better
    def relu(self, a: Share, bits: int) -> tuple[Share, Share]:
        """(max(a, 0), Boolean share of [a >= 0])."""
        positive = self.logical_not(self.less_than_zero(a, bits))
        return self.select(positive, a, bits), positive

    def rectified_quotient(self, a: Share, bits: int, shift: int, out_bits: int) -> Share:
        """floor(max(a, 0) / 2^shift) in Z_2^out_bits, 1 <= shift < bits; larger results lose their high bits."""
        positive = self.relu(a, bits)[0]
        if out_bits <= bits - shift:
            return self.reduce(self.truncate_reduce(positive, bits, shift), bits - shift, out_bits)
        known = Promise(nonnegative=True)
        quotient = self.truncate(positive, bits, shift, known)
        if out_bits < bits:
            return self.reduce(quotient, bits, out_bits)
        return self.extend(quotient, bits, out_bits, True, known)

    def maximum(self, a: Share, b: Share, bits: int) -> Share:
        """Elementwise maximum; |a|, |b| < 2^(bits - 2)."""
        return self.add(b, self.relu(self.subtract(a, b, bits), bits)[0], bits)

    @abc.abstractmethod
    def max_last(self, a: Share, bits: int, one_hot: bool = False) -> tuple[Share, Share | None]:
        """Maximum over the last dimension by tournament, |a| < 2^(bits - 2), and on request a Boolean share
        [..., n] of its one-hot position (the first of equal values, as in torch)."""

    def rectified_maximum(self, a: Share, bits: int, shift: int, out_bits: int) -> Share:
        """``rectified_quotient`` of the maxima over the last dimension, |a| < 2^(bits - 2)."""
        return self.rectified_quotient(self.max_last(a, bits)[0], bits, shift, out_bits)

    @abc.abstractmethod
    def argmax_last(self, a: Share, bits: int) -> Share:
        """Index (Integer(64) ring) of the first maximum over the last dimension, |a| < 2^(bits - 2)."""

    @abc.abstractmethod
    def function(self, name: str, a: Share, source: FixedPoint, target: FixedPoint) -> Share:
        """A function of the library (``FUNCTIONS``, ``FORMS``) of values in format ``source``, in format ``target``;
        both of 8 to 32 bits, arguments of ``exp_negative_*``, and all on engines that stay wide, up to 64. A bound of
        ``source`` is promised. What does not fit the target saturates. Outside the function's domain the result is
        unspecified."""

    def function_ring(self, name: str, source: FixedPoint, target: FixedPoint) -> int:
        """Bits of a ring in which the results of ``function`` are the values: at least those of the ring that it
        says."""
        return max(source.bits, target.bits) if self.stays_wide else target.bits

    def formula(self, a: Share, formula: Formula) -> Share:
        """A function with an addition formula, of values of its format, in ``formula.result_bits`` bits; the last
        places may depend on the shares. ConfigError on engines that have none."""
        raise ConfigError("this engine computes no addition formulas; use twopc or plain")

    @abc.abstractmethod
    def lookup(self, table: torch.Tensor, index: Share, in_bits: int, out_bits: int) -> Share:
        """table[index] for a public table of 2^in_bits int64 entries and index in Z_2^in_bits, in_bits <= 8."""

    def lookup_many(self, tables: torch.Tensor, index: Share, in_bits: int, out_bits: int) -> Share:
        """``lookup`` [k, ...] of one index in several tables [k, 2^in_bits]."""
        return stack([self.lookup(table, index, in_bits, out_bits) for table in tables])

    # ---- floating point, on shares of words (see Float); engines without it refuse
    def float_operation(self, name: str, fmt: Float, *operands: Share) -> Share:
        """An operation of ``FLOAT_ARITHMETIC``, ``FLOAT_COMPARISONS`` or ``FLOAT_FUNCTIONS`` on words of one format
        and equal shapes."""
        raise self.no_floats()

    def float_cast(self, a: Share, fmt: Float, to: Float) -> Share:
        """The value rounded (ties to even) to another format."""
        raise self.no_floats()

    def float_from_ring(self, a: Share, fmt: FixedPoint | Integer, to: Float) -> Share:
        """A ring value rounded (ties to even) to a float."""
        raise self.no_floats()

    def float_to_ring(self, a: Share, fmt: Float, to: FixedPoint | Integer) -> Share:
        """The nearest value (ties to even) of a ring, whose range it must be in."""
        raise self.no_floats()

    def float_select(self, bit: Share, a: Share, fmt: Float) -> Share:
        """``a`` where bit is 1, else +0."""
        raise self.no_floats()

    def reveal_words(self, a: Share, fmt: Float, to: int | None = None) -> torch.Tensor | None:
        """The clear words to party ``to`` (None: to all); None at parties that learn nothing."""
        raise self.no_floats()

    def float_align(self, a: Share, shifts: Share, fmt: Float, guard: int, bits: int) -> Share:
        """The signed integers a * 2^(q + guard - exponent - shift), towards zero, in Z_2^bits, where q is the
        format's mantissa, ``exponent`` that of each value and ``shifts`` are shared in Z_2^(exponent bits + 2), not
        negative. ``bits`` is at least q + guard + 2, and q + guard at most 29."""
        raise self.no_floats()

    def float_from_sum(self, a: Share, exponents: Share, fmt: Float, bits: int, fraction: int) -> Share:
        """The signed integers a * 2^(exponent - fraction) of Z_2^bits, rounded to nearest (ties to even);
        exponents are shared in Z_2^(exponent bits + 2), where exponent - fraction fits too."""
        raise self.no_floats()

    def no_floats(self) -> ConfigError:
        return ConfigError(
            f"the engine {self.name} has no floating point, the engines plain and twopc have; choose one of them, "
            "or fixed-point numerics"
        )
