# SPDX-License-Identifier: Apache-2.0
"""Operators that act on each element by itself: arithmetic, comparison, logic, casts."""

from __future__ import annotations

import functools
import operator as python
from typing import Any

import numpy as np
import torch

from privml.graph.onnx.table import Node, Run, function, operator

for _name, _run in {
    "Add": python.add,
    "Sub": python.sub,
    "Mul": python.mul,
    "Greater": python.gt,
    "GreaterOrEqual": python.ge,
    "Less": python.lt,
    "LessOrEqual": python.le,
}.items():
    function(_name, _run, numbers=True)

for _name, _run in {
    "Abs": torch.abs,
    "Acos": torch.acos,
    "Acosh": torch.acosh,
    "And": torch.logical_and,
    "Asin": torch.asin,
    "Asinh": torch.asinh,
    "Atan": torch.atan,
    "Atanh": torch.atanh,
    "BitwiseAnd": torch.bitwise_and,
    "BitwiseNot": torch.bitwise_not,
    "BitwiseOr": torch.bitwise_or,
    "BitwiseXor": torch.bitwise_xor,
    "Ceil": torch.ceil,
    "Cos": torch.cos,
    "Cosh": torch.cosh,
    "Equal": torch.eq,
    "Erf": torch.erf,
    "Exp": torch.exp,
    "Floor": torch.floor,
    "Identity": lambda x: x,
    "IsNaN": torch.isnan,
    "Log": torch.log,
    "Neg": torch.neg,
    "Not": torch.logical_not,
    "Or": torch.logical_or,
    "Reciprocal": torch.reciprocal,
    "Round": torch.round,
    "Sign": torch.sign,
    "Sin": torch.sin,
    "Sinh": torch.sinh,
    "Sqrt": torch.sqrt,
    "Tan": torch.tan,
    "Where": torch.where,
    "Xor": torch.logical_xor,
}.items():
    function(_name, _run)


@operator("Div", numbers=True)
def div(node: Node) -> Run:
    divisor = node.value(1)
    if divisor is not None and node.inputs[1].weight and node.floating(1) and np.all(divisor):
        # A secret product instead of a secret quotient.
        node.drop(1)
        node.parameter("reciprocal", 1 / divisor)
        return lambda a, _, reciprocal: a * reciprocal

    def run(a: Any, b: Any) -> torch.Tensor:
        if (a if isinstance(a, torch.Tensor) else b).is_floating_point():
            return a / b
        return torch.div(torch.as_tensor(a), b, rounding_mode="trunc")

    return run


@operator("Mod")
def mod(node: Node) -> Run:
    return torch.fmod if node.flag("fmod") else torch.remainder


@operator("Pow")
def power(node: Node) -> Run:
    exponent = node.value(1)
    number = None if exponent is None or exponent.ndim > (node.rank(0) or 0) else node.take(1)
    if number is None:
        return lambda x, y: torch.pow(x, y).to(x.dtype)
    if number == 2:
        return lambda x, _: x * x
    return lambda x, _: torch.pow(x, number).to(x.dtype)


@operator("BitShift")
def bit_shift(node: Node) -> Run:
    left = node.choice("direction", "", "LEFT", "RIGHT") == "LEFT"
    return torch.bitwise_left_shift if left else torch.bitwise_right_shift


@operator("IsInf")
def is_inf(node: Node) -> Run:
    negative, positive = node.flag("detect_negative", True), node.flag("detect_positive", True)
    if negative and positive:
        return torch.isinf
    test = torch.isneginf if negative else torch.isposinf if positive else None
    return test or (lambda x: torch.zeros_like(x, dtype=torch.bool))


# ---- any number of operands
def _all_of(combine: Any) -> Run:
    return lambda *operands: functools.reduce(combine, operands)


@operator("Sum", numbers=True)
def total(node: Node) -> Run:
    return _all_of(python.add)


@operator("Mean")
def mean(node: Node) -> Run:
    return lambda *operands: functools.reduce(python.add, operands) / len(operands)


def _bound(a: Any, b: Any, two: Any, side: str) -> torch.Tensor:
    if isinstance(a, torch.Tensor) and isinstance(b, torch.Tensor):
        return two(a, b)
    x, number = (a, b) if isinstance(a, torch.Tensor) else (b, a)
    return torch.clamp(x, **{side: number})


@operator("Max", numbers=True)
def maximum(node: Node) -> Run:
    return _all_of(functools.partial(_bound, two=torch.maximum, side="min"))


@operator("Min", numbers=True)
def minimum(node: Node) -> Run:
    return _all_of(functools.partial(_bound, two=torch.minimum, side="max"))


@operator("Clip")
def clip(node: Node) -> Run:
    if all(node.value(i) is not None or not node.has(i) for i in (1, 2)):
        low, high = node.take(1), node.take(2)
        low, high = (None if b is None or _beyond(b, side) else b for b, side in ((low, -1), (high, 1)))
        if low is None and high is None:
            return lambda x, *_: x
        if low == 0 and high is None:
            return lambda x, *_: torch.relu(x)
        return lambda x, *_: torch.clamp(x, low, high)

    def run(x: torch.Tensor, low: Any = None, high: Any = None) -> torch.Tensor:
        x = x if low is None else torch.maximum(x, low)
        return x if high is None else torch.minimum(x, high)

    return run


def _beyond(bound: float, side: int) -> bool:
    """Whether a bound is what exporters write for no bound at all."""
    return isinstance(bound, float) and side * bound >= float(np.finfo(np.float32).max)


# ---- types
@operator("Cast")
def cast(node: Node) -> Run:
    target = node.torch_type(node.attribute("to"))
    node.ignore("saturate", "round_mode")  # they speak of 8-bit floats
    return lambda x: x.to(target)


@operator("CastLike")
def cast_like(node: Node) -> Run:
    node.ignore("saturate", "round_mode")
    if node.has(1) and node.inputs[1].element:
        target = node.torch_type(node.inputs[1].element)
        return lambda x, _: x.to(target)
    return lambda x, like: x.to(like.dtype)


@operator("Dropout")
def dropout(node: Node) -> Run:
    node.ignore("seed")
    drops = node.has(2) and node.take(2) is not False
    if drops and node.take(1) != 0:
        node.refuse("training_mode: the parties would have to agree on the random mask; export for inference")
    node.drop(1)
    if not node.wants(1):
        return lambda x, *_: x
    return lambda x, *_: (x, torch.ones_like(x, dtype=torch.bool))
