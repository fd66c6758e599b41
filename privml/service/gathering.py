# SPDX-License-Identifier: Apache-2.0
"""Calls of several threads that arrive together become one query.

There is no thread for this: of the callers that wait, one leads. It waits for others, takes the oldest calls that fit
together, asks for all of them, and gives each its rows.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import torch

from privml.errors import ConfigError, PeerDisconnected

Tensors = Sequence[torch.Tensor]


@dataclass(slots=True, eq=False)
class _Call:
    inputs: Tensors
    since: float
    outputs: Tensors | None = None
    error: BaseException | None = None

    @property
    def rows(self) -> int:
        return self.inputs[0].shape[0]

    @property
    def kind(self) -> list[tuple[torch.dtype, torch.Size]]:
        """Calls of one kind may go together."""
        return [(value.dtype, value.shape[1:]) for value in self.inputs]

    @property
    def done(self) -> bool:
        return self.outputs is not None or self.error is not None


class Gatherer:
    """``query(inputs) -> outputs`` for calls of any thread, up to ``most`` rows at a time; a call waits at most
    ``wait`` seconds for others to come, and longer only for a query under way. A call of more rows goes alone. All
    tensors have their rows in the first dimension; a call's own have as many."""

    def __init__(self, query: Callable[[Tensors], Tensors], most: int, wait: float) -> None:
        self._query, self._most, self._wait = query, most, wait
        self._changed = threading.Condition()
        self._pending: list[_Call] = []
        self._led = False

    def __call__(self, inputs: Tensors) -> Tensors:
        """The outputs for ``inputs``; raises what the query of this call raises, at all calls in it."""
        call = _Call(inputs, time.monotonic())
        with self._changed:
            self._pending.append(call)
            self._changed.notify_all()
        while True:
            with self._changed:
                self._changed.wait_for(lambda: call.done or not self._led)
                if call.error is not None:
                    raise call.error
                if call.outputs is not None:
                    return call.outputs
                self._led = True
            self._lead(call)

    def _lead(self, own: _Call) -> None:
        together: list[_Call] = []
        try:
            together = self._gather()
            self._answer(together)
        except BaseException as error:
            for call in together or [own]:
                interrupted = call is not own and not isinstance(error, Exception)
                call.error = (
                    PeerDisconnected("the thread that asked for several was interrupted") if interrupted else error
                )
        finally:
            with self._changed:
                self._pending = [call for call in self._pending if not call.done]
                self._led = False
                self._changed.notify_all()

    def _gather(self) -> list[_Call]:
        """The oldest call and those that go with it, once there are enough or it has waited long enough."""
        with self._changed:
            end = self._pending[0].since + self._wait
            while True:
                first, *others = self._pending
                together, rows = [first], first.rows
                for call in others:
                    if call.kind == first.kind and rows + call.rows <= self._most:
                        together.append(call)
                        rows += call.rows
                left = end - time.monotonic()
                if rows >= self._most or left <= 0:
                    return together
                self._changed.wait(left)

    def _answer(self, together: list[_Call]) -> None:
        joined = [torch.cat(parts) for parts in zip(*(call.inputs for call in together), strict=True)]
        outputs = self._query(joined)
        rows = [call.rows for call in together]
        if any(output.shape[:1] != (sum(rows),) for output in outputs):
            raise ConfigError("an output has other rows than the inputs, so it cannot be split: use max_batch=1")
        for call, *parts in zip(together, *(output.split(rows) for output in outputs), strict=True):
            call.outputs = tuple(part.clone() for part in parts)  # of its own: no view of another's rows
