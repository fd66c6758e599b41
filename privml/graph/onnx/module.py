# SPDX-License-Identifier: Apache-2.0
"""OnnxModule: a torch.nn.Module that computes an ONNX model."""

from __future__ import annotations

import inspect
import keyword
import os
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import numpy as np
import onnx
import torch
from torch import nn

from privml.errors import ConfigError, InvalidInput
from privml.formats import node
from privml.graph.blame import IN_NODE
from privml.graph.onnx import (  # noqa: F401 - they fill the table
    activation,
    attention,
    elementwise,
    indexing,
    linear,
    linear_models,
    ml_data,
    normalization,
    pooling,
    recurrent,
    reduce,
    resize,
    shape,
    support_vectors,
    trees,
)
from privml.graph.onnx.load import load
from privml.graph.onnx.plan import Constant, Plan, Step, make_plan
from privml.graph.onnx.values import TORCH_TYPES, Value, to_tensor

# What of decision trees is known to all: their shape and the features they look at, or depth and number alone.
TREE_STRUCTURES = ("public", "hidden")
# Names that neither a parameter nor an input of a model can have.
_ATTRIBUTES = {
    "compute",
    "input_names",
    "input_shapes",
    "labels",
    "onnx_names",
    "operators",
    "output_names",
    "public_constants",
}


class Operator(nn.Module):
    """One node of the graph; a submodule, so that exported programs remember its name."""

    def __init__(self, step: Step) -> None:
        super().__init__()
        self.label, self.run, self.late = step.label, step.run, step.to_tensor
        self.constants = {i: source.value for i, source in enumerate(step.sources) if isinstance(source, Constant)}

    def forward(self, *operands: Any) -> Any:
        values = list(operands)
        for index, constant in self.constants.items():
            values[index] = constant
        for index in self.late:
            values[index] = to_tensor(values[index])
        with node(self.label):
            try:
                return self.run(*values)
            except Exception as error:
                error.add_note(f"{IN_NODE} {self.label!r}")
                raise

    def _apply(self, fn: Any, recurse: bool = True) -> Operator:
        super()._apply(fn, recurse)
        self.constants = {
            i: fn(value) if isinstance(value, torch.Tensor) else value for i, value in self.constants.items()
        }
        return self

    def extra_repr(self) -> str:
        return self.label


def _forward(module: OnnxModule) -> Callable[..., Any]:
    """``forward`` whose signature names the inputs of this model, as torch.export wants to see it."""
    names: dict[str, None] = {}
    for name in module.input_names:
        names[_identifier(name, names)] = None
    onnx_names = dict(zip(names, module.input_names, strict=True))

    def forward(*inputs: torch.Tensor, **named: torch.Tensor) -> Any:
        return module.compute(inputs, {onnx_names.get(n, n): value for n, value in named.items()})

    kind = inspect.Parameter.POSITIONAL_OR_KEYWORD
    forward.__signature__ = inspect.Signature([inspect.Parameter(name, kind) for name in names])
    return forward


