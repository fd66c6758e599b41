# SPDX-License-Identifier: Apache-2.0
"""If, Loop and Scan: a branch is chosen, and a body unrolled, at conversion; a secret decides neither.

What depends on the shapes of the inputs alone, which the file may leave open, is taken from the example inputs; a check
stays in the model, which refuses inputs of other shapes for which it would be something else.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import onnx
import torch
from onnx import helper

from privml.errors import InvalidInput
from privml.graph.onnx.table import Refusal
from privml.graph.onnx.values import Value, known

if TYPE_CHECKING:
    from privml.graph.onnx.plan import Planner

MOST_ITERATIONS = 10_000
# Of all bodies of a model together, however they are nested.
MOST_UNROLLED = 100_000
_SECRET = (
    "{} depends on the values of the model's inputs and would reveal them; only conditions known at conversion "
    "are supported"
)


def _attributes(proto: onnx.NodeProto) -> dict[str, Any]:
    return {a.name: helper.get_attribute_value(a) for a in proto.attribute}


def _constant(planner: Planner, proto: onnx.NodeProto, value: Value | None, what: str) -> Any:
    if value is None or value.array is None and not value.static:
        raise Refusal(_SECRET.format(what))
    array = value.array
    if array is None:
        array = _traced(planner, proto, value, what)
    if array.size != 1:
        raise Refusal(f"{what} is not one number")
    return array.reshape(-1)[0].item()


def _traced(planner: Planner, proto: onnx.NodeProto, value: Value, what: str) -> np.ndarray:
    """A public number that depends on shapes, on those of the example inputs; inputs to come must give the same."""
    found = planner.traced(value)
    if found is None:
        raise Refusal(
            f"{what} depends on sizes of the inputs that the file leaves open; give example inputs, or their shapes"
        )
    array = np.asarray(found)

    def check(given: Any) -> None:
        if not np.array_equal(np.asarray(given), array):
            raise InvalidInput(f"the model was converted for inputs of other sizes: {what} is no longer {array}")

    planner.check(proto, check, value)
    return array


def _body(
    planner: Planner, body: onnx.GraphProto, scope: dict[str, Value], bound: dict[str, Value], shapes: bool
) -> list[Value]:
    """Plans a body inside ``scope`` with its inputs bound; the values of its outputs."""
    planner.unrolled += 1
    if planner.unrolled > MOST_UNROLLED:
        raise Refusal(f"the bodies of the model's loops are unrolled more than {MOST_UNROLLED} times")
    inner = {**scope, **bound}
    for tensor in body.initializer:
        inner[tensor.name] = planner.initializer(tensor.name, onnx.numpy_helper.to_array(tensor))
    before = len(planner.plan.problems)
    planner.nodes(body.node, inner, body.value_info if shapes else [])
    if len(planner.plan.problems) > before:
        raise Refusal("its body has the nodes reported above")
    return [inner[output.name] for output in body.output]


def _if(planner: Planner, proto: onnx.NodeProto, operands: Sequence[Any], scope: dict[str, Value]) -> None:
    chosen = _constant(planner, proto, operands[0], "its condition")
    attributes = _attributes(proto)
    results = _body(planner, attributes["then_branch" if chosen else "else_branch"], scope, {}, True)
    scope.update(zip(proto.output, results, strict=True))


def _loop(planner: Planner, proto: onnx.NodeProto, operands: Sequence[Any], scope: dict[str, Value]) -> None:
    body = _attributes(proto)["body"]
    trips = MOST_ITERATIONS if operands[0] is None else int(_constant(planner, proto, operands[0], "its trip count"))
    condition = operands[1] if len(operands) > 1 else None
    carried, collected = list(operands[2:]), None
    names = [value.name for value in body.input]
    goes_on = True if condition is None else bool(_constant(planner, proto, condition, "its condition"))
    count = 0
    while goes_on and count < trips:
        if count == MOST_ITERATIONS:
            raise Refusal(f"it does not end within {MOST_ITERATIONS} iterations")
        counter = known(planner.key(names[0]), np.array(count, np.int64))
        bound = dict(zip(names, [counter, known(planner.key(names[1]), np.array(True)), *carried], strict=True))
        results = _body(planner, body, scope, bound, False)
        carried, scans = results[1 : 1 + len(carried)], results[1 + len(carried) :]
        collected = [[v] for v in scans] if collected is None else _appended(collected, scans)
        goes_on = condition is None or bool(_constant(planner, proto, results[0], "the condition its body computes"))
        count += 1
    if collected is None and len(proto.output) > len(carried):
        raise Refusal("it never runs, and the shape of what it would collect is unknown")
    stacked = [_stack(planner, proto, values, 0) for values in collected or []]
    scope.update((n, v) for n, v in zip(proto.output, [*carried, *stacked], strict=True) if n)


def _scan(planner: Planner, proto: onnx.NodeProto, operands: Sequence[Any], scope: dict[str, Value]) -> None:
    attributes = _attributes(proto)
    body, scanned = attributes["body"], attributes["num_scan_inputs"]
    carried, inputs = list(operands[: len(operands) - scanned]), operands[len(operands) - scanned :]
    made = len(body.output) - len(carried)
    axes = attributes.get("scan_input_axes", [0] * scanned)
    backwards = attributes.get("scan_input_directions", [0] * scanned)
    output_axes = attributes.get("scan_output_axes", [0] * made)
    reversed_outputs = attributes.get("scan_output_directions", [0] * made)
    length = _length(planner, proto, inputs[0], axes[0])
    if length > MOST_ITERATIONS:
        raise Refusal(f"the sequence it scans has more than {MOST_ITERATIONS} parts")
    collected: list[list[Value]] | None = None
    for count in range(length):
        picks = [
            _pick(planner, proto, value, axis, length - 1 - count if back else count)
            for value, axis, back in zip(inputs, axes, backwards, strict=True)
        ]
        bound = dict(zip([v.name for v in body.input], [*carried, *picks], strict=True))
        results = _body(planner, body, scope, bound, False)
        carried, scans = results[: len(carried)], results[len(carried) :]
        collected = [[v] for v in scans] if collected is None else _appended(collected, scans)
    if collected is None:
        raise Refusal("the sequence it scans is empty")
    stacked = [
        _stack(planner, proto, values[::-1] if back else values, axis)
        for values, axis, back in zip(collected, output_axes, reversed_outputs, strict=True)
    ]
    scope.update((n, v) for n, v in zip(proto.output, [*carried, *stacked], strict=True) if n)


def _length(planner: Planner, proto: onnx.NodeProto, sequence: Value, axis: int) -> int:
    if sequence.shape is not None and sequence.shape[axis] is not None:
        return sequence.shape[axis]
    size = planner.size(proto, sequence, axis)
    return int(_traced(planner, proto, size, "the length of the sequence it scans").item())


def _appended(collected: list[list[Value]], scans: Sequence[Value]) -> list[list[Value]]:
    return [[*values, value] for values, value in zip(collected, scans, strict=True)]


def _pick(planner: Planner, proto: onnx.NodeProto, value: Value, axis: int, index: int) -> Value:
    if value.array is not None:
        return known(planner.key(value.key), np.take(value.array, index, axis), value.weight)
    rank = value.rank
    shape = None if rank is None else tuple(s for i, s in enumerate(value.shape) if i != axis % rank)
    result = Value(planner.key(f"{value.key}[{index}]"), value.element, shape)
    planner.append(proto, lambda x: x.select(axis, index), [value], result)
    return result


def _stack(planner: Planner, proto: onnx.NodeProto, values: list[Value], axis: int) -> Value:
    if all(v.array is not None for v in values):
        stacked = np.stack([v.array for v in values], axis)
        return known(planner.key(values[0].key), stacked, any(v.weight for v in values))
    shape = None
    if values[0].shape is not None:
        at = axis % (values[0].rank + 1)
        shape = (*values[0].shape[:at], len(values), *values[0].shape[at:])
    result = Value(planner.key(values[0].key), values[0].element, shape)
    planner.append(proto, lambda *parts: torch.stack(parts, axis), values, result)
    return result


CONTROL: dict[str, Callable[..., None]] = {"If": _if, "Loop": _loop, "Scan": _scan}
