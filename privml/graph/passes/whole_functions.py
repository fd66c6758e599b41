# SPDX-License-Identifier: Apache-2.0
"""Functions of one value that a model writes out, such as 0.5 x (1 + erf(x / sqrt(2))), are computed as one operator.

An engine has GELU, SiLU and others as one function. Step by step they take a function and several products, and each
step rounds. Models write a formula in many ways, so its values are compared, in float64 at places from -40 to 40. All
steps are smooth functions: a formula of few steps that agrees there agrees between the places too.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import torch
from torch import fx

from privml.graph.ir import attribute, calls, copy_meta, tensor_of
from privml.graph.passes.kinds import is_float, is_secret
from privml.graph.passes.rewriting import tidy

aten = torch.ops.aten

_STEPS = {
    aten.add.Tensor, aten.add.Scalar, aten.sub.Tensor, aten.sub.Scalar, aten.rsub.Tensor, aten.rsub.Scalar,
    aten.mul.Tensor, aten.mul.Scalar, aten.div.Tensor, aten.div.Scalar, aten.neg.default, aten.reciprocal.default,
    aten.pow.Tensor_Scalar, aten.square.default, aten.exp.default, aten.erf.default, aten.tanh.default,
    aten.sigmoid.default, aten.log.default, aten.log1p.default,
}  # fmt: skip
# A formula that is worth a look has one of these, and ends with one of those.
_BENDS = {aten.exp.default, aten.erf.default, aten.tanh.default, aten.sigmoid.default}
_ENDS = {
    aten.mul.Tensor, aten.mul.Scalar, aten.div.Tensor, aten.div.Scalar, aten.reciprocal.default, aten.log.default,
    aten.log1p.default,
}  # fmt: skip
_MOST_STEPS = 12
_PLACES = torch.linspace(-40.0, 40.0, 1281, dtype=torch.float64)
_TOLERANCE = 2.0**-18
_FAST = 1.702  # x sigmoid(1.702 x), a coarse GELU


class _Whole(NamedTuple):
    """A function and the operator that computes it, of an argument times ``factor``, divided by ``factor``."""

    value: Callable[[torch.Tensor], torch.Tensor]
    target: Callable[..., Any]
    options: dict[str, Any]
    factor: float = 1.0


def _gelu_tanh(x: torch.Tensor) -> torch.Tensor:
    return torch.nn.functional.gelu(x, approximate="tanh")


_WHOLE = (
    _Whole(torch.nn.functional.gelu, aten.gelu.default, {}),
    _Whole(_gelu_tanh, aten.gelu.default, {"approximate": "tanh"}),
    _Whole(torch.nn.functional.silu, aten.silu.default, {}),
    _Whole(lambda x: x * torch.sigmoid(_FAST * x), aten.silu.default, {}, _FAST),
    _Whole(torch.nn.functional.softplus, aten.softplus.default, {}),
    _Whole(torch.sigmoid, aten.sigmoid.default, {}),
    _Whole(torch.tanh, aten.tanh.default, {}),
)


def whole_functions(module: fx.GraphModule) -> fx.GraphModule:
    """GELU (both forms and x sigmoid(1.702 x)), SiLU, softplus, sigmoid and tanh as one operator each, where nothing
    else uses a step of the formula. Changes and returns ``module``."""
    order = {node: place for place, node in enumerate(module.graph.nodes)}
    gone: set[fx.Node] = set()
    for node in reversed(list(calls(module.graph))):
        if node in gone or node.target not in _ENDS or not is_secret(node) or not is_float(node):
            continue
        for x, steps in _formulas(module, node, order):
            whole = _recognized(module, x, steps)
            if whole is not None:
                _replace(node, x, whole)
                gone.update(steps)
                break
    return tidy(module)


def _formulas(module: fx.GraphModule, end: fx.Node, order: dict[fx.Node, int]) -> list[tuple[fx.Node, list[fx.Node]]]:
    """The secrets that ``end`` is a function of, step by step and alone, and the steps in order; the fewest first."""
    steps: list[fx.Node] = []
    ahead, found = {end}, []
    while ahead and len(steps) < _MOST_STEPS:
        node = max(ahead, key=order.__getitem__)
        if len(ahead) == 1 and steps:
            found.append((node, steps[::-1]))
        if not _is_step(module, node) or (steps and not set(node.users) <= set(steps)):
            break
        ahead.remove(node)
        steps.append(node)
        ahead.update(argument for argument in node.all_input_nodes if _number(module, argument) is None)
    return found


def _is_step(module: fx.GraphModule, node: fx.Node) -> bool:
    if node.target not in _STEPS or not is_float(node):
        return False
    shape = tensor_of(node).shape
    return all(
        _number(module, argument) is not None or is_secret(argument) and tensor_of(argument).shape == shape
        for argument in node.all_input_nodes
    )


def _number(module: fx.GraphModule, node: fx.Node) -> float | None:
    """The value of a constant of one element. In ONNX files the constants of formulas are weights: the program tells
    all parties that they are those of a known function, as it tells the rest of the architecture."""
    if node.op != "get_attr" or tensor_of(node).numel() != 1:
        return None
    return float(attribute(module, node.target).detach())


def _recognized(module: fx.GraphModule, x: fx.Node, steps: list[fx.Node]) -> _Whole | None:
    if not _BENDS & {step.target for step in steps}:
        return None
    values: dict[fx.Node, Any] = {x: _PLACES}
    for step in steps:
        args, kwargs = fx.map_arg(
            (step.args, step.kwargs), lambda node: values[node] if node in values else _number(module, node)
        )
        values[step] = step.target(*args, **kwargs)
    found = values[steps[-1]]
    for whole in _WHOLE:
        if torch.allclose(found, whole.value(_PLACES), rtol=0.0, atol=_TOLERANCE):
            return whole
    return None


def _replace(end: fx.Node, x: fx.Node, whole: _Whole) -> None:
    with end.graph.inserting_before(end):
        if whole.factor != 1.0:
            x = copy_meta(end.graph.call_function(aten.mul.Scalar, (x, whole.factor)), end)
        made = copy_meta(end.graph.call_function(whole.target, (x,), whole.options), end)
        if whole.factor != 1.0:
            made = copy_meta(end.graph.call_function(aten.mul.Scalar, (made, 1.0 / whole.factor)), end)
    end.replace_all_uses_with(made)
