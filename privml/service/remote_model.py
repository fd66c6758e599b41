# SPDX-License-Identifier: Apache-2.0
"""A model that another party holds, as a module: calling it is a private query."""

from __future__ import annotations

import pickle
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NoReturn

import torch

from privml.errors import ConfigError, InvalidInput
from privml.program import Program
from privml.service.client import Client, checked_inputs
from privml.service.gathering import Gatherer
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
        self.client: Client | None = None
        if type(max_batch) is not int or max_batch < 1 or not 0 <= max_wait < float("inf"):
            raise ConfigError(f"max_batch={max_batch} must be at least 1 and max_wait={max_wait} some seconds")
        client = Client(program, server, spec, **settings)
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
                    "an input requires a gradient, and none comes back from a private query: pass x.detach(), or call "
                    "under torch.no_grad() what makes x"
                )
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
            raise ConfigError("a remote model only infers: its weights are another party's; leave it in eval mode")
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
        raise pickle.PicklingError("a remote model holds a session and has no copies: make another one")

    def extra_repr(self) -> str:
        return f"server={self.client.server!r}, program={self.program.hash[:12]}"


def _free_rows(program: Program) -> bool:
    specs = (*program.inputs, *program.outputs)
    return all(spec.shape and spec.shape[0] is None for spec in specs)
