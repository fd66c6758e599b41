# SPDX-License-Identifier: Apache-2.0
"""The interactive calls of an engine, as samples that can be measured apart from the program that makes them.

A call's time depends on its method, its public arguments and the shapes of its shares, never on a value. Methods that
treat each element alike are measured on a flat array, of ``LARGEST`` bytes on the wire at most; more elements take
proportionally longer.
"""

from __future__ import annotations

import hashlib
import math
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

import numpy as np
import torch

from privml.engines.base import Engine, Operand
from privml.engines.formulas import Formula, Term
from privml.engines.operations import OPERATIONS, Joining, Kind
from privml.engines.shares import is_share

# Wire bytes, both ways, of the largest call that is measured whole if a smaller one is as informative.
LARGEST = 4_000_000


@dataclass(frozen=True, slots=True)
class ShareOf:
    """Stands for a share: its tensors' shape, and whether they are bits."""

    shape: tuple[int, ...]
    boolean: bool


@dataclass(frozen=True, slots=True)
class OperandOf:
    """Stands for an Operand."""

    share: ShareOf
    bits: int
    owner: int | None
    signed: bool
    nonnegative: bool
    bound: int | None = None


@dataclass(frozen=True, slots=True)
class TensorOf:
    """Stands for a public tensor, or for the value of an input."""

    shape: tuple[int, ...]
    boolean: bool


@dataclass(frozen=True, slots=True)
class Sample:
    """A call to measure: ``lanes`` of the engine it ran on, ``size`` its wire bytes (both ways), ``computing`` the
    seconds that the engine predicts of work beside its messages, on the reference machine."""

    method: str
    args: tuple[Any, ...]
    kwargs: tuple[tuple[str, Any], ...]
    lanes: int
    size: int
    computing: float = 0.0

    @property
    def key(self) -> str:
        """A name for what is measured; the same for the same work."""
        words = (self.method, self.args, self.kwargs, self.lanes)
        return f"{self.method}:{hashlib.sha256(repr(words).encode()).hexdigest()[:20]}"

    @property
    def products(self) -> float:
        """About as many as the products of numbers that a product of matrices computes, whose messages are in
        proportion to its result: the root of the sizes of both factors and of the messages. 0 for other calls."""
        if self.method not in ("matmul", "conv2d", "inner", "multiply_rows", "shifted_product"):
            return 0.0
        words = (*self.args, *(word for _, word in self.kwargs))
        sizes = [math.prod(shape) for shape in map(_shape, words) if shape is not None]
        return math.sqrt(math.prod(sizes[:2]) * self.size) if len(sizes) > 1 else 0.0


@dataclass(frozen=True, slots=True)
class Call:
    """A call of the program: the sample that represents it, and how many times as long it takes."""

    sample: Sample
    times: float


