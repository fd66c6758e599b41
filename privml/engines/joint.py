# SPDX-License-Identifier: Apache-2.0
"""All parties in this process, each on a thread of its own, behind the interface of one engine."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import replace
from functools import partial
from typing import Any

import torch

from privml.engines.base import Engine, Operand, Share
from privml.engines.correlations import Correlations
from privml.engines.formulas import Formula
from privml.engines.owned import SharedEngine
from privml.engines.party_threads import PartyThreads
from privml.formats import FixedPoint, Float, Integer


class JointEngine(SharedEngine):
    """The engines of all parties as one: a share is the concatenation of the parties' shares.

    ``engines`` holds one engine per rank, with equally many components and a close(). Local operations run on the
    calling thread, interactive ones on the parties' threads.
    """

    rank = None

    def __init__(self, engines: Sequence[Engine], threads: PartyThreads) -> None:
        self.engines = tuple(engines)
        self.threads = threads
        self.name = engines[0].name
        self.parties = len(self.engines)
        self.components = self.parties * engines[0].components
        self.trivial_inputs, self.stays_wide = engines[0].trivial_inputs, engines[0].stays_wide
        self.actively_secure, self.portable = engines[0].actively_secure, engines[0].portable
        self.floors = engines[0].floors
        self.ot, self.lanes = engines[0].ot, engines[0].lanes
        self.opened_together, self.composes = engines[0].opened_together, engines[0].composes

    def lane(self, index: int) -> JointEngine:
        return JointEngine([engine.lane(index) for engine in self.engines], self.threads.beside())

    def twin(self) -> Engine | None:
        return self.engines[0].twin()

    def clock(self) -> tuple[Any, ...]:
        return tuple(engine.clock() for engine in self.engines)

    def advance(self, clock: Sequence[Any]) -> None:
        for engine, own in zip(self.engines, clock, strict=True):
            engine.advance(own)

    def composed(self, name: str, through: Engine, *args: Any) -> Any:
        return self.engines[0].composed(name, through, *args)

    def together(self, calls: Sequence[tuple[str, Sequence[Any]]]) -> list[Any]:
        by_party = [
            partial(engine.together, [(name, [self._part(a, rank) for a in args]) for name, args in calls])
            for rank, engine in enumerate(self.engines)
        ]
        return [_join(results) for results in zip(*self.threads.run(by_party), strict=True)]

    def close(self) -> None:
        """Ends the session and wipes the parties' keys; raises what a party's engine raises at its end."""
        self.threads.close()
        with ExitStack() as stack:
            for engine in self.engines:
                stack.callback(engine.close)

    def counters(self) -> dict[str, Any]:
        """What party 0 has counted so far; its sent and received bytes are both directions."""
        return self.engines[0].counters()

    def reserve(self, correlations: Correlations) -> None:
        self.threads.run(self._calls("reserve", correlations))

    # ---- distributing
    def _part(self, value: Any, rank: int) -> Any:
        """What party ``rank`` sees of an argument: its own tensors of a share, all of anything public."""
        if isinstance(value, Operand):
            return replace(value, share=self._part(value.share, rank))
        if isinstance(value, tuple) and value and isinstance(value[0], torch.Tensor):
            width = len(value) // self.parties  # bits may have fewer components than numbers
            return value[rank * width : (rank + 1) * width]
        return value

    def _calls(self, operation: str, *args: Any) -> list[Callable[[], Any]]:
        return [
            partial(getattr(engine, operation), *(self._part(a, rank) for a in args))
            for rank, engine in enumerate(self.engines)
        ]

    def _local(self, operation: str, *args: Any) -> Any:
        return _join([call() for call in self._calls(operation, *args)])

    def _interactive(self, operation: str, *args: Any) -> Any:
        return _join(self.threads.run(self._calls(operation, *args)))

    # ---- in and out
    def input(self, value: torch.Tensor | None, shape: Sequence[int], owner: int, bits: int) -> Share:
        return self._from_owner("input", value, owner, tuple(shape), owner, bits)

    def input_bits(self, value: torch.Tensor | None, shape: Sequence[int], owner: int) -> Share:
        return self._from_owner("input_bits", value, owner, tuple(shape), owner)

    def _from_owner(self, operation: str, value: torch.Tensor | None, owner: int, *args: Any) -> Share:
        calls = [
            partial(getattr(engine, operation), value if rank == owner else None, *args)
            for rank, engine in enumerate(self.engines)
        ]
        return _join([call() for call in calls] if self.trivial_inputs else self.threads.run(calls))

    def public(self, value: torch.Tensor, bits: int) -> Share:
        return self._local("public", value, bits)

    def reveal(self, a: Share, bits: int, to: int | None = None) -> torch.Tensor | None:
        return self.threads.run(self._calls("reveal", a, bits, to))[to or 0]

    def reveal_bits(self, a: Share, to: int | None = None) -> torch.Tensor | None:
        return self.threads.run(self._calls("reveal_bits", a, to))[to or 0]

    # ---- local
    def add(self, a: Share, b: Share, bits: int) -> Share:
        return self._local("add", a, b, bits)

    def negate(self, a: Share, bits: int) -> Share:
        return self._local("negate", a, bits)

    def subtract(self, a: Share, b: Share, bits: int) -> Share:
        return self._local("subtract", a, b, bits)

    def add_public(self, a: Share, value: torch.Tensor | int, bits: int) -> Share:
        return self._local("add_public", a, value, bits)

    def multiply_public(self, a: Share, factor: torch.Tensor | int, bits: int) -> Share:
        return self._local("multiply_public", a, factor, bits)

    def sum(self, a: Share, dims: Sequence[int], keepdim: bool, bits: int) -> Share:
        return self._local("sum", a, list(dims), keepdim, bits)

    def xor(self, a: Share, b: Share) -> Share:
        return self._local("xor", a, b)

    def logical_not(self, a: Share) -> Share:
        return self._local("logical_not", a)

    def additive(self, function: Callable[..., torch.Tensor], *shares: Share) -> Share:
        return self._local("additive", function, *shares)

    def matmul_public(self, a: Share, b: torch.Tensor, bits: int, left: bool = False) -> Share:
        return self._local("matmul_public", a, b, bits, left)

    def conv2d_public(
        self,
        x: Share,
        w: torch.Tensor,
        stride: Sequence[int],
        padding: Sequence[int],
        dilation: Sequence[int],
        groups: int,
        bits: int,
    ) -> Share:
        return self._local("conv2d_public", x, w, list(stride), list(padding), list(dilation), groups, bits)

    # ---- products
    def multiply(self, a: Operand, b: Operand, out_bits: int) -> Share:
        return self._interactive("multiply", a, b, out_bits)

    def multiply_rows(self, a: Operand, b: Operand, out_bits: int) -> Share:
        return self._interactive("multiply_rows", a, b, out_bits)

    def matmul(self, a: Operand, b: Operand, out_bits: int) -> Share:
        return self._interactive("matmul", a, b, out_bits)

    def conv2d(
        self,
        x: Operand,
        w: Operand,
        stride: Sequence[int],
        padding: Sequence[int],
        dilation: Sequence[int],
        groups: int,
        out_bits: int,
    ) -> Share:
        return self._interactive("conv2d", x, w, list(stride), list(padding), list(dilation), groups, out_bits)

    # ---- width and scale
    def truncate(
        self,
        a: Share,
        bits: int,
        shift: int,
        nonnegative: bool = False,
        bound: int | None = None,
        nearest: bool = False,
    ) -> Share:
        return self._interactive("truncate", a, bits, shift, nonnegative, bound, nearest)

    def floor(self, a: Share, bits: int, shift: int, nonnegative: bool = False, bound: int | None = None) -> Share:
        return self._interactive("floor", a, bits, shift, nonnegative, bound)

    def truncate_reduce(self, a: Share, bits: int, shift: int) -> Share:
        return self._interactive("truncate_reduce", a, bits, shift)

    def extend(
        self,
        a: Share,
        bits: int,
        to_bits: int,
        signed: bool = True,
        nonnegative: bool = False,
        bound: int | None = None,
    ) -> Share:
        return self._interactive("extend", a, bits, to_bits, signed, nonnegative, bound)

    def divide_public(
        self, a: Share, bits: int, divisor: int, nonnegative: bool = False, bound: int | None = None
    ) -> Share:
        return self._interactive("divide_public", a, bits, divisor, nonnegative, bound)

    # ---- bits
    def less_than_zero(self, a: Share, bits: int) -> Share:
        return self._interactive("less_than_zero", a, bits)

    def equal_zero(self, a: Share, bits: int) -> Share:
        return self._interactive("equal_zero", a, bits)

    def logical_and(self, a: Share, b: Share) -> Share:
        return self._interactive("logical_and", a, b)

    def logical_or(self, a: Share, b: Share) -> Share:
        return self._interactive("logical_or", a, b)

    def bits_to_ring(self, a: Share, bits: int) -> Share:
        return self._interactive("bits_to_ring", a, bits)

    def select(self, bit: Share, a: Share, bits: int) -> Share:
        return self._interactive("select", bit, a, bits)

    # ---- compositions that the parties' engines may do better
    def less_than_many(self, a: Share, thresholds: Sequence[int], bits: int) -> Share:
        return self._interactive("less_than_many", a, list(thresholds), bits)

    def select_sum(self, bits: Share, a: Share, ring_bits: int) -> Share:
        return self._interactive("select_sum", bits, a, ring_bits)

    def select_rows(self, bits: Share, rows: Operand, out_bits: int) -> Share:
        return self._interactive("select_rows", bits, rows, out_bits)

    def assert_zero(self, a: Share, bits: int) -> None:
        self.threads.run(self._calls("assert_zero", a, bits))

    def weighted_bits(self, a: Share, weights: torch.Tensor, bits: int) -> Share:
        return self._interactive("weighted_bits", a, weights, bits)

    def inner(self, a: Share, b: Share, bits: int) -> Share:
        return self._interactive("inner", a, b, bits)

    def lookup_many(self, tables: torch.Tensor, index: Share, in_bits: int, out_bits: int) -> Share:
        return self._interactive("lookup_many", tables, index, in_bits, out_bits)

    def relu(self, a: Share, bits: int) -> tuple[Share, Share]:
        return self._interactive("relu", a, bits)

    def maximum(self, a: Share, b: Share, bits: int) -> Share:
        return self._interactive("maximum", a, b, bits)

    def max_last(self, a: Share, bits: int, one_hot: bool = False) -> tuple[Share, Share | None]:
        return self._interactive("max_last", a, bits, one_hot)

    def argmax_last(self, a: Share, bits: int) -> Share:
        return self._interactive("argmax_last", a, bits)

    def function(self, name: str, a: Share, source: FixedPoint, target: FixedPoint) -> Share:
        return self._interactive("function", name, a, source, target)

    def formula(self, a: Share, formula: Formula) -> Share:
        return self._interactive("formula", a, formula)

    def lookup(self, table: torch.Tensor, index: Share, in_bits: int, out_bits: int) -> Share:
        return self._interactive("lookup", table, index, in_bits, out_bits)

    # ---- floating point
    def float_operation(self, name: str, fmt: Float, *operands: Share) -> Share:
        return self._interactive("float_operation", name, fmt, *operands)

    def float_cast(self, a: Share, fmt: Float, to: Float) -> Share:
        return self._interactive("float_cast", a, fmt, to)

    def float_from_ring(self, a: Share, fmt: FixedPoint | Integer, to: Float) -> Share:
        return self._interactive("float_from_ring", a, fmt, to)

    def float_to_ring(self, a: Share, fmt: Float, to: FixedPoint | Integer) -> Share:
        return self._interactive("float_to_ring", a, fmt, to)

    def float_select(self, bit: Share, a: Share, fmt: Float) -> Share:
        return self._interactive("float_select", bit, a, fmt)

    def float_align(self, a: Share, shifts: Share, fmt: Float, guard: int, bits: int) -> Share:
        return self._interactive("float_align", a, shifts, fmt, guard, bits)

    def float_from_sum(self, a: Share, exponents: Share, fmt: Float, bits: int, fraction: int) -> Share:
        return self._interactive("float_from_sum", a, exponents, fmt, bits, fraction)

    def reveal_words(self, a: Share, fmt: Float, to: int | None = None) -> torch.Tensor | None:
        return self.threads.run(self._calls("reveal_words", a, fmt, to))[to or 0]


def _join(results: Sequence[Any]) -> Any:
    """Concatenates the parties' shares, also inside a tuple of several results."""
    first = results[0]
    if first is None:
        return None
    if isinstance(first[0], torch.Tensor):
        return tuple(tensor for share in results for tensor in share)
    return tuple(_join(parts) for parts in zip(*results, strict=True))


def joined(parties: int, party: Callable[[int], Engine], close: Callable[[], None]) -> JointEngine:
    """All parties of one session, each on a thread of its own. ``party(rank)`` makes its engine there; ``close`` ends
    what connects them."""
    workers = PartyThreads(parties, close)
    try:
        engines = workers.run([partial(party, rank) for rank in range(parties)])
    except BaseException:
        workers.close()
        raise
    return JointEngine(engines, workers)
