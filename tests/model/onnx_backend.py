# SPDX-License-Identifier: Apache-2.0
"""The node tests that the onnx package ships, as data: cases, the modules made of them, comparison of results."""

from __future__ import annotations

import functools
import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import onnx
import torch
from onnx import numpy_helper

import privml
from privml.errors import UnsupportedOperator
from privml.graph.onnx.module import OnnxModule
from privml.graph.onnx.table import TABLE

# Operands that a rule of the conversion itself wants to know, by operator.
_CONTROL = {"If": (0,), "Loop": (0, 1), "Dropout": (1, 2), "Pad": (2,), "Upsample": (1,)}
_HALF = {"float16": 2e-3, "bfloat16": 2e-2}
# Fixed point with 16 fractional bits, against results in floating point; the root of a tiny sum of squares keeps half
# of these bits.
_TOLERANCE, _ROOTS = 1e-3, {"LpPool": 2.0**-8}


@dataclass(frozen=True)
class Case:
    """One node test: ``inputs`` by name, expected ``outputs`` in order."""

    name: str
    operator: str
    model: onnx.ModelProto
    inputs: dict[str, Any]
    outputs: list[Any]
    rtol: float
    atol: float


@functools.cache
def cases(expanded: bool = False) -> dict[str, list[Case]]:
    """Operator -> its cases. ``expanded``: the cases in which onnx has replaced an operator by its function body."""
    from onnx.backend.test.case.node import collect_testcases

    found: dict[str, list[Case]] = {}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        collected = collect_testcases(None)
    for case in collected:
        if ("expanded" in case.name) != expanded:
            continue
        operator = case.model.graph.node[-1].op_type
        if expanded:
            operator = case.name.removeprefix("test_").split("_")[0]
        for number, (inputs, outputs) in enumerate(case.data_sets):
            names = [value.name for value in case.model.graph.input]
            made = Case(
                case.name + (f"#{number}" if number else ""), operator, case.model,
                dict(zip(names, map(_array, inputs), strict=False)), list(map(_array, outputs)),
                case.rtol, case.atol,
            )  # fmt: skip
            found.setdefault(operator, []).append(made)
    return found


def _array(value: Any) -> Any:
    if isinstance(value, onnx.TensorProto):
        return numpy_helper.to_array(value)
    return value if isinstance(value, (list, dict)) or value is None else np.asarray(value)


def fixed_inputs(case: Case, all_integers: bool = False) -> dict[str, np.ndarray]:
    """The inputs of a case that its operators need as constants (shapes, axes, ...)."""
    names = set()
    for node in case.model.graph.node:
        rule = TABLE.get((node.domain, node.op_type))
        for index in (*(rule.static if rule else ()), *_CONTROL.get(node.op_type, ())):
            if index < len(node.input):
                names.add(node.input[index])
    if all_integers:
        names |= {
            name
            for name, value in case.inputs.items()
            if isinstance(value, np.ndarray) and value.dtype.kind in "iub" and value.ndim <= 1
        }
    return {name: value for name, value in case.inputs.items() if name in names}


def convert(case: Case) -> OnnxModule:
    """The module of a case, with as few fixed inputs as it takes; UnsupportedOperator if none does."""
    try:
        return OnnxModule(case.model, fixed=fixed_inputs(case))
    except UnsupportedOperator:
        fixed = fixed_inputs(case, all_integers=True)
        if len(fixed) == len(fixed_inputs(case)):
            raise
        return OnnxModule(case.model, fixed=fixed)


def tensor(array: np.ndarray) -> torch.Tensor:
    if array.dtype.name == "bfloat16":
        return torch.from_numpy(array.astype(np.float32)).bfloat16()
    return torch.from_numpy(np.array(array))


def arguments(case: Case, module: OnnxModule) -> list[torch.Tensor]:
    return [tensor(case.inputs[name]) for name in module.input_names]


def differences(case: Case, results: Any, atol: float | None = None, rtol: float | None = None) -> Iterator[str]:
    """What is wrong with the results; nothing if all is right. With tolerances of one's own, types may differ."""
    results = results if isinstance(results, tuple) else (results,)
    if len(results) != len(case.outputs):
        yield f"{len(results)} results instead of {len(case.outputs)}"
        return
    for number, (result, expected) in enumerate(zip(results, case.outputs, strict=True)):
        if tuple(result.shape) != expected.shape:
            yield f"result {number} has shape {tuple(result.shape)}, not {expected.shape}"
            continue
        if atol is None and str(result.dtype).removeprefix("torch.") != expected.dtype.name:
            yield f"result {number} is {result.dtype}, not {expected.dtype}"
        half = _HALF.get(expected.dtype.name, 0.0)
        got = result.detach().double().numpy()
        limits = (case.rtol, max(case.atol, 1e-6)) if atol is None else (rtol, atol)
        limits = (max(limits[0], half), max(limits[1], half))
        if not np.allclose(got, expected.astype(np.float64), *limits, equal_nan=True):
            with np.errstate(all="ignore"):
                error = np.nanmax(np.abs(got - expected.astype(np.float64)))
            yield f"result {number} is off by {error:.3g}"


def tolerance(case: Case) -> float:
    """What a result on secret tensors may be off by, absolutely or relatively."""
    return _ROOTS.get(case.operator, _TOLERANCE)


def is_finite(case: Case) -> bool:
    """Whether fixed point can represent the expected results."""
    return all(np.isfinite(np.asarray(v, np.float64)).all() for v in case.outputs if isinstance(v, np.ndarray))


def run(case: Case, module: OnnxModule) -> Any:
    with torch.no_grad():
        return module(*arguments(case, module))


def run_secret(case: Case, module: OnnxModule) -> Any:
    """The results, revealed, on secret floating-point inputs (or on a secret first input if there are none) and
    secret parameters, in the current session."""
    inputs = arguments(case, module)
    chosen = [i for i, x in enumerate(inputs) if x.dtype.is_floating_point] or [0]
    inputs = [privml.share(x) if i in chosen else x for i, x in enumerate(inputs)]
    with torch.no_grad():
        results = privml.secret(module)(*inputs)
    results = results if isinstance(results, tuple) else (results,)
    return tuple(privml.reveal(r) if isinstance(r, privml.SecretTensor) else r for r in results)