class OnnxModule(nn.Module):
    """``source``: a ModelProto, the bytes of one, or a path (needed when weights lie beside the file, as they must
    beyond 2 GB).

    ``fixed``: inputs (or initializers) whose value is known to all and becomes a constant. ``shapes``: input name
    -> sizes, None where a size may vary, in place of what the file declares. ``public``: names of float
    initializers that are no secret and stay constants. ``tree_structure``: "public" (shape and features of trees are
    known to all, thresholds and leaves are not) or "hidden" (only depth and number are). ``examples``: tensors like the
    inputs, in their order; a branch or loop whose condition depends on shapes alone is decided by theirs, and inputs
    for which it would be decided otherwise are refused (InvalidInput).

    Float initializers become parameters, batch-norm statistics buffers; single numbers in Constant nodes, masks
    with infinities and integers are constants of the architecture. ``onnx_names`` maps parameter and buffer
    names to ONNX's; ``public_constants`` lists the floating-point numbers that stay in the clear, with their
    shapes; ``labels`` has for each output the strings that its numbers index, None for numbers. ``forward`` takes
    the remaining inputs in the model's order (``input_names``) or by keyword, and returns a tensor, or a tuple of
    several. Models of opsets before TARGET_OPSET are brought to it.

    Raises CorruptFile for what is not a valid model, UnsupportedOperator listing all nodes that cannot be
    converted, InvalidInput for unknown names in ``fixed`` or ``shapes``.
    """

    def __init__(
        self,
        source: onnx.ModelProto | bytes | str | os.PathLike,
        *,
        fixed: Mapping[str, Any] | None = None,
        shapes: Mapping[str, Sequence[int | None]] | None = None,
        public: Iterable[str] = (),
        tree_structure: str = "public",
        examples: Sequence[torch.Tensor] = (),
    ) -> None:
        super().__init__()
        if tree_structure not in TREE_STRUCTURES:
            raise ConfigError(f"tree_structure must be one of {', '.join(TREE_STRUCTURES)}, got {tree_structure!r}")
        fixed = fixed or {}
        plan = make_plan(load(source, fixed, shapes or {}), {*public, *fixed}, tree_structure, examples)
        self.input_names = [name for name, _ in plan.inputs]
        self.input_shapes = [value.shape for _, value in plan.inputs]
        self.output_names, self.labels = plan.output_names, plan.labels
        self.onnx_names: dict[str, str] = {}
        self.public_constants = plan.public
        self._inputs = plan.inputs
        self._state = self._register(plan)
        self._outputs = plan.outputs
        self.forward = _forward(self)
        self.operators = nn.ModuleDict()
        self._calls: list[tuple[str, list[Any], list[str], list[str]]] = []
        last_use = _last_uses(plan)
        for index, step in enumerate(plan.steps):
            name = _identifier(step.label, self.operators)
            self.operators[name] = Operator(step)
            sources = [None if isinstance(s, Constant) else s for s in step.sources]
            self._calls.append((name, sources, step.results, last_use[index]))

    def _register(self, plan: Plan) -> dict[str, str]:
        """Adds parameters and buffers; key in the graph -> name here."""
        state = {}
        for key, array in [*plan.parameters.items(), *plan.buffers.items()]:
            name = state[key] = _identifier(key, self.onnx_names)
            self.onnx_names[name] = key
            if key in plan.buffers:
                self.register_buffer(name, to_tensor(array))
            else:
                self.register_parameter(name, nn.Parameter(to_tensor(array)))
        return state

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in self.__dict__.items() if name != "forward"}

    def __setstate__(self, state: dict[str, Any]) -> None:
        super().__setstate__(state)
        self.forward = _forward(self)  # a copy computes with its own parameters

    def compute(self, inputs: Sequence[torch.Tensor], named: Mapping[str, torch.Tensor]) -> Any:
        """The outputs of the model; ``forward`` calls it."""
        values: dict[str, Any] = {key: getattr(self, name) for key, name in self._state.items()}
        values.update(self._bind(inputs, named))
        for name, sources, results, release in self._calls:
            operands = [None if source is None else values[source] for source in sources]
            result = self.operators[name](*operands)
            del operands
            for key, value in zip(results, result if isinstance(result, (tuple, list)) else (result,), strict=False):
                if key:
                    values[key] = value
            for key in release:
                values.pop(key, None)
        outputs = tuple(o.value if isinstance(o, Constant) else _tensor(values[o]) for o in self._outputs)
        return outputs[0] if len(outputs) == 1 else outputs

    def _bind(self, inputs: Sequence[Any], named: Mapping[str, Any]) -> dict[str, Any]:
        expected = ", ".join(map(repr, self.input_names))
        unknown = [name for name in named if name not in self.input_names]
        given = {**dict(zip(self.input_names, inputs, strict=False)), **named}
        if unknown or len(inputs) + len(named) != len(self.input_names) or len(given) != len(self.input_names):
            raise InvalidInput(
                f"the model takes {len(self.input_names)} inputs ({expected}), got {len(inputs)} by position and "
                f"{list(named)} by name"
            )
        for name, value in self._inputs:
            _check_input(name, value, given[name])
        return given


def _check_input(name: str, declared: Value, given: Any) -> None:
    if not isinstance(given, torch.Tensor):
        raise InvalidInput(f"input {name!r} must be a tensor, got {type(given).__name__}")
    dtype = TORCH_TYPES.get(declared.element)
    if dtype is not None and given.dtype.is_floating_point != dtype.is_floating_point:
        raise InvalidInput(f"input {name!r} must be {dtype}, got {given.dtype}")
    if declared.shape is None:
        return
    if len(declared.shape) != given.dim() or any(
        size is not None and size != actual for size, actual in zip(declared.shape, given.shape, strict=True)
    ):
        wanted = "[" + ", ".join("any" if size is None else str(size) for size in declared.shape) + "]"
        raise InvalidInput(
            f"input {name!r} must have shape {wanted}, got {list(given.shape)}; pass shapes={{{name!r}: ...}} to "
            "OnnxModule where the file declares sizes that may vary"
        )


def _tensor(value: Any) -> torch.Tensor:
    return to_tensor(value) if isinstance(value, np.ndarray) else value


def _last_uses(plan: Plan) -> list[list[str]]:
    """For each step the values no later step needs."""
    kept = {o for o in plan.outputs if isinstance(o, str)} | set(plan.parameters) | set(plan.buffers)
    last: dict[str, int] = {}
    for index, step in enumerate(plan.steps):
        for key in [*step.sources, *step.results]:
            if isinstance(key, str) and key and key not in kept:
                last[key] = index
    uses: list[list[str]] = [[] for _ in plan.steps]
    for key, index in last.items():
        uses[index].append(key)
    return uses


def _identifier(name: str, taken: Any) -> str:
    """``name`` as an attribute name that is not taken."""
    base = re.sub(r"\W+", "_", name).strip("_") or "value"
    reserved = keyword.iskeyword(base) or base in _ATTRIBUTES or hasattr(nn.ModuleDict, base)
    base = f"n_{base}" if reserved or base[0].isdigit() else base
    candidate, count = base, 1
    while candidate in taken:
        count += 1
        candidate = f"{base}_{count}"
    return candidate
