# SPDX-License-Identifier: Apache-2.0
"""What is known of a value of an ONNX graph while it is being converted."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from onnx import TensorProto

# Element types a tensor can have; static values may have any type NumPy knows.
TORCH_TYPES = {
    TensorProto.FLOAT: torch.float32,
    TensorProto.DOUBLE: torch.float64,
    TensorProto.FLOAT16: torch.float16,
    TensorProto.BFLOAT16: torch.bfloat16,
    TensorProto.INT8: torch.int8,
    TensorProto.INT16: torch.int16,
    TensorProto.INT32: torch.int32,
    TensorProto.INT64: torch.int64,
    TensorProto.UINT8: torch.uint8,
    TensorProto.BOOL: torch.bool,
}
FLOATING = {TensorProto.FLOAT, TensorProto.DOUBLE, TensorProto.FLOAT16, TensorProto.BFLOAT16}
# A constant this large stands for minus infinity in a mask; no fixed-point format could hold it as a parameter.
LIKE_INFINITY = 1e30


@dataclass(slots=True, eq=False)
class Value:
    """One value of the graph.

    ``key``: its name at run time, unique also when a loop body is unrolled. ``element``: ONNX element type, 0
    if unknown. ``shape``: sizes, None where a size (or the whole shape) is unknown. ``array``: the value, when
    known at conversion. ``static``: a public number that is a NumPy array at run time, never a tensor.
    ``weight``: numbers of the trained model went into ``array``, so as an operand it is a parameter. ``labels``: the
    strings that its numbers stand for.
    """

    key: str
    element: int = 0
    shape: tuple[int | None, ...] | None = None
    array: np.ndarray | None = None
    static: bool = False
    weight: bool = False
    labels: list[str] | None = None

    @property
    def rank(self) -> int | None:
        return None if self.shape is None else len(self.shape)


def known(key: str, array: Any, weight: bool = False) -> Value:
    """A value known at conversion."""
    array = np.asarray(array)
    return Value(key, element_of(array.dtype), tuple(array.shape), array, True, weight)


def element_of(dtype: np.dtype) -> int:
    """The ONNX element type of a NumPy type; 0 when there is none (object, ...)."""
    from onnx import helper

    try:
        return helper.np_dtype_to_tensor_dtype(np.dtype(dtype))
    except (KeyError, ValueError):
        return 0


def type_name(element: int) -> str:
    """``FLOAT``, ``INT64``, ...: the name ONNX gives an element type."""
    return TensorProto.DataType.Name(element) if element in TensorProto.DataType.values() else f"number {element}"


def to_tensor(value: Any) -> torch.Tensor:
    """A tensor of a static value (a NumPy array, or an object array of symbolic sizes met during export)."""
    if isinstance(value, torch.Tensor):
        return value
    if value.dtype == object:
        flat = [torch.scalar_tensor(v, dtype=torch.int64) for v in value.reshape(-1)]
        return torch.stack(flat).reshape(value.shape) if flat else torch.zeros(value.shape, dtype=torch.int64)
    if value.dtype.name == "bfloat16":
        return torch.from_numpy(value.astype(np.float32)).to(torch.bfloat16)
    return torch.from_numpy(np.array(value))  # a copy: the array may be read-only or shared


def integers(value: Any) -> list[Any]:
    """The elements of a static integer value, in order; symbolic sizes stay symbolic."""
    flat = np.asarray(value).reshape(-1)
    return list(flat) if flat.dtype == object else [int(v) for v in flat]


def axis_of(axis: int, rank: int) -> int:
    """``axis`` counted from the front, of a tensor of this rank; IndexError if it has no such axis."""
    if not -rank <= axis < rank:
        raise IndexError(f"axis {axis} of a tensor of rank {rank}; it must be in [{-rank}, {rank - 1}]")
    return axis % rank


def is_mask(array: np.ndarray) -> bool:
    """Whether a float array holds infinities, or numbers that stand for them."""
    if not array.size:
        return False
    return not -LIKE_INFINITY < float(array.min()) <= float(array.max()) < LIKE_INFINITY
