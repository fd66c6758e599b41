# SPDX-License-Identifier: Apache-2.0
"""A model that another party holds, as a module: calling it is a private query.

Calls of several threads that arrive together may become one query. There is no thread for this: one of the waiting
callers leads. It waits for others, takes the oldest calls that fit together, sends one query for all of them, and gives
each its rows.
"""

from __future__ import annotations

import pickle
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NoReturn

import torch

from privml.errors import ConfigError, InvalidInput, PeerDisconnected
from privml.program import Program
from privml.service.client import Client
from privml.service.inputs import checked_inputs
from privml.service.options import DEFAULT_SPEC, Addresses
from privml.spec import SessionSpec


class RemoteModel(torch.nn.Module):
    """``with RemoteModel("lenet", "hospital.example:9000") as model: scores = model(x)``, from any thread.

    ``program``: a Program, or the folder that ``Program.save`` has filled (no weights are needed). ``spec`` and
    ``settings``: see ``Client``. Inputs are tensors or arrays as the program takes them, outputs float32 or integer
    tensors (a tuple where the program has several), on the device of the first input. There are no parameters here, no
    gradients and no copies; a module in training mode refuses to be one.

    ``max_batch`` > 1 gathers calls of several threads into one query of at most so many rows; a call waits up to
    ``max_wait`` seconds for others. That needs a program whose inputs and outputs have a free first dimension and
    whose rows do not depend on each other. Only calls of this object are gathered: between two parties no server can
    put the queries of different clients together.

    ``queries`` counts those that were answered. Raises ConfigError.
    """

    def __init__(
        self,
        program: Program | str | Path,
        server: str | Addresses,
        spec: SessionSpec = DEFAULT_SPEC,
        *,
        max_batch: int = 1,
        max_wait: float = 0.01,
        **settings: Any,
    ) -> None:
        super().__init__()
        self.training = False
        self.client: Client = None  # type: ignore[assignment]
        if type(max_batch) is not int or max_batch < 1 or not 0 <= max_wait < float("inf"):
            raise ConfigError(f"max_batch={max_batch} must be at least 1 and max_wait={max_wait} a number of seconds")
        client = Client(program, server, spec, **settings)
        if client.program.state:
            raise ConfigError("this program keeps state between its calls: use Client(...).session(), step by step")
        if max_batch > 1 and not _free_rows(client.program):
            raise ConfigError("max_batch > 1 needs a program whose inputs and outputs have a free first dimension")
        self.client = client
        self._gatherer = Gatherer(self._query, max_batch, max_wait) if max_batch > 1 else None

    @property
    def program(self) -> Program:
        return self.client.program

    @property
    def queries(self) -> int:
        return self.client.queries

    def forward(self, *inputs: Any) -> torch.Tensor | tuple[torch.Tensor, ...]:
        """The model's outputs for ``inputs``, one tensor or array for each input of the program.

        Raises InvalidInput, before anything is sent, for inputs that do not fit or that require a gradient; otherwise
        what ``Client.query`` raises.
        """
        for value in inputs:
            if isinstance(value, torch.Tensor) and value.requires_grad:
                raise InvalidInput(
                    "an input requires a gradient, and a private query returns none: pass x.detach(), or compute "
                    "x under torch.no_grad()"
                )
        outputs: Sequence[torch.Tensor]
        checked = checked_inputs(self.program, inputs)
        if self._gatherer is None or len({value.shape[:1] for value in checked}) != 1:
            outputs = self._query(checked)
        else:
            outputs = self._gatherer(checked)
        if inputs and isinstance(inputs[0], torch.Tensor):
            outputs = tuple(output.to(inputs[0].device) for output in outputs)
        return outputs[0] if len(outputs) == 1 else tuple(outputs)

    def _query(self, inputs: Sequence[torch.Tensor]) -> tuple[torch.Tensor, ...]:
        return self.client.query(list(inputs)).outputs

    def train(self, mode: bool = True) -> RemoteModel:
        if mode:
            raise ConfigError(
                "a remote model only runs inference, because another party owns its weights; leave it in eval mode"
            )
        return super().train(False)

    def close(self) -> None:
        """Ends the session with the server. Idempotent."""
        if self.client is not None:
            self.client.close()

    def __enter__(self) -> RemoteModel:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()

    def __reduce_ex__(self, protocol: Any) -> NoReturn:
        raise pickle.PicklingError("a remote model holds a session and cannot be copied: make another one")

    def extra_repr(self) -> str:
        return f"server={self.client.server!r}, program={self.program.hash[:12]}"


def _free_rows(program: Program) -> bool:
    specs = (*program.inputs, *program.outputs)
    return all(spec.shape and spec.shape[0] is None for spec in specs)


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
                    PeerDisconnected("the thread that sent the query of several callers was interrupted")
                    if interrupted
                    else error
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
            raise ConfigError("an output has not as many rows as the inputs, so it cannot be split: use max_batch=1")
        for call, *parts in zip(together, *(output.split(rows) for output in outputs), strict=True):
            call.outputs = tuple(part.clone() for part in parts)  # of its own: no view of another's rows
