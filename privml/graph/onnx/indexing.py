# SPDX-License-Identifier: Apache-2.0
"""Gather and scatter, one-hot, triangles, sorting."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch

from privml.graph.onnx.table import Node, Run, operator
from privml.graph.onnx.values import axis_of, integers


def _nonnegative(node: Node, index: int) -> Any:
    """A function (indices, size) -> indices in [0, size); costs nothing when they are known to be so."""
    array = node.value(index)
    if array is not None and np.all(array >= 0):
        return lambda indices, size: indices.long()
    return lambda indices, size: torch.where(indices < 0, indices + size, indices).long()


@operator("Gather")
def gather(node: Node) -> Run:
    axis, wrap = node.attribute("axis", 0), _nonnegative(node, 1)
    array = node.value(1)
    if array is not None and array.ndim == 0:
        return lambda x, _: x.select(axis, int(array))

    def run(x: torch.Tensor, indices: torch.Tensor) -> torch.Tensor:
        at = axis_of(axis, x.dim())
        places = wrap(indices, x.shape[at])
        if at == 0 and x.dim() == 2:
            return torch.nn.functional.embedding(places, x)
        picked = x.index_select(at, places.reshape(-1))
        return picked.reshape([*x.shape[:at], *indices.shape, *x.shape[at + 1 :]])

    return run


@operator("GatherElements")
def gather_elements(node: Node) -> Run:
    axis, wrap = node.attribute("axis", 0), _nonnegative(node, 1)

    def run(x: torch.Tensor, indices: torch.Tensor) -> torch.Tensor:
        places = wrap(indices, x.shape[axis])
        at = axis_of(axis, x.dim())
        for other in range(x.dim()):  # torch wants indices no larger than x elsewhere, as ONNX does
            if other != at and places.shape[other] > x.shape[other]:
                raise IndexError(f"GatherElements: indices {tuple(places.shape)} exceed {tuple(x.shape)}")
        return torch.gather(x, at, places)

    return run


@operator("GatherND")
def gather_nd(node: Node) -> Run:
    batch = node.attribute("batch_dims", 0)

    def run(x: torch.Tensor, indices: torch.Tensor) -> torch.Tensor:
        indices = indices.long()
        grids = [
            torch.arange(x.shape[i]).reshape([-1 if j == i else 1 for j in range(indices.dim() - 1)])
            for i in range(batch)
        ]
        places = [indices[..., i] for i in range(indices.shape[-1])]
        places = [torch.where(p < 0, p + x.shape[batch + i], p) for i, p in enumerate(places)]
        return x[(*grids, *places)]

    return run


_REDUCE = {"add": "sum", "mul": "prod", "max": "amax", "min": "amin"}


@operator("ScatterElements")
def scatter_elements(node: Node) -> Run:
    axis, wrap = node.attribute("axis", 0), _nonnegative(node, 1)
    how = node.choice("reduction", "none", "none", *_REDUCE)

    def run(x: torch.Tensor, indices: torch.Tensor, updates: torch.Tensor) -> torch.Tensor:
        places = wrap(indices, x.shape[axis])
        if how == "none":
            return torch.scatter(x, axis, places, updates)
        return _scatter_reduce(x, axis, places, updates, how)

    return run


def _scatter_reduce(x: torch.Tensor, axis: int, places: torch.Tensor, updates: torch.Tensor, how: str) -> torch.Tensor:
    if how == "add":
        return torch.scatter_add(x, axis, places, updates)
    return torch.scatter_reduce(x, axis, places, updates, _REDUCE[how])


@operator("ScatterND")
def scatter_nd(node: Node) -> Run:
    how = node.choice("reduction", "none", "none", *_REDUCE)

    def run(x: torch.Tensor, indices: torch.Tensor, updates: torch.Tensor) -> torch.Tensor:
        depth = indices.shape[-1]
        flat = torch.zeros(indices.shape[:-1], dtype=torch.int64)
        for i in range(depth):
            place = indices[..., i].long()
            flat = flat * x.shape[i] + torch.where(place < 0, place + x.shape[i], place)
        inner = list(x.shape[depth:])
        rows = x.reshape([-1, int(np.prod(inner, dtype=np.int64))])
        places = flat.reshape(-1, 1).expand(-1, rows.shape[1])
        values = updates.reshape(places.shape)
        if how == "none":
            return torch.scatter(rows, 0, places, values).reshape(x.shape)
        return _scatter_reduce(rows, 0, places, values, how).reshape(x.shape)

    return run


@operator("OneHot", static=(1,))
def one_hot(node: Node) -> Run:
    axis = node.attribute("axis", -1)

    def run(indices: torch.Tensor, depth: np.ndarray, pair: torch.Tensor) -> torch.Tensor:
        size = integers(depth)[0]
        at = axis_of(axis, indices.dim() + 1)
        classes = torch.arange(size).reshape([-1] + [1] * (indices.dim() - at))
        places = indices.unsqueeze(at)
        chosen = torch.where(places < 0, places + size, places) == classes
        return torch.where(chosen, pair[1], pair[0])

    return run


@operator("Trilu", static=(1,))
def trilu(node: Node) -> Run:
    cut = torch.triu if node.flag("upper", True) else torch.tril
    return lambda x, k=None: cut(x, 0 if k is None else integers(k)[0])


@operator("EyeLike")
def eye_like(node: Node) -> Run:
    offset, element = node.attribute("k", 0), node.attribute("dtype")
    dtype = None if element is None else node.torch_type(element)

    def run(x: torch.Tensor) -> torch.Tensor:
        rows, columns = x.shape
        ones = torch.ones(rows, columns, dtype=dtype or x.dtype)
        return torch.triu(torch.tril(ones, offset), offset)

    return run


@operator("TopK", static=(1,))
def top_k(node: Node) -> Run:
    axis, largest = node.attribute("axis", -1), node.flag("largest", True)
    node.ignore("sorted")  # sorted results are right in either case

    def run(x: torch.Tensor, count: np.ndarray) -> tuple[torch.Tensor, torch.Tensor]:
        values, places = torch.sort(x, dim=axis, descending=largest, stable=True)
        k = integers(count)[0]
        return values.narrow(axis, 0, k), places.narrow(axis, 0, k)

    return run


@operator("ReverseSequence", static=(1,))
def reverse_sequence(node: Node) -> Run:
    batch, time = node.attribute("batch_axis", 1), node.attribute("time_axis", 0)

    def run(x: torch.Tensor, lengths: np.ndarray) -> torch.Tensor:
        parts = []
        for part, length in zip(torch.unbind(x, batch), integers(lengths), strict=True):
            along = time - (time > batch)
            head, tail = part.narrow(along, 0, length), part.narrow(along, length, x.shape[time] - length)
            parts.append(torch.cat([head.flip(along), tail], along))
        return torch.stack(parts, batch)

    return run


@operator("Compress", static=(1,))
def compress(node: Node) -> Run:
    axis = node.attribute("axis")

    def run(x: torch.Tensor, condition: np.ndarray) -> torch.Tensor:
        places = torch.from_numpy(np.flatnonzero(condition))
        return x.reshape(-1).index_select(0, places) if axis is None else x.index_select(axis, places)

    return run
