# SPDX-License-Identifier: Apache-2.0
"""Networks with the shapes of the literature and random weights, and their costs: SiRNN's benchmarks (section VI)."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

import numpy as np
import torch
from torch import nn

import privml._core as _core
from privml.context import Session
from privml.conversion import convert
from privml.formats import Numerics
from privml.measure.predict import cost_of
from privml.program import INPUT_OWNER, Program
from privml.session.ledger import Snapshot
from privml.sharing import reveal, secret, share
from privml.spec import SessionSpec

Params = Mapping[str, Any]
CALIBRATION = 8


class Gated(nn.Module):
    """A recurrent layer whose gate and candidate have the same products, as FastGRNN's, and a map of its last state:
    [n, steps, inputs] to [n, classes]. Each step computes ``hidden`` sigmoids and as many hyperbolic tangents."""

    def __init__(self, inputs: int, hidden: int, steps: int, classes: int) -> None:
        super().__init__()
        self.shape = (steps, inputs)
        self.w, self.u = (nn.Parameter(torch.randn(n, hidden) * n**-0.5) for n in (inputs, hidden))
        self.gate, self.candidate = (nn.Parameter(torch.randn(hidden)) for _ in range(2))
        self.head = nn.Linear(hidden, classes)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        h = x.new_zeros(x.shape[0], self.u.shape[0])
        for step in x.unbind(1):
            product = step @ self.w + h @ self.u
            z, new = torch.sigmoid(product + self.gate), torch.tanh(product + self.candidate)
            h = z * h + (1 - z) * new
        return self.head(h)


class SigmoidLstm(nn.Module):
    """MiniONN's LSTM: one step of layers whose four gates are sigmoids; [n, hidden] to [n, hidden]."""

    def __init__(self, hidden: int, layers: int) -> None:
        super().__init__()
        self.shape = (hidden,)
        self.gates = nn.ModuleList(nn.Linear(2 * hidden, 4 * hidden) for _ in range(layers))
        self.states = nn.ParameterList(torch.randn(2, hidden) / 2 for _ in range(layers))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        for gates, (h, c) in zip(self.gates, self.states, strict=True):
            both = torch.cat([x, h.expand_as(x)], 1)
            let_in, keep, new, out = torch.sigmoid(gates(both)).chunk(4, 1)
            x = out * torch.tanh(keep * c + let_in * new)
        return x


class Tangents(nn.Module):
    """Layers of hyperbolic tangents alone, each on the first numbers of the one before."""

    def __init__(self, sizes: list[int]) -> None:
        super().__init__()
        self.sizes, self.shape = sizes, (sizes[0],)
        self.bias = nn.Parameter(torch.randn(sizes[0]) / 2)  # what makes the input a secret of both parties

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = x + self.bias
        for size in self.sizes:
            x = torch.tanh(x[:, :size])
        return x


class Encoder(nn.Module):
    """Layers of a transformer encoder, [n, length, width] to the same."""

    def __init__(self, width: int, heads: int, hidden: int, length: int, layers: int) -> None:
        super().__init__()
        self.shape = (length, width)
        layer = nn.TransformerEncoderLayer(width, heads, hidden, activation="gelu", batch_first=True)
        self.encoder = nn.TransformerEncoder(layer, layers, enable_nested_tensor=False)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.encoder(x)


NETWORKS: dict[str, Callable[..., nn.Module]] = {
    "gated": Gated,
    "sigmoid_lstm": SigmoidLstm,
    "tangents": Tangents,
    "encoder": Encoder,
}


def network(params: Params) -> nn.Module:
    """The module that a row of the suite names, with random weights of a fixed seed."""
    torch.manual_seed(0)
    sizes = {key: value for key, value in params.items() if key not in ("network", "numerics")}
    return NETWORKS[params["network"]](**sizes).eval()


def inputs(module: nn.Module, batch: int) -> torch.Tensor:
    return torch.randn(batch, *module.shape, generator=torch.Generator().manual_seed(1))


def program(module: nn.Module, params: Params) -> Program:
    return convert(module, calibration=inputs(module, CALIBRATION), numerics=params["numerics"])


def forecast(converted: Program, batch: int, spec: SessionSpec, rank: int = INPUT_OWNER) -> Snapshot:
    """Bytes, depth and correlations of one query, from the cost functions."""
    return cost_of(converted, converted.shapes(batch), spec, rank).snapshot()


def one_by_one(module: nn.Module, numerics: Numerics, batch: int, spec: SessionSpec) -> Snapshot:
    """The same, on one lane, for the module called on secrets as it is: every operator by itself, in order."""
    engine = spec.backend.meter(replace(spec, threads=1), INPUT_OWNER)
    with Session(engine, numerics), torch.no_grad():
        reveal(secret(module)(share(inputs(module, batch), owner=INPUT_OWNER)), to=INPUT_OWNER)
    return Snapshot.of(engine.counters())


def functions(rows: list[Params], batch: int, spec: SessionSpec, rank: int = INPUT_OWNER) -> Snapshot:
    """The cost of layers of functions: ``function``, ``calls`` of ``count`` values each, ``bits``, ``scale``,
    ``out_scale``."""
    session = spec.backend.meter(spec, rank).session
    for row in rows:
        call = getattr(_core.fixmath, row["function"])
        for _ in range(row["calls"]):
            call(
                session,
                np.zeros(row["count"] * batch, np.int64),
                row["bits"],
                row["scale"],
                row["bits"],
                row["out_scale"],
            )
    return Snapshot.of(session.counters())
