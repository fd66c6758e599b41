# SPDX-License-Identifier: Apache-2.0
"""The operations of ``Engine`` as data: whether they send messages, and how they treat the dimensions of shares.

What forwards operations (all parties in one process, calls that wait for each other, a party's own values, measuring)
is made from this table.
"""

from __future__ import annotations

import abc
import enum
import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any

from privml.engines.base import Engine


class Kind(enum.Enum):
    """LOCAL operations send nothing, INTERACTIVE ones do; INPUT ones take a value from its owner, OPENING ones give a
    value to a party or to all."""

    LOCAL = enum.auto()
    INTERACTIVE = enum.auto()
    INPUT = enum.auto()
    OPENING = enum.auto()


class Joining(enum.Enum):
    """How calls that wait at the same time become one: ELEMENTS are laid one behind the other, MATRICES of equal shapes
    become a batch, WHOLE calls are handed over together at most."""

    ELEMENTS = enum.auto()
    MATRICES = enum.auto()
    WHOLE = enum.auto()


class AtZero(enum.Enum):
    """What an operation gives at a party that holds zeros for another party's values: ZERO, a BIT that is cleared
    there, or ANYTHING, so that only the owner computes."""

    ZERO = enum.auto()
    BIT = enum.auto()
    ANYTHING = enum.auto()


@dataclass(frozen=True, slots=True)
class Operation:
    """``front``, ``back``: dimensions at the front and at the end of shares that are not treated element by element;
    ``results``: the same of each share that it gives. ``joining``: None if calls are never joined. ``composed``:
    engines may make it of other operations (``Engine.composed``). ``at_zero``: None if the engine of one party's values
    has code of its own for it."""

    kind: Kind = Kind.INTERACTIVE
    front: int = 0
    back: int = 0
    results: tuple[tuple[int, int], ...] = ((0, 0),)
    joining: Joining | None = Joining.ELEMENTS
    composed: bool = False
    at_zero: AtZero | None = None


def _local(at_zero: AtZero | None = None) -> Operation:
    return Operation(Kind.LOCAL, joining=None, at_zero=at_zero)


_ZERO = Operation(at_zero=AtZero.ZERO)
_FLOAT = Operation(at_zero=AtZero.ANYTHING)
_INPUT = Operation(Kind.INPUT, joining=None)
_OPENING = Operation(Kind.OPENING, joining=None)

OPERATIONS: dict[str, Operation] = {
    # in and out
    "input": _INPUT,
    "input_bits": _INPUT,
    "public": _local(),
    "reveal": _OPENING,
    "reveal_bits": _OPENING,
    "reveal_words": _OPENING,
    # linear
    "add": _local(AtZero.ZERO),
    "negate": _local(AtZero.ZERO),
    "subtract": _local(),
    "add_public": _local(),
    "multiply_public": _local(AtZero.ZERO),
    "sum": _local(AtZero.ZERO),
    "additive": _local(),
    "matmul_public": _local(AtZero.ZERO),
    "conv2d_public": _local(AtZero.ZERO),
    # products
    "multiply": Operation(),
    "multiply_rows": Operation(back=1, results=((0, 1),)),
    "sum_squares": Operation(back=1, results=((0, 1),)),
    "matmul": Operation(joining=Joining.MATRICES),
    "conv2d": Operation(joining=Joining.WHOLE),
    "inner": Operation(front=1),
    "shifted_product": Operation(joining=Joining.WHOLE),
    # width and scale
    "truncate": _ZERO,
    "floor": Operation(),
    "truncate_reduce": Operation(),
    "extend": _ZERO,
    "divide_public": _ZERO,
    # bits
    "less_than_zero": _ZERO,
    "less_than_many": Operation(results=((1, 0),)),
    "equal_zero": Operation(at_zero=AtZero.BIT),
    "xor": _local(AtZero.ZERO),
    "logical_not": _local(),
    "logical_and": _ZERO,
    "logical_or": Operation(),
    "bits_to_ring": _ZERO,
    "select": _ZERO,
    "select_sum": Operation(front=1),
    "select_rows": Operation(joining=None),
    "weighted_bits": Operation(front=1, results=((1, 0),)),
    "assert_zero": Operation(joining=None),
    # maxima and functions
    "relu": Operation(results=((0, 0), (0, 0)), composed=True),
    "rectified_quotient": _ZERO,
    "maximum": Operation(composed=True),
    "max_last": Operation(back=1, results=((0, 0), (0, 1)), composed=True),
    "rectified_maximum": Operation(back=1, at_zero=AtZero.ZERO),
    "argmax_last": Operation(back=1, composed=True, at_zero=AtZero.ZERO),
    "function": Operation(composed=True, at_zero=AtZero.ANYTHING),
    "formula": Operation(),
    "lookup": Operation(),
    "lookup_many": Operation(results=((1, 0),)),
    # floating point
    "float_operation": _FLOAT,
    "float_cast": _FLOAT,
    "float_from_ring": _FLOAT,
    "float_to_ring": _FLOAT,
    "float_select": _ZERO,
    "float_align": _FLOAT,
    "float_from_sum": _FLOAT,
}


@cache
def signature(name: str) -> inspect.Signature:
    """That of the operation in ``Engine``, with ``self``."""
    return inspect.signature(getattr(Engine, name))


def offer(engine: type, forward: Mapping[str, Callable[..., Any]]) -> None:
    """Gives a class a method for each operation in ``forward``, which calls ``forward[name](self, name, ...)``; its
    name, signature and text are those of Engine's."""
    for name, function in forward.items():
        setattr(engine, name, _forwarding(name, function))
    abc.update_abstractmethods(engine)


def _forwarding(name: str, forward: Callable[..., Any]) -> Callable[..., Any]:
    def method(self: Any, *args: Any, **kwargs: Any) -> Any:
        return forward(self, name, *args, **kwargs)

    method.__name__, method.__doc__ = name, f"See ``Engine.{name}``."
    method.__signature__ = signature(name)  # type: ignore[attr-defined]
    return method
