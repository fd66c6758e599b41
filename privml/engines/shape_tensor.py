# SPDX-License-Identifier: Apache-2.0
"""Tensors of which only shape and dtype exist: what engines that only count compute on.

A cost depends on shapes alone, of any size; so counting takes no memory and no time of the data's size.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import Any

import numpy as np
import torch

_NUMPY = {torch.int64: np.int64, torch.uint8: np.uint8}
_aten = torch.ops.aten
# Results whose shapes are remembered.
OUTCOMES = 4096
# What makes one element of all.
_REDUCTIONS = (_aten.any.default, _aten.all.default, _aten.max.default, _aten.min.default, _aten.sum.default)
# What puts tensors of one shape, or of one but for a dimension, beside each other.
_JOINS = (_aten.cat.default, _aten.stack.default)
# What makes a Python number of a tensor of one element.
_NUMBERS = (_aten._local_scalar_dense.default, _aten.item.default, _aten.is_nonzero.default)


class ShapeTensor(torch.Tensor):
    """Stands for zeros of this shape and dtype. Whatever is computed of it has the shape and the dtype that torch gives
    it and is such a tensor again, also where other operands are ordinary tensors; as a Python number it is 0."""

    __torch_function__ = torch._C._disabled_torch_function_impl  # what a class says, is said below

    @staticmethod
    def __new__(cls, shape: Sequence[int], dtype: torch.dtype = torch.int64) -> ShapeTensor:
        return torch.Tensor._make_wrapper_subclass(cls, tuple(shape), dtype=dtype, device="cpu")

    @classmethod
    def __torch_dispatch__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        if not all(kind in (torch.Tensor, torch.nn.Parameter, cls) for kind in types):
            return NotImplemented
        if func in _NUMBERS:
            return func(torch.zeros(args[0].shape, dtype=args[0].dtype))  # of one element
        if func is _aten.index.Tensor:
            args = (args[0], _places(args[1]))
        named = tuple((name, _outline(value)) for name, value in (kwargs or {}).items())
        result = _shapes_of(func, _outline(args), named)
        return args[0] if func._schema.is_mutable else _drawn(result)

    def __repr__(self, *, tensor_contents: Any = None) -> str:
        return f"ShapeTensor({list(self.shape)}, {self.dtype})"


def _places(index: Sequence[torch.Tensor | None]) -> list[torch.Tensor | None]:
    """Public masks as the places that they select, whose number is a matter of values."""
    places: list[torch.Tensor | None] = []
    for each in index:
        if each is None or each.dtype not in (torch.bool, torch.uint8):
            places.append(each)
        else:
            places.extend(each.nonzero(as_tuple=True))
    return places


# A tensor by its dtype and shape, a list or tuple by its type and parts, anything else by its type and itself, for 1,
# 1.0 and True are equal.
_Outline = tuple[Any, Any]


def _outline(value: Any) -> _Outline:
    if isinstance(value, torch.Tensor):
        return value.dtype, value.shape
    kind = type(value)
    return kind, tuple([_outline(part) for part in value]) if isinstance(value, (list, tuple)) else value


@lru_cache(maxsize=OUTCOMES)
def _shapes_of(func: Any, args: _Outline, kwargs: tuple[tuple[str, _Outline], ...]) -> _Outline:
    """The outline of what ``func`` gives, which torch works out without data; a program asks the same many times."""
    if (torch.Tag.pointwise in func.tags and len(func._schema.returns) == 1) or func in _REDUCTIONS:
        return _by_one_element(func, args, kwargs)
    if func in _JOINS and (joined := _joined(func, args, kwargs)) is not None:
        return joined
    named = {name: _meta(value) for name, value in kwargs}
    if named.get("device") is not None:
        named["device"] = torch.device("meta")
    return _outline(func(*_meta(args), **named))


def _by_one_element(func: Any, args: _Outline, kwargs: tuple[tuple[str, _Outline], ...]) -> _Outline:
    """Of what computes elements alone, or one element of all: it is done with single ones, for their dtype. Torch's own
    way, on the device "meta", loads its compiler first, which takes a second."""
    shapes: list[torch.Size] = []

    def single(outline: _Outline) -> Any:
        kind, content = outline
        if isinstance(kind, torch.dtype):
            shapes.append(content)
            return torch.ones([1] * len(content), dtype=kind)
        return kind(map(single, content)) if kind in (list, tuple) else content

    dtype, _ = _outline(func(*single(args), **{name: single(value) for name, value in kwargs}))
    return dtype, torch.Size() if func in _REDUCTIONS else torch.broadcast_shapes(*shapes)


def _joined(func: Any, args: _Outline, kwargs: tuple[tuple[str, _Outline], ...]) -> _Outline | None:
    """Of what joins tensors, for which torch loads its compiler, too; None where torch is to say what is wrong."""
    _, ((_, parts), *dims) = args
    dims += [value for name, value in kwargs if name == "dim"]
    shapes = [list(shape) for _, shape in parts]
    if len({dtype for dtype, _ in parts}) != 1 or len(dims) + 1 != len(args[1]) + len(kwargs):
        return None
    rank, dim = len(shapes[0]) + (func is _aten.stack.default), dims[0][1] if dims else 0
    if not -rank <= dim < rank:
        return None
    dim %= rank
    if func is _aten.stack.default:
        shapes = [[*shape[:dim], 1, *shape[dim:]] for shape in shapes]
    around = {(*shape[:dim], *shape[dim + 1 :]) for shape in shapes}
    if len(around) != 1 or any(len(shape) != rank for shape in shapes):
        return None
    length = sum(shape[dim] for shape in shapes)
    return parts[0][0], torch.Size((*shapes[0][:dim], length, *shapes[0][dim + 1 :]))


def _meta(outline: _Outline) -> Any:
    kind, content = outline
    if isinstance(kind, torch.dtype):
        return torch.empty(content, dtype=kind, device="meta")
    return kind(map(_meta, content)) if kind in (list, tuple) else content


def _drawn(outline: _Outline) -> Any:
    kind, content = outline
    if isinstance(kind, torch.dtype):
        return ShapeTensor(content, kind)
    return kind(map(_drawn, content)) if kind in (list, tuple) else content


def array_of(tensor: torch.Tensor) -> np.ndarray:
    """What the compiled core takes for a tensor of int64 or uint8: its words, or zeros that take no memory if nothing
    looks at them."""
    return strided_array_of(tensor if isinstance(tensor, ShapeTensor) else tensor.contiguous())


def strided_array_of(tensor: torch.Tensor) -> np.ndarray:
    """As ``array_of``, of the words as they stand, which may be turned or cut out of others: nothing is copied."""
    if isinstance(tensor, ShapeTensor):
        return np.zeros(tensor.shape, _NUMPY[tensor.dtype])
    return tensor.detach().numpy()


def shape_of(array: np.ndarray) -> ShapeTensor:
    """What a meter has returned, without its zeros."""
    return ShapeTensor(array.shape, torch.uint8 if array.dtype == np.uint8 else torch.int64)


def elementwise(function: Callable[..., np.ndarray], operands: Sequence[torch.Tensor], *settings: int) -> torch.Tensor:
    """``function(*arrays, *settings)``, an array of the operands' shape; of shapes alone its dtype."""
    if not any(isinstance(x, ShapeTensor) for x in operands):
        return torch.from_numpy(function(*(x.contiguous().numpy() for x in operands), *settings))
    like = function(*(np.zeros(1, _NUMPY[x.dtype]) for x in operands), *settings)
    return ShapeTensor(operands[0].shape, shape_of(like).dtype)


def zeros(shape: Sequence[int], dtype: torch.dtype, counts_only: bool) -> torch.Tensor:
    """Zeros, of which only the shape exists where nothing but counts matters."""
    return ShapeTensor(shape, dtype) if counts_only else torch.zeros(tuple(shape), dtype=dtype)
