# SPDX-License-Identifier: Apache-2.0
"""Pooling, in windows and over whole planes."""

from __future__ import annotations

import itertools
import math
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F

from privml.graph.onnx.table import Node, Run, operator
from privml.graph.onnx.window import Pads, Window, check_spatial, pad, symmetric, window

_MAX = (F.max_pool1d, F.max_pool2d, F.max_pool3d)
_AVERAGE = (F.avg_pool1d, F.avg_pool2d)


def _completed(geometry: Window, sizes: Any, kernel: list[int], pads: Pads) -> Pads:
    """Paddings with which exactly the wanted windows fit, so that rounding up is no longer needed."""
    n = len(kernel)
    counts = geometry.output(sizes, kernel, pads)
    return [
        (lo, max((count - 1) * s + (k - 1) * d + 1 - size - lo, 0))
        for count, s, k, d, size, (lo, _) in zip(
            counts, geometry.stride(n), kernel, geometry.dilation(n), sizes, pads, strict=True
        )
    ]


def _fits(pads: Pads, kernel: list[int]) -> bool:
    """Whether torch pads that way itself."""
    return symmetric(pads) and all(2 * lo <= k for (lo, _), k in zip(pads, kernel, strict=True))


@operator("MaxPool")
def max_pool(node: Node) -> Run:
    check_spatial(node)
    geometry, kernel = window(node), list(node.attribute("kernel_shape"))
    column_major = node.flag("storage_order")
    indices = node.wants(1)
    n = len(kernel)
    floating = node.floating(0)

    def run(x: torch.Tensor) -> Any:
        sizes = x.shape[2:]
        pads = geometry.padding(sizes, kernel)
        dtype = x.dtype
        if not floating:
            x = x.double()  # torch pools few integer types; all of theirs that ONNX allows fit a double
        both, ceil = [lo for lo, _ in pads], geometry.ceil_mode
        explicit = not _fits(pads, kernel)
        if explicit:
            pads = _completed(geometry, sizes, kernel, pads)
            x, both, ceil = pad(x, pads, -math.inf), [0] * n, False
        pooled = _MAX[n - 1](
            x, kernel, geometry.stride(n), both, geometry.dilation(n), ceil_mode=ceil, return_indices=indices
        )
        if not indices:
            return pooled if floating else pooled.to(dtype)
        y, where = pooled
        shifts = [lo for lo, _ in pads] if explicit else [0] * n
        return y.to(dtype), _flat_indices(where, x.shape, sizes, shifts, column_major)

    return run


def _flat_indices(where: torch.Tensor, padded: Any, sizes: Any, shifts: list[int], column_major: bool) -> torch.Tensor:
    """Positions in a padded plane as positions in the whole input tensor."""
    coordinates = []
    for size, shift in zip(reversed(padded[2:]), reversed(shifts), strict=True):
        coordinates.append(where % size - shift)
        where = where // size
    steps = list(sizes) if column_major else list(reversed(sizes))
    coordinates = list(reversed(coordinates)) if column_major else coordinates
    flat, step = 0, 1
    for coordinate, size in zip(coordinates, steps, strict=True):
        flat, step = flat + coordinate * step, step * size
    planes = torch.arange(padded[0] * padded[1]).reshape([padded[0], padded[1]] + [1] * len(sizes))
    return flat + planes * step


@operator("AveragePool")
def average_pool(node: Node) -> Run:
    check_spatial(node)
    geometry, kernel = window(node), list(node.attribute("kernel_shape"))
    counted = node.flag("count_include_pad")
    n = len(kernel)

    def run(x: torch.Tensor) -> torch.Tensor:
        sizes = x.shape[2:]
        pads = geometry.padding(sizes, kernel)
        if n < 3 and geometry.dilation(n) == [1] * n and _fits(pads, kernel):
            both = [lo for lo, _ in pads]
            return _AVERAGE[n - 1](x, kernel, geometry.stride(n), both, geometry.ceil_mode, counted)
        total = _window_sum(geometry, kernel, x, pads)
        share = 1 / _counts(geometry, kernel, [int(size) for size in sizes], pads, counted)
        return total * torch.from_numpy(share).to(x.dtype)

    return run


def _window_sum(geometry: Window, kernel: list[int], x: torch.Tensor, pads: Pads) -> torch.Tensor:
    n = len(kernel)
    counts = geometry.output(x.shape[2:], kernel, pads)
    x = pad(x, _completed(geometry, x.shape[2:], kernel, pads))
    total = None
    for offset in itertools.product(*(range(k) for k in kernel)):
        part = x
        for i, (o, d, s) in enumerate(zip(offset, geometry.dilation(n), geometry.stride(n), strict=True)):
            part = part[(slice(None),) * (i + 2) + (slice(o * d, o * d + (counts[i] - 1) * s + 1, s),)]
        total = part if total is None else total + part
    return total


def _counts(geometry: Window, kernel: list[int], sizes: list[int], pads: Pads, counted: bool) -> np.ndarray:
    """How many elements each window averages over."""
    n = len(kernel)
    result = np.ones(())
    for i, count in enumerate(geometry.output(sizes, kernel, pads)):
        (lo, hi), s, d = pads[i], geometry.stride(n)[i], geometry.dilation(n)[i]
        places = np.arange(count)[:, None] * s + np.arange(kernel[i])[None, :] * d
        first, last = (0, sizes[i] + lo + hi) if counted else (lo, sizes[i] + lo)
        inside = ((places >= first) & (places < last)).sum(1)
        result = np.multiply.outer(result, inside)
    return result


@operator("LpPool")
def lp_pool(node: Node) -> Run:
    check_spatial(node)
    geometry, kernel, p = window(node), list(node.attribute("kernel_shape")), node.attribute("p", 2)

    def run(x: torch.Tensor) -> torch.Tensor:
        pads = geometry.padding(x.shape[2:], kernel)
        return _root(_window_sum(geometry, kernel, _power(x, p), pads), p)

    return run


def _power(x: torch.Tensor, p: int) -> torch.Tensor:
    return x.abs() if p == 1 else x * x if p == 2 else x.abs() ** p


def _root(x: torch.Tensor, p: int) -> torch.Tensor:
    return x if p == 1 else x.sqrt() if p == 2 else x ** (1 / p)


def _spatial(x: torch.Tensor) -> list[int]:
    return list(range(2, x.dim()))


@operator("GlobalAveragePool")
def global_average_pool(node: Node) -> Run:
    return lambda x: x.mean(_spatial(x), keepdim=True)


@operator("GlobalMaxPool")
def global_max_pool(node: Node) -> Run:
    return lambda x: x.amax(_spatial(x), keepdim=True)


@operator("GlobalLpPool")
def global_lp_pool(node: Node) -> Run:
    p = node.attribute("p", 2)
    return lambda x: _root(_power(x, p).sum(_spatial(x), keepdim=True), p)
