# SPDX-License-Identifier: Apache-2.0
"""Public numbers (shapes, axes, constants) are computed with NumPy, so that they vanish from the torch graph; how large
they may become is limited, for a file of a few bytes must not fill the memory."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper
from onnx.reference import ReferenceEvaluator
from onnx.shape_inference import infer_node_outputs

from privml.graph.onnx.table import Refusal

Fold = Callable[..., tuple[np.ndarray, ...]]
# Results that differ from one evaluation to the next must not be computed by each party alone.
RANDOM = {"RandomNormal", "RandomNormalLike", "RandomUniform", "RandomUniformLike", "Multinomial", "Bernoulli"}


def folder(proto: onnx.NodeProto, opsets: Sequence[onnx.OperatorSetIdProto]) -> Fold:
    """A function that evaluates the node on NumPy arrays (None for operands left out)."""
    if proto.op_type == "Constant":
        constant = _constant(proto)
        return lambda *operands: (constant,)
    names = [name for name in dict.fromkeys(proto.input) if name]
    inputs = [helper.make_value_info(name, onnx.TypeProto()) for name in names]
    outputs = [helper.make_value_info(name, onnx.TypeProto()) for name in proto.output if name]
    graph = helper.make_graph([proto], "static", inputs, outputs)
    evaluator = ReferenceEvaluator(helper.make_model(graph, opset_imports=opsets))

    def run(*operands: Any) -> tuple[np.ndarray, ...]:
        operands = tuple(_settled(v) for v in operands)
        if any(isinstance(v, np.ndarray) and v.dtype == object and _symbolic(v) for v in operands):
            return (_fold_symbolic(proto, operands),)
        feed = {name: value for name, value in zip(proto.input, operands, strict=True) if name}
        results = iter(evaluator.run(None, feed))
        return tuple(np.asarray(next(results)) if name else None for name in proto.output)

    return run


def _constant(proto: onnx.NodeProto) -> np.ndarray:
    if len(proto.attribute) != 1:
        raise ValueError("it has no value")
    (attribute,) = proto.attribute
    value = helper.get_attribute_value(attribute)
    if attribute.name == "value":
        return numpy_helper.to_array(value)
    types = {"value_float": np.float32, "value_floats": np.float32, "value_int": np.int64, "value_ints": np.int64}
    if attribute.name not in types:
        raise ValueError(f"a constant given as {attribute.name}")
    return np.array(value, dtype=types[attribute.name])


def _settled(value: Any) -> Any:
    """A part of a shape that holds no symbolic size is an ordinary array of integers."""
    if isinstance(value, np.ndarray) and value.dtype == object and value.size and not _symbolic(value):
        return value.astype(np.int64)
    return value


def _symbolic(array: np.ndarray) -> bool:
    return not all(isinstance(v, (int, float, np.generic)) for v in array.reshape(-1))


# ---- sizes that torch.export keeps symbolic (a dynamic batch)
def shape_array(shape: Sequence[Any]) -> np.ndarray:
    """A tensor's shape as an int64 array, or as an object array when some size is symbolic."""
    if all(isinstance(size, int) for size in shape):
        return np.array(shape, dtype=np.int64)
    array = np.empty(len(shape), dtype=object)
    array[:] = list(shape)
    return array


def _slice(x: Any, starts: Any, ends: Any, axes: Any = None, steps: Any = None) -> np.ndarray:
    step = 1 if steps is None else int(steps[0])
    return x[int(starts[0]) : int(ends[0]) : step]


def _divide(a: Any, b: Any) -> np.ndarray:
    return np.floor_divide(a, b)  # sizes are not negative


_SYMBOLIC: dict[str, Callable[..., Any]] = {
    "Add": np.add,
    "Sub": np.subtract,
    "Mul": np.multiply,
    "Div": _divide,
    "Concat": lambda *xs: np.concatenate(xs),
    "Gather": lambda x, i: np.asarray(x)[i],
    "Slice": _slice,
    "Identity": lambda x: x,
    "Cast": lambda x: x,
    "Squeeze": lambda x, axes=None: np.asarray(x).reshape(()),
    "Unsqueeze": lambda x, axes: np.asarray(x, dtype=object).reshape(1),
    "Reshape": lambda x, shape: np.asarray(x, dtype=object).reshape([int(v) for v in shape]),
    "ReduceProd": lambda x, axes=None: np.array([np.prod(x)], dtype=object),
}


def _fold_symbolic(proto: onnx.NodeProto, operands: Sequence[Any]) -> np.ndarray:
    compute = _SYMBOLIC.get(proto.op_type)
    if compute is None:
        raise NotImplementedError(
            f"{proto.op_type} on a size that is not known during export; export with a fixed batch size"
        )
    if proto.op_type == "Cast" and proto.attribute[0].i not in (TensorProto.INT64, TensorProto.INT32):
        raise NotImplementedError("a cast of a symbolic size to floating point; export with a fixed batch size")
    result = np.asarray(compute(*operands))
    return result if result.dtype == object else np.asarray(result, dtype=np.int64)


# ---- how large constants may become
# Elements that the constants of a model may have beyond those of the operands they are computed from, together.
MOST_GROWN = 1 << 26
# Operands that say how large a result becomes are shapes, counts and limits.
_SAYS_SIZES = 1024


class Growth:
    """Counts what folding adds; ``expect`` raises Refusal before a node's results would be too large."""

    def __init__(self, opsets: Sequence[onnx.OperatorSetIdProto]) -> None:
        self._opsets = list(opsets)
        self._left = MOST_GROWN

    def expect(self, proto: onnx.NodeProto, operands: Sequence[np.ndarray | None]) -> None:
        """``operands``: the node's, all known; None for those left out."""
        given = sum(array.size for array in operands if array is not None)
        self._left -= max(_elements(proto, operands, self._opsets) - given, 0)
        if self._left < 0:
            raise Refusal(f"the constants that the model computes have more than {MOST_GROWN} elements")


def _elements(
    proto: onnx.NodeProto, operands: Sequence[np.ndarray | None], opsets: list[onnx.OperatorSetIdProto]
) -> int:
    """Elements of a node's results, as ONNX infers them; 0 where it cannot."""
    version = next((o.version for o in opsets if o.domain == proto.domain), 1)
    try:
        named = {name: a for name, a in zip(proto.input, operands, strict=True) if name and a is not None}
        kinds = {name: helper.np_dtype_to_tensor_dtype(a.dtype) for name, a in named.items()}
        types = {name: helper.make_tensor_type_proto(kinds[name], a.shape) for name, a in named.items()}
        data = {name: numpy_helper.from_array(a, name) for name, a in named.items() if a.size <= _SAYS_SIZES}
        schema = onnx.defs.get_schema(proto.op_type, version, proto.domain)
        made = infer_node_outputs(schema, proto, types, data, opset_imports=opsets)
    except Exception:
        return 0
    return sum(math.prod(d.dim_value for d in kind.tensor_type.shape.dim) for kind in made.values())
