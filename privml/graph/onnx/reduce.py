# SPDX-License-Identifier: Apache-2.0
"""Reductions over axes."""

from __future__ import annotations

import itertools
import operator as operator_module
from collections.abc import Callable
from typing import Any

import numpy as np
import torch

from privml.graph.onnx.table import Node, Run, operator
from privml.graph.onnx.values import axis_of, integers

Reduction = Callable[[torch.Tensor, list[int], bool], torch.Tensor]


def _mean(x: torch.Tensor, axes: list[int], keep: bool) -> torch.Tensor:
    return x.mean(axes, keep)


def _sum(x: torch.Tensor, axes: list[int], keep: bool) -> torch.Tensor:
    return x.sum(axes, keep, dtype=x.dtype)


def _product(x: torch.Tensor, axes: list[int], keep: bool) -> torch.Tensor:
    for axis in sorted(axes, reverse=True):
        if x.shape[axis] == 0:
            x = torch.ones_like(x.sum(axis, keepdim=True, dtype=x.dtype))
        while x.shape[axis] > 1:  # products of pairs: the depth of secure products is logarithmic
            half = x.shape[axis] // 2
            pairs = x.narrow(axis, 0, half) * x.narrow(axis, half, half)
            rest = x.narrow(axis, 2 * half, x.shape[axis] - 2 * half)
            x = torch.cat([pairs, rest], axis) if rest.shape[axis] else pairs
        x = x if keep else x.squeeze(axis)
    return x


def _farthest(dtype: torch.dtype, sign: int) -> float | int | bool:
    """The largest (sign > 0) or smallest value of a type."""
    if dtype is torch.bool:
        return sign > 0
    if dtype.is_floating_point:
        return sign * float("inf")
    return torch.iinfo(dtype).max if sign > 0 else torch.iinfo(dtype).min


def _extreme(reduce: Callable[..., torch.Tensor], sign: int) -> Reduction:
    def run(x: torch.Tensor, axes: list[int], keep: bool) -> torch.Tensor:
        if 0 not in [x.shape[axis] for axis in axes]:
            return reduce(x, axes, keep)
        empty = x.sum(axes, keep, dtype=x.dtype)  # the shape of the result, of nothing
        return torch.full(empty.shape, _farthest(x.dtype, sign), dtype=x.dtype)

    return run


_REDUCTIONS: dict[str, Reduction] = {
    "ReduceMean": _mean,
    "ReduceSum": _sum,
    "ReduceProd": _product,
    "ReduceMax": _extreme(torch.amax, -1),
    "ReduceMin": _extreme(torch.amin, 1),
    "ReduceL1": lambda x, axes, keep: _sum(x.abs(), axes, keep),
    "ReduceL2": lambda x, axes, keep: _sum(x * x, axes, keep).sqrt(),
    "ReduceSumSquare": lambda x, axes, keep: _sum(x * x, axes, keep),
    "ReduceLogSum": lambda x, axes, keep: _sum(x, axes, keep).log(),
    "ReduceLogSumExp": lambda x, axes, keep: torch.logsumexp(x, axes, keep),
}


@operator(*_REDUCTIONS, static=(1,))
def reduction(node: Node) -> Run:
    reduce = _REDUCTIONS[node.op_type]
    keep, keeps_all = node.flag("keepdims", True), node.flag("noop_with_empty_axes")

    def run(x: torch.Tensor, axes: np.ndarray | None = None) -> torch.Tensor:
        along = [] if axes is None else [axis_of(a, x.dim()) for a in integers(axes)]
        if along:
            return reduce(x, along, keep)
        if not keeps_all:
            return reduce(x, list(range(x.dim())), keep)
        # Nothing is reduced, but the function of one element is still applied.
        return reduce(x.unsqueeze(-1), [x.dim()], False)

    return run


@operator("ArgMax", "ArgMin")
def arg_extreme(node: Node) -> Run:
    axis, keep = node.attribute("axis", 0), node.flag("keepdims", True)
    last = node.flag("select_last_index")
    find = torch.argmax if node.op_type == "ArgMax" else torch.argmin

    def run(x: torch.Tensor) -> torch.Tensor:
        if last:
            return x.shape[axis] - 1 - find(x.flip(axis), axis, keep)
        return find(x, axis, keep)

    return run


@operator("CumSum", static=(1,))
def cumulative_sum(node: Node) -> Run:
    return _cumulative(node, torch.cumsum, 0)


@operator("CumProd", static=(1,))
def cumulative_product(node: Node) -> Run:
    return _cumulative(node, _running_product, 1)


def _running_product(x: torch.Tensor, axis: int, dtype: torch.dtype) -> torch.Tensor:
    return torch.stack(list(itertools.accumulate(x.unbind(axis), operator_module.mul)), axis)


def _cumulative(node: Node, accumulate: Callable[..., torch.Tensor], first: int) -> Run:
    exclusive, reverse = node.flag("exclusive"), node.flag("reverse")

    def run(x: torch.Tensor, axis: Any) -> torch.Tensor:
        along = integers(axis)[0]
        x = x.flip(along) if reverse else x
        if exclusive:
            size = x.shape[along]
            x = torch.cat([torch.full_like(x.narrow(along, 0, 1), first), x.narrow(along, 0, size - 1)], along)
        y = accumulate(x, along, dtype=x.dtype)
        return y.flip(along) if reverse else y

    return run
