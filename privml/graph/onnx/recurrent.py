# SPDX-License-Identifier: Apache-2.0
"""RNN, GRU and LSTM, unrolled over time: one product of all inputs, then one of the state per step.

Lengths of sequences are public. A sequence that has ended keeps its state and puts out zeros."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F

from privml.graph.onnx.table import Node, Run, operator

_ACTIVATIONS: dict[str, Callable[[torch.Tensor], torch.Tensor]] = {
    "Relu": torch.relu,
    "Sigmoid": torch.sigmoid,
    "Softplus": F.softplus,
    "Softsign": F.softsign,
    "Tanh": torch.tanh,
}
_DEFAULTS = {"RNN": ["Tanh"], "GRU": ["Sigmoid", "Tanh"], "LSTM": ["Sigmoid", "Tanh", "Tanh"]}
# One step: (what the inputs contribute [batch, gates * hidden], hidden, cell) -> (hidden, cell).
Cell = Callable[[torch.Tensor, torch.Tensor, Any], tuple[torch.Tensor, Any]]
Function = Callable[[torch.Tensor], torch.Tensor]


@dataclass(frozen=True, slots=True)
class Weights:
    """One direction's weights: ``w`` [gates * hidden, input], ``r`` [gates * hidden, hidden], biases of each
    [gates * hidden] or None, peepholes [3 * hidden] or None."""

    w: torch.Tensor
    r: torch.Tensor
    input_bias: torch.Tensor | None
    state_bias: torch.Tensor | None
    peepholes: torch.Tensor | None


@dataclass(frozen=True, slots=True)
class Variant:
    """``before_reset``: GRU multiplies the state before it resets (linear_before_reset). ``coupled``: the forget
    gate of LSTM is one minus the input gate (input_forget)."""

    before_reset: bool = False
    coupled: bool = False


@operator("RNN", "GRU", "LSTM", static=(4,))
def recurrent(node: Node) -> Run:
    kind = node.op_type
    direction = node.choice("direction", "forward", "forward", "reverse", "bidirectional")
    directions = 2 if direction == "bidirectional" else 1
    batch_first = node.flag("layout")
    variant = Variant(
        node.flag("linear_before_reset") if kind == "GRU" else False,
        node.flag("input_forget") if kind == "LSTM" else False,
    )
    node.ignore("hidden_size")  # it is the recurrent weight's
    activations = _activations(node, directions)
    per_direction = len(_DEFAULTS[kind])
    ends = _ends(node, batch_first)
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
            cell = _CELLS[kind](weights, functions, variant)
            backwards = direction == "reverse" or d == 1
            nothing = torch.zeros(x.shape[1], hidden, dtype=x.dtype)
            h = nothing if h0 is None else h0[d]
            c = nothing if c0 is None else c0[d]
            inputs = F.linear(x, weights.w, weights.input_bias)
            outputs, h, c = _over_time(cell, inputs, h, c, backwards, ends)
            sequences.append(outputs)
            states.append((h, c))
        y = torch.stack(sequences, 1)
        last = [torch.stack(parts) for parts in zip(*states, strict=True)]
        if batch_first:
            y, last = y.permute(2, 0, 1, 3), [t.transpose(0, 1) for t in last]
        return (y, *last[: 2 if kind == "LSTM" else 1])

    return run


def _activations(node: Node, directions: int) -> list[Function]:
    """The functions of all gates of all directions, with their arguments clipped if the node says so."""
    names = node.attribute("activations", _DEFAULTS[node.op_type] * directions)
    if len(names) != len(_DEFAULTS[node.op_type]) * directions:
        node.refuse(f"activations must name {len(_DEFAULTS[node.op_type]) * directions} functions, not {len(names)}")
    for name in names:
        if name not in _ACTIVATIONS:
            node.refuse(f"activation {name!r} is not supported, only {', '.join(_ACTIVATIONS)}")
    functions = [_ACTIVATIONS[name] for name in names]
    bound = node.attribute("clip")
    if bound is None:
        return functions
    # Sums of gates are clipped; the cell's state, LSTM's third argument, is not (as in onnxruntime).
    return [f if i % 3 == 2 and node.op_type == "LSTM" else _clipped(f, float(bound)) for i, f in enumerate(functions)]


def _clipped(function: Function, bound: float) -> Function:
    return lambda x: function(torch.clamp(x, -bound, bound))


def _ends(node: Node, batch_first: bool) -> np.ndarray | None:
    """[time, batch, 1] of whether a sequence still lasts; None where all last to the end."""
    if not node.has(4):
        return None
    lengths, shape = node.value(4), node.inputs[0].shape
    node.drop(4)
    time = None if shape is None else shape[1 if batch_first else 0]
    if lengths is None or not isinstance(time, int):
        node.refuse("sequence_lens must be constants of the model, and the number of steps must be fixed")
    batch = shape[0 if batch_first else 1]
    if lengths.ndim != 1 or isinstance(batch, int) and len(lengths) != batch:
        node.refuse("sequence_lens must hold one length per sequence of the batch")
    if np.any(lengths < 0) or np.any(lengths > time):
        node.refuse(f"sequence_lens must be in [0, {time}]")
    return None if np.all(lengths == time) else (np.arange(time)[:, None] < lengths)[..., None]


def _weights(kind: str, w: Any, r: Any, b: Any, p: Any) -> Weights:
    """Biases on the side of the inputs, except where GRU resets the state's part alone."""
    if b is None:
        return Weights(w, r, None, None, p)
    input_bias, state_bias = b.split(w.shape[0])
    if kind == "GRU":
        return Weights(w, r, input_bias, state_bias, p)
    return Weights(w, r, input_bias + state_bias, None, p)


