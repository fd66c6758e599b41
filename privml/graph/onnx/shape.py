# SPDX-License-Identifier: Apache-2.0
"""Operators that rearrange elements: reshape, concatenate, slice, pad."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F

from privml.graph.onnx import window
from privml.graph.onnx.table import Node, Run, operator
from privml.graph.onnx.values import axis_of, integers


@operator("Reshape", static=(1,))
def reshape(node: Node) -> Run:
    literal_zero = node.flag("allowzero")

    def run(x: torch.Tensor, shape: np.ndarray) -> torch.Tensor:
        sizes = integers(shape)
        if not literal_zero:
            sizes = [x.shape[i] if isinstance(s, int) and s == 0 else s for i, s in enumerate(sizes)]
        return x.reshape(sizes)

    return run


@operator("Flatten")
def flatten(node: Node) -> Run:
    axis = node.attribute("axis", 1)

    def run(x: torch.Tensor) -> torch.Tensor:
        at = axis if axis == x.dim() else axis_of(axis, x.dim())
        if at == 1 and x.dim() > 1:
            return torch.flatten(x, 1)
        return x.reshape(math.prod(x.shape[:at]), math.prod(x.shape[at:]))

    return run


@operator("Transpose")
def transpose(node: Node) -> Run:
    order = node.attribute("perm")
    return lambda x: x.permute(list(order or reversed(range(x.dim()))))


@operator("Concat")
def concat(node: Node) -> Run:
    axis = node.attribute("axis")
    return lambda *parts: torch.cat(parts, axis)


@operator("Split", static=(1,))
def split(node: Node) -> Run:
    axis = node.attribute("axis", 0)
    count = node.attribute("num_outputs", len(node.wanted))

    def run(x: torch.Tensor, sizes: np.ndarray | None = None) -> tuple[torch.Tensor, ...]:
        if sizes is not None:
            return tuple(torch.split(x, integers(sizes), axis))
        size = -(-x.shape[axis] // count)
        parts = [size] * (count - 1)
        return tuple(torch.split(x, [*parts, x.shape[axis] - sum(parts)], axis))

    return run


@operator("Squeeze", static=(1,))
def squeeze(node: Node) -> Run:
    def run(x: torch.Tensor, axes: np.ndarray | None = None) -> torch.Tensor:
        return x.squeeze() if axes is None else x.squeeze(integers(axes))

    return run


@operator("Unsqueeze", static=(1,))
def unsqueeze(node: Node) -> Run:
    def run(x: torch.Tensor, axes: np.ndarray) -> torch.Tensor:
        rank = x.dim() + np.size(axes)
        for axis in sorted(axis_of(a, rank) for a in integers(axes)):
            x = x.unsqueeze(axis)
        return x

    return run


@operator("Slice", static=(1, 2, 3, 4))
def slice_(node: Node) -> Run:
    def run(x: torch.Tensor, starts: Any, ends: Any, axes: Any = None, steps: Any = None) -> torch.Tensor:
        begin, end = integers(starts), integers(ends)
        along = list(range(len(begin))) if axes is None else [axis_of(a, x.dim()) for a in integers(axes)]
        step = [1] * len(begin) if steps is None else integers(steps)
        for axis, b, e, s in zip(along, begin, end, step, strict=True):
            x = _sliced(x, axis, b, e, s)
        return x

    return run


def _sliced(x: torch.Tensor, axis: int, begin: Any, end: Any, step: int) -> torch.Tensor:
    """x[begin:end:step] along ``axis``; backwards it starts at the first element where ``begin`` lies before that,
    while NumPy takes nothing. torch slices forwards only."""
    before = (slice(None),) * axis
    if step > 0:
        return x[(*before, slice(begin, end, step))]
    begin = max(begin, -x.shape[axis])
    taken = range(*slice(begin, end, step).indices(x.shape[axis]))
    if not len(taken):
        return x[(*before, slice(0, 0))]
    return x[(*before, slice(taken[-1], taken[0] + 1, -step))].flip(axis)


@operator("Expand", static=(1,))
def expand(node: Node) -> Run:
    def run(x: torch.Tensor, shape: np.ndarray) -> torch.Tensor:
        return x.expand(torch.broadcast_shapes(x.shape, tuple(integers(shape))))

    return run


@operator("Tile", static=(1,))
def tile(node: Node) -> Run:
    return lambda x, repeats: x.repeat(integers(repeats))


@operator("ConstantOfShape", static=(0,))
def constant_of_shape(node: Node) -> Run:
    from onnx import numpy_helper

    value = node.attribute("value")
    fill = np.zeros(1, np.float32) if value is None else numpy_helper.to_array(value)
    tensor = torch.from_numpy(fill.copy()).reshape(())
    return lambda shape: torch.full(integers(shape), tensor.item(), dtype=tensor.dtype)


_MODES = ("constant", "reflect", "edge", "wrap")


@operator("Range", static=(0, 1, 2))
def range_(node: Node) -> Run:
    # Reached only when a bound is a size that export keeps symbolic; all others are folded.
    return lambda start, limit, delta: torch.arange(*(v.item() for v in (start, limit, delta)))


@operator("Pad", static=(1, 3))
def pad(node: Node) -> Run:
    mode = node.choice("mode", "constant", *_MODES)
    fill = node.take(2)
    if node.has(2) and mode == "constant":
        node.refuse("constant_value must be a constant of the model")
    fill = 0 if fill is None else fill

    def run(x: torch.Tensor, pads: np.ndarray, _: Any = None, axes: Any = None) -> torch.Tensor:
        sizes = integers(pads)
        along = list(range(x.dim())) if axes is None else [axis_of(a, x.dim()) for a in integers(axes)]
        before = dict(zip(along, sizes[: len(along)], strict=True))
        after = dict(zip(along, sizes[len(along) :], strict=True))
        if mode == "constant":
            return window.pad(x, [(before.get(axis, 0), after.get(axis, 0)) for axis in range(x.dim())], fill)
        for axis in along:
            x = _reflected(x, axis, before[axis], after[axis], mode)
        return x

    return run


def _reflected(x: torch.Tensor, axis: int, before: int, after: int, mode: str) -> torch.Tensor:
    """Padding with elements of ``x`` itself; torch's own is limited to the last dimensions."""
    if before == after == 0:
        return x
    # What negative paddings cut off is not there to be repeated.
    kept = np.arange(x.shape[axis])[max(-before, 0) : x.shape[axis] - max(-after, 0)]
    places = np.pad(kept, (max(before, 0), max(after, 0)), mode=mode)
    return x.index_select(axis, torch.from_numpy(places))


@operator("DepthToSpace")
def depth_to_space(node: Node) -> Run:
    block, mode = node.attribute("blocksize"), node.choice("mode", "DCR", "DCR", "CRD")
    if mode == "CRD":
        return lambda x: F.pixel_shuffle(x, block)

    def run(x: torch.Tensor) -> torch.Tensor:
        n, c, h, w = x.shape
        y = x.reshape(n, block, block, c // block**2, h, w).permute(0, 3, 4, 1, 5, 2)
        return y.reshape(n, c // block**2, h * block, w * block)

    return run


@operator("SpaceToDepth")
def space_to_depth(node: Node) -> Run:
    block = node.attribute("blocksize")
    mode = node.choice("mode", "DCR", "DCR", "CRD")
    order = (0, 3, 5, 1, 2, 4) if mode == "DCR" else (0, 1, 3, 5, 2, 4)

    def run(x: torch.Tensor) -> torch.Tensor:
        n, c, h, w = x.shape
        y = x.reshape(n, c, h // block, block, w // block, block).permute(order)
        return y.reshape(n, c * block**2, h // block, w // block)

    return run
