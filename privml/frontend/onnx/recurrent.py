# SPDX-License-Identifier: Apache-2.0
"""RNN, GRU and LSTM, unrolled over time: one product of all inputs, then one of the state per step."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F

from privml.frontend.onnx.table import Node, Run, operator

_ACTIVATIONS: dict[str, Callable[[torch.Tensor], torch.Tensor]] = {
    "Relu": torch.relu,
    "Sigmoid": torch.sigmoid,
    "Softplus": F.softplus,
    "Softsign": F.softsign,
    "Tanh": torch.tanh,
}
_GATES = {"RNN": 1, "GRU": 3, "LSTM": 4}
_DEFAULTS = {"RNN": ["Tanh"], "GRU": ["Sigmoid", "Tanh"], "LSTM": ["Sigmoid", "Tanh", "Tanh"]}
# One step: (what the inputs contribute [batch, gates * hidden], hidden, cell) -> (hidden, cell).
Cell = Callable[[torch.Tensor, torch.Tensor, Any], tuple[torch.Tensor, Any]]


@dataclass(frozen=True, slots=True)
class Weights:
    """One direction's weights: ``w`` [gates * hidden, input], ``r`` [gates * hidden, hidden], biases of each
    [gates * hidden] or None, peepholes [3 * hidden] or None."""

    w: torch.Tensor
    r: torch.Tensor
    input_bias: torch.Tensor | None
    state_bias: torch.Tensor | None
    peepholes: torch.Tensor | None


@operator("RNN", "GRU", "LSTM", static=(4,))
def recurrent(node: Node) -> Run:
    kind = node.op_type
    direction = node.choice("direction", "forward", "forward", "reverse", "bidirectional")
    directions = 2 if direction == "bidirectional" else 1
    batch_first = node.flag("layout")
    before_reset = node.flag("linear_before_reset") if kind == "GRU" else False
    node.ignore("hidden_size")  # it is the recurrent weight's
    if node.flag("input_forget") and kind == "LSTM":
        node.refuse("input_forget=1 is not supported")
    names = node.attribute("activations", _DEFAULTS[kind] * directions)
    for name in names:
        if name not in _ACTIVATIONS:
            node.refuse(f"activation {name!r} is not supported, only {', '.join(_ACTIVATIONS)}")
    activations = [_ACTIVATIONS[name] for name in names]
    per_direction = len(activations) // directions
    _check_lengths(node)
    for index in (5, 6):
        value = node.value(index)
        if value is not None and not np.any(value):
            node.drop(index)  # states start at zero anyway

    def run(
        x: Any, w: Any, r: Any, b: Any = None, lengths: Any = None, h0: Any = None, c0: Any = None, p: Any = None
    ) -> Any:
        if batch_first:
            x, h0, c0 = (None if t is None else t.transpose(0, 1) for t in (x, h0, c0))
        hidden, sequences, states = r.shape[-1], [], []
        for d in range(directions):
            weights = _weights(kind, w[d], r[d], None if b is None else b[d], None if p is None else p[d])
            functions = activations[d * per_direction : (d + 1) * per_direction]
            cell = _CELLS[kind](weights, functions, before_reset)
            backwards = direction == "reverse" or d == 1
            nothing = torch.zeros(x.shape[1], hidden, dtype=x.dtype)
            h = nothing if h0 is None else h0[d]
            c = nothing if c0 is None else c0[d]
            inputs = F.linear(x, weights.w, weights.input_bias)
            outputs, h, c = _over_time(cell, inputs, h, c, backwards)
            sequences.append(outputs)
            states.append((h, c))
        y = torch.stack(sequences, 1)
        last = [torch.stack(parts) for parts in zip(*states, strict=True)]
        if batch_first:
            y, last = y.permute(2, 0, 1, 3), [t.transpose(0, 1) for t in last]
        return (y, *last[: 2 if kind == "LSTM" else 1])

    return run


def _check_lengths(node: Node) -> None:
    if not node.has(4):
        return
    lengths, shape = node.value(4), node.inputs[0].shape
    time = None if shape is None else shape[1 if node.flag("layout") else 0]
    if lengths is None or time is None or np.any(lengths != time):
        node.refuse("sequence_lens is supported only where every sequence has the full length")


def _weights(kind: str, w: Any, r: Any, b: Any, p: Any) -> Weights:
    """Biases on the side of the inputs, except where GRU resets the state's part alone."""
    if b is None:
        return Weights(w, r, None, None, p)
    input_bias, state_bias = b.split(w.shape[0])
    if kind == "GRU":
        return Weights(w, r, input_bias, state_bias, p)
    return Weights(w, r, input_bias + state_bias, None, p)


def _over_time(cell: Cell, inputs: Any, h: Any, c: Any, backwards: bool) -> tuple[Any, Any, Any]:
    steps = range(inputs.shape[0])
    outputs = []
    for t in reversed(steps) if backwards else steps:
        h, c = cell(inputs[t], h, c)
        outputs.append(h)
    return torch.stack(outputs[::-1] if backwards else outputs), h, c


def _rnn(weights: Weights, functions: list[Callable], before_reset: bool) -> Cell:
    (f,) = functions

    def cell(x: torch.Tensor, h: torch.Tensor, c: Any) -> tuple[torch.Tensor, Any]:
        return f(x + F.linear(h, weights.r)), c

    return cell


def _gru(weights: Weights, functions: list[Callable], before_reset: bool) -> Cell:
    f, g = functions
    hidden = weights.r.shape[1]
    r_gates, r_new = weights.r.split([2 * hidden, hidden])
    bias = weights.state_bias
    b_gates, b_new = (None, None) if bias is None else bias.split([2 * hidden, hidden])

    def cell(x: torch.Tensor, h: torch.Tensor, c: Any) -> tuple[torch.Tensor, Any]:
        x_gates, x_new = x.split([2 * hidden, hidden], -1)
        if before_reset:
            gates, new = F.linear(h, weights.r, bias).split([2 * hidden, hidden], -1)
        else:
            gates = F.linear(h, r_gates, b_gates)
        update, reset = f(x_gates + gates).chunk(2, -1)
        candidate = g(x_new + (reset * new if before_reset else F.linear(reset * h, r_new, b_new)))
        return candidate + update * (h - candidate), c

    return cell


def _lstm(weights: Weights, functions: list[Callable], before_reset: bool) -> Cell:
    f, g, last = functions
    hidden = weights.r.shape[1]

    def plain(x: torch.Tensor, h: torch.Tensor, c: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        gates, new = (x + F.linear(h, weights.r)).split([3 * hidden, hidden], -1)
        let_in, let_out, keep = f(gates).chunk(3, -1)
        c = keep * c + let_in * g(new)
        return let_out * last(c), c

    def peeping(x: torch.Tensor, h: torch.Tensor, c: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        into, out, keep, new = (x + F.linear(h, weights.r)).chunk(4, -1)
        p_in, p_out, p_keep = weights.peepholes.chunk(3)
        c = f(keep + p_keep * c) * c + f(into + p_in * c) * g(new)
        return f(out + p_out * c) * last(c), c

    return plain if weights.peepholes is None else peeping


_CELLS: dict[str, Callable[..., Cell]] = {"RNN": _rnn, "GRU": _gru, "LSTM": _lstm}