def _over_time(cell: Cell, inputs: Any, h: Any, c: Any, backwards: bool, ends: np.ndarray | None) -> tuple:
    steps = range(inputs.shape[0])
    outputs = []
    for t in reversed(steps) if backwards else steps:
        new_h, new_c = cell(inputs[t], h, c)
        if ends is None or ends[t].all():
            h, c, output = new_h, new_c, new_h
        else:
            lasts = torch.from_numpy(ends[t].astype(np.int64))  # a product with 0 or 1 is exact
            output = new_h * lasts
            h, c = output + h * (1 - lasts), new_c * lasts + c * (1 - lasts)
        outputs.append(output)
    return torch.stack(outputs[::-1] if backwards else outputs), h, c


def _rnn(weights: Weights, functions: list[Function], variant: Variant) -> Cell:
    (f,) = functions

    def cell(x: torch.Tensor, h: torch.Tensor, c: Any) -> tuple[torch.Tensor, Any]:
        return f(x + F.linear(h, weights.r)), c

    return cell


def _gru(weights: Weights, functions: list[Function], variant: Variant) -> Cell:
    f, g = functions
    hidden = weights.r.shape[1]
    r_gates, r_new = weights.r.split([2 * hidden, hidden])
    bias = weights.state_bias
    b_gates, b_new = (None, None) if bias is None else bias.split([2 * hidden, hidden])

    def cell(x: torch.Tensor, h: torch.Tensor, c: Any) -> tuple[torch.Tensor, Any]:
        x_gates, x_new = x.split([2 * hidden, hidden], -1)
        if variant.before_reset:
            gates, new = F.linear(h, weights.r, bias).split([2 * hidden, hidden], -1)
        else:
            gates = F.linear(h, r_gates, b_gates)
        update, reset = f(x_gates + gates).chunk(2, -1)
        candidate = g(x_new + (reset * new if variant.before_reset else F.linear(reset * h, r_new, b_new)))
        return candidate + update * (h - candidate), c

    return cell


def _lstm(weights: Weights, functions: list[Function], variant: Variant) -> Cell:
    f, g, last = functions
    hidden = weights.r.shape[1]

    def plain(x: torch.Tensor, h: torch.Tensor, c: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        gates, new = (x + F.linear(h, weights.r)).split([3 * hidden, hidden], -1)
        let_in, let_out, keep = f(gates).chunk(3, -1)
        if variant.coupled:
            keep = 1 - let_in
        c = keep * c + let_in * g(new)
        return let_out * last(c), c

    def peeping(x: torch.Tensor, h: torch.Tensor, c: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        into, out, keep, new = (x + F.linear(h, weights.r)).chunk(4, -1)
        p_in, p_out, p_keep = weights.peepholes.chunk(3)
        let_in = f(into + p_in * c)
        c = (1 - let_in if variant.coupled else f(keep + p_keep * c)) * c + let_in * g(new)
        return f(out + p_out * c) * last(c), c

    return plain if weights.peepholes is None else peeping


_CELLS: dict[str, Callable[..., Cell]] = {"RNN": _rnn, "GRU": _gru, "LSTM": _lstm}
