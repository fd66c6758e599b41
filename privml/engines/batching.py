# SPDX-License-Identifier: Apache-2.0
"""An engine in front of another one, for computations that run side by side: calls that wait at the same time and may
share their messages become one call.

Elementwise calls of equal settings are joined by laying their elements one behind the other; the engine below answers
once. Calls that open products (``Engine.opened_together``) are handed over as they are, for one message. On engines
that compose functions of their other operations (``Engine.composes``) functions are taken apart, so that their steps
meet those of others, but for those that the engine computes as a whole. Values are what single calls give, wherever
these are deterministic.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import torch

from privml.engines.base import Engine, Operand
from privml.engines.operations import OPERATIONS, Joining, Operation, offer, signature
from privml.engines.shares import Share, each, is_share


@dataclass(slots=True, eq=False)
class Call:
    """A call that waits. Calls with equal keys may be answered by one; ``opens``: or with others of that mark."""

    name: str
    args: tuple[Any, ...]
    key: Any
    opens: bool


class BatchingEngine:
    """``ask(call)`` returns the call's result, or is where a computation waits for it."""

    def __init__(self, base: Engine, ask: Callable[[Call], Any]) -> None:
        self.base, self._ask = base, ask

    def __getattr__(self, name: str) -> Any:  # local operations, input and opening
        return getattr(self.base, name)


def _wait(engine: BatchingEngine, name: str, /, *args: Any, **kwargs: Any) -> Any:
    bound = signature(name).bind(engine, *args, **kwargs)
    bound.apply_defaults()
    given = bound.args[1:]
    base = engine.base
    if base.composes and OPERATIONS[name].composed and not base.computes_whole(name, *given):
        return base.composed(name, engine, *given)
    return engine._ask(Call(name, given, (name, *map(_key_of(name), given)), name in base.opened_together))


offer(BatchingEngine, {name: _wait for name, operation in OPERATIONS.items() if operation.joining is not None})
Engine.register(BatchingEngine)


def answer(base: Engine, calls: Sequence[Call]) -> list[Any]:
    """The results of calls that may be joined, from as few calls of ``base`` as it takes."""
    first = calls[0]
    if len(calls) == 1:
        return [getattr(base, first.name)(*first.args)]
    shifted = first.name == "shifted_product" and not first.opens
    form = OPERATIONS[first.args[0] if shifted else first.name]
    if all(call.key == first.key for call in calls) and form.joining is not Joining.WHOLE:
        return _as_batch(base, calls) if form.joining is Joining.MATRICES else _side_by_side(base, calls, form)
    return base.together([(call.name, call.args) for call in calls])


# ---- which calls are alike
def _key_of(name: str) -> Callable[[Any], Any]:
    operation = OPERATIONS[name]
    whole = operation.joining is not Joining.ELEMENTS

    def key(value: Any) -> Any:
        if isinstance(value, Operand):
            return key(value.share), value.bits, value.owner, value.signed, value.nonnegative, value.bound
        if is_share(value):
            shape = tuple(value[0].shape)
            if whole:
                return shape
            return shape[: operation.front], shape[len(shape) - operation.back :]
        if isinstance(value, torch.Tensor):
            return tuple(value.shape), value.cpu().contiguous().numpy().tobytes()
        return tuple(value) if isinstance(value, list) else value

    return key


# ---- joining
def _components(value: Any) -> Share:
    return value.share if isinstance(value, Operand) else value


def _with(value: Any, share: Share) -> Any:
    return replace(value, share=share) if isinstance(value, Operand) else share


def _side_by_side(base: Engine, calls: Sequence[Call], form: Operation) -> list[Any]:
    name = calls[0].name
    middles: list[torch.Size] = []
    for call in calls:
        like = next(_components(a)[0] for a in call.args if isinstance(a, Operand) or is_share(a))
        middles.append(like.shape[form.front : like.dim() - form.back])
    args = []
    for position, value in enumerate(calls[0].args):
        if not (isinstance(value, Operand) or is_share(value)):
            args.append(value)
            continue
        shares = [_components(call.args[position]) for call in calls]
        firsts = [_components(call.args[0]) for call in calls]
        if position and all(share[0] is first[0] for share, first in zip(shares, firsts, strict=True)):
            args.append(_with(value, _components(args[0])))  # squares stay squares
        else:
            args.append(_with(value, _joined(shares, form.front, form.back)))
    result = getattr(base, name)(*args)
    sizes = [math.prod(middle) for middle in middles]
    if len(form.results) == 1:
        return _divided(result, form.results[0], sizes, middles)
    parts = [
        [None] * len(calls) if share is None else _divided(share, kept, sizes, middles)
        for share, kept in zip(result, form.results, strict=True)
    ]
    return list(zip(*parts, strict=True))


def _joined(shares: Sequence[Share], front: int, back: int) -> Share:
    def flat(c: torch.Tensor) -> torch.Tensor:
        middle = math.prod(c.shape[front : c.dim() - back])
        return c.reshape((*c.shape[:front], middle, *c.shape[c.dim() - back :]))

    return tuple(torch.cat([flat(c) for c in components], front) for components in zip(*shares, strict=True))


def _divided(
    share: Share, kept: tuple[int, int], sizes: Sequence[int], middles: Sequence[Sequence[int]]
) -> list[Share]:
    front, back = kept
    pieces = [c.split(list(sizes), front) for c in share]
    return [
        tuple(p[i].reshape((*p[i].shape[:front], *middle, *p[i].shape[p[i].dim() - back :])) for p in pieces)
        for i, middle in enumerate(middles)
    ]


def _as_batch(base: Engine, calls: Sequence[Call]) -> list[Share]:
    """Products of matrices of one shape as one batched product; addends of their truncations count as of that shape."""
    first = calls[0].args
    a, b = (value for value in first if isinstance(value, Operand))
    shape = a.share[0].shape[:-2]
    sides = a.share[0].shape[-2], b.share[0].shape[-1]

    def batch(shares: Sequence[Share]) -> Share:
        return tuple(torch.cat([c.reshape(-1, *c.shape[-2:]) for c in parts]) for parts in zip(*shares, strict=True))

    def joined(position: int) -> Any:
        value = first[position]
        shares = [_components(call.args[position]) for call in calls]
        if isinstance(value, Operand):
            return replace(value, share=batch(shares))
        return batch([each(s, lambda c: c.expand(*shape, *sides)) for s in shares]) if is_share(value) else value

    result = getattr(base, calls[0].name)(*map(joined, range(len(first))))
    pieces = [c.chunk(len(calls)) for c in result]
    return [tuple(p[i].reshape(*shape, *p[i].shape[-2:]) for p in pieces) for i in range(len(calls))]