def describe(
    method: str, args: Sequence[Any], kwargs: dict[str, Any], lanes: int, size: int, components: int = 1
) -> Call:
    """The call's sample: its own shapes, or a smaller share of the same work. ``components``: tensors per share of
    numbers, of which shares of bits may have fewer."""
    words = [_described(value, components) for value in args]
    named = [(name, _described(value, components)) for name, value in sorted(kwargs.items())]
    shapes = {_shape(word) for word in (*words, *(word for _, word in named))} - {None}
    operation = OPERATIONS[method]
    alike = operation.kind is Kind.OPENING or (operation.joining is Joining.ELEMENTS and operation.front == 0)
    if len(shapes) != 1 or not alike:
        return Call(Sample(method, tuple(words), tuple(named), lanes, size), 1.0)
    (shape,) = shapes
    tail = shape[len(shape) - operation.back :]
    count = math.prod(shape[: len(shape) - len(tail)])
    taken = min(count, max(count * LARGEST // max(size, 1), 1))
    flat = (taken, *tail)
    sample = Sample(
        method,
        tuple(_reshaped(word, flat) for word in words),
        tuple((name, _reshaped(word, flat)) for name, word in named),
        lanes,
        size * taken // max(count, 1),
    )
    return Call(sample, count / taken)


def _described(value: Any, components: int) -> Any:
    if isinstance(value, Operand):
        share = _described(value.share, components)
        return OperandOf(share, value.bits, value.owner, value.signed, value.nonnegative, value.bound)
    if isinstance(value, torch.Tensor):
        return TensorOf(tuple(value.shape), value.dtype is torch.uint8)
    if is_share(value):
        bits = value[0].dtype is torch.uint8 or len(value) < components
        return ShareOf(tuple(value[0].shape), bits)
    if isinstance(value, Formula):  # any functions take as long; these have names
        terms = tuple(Term(np.cos, None if term.g is None else np.sin, term.constant) for term in value.terms)
        return replace(value, terms=terms)
    return tuple(value) if isinstance(value, list) else value


def _shape(word: Any) -> tuple[int, ...] | None:
    if isinstance(word, OperandOf):
        return word.share.shape
    return word.shape if isinstance(word, ShareOf) else None


def _reshaped(word: Any, shape: tuple[int, ...]) -> Any:
    if isinstance(word, OperandOf):
        return replace(word, share=replace(word.share, shape=shape))
    return replace(word, shape=shape) if isinstance(word, ShareOf) else word


# ---- and back
def arguments(sample: Sample, engine: Engine, party: int) -> tuple[list[Any], dict[str, Any]]:
    """What party ``party`` passes to measure ``sample``; all parties make the same call."""
    args = [_made(word, engine) for word in sample.args]
    if sample.method in ("input", "input_bits"):
        owner = args[2]
        args[0] = _clear(tuple(args[1]), sample.method == "input_bits") if party == owner else None
    return args, {name: _made(word, engine) for name, word in sample.kwargs}


def _made(word: Any, engine: Engine) -> Any:
    if isinstance(word, OperandOf):
        return Operand(_made(word.share, engine), word.bits, word.owner, word.signed, word.nonnegative, word.bound)
    if isinstance(word, ShareOf):
        return engine.public(_clear(word.shape, word.boolean), 64)
    return _clear(word.shape, word.boolean) if isinstance(word, TensorOf) else word


def _clear(shape: tuple[int, ...], boolean: bool) -> torch.Tensor:
    return torch.ones(shape, dtype=torch.uint8 if boolean else torch.int64)


# ---- watching
@dataclass(slots=True)
class Watch:
    """The interactive calls of a program on a meter, in order. ``seconds``: what each takes, once that is known; then
    the meter's time goes on by it and, if the meter ``computes`` as the parties do, by the computing between calls."""

    seconds: Callable[[Call], float] | None = None
    computes: bool = True
    calls: list[Call] = field(default_factory=list)
    _last: dict[int, float] = field(default_factory=dict)  # thread -> when its last call ended
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def begin(self) -> None:
        """The program begins now, on this thread."""
        self._last[threading.get_ident()] = time.perf_counter()

    def tick(self, engine: Any) -> None:
        """Adds what this thread has computed since its last call."""
        self._go_on(engine, time.perf_counter(), 0.0)

    def call(self, engine: Any, name: str, function: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
        start, before, computed = time.perf_counter(), _wire_bytes(engine), _computing(engine)
        result = function(*args, **kwargs)
        size = _wire_bytes(engine) - before
        if size == 0:
            return result  # computing between calls
        call = describe(name, args, kwargs, engine.lanes, size, engine.components)
        computed = _computing(engine) - computed
        if computed > 0:
            call = replace(call, sample=replace(call.sample, computing=computed / call.times))
        with self._lock:
            self.calls.append(call)
        self._go_on(engine, start, 0.0 if self.seconds is None else self.seconds(call))
        return result

    def _go_on(self, engine: Any, start: float, seconds: float) -> None:
        thread = threading.get_ident()
        if self.seconds is not None:
            between = start - self._last.get(thread, start) if self.computes else 0.0
            engine.compute(seconds + between)
        self._last[thread] = time.perf_counter()


class Watched:
    """An engine that reports its interactive calls to ``watch``; otherwise the engine itself."""

    def __init__(self, engine: Any, watch: Watch) -> None:
        self._engine, self._watch = engine, watch

    def lane(self, index: int) -> Watched:
        return Watched(self._engine.lane(index), self._watch)

    def __getattr__(self, name: str) -> Any:
        value = getattr(self._engine, name)
        if name not in OPERATIONS:
            return value
        return partial(self._watch.call, self._engine, name, value)


def _computing(engine: Any) -> float:
    """Of an engine that predicts work beside its messages."""
    return getattr(engine, "computing", 0.0)


def _wire_bytes(engine: Any) -> int:
    counters = engine.counters()
    return sum(counters[phase]["sent"] + counters[phase]["received"] for phase in ("preprocess", "online"))
