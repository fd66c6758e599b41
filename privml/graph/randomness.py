# SPDX-License-Identifier: Apache-2.0
"""What a model for inference must not do: draw at random, or normalize by the statistics of its batch."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import torch
from torch import fx
from torch._ops import OpOverload

from privml.errors import UnsupportedOperator
from privml.graph.ir import calls, source_line

aten = torch.ops.aten

# Arguments that switch an operator's randomness off, and the value that does.
_SWITCHES: dict[str, Any] = {"train": False, "training": False, "p": 0.0, "dropout": 0.0, "dropout_p": 0.0}
_BATCH_NORMS = (aten.batch_norm.default, aten.native_batch_norm.default, aten._native_batch_norm_legit.default)
_EVALUATE = (
    "pass training=self.training, which model.eval() sets to False (functions like F.dropout train by "
    "default), or use the layer of torch.nn"
)
_DROPOUTS = {
    "dropout", "native_dropout", "alpha_dropout", "feature_dropout", "feature_alpha_dropout", "rrelu", "lstm", "gru",
    "rnn_tanh", "rnn_relu",
}  # fmt: skip


def refuse_training(module: fx.GraphModule) -> None:
    """Raises UnsupportedOperator with the source line of every operator of an exported module, before it was
    decomposed, that draws at random or trains, and with what to do instead. Blocks under ``torch.autocast`` and
    ``torch.no_grad`` are modules of their own within it."""
    graphs = [part.graph for part in module.modules() if isinstance(part, fx.GraphModule)]
    lines = []
    for node in (node for graph in graphs for node in calls(graph)):
        remedy = _remedy(node)
        if remedy is not None:
            layer = next(reversed([path for path, _ in (node.meta.get("nn_module_stack") or {}).values()]), "")
            where = source_line(node) or "source unknown"
            lines.append(f"  {node.target} ({f'layer {layer!r}, ' if layer else ''}{where})\n    {remedy}")
    if lines:
        raise UnsupportedOperator(
            f"{len(lines)} operator(s) of the model draw at random or train; a program is for inference and gives the "
            "same answer to the same input:\n" + "\n".join(lines)
        )


def _remedy(node: fx.Node) -> str | None:
    """What to do about an operator that has no place in a program; None for all others."""
    operator = node.target
    if not isinstance(operator, OpOverload):
        return None
    values = dict(_arguments(node))
    if operator in _BATCH_NORMS and values["training"] and values["running_mean"] is not None:
        return f"it normalizes by its batch and changes its running statistics: {_EVALUATE}"
    if torch.Tag.nondeterministic_seeded not in operator.tags:
        return None
    if any(name in values and values[name] == off for name, off in _SWITCHES.items()):
        return None
    name = operator._schema.name.split("::")[1]
    if name in _DROPOUTS:
        return _EVALUATE
    if name.endswith("scaled_dot_product_attention"):
        return "pass dropout_p=self.dropout if self.training else 0.0"
    return "make what it draws an input of the model, or a buffer that is drawn once"


def _arguments(node: fx.Node) -> Iterator[tuple[str, Any]]:
    """Names and values of all arguments, those left out with their defaults."""
    for index, argument in enumerate(node.target._schema.arguments):
        if index < len(node.args):
            yield argument.name, node.args[index]
        else:
            yield argument.name, node.kwargs.get(argument.name, argument.default_value)
