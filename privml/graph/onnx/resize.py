# SPDX-License-Identifier: Apache-2.0
"""Resize: along each axis a public matrix takes the old samples to the new ones."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
import torch

from privml.errors import UnsupportedOperator
from privml.graph.onnx.table import Node, Run, operator
from privml.graph.onnx.values import axis_of, integers

# They spread the samples between the first and the last one.
_BETWEEN_ENDS = ("align_corners", "tf_crop_and_resize")
_DISAGREEMENT = (
    f"{' or '.join(_BETWEEN_ENDS)} with a scale that gives no whole size: onnx and its runtimes disagree on what that "
    "means; give the size instead"
)


@dataclass(frozen=True, slots=True)
class Method:
    """How one sample is made of others; the names are those of ONNX's attributes."""

    mode: str
    coordinates: str
    nearest: str
    cubic_a: float
    exclude_outside: bool
    antialias: bool


@operator("Resize", static=(1, 2, 3))
def resize(node: Node) -> Run:
    method = Method(
        node.choice("mode", "nearest", "nearest", "linear", "cubic"),
        node.choice(
            "coordinate_transformation_mode", "half_pixel", "half_pixel", "half_pixel_symmetric",
            "pytorch_half_pixel", "align_corners", "asymmetric", "tf_half_pixel_for_nn", "tf_crop_and_resize",
        ),
        node.choice(
            "nearest_mode", "round_prefer_floor", "round_prefer_floor", "round_prefer_ceil", "floor", "ceil", "simple"
        ),
        node.attribute("cubic_coeff_a", -0.75),
        node.flag("exclude_outside"),
        node.flag("antialias"),
    )  # fmt: skip
    axes = node.attribute("axes")
    policy = node.choice("keep_aspect_ratio_policy", "stretch", "stretch", "not_larger", "not_smaller")
    outside = node.attribute("extrapolation_value", 0.0)
    shape, known_scales = node.inputs[0].shape, node.value(2)
    if method.coordinates in _BETWEEN_ENDS and known_scales is not None and shape is not None:
        taken = shape if axes is None else [shape[a] for a in axes]
        if not all(s is None or _whole(s, float(f)) for s, f in zip(taken, known_scales, strict=True)):
            node.refuse(_DISAGREEMENT)

    def run(x: torch.Tensor, roi: Any = None, scales: Any = None, sizes: Any = None) -> torch.Tensor:
        along = list(range(x.dim())) if axes is None else [axis_of(a, x.dim()) for a in axes]
        old = [x.shape[a] for a in along]
        factors, new = _targets(old, scales, sizes, policy)
        if method.coordinates in _BETWEEN_ENDS and not all(map(_whole, old, factors)):
            raise UnsupportedOperator(f"Resize: {_DISAGREEMENT}")
        rank = len(along)
        region = [0.0] * rank + [1.0] * rank if roi is None or not np.size(roi) else [float(v) for v in roi]
        inside_all = None
        for i, axis in enumerate(along):
            span = (region[i], region[rank + i]) if method.coordinates == "tf_crop_and_resize" else (0.0, 1.0)
            if old[i] == new[i] and factors[i] == 1.0 and span == (0.0, 1.0):
                continue
            matrix, inside = interpolation(method, old[i], new[i], float(factors[i]), span)
            x = _apply(x, axis, matrix)
            if not inside.all():
                here = torch.from_numpy(inside).reshape([-1] + [1] * (x.dim() - 1 - axis))
                inside_all = here if inside_all is None else inside_all & here
        return x if inside_all is None else torch.where(inside_all, x, outside).to(x.dtype)

    return run


def _whole(size: int, factor: float) -> bool:
    """Whether a scaled size is a whole number, but for rounding of the factor to single precision."""
    return abs(size * factor - round(size * factor)) < 1e-5 * size


def _targets(old: list[int], scales: Any, sizes: Any, policy: str) -> tuple[list[float], list[int]]:
    """Scale factors and new sizes."""
    if sizes is None or not np.size(sizes):
        factors = [float(s) for s in scales]
        return factors, [int(np.floor(size * f + 1e-6)) for size, f in zip(old, factors, strict=True)]
    new = integers(sizes)
    factors = [n / size for n, size in zip(new, old, strict=True)]
    if policy == "stretch":
        return factors, new
    factor = min(factors) if policy == "not_larger" else max(factors)
    return [factor] * len(old), [int(np.floor(factor * size + 0.5)) for size in old]


def _apply(x: torch.Tensor, axis: int, matrix: np.ndarray) -> torch.Tensor:
    """The matrix [new, old] applied along an axis; copying samples needs no product."""
    if np.all(np.isin(matrix, (0.0, 1.0))) and np.all(matrix.sum(1) == 1):
        return x.index_select(axis, torch.from_numpy(matrix.argmax(1)))
    weights = torch.from_numpy(matrix.T.copy()).to(x.dtype if x.dtype.is_floating_point else torch.float32)
    y = torch.matmul(x.movedim(axis, -1).to(weights.dtype), weights).movedim(-1, axis)
    return y.to(x.dtype)


@lru_cache(maxsize=256)
def interpolation(
    method: Method, old: int, new: int, factor: float, span: tuple[float, float]
) -> tuple[np.ndarray, np.ndarray]:
    """Matrix [new, old], and which new samples lie inside the old ones (for tf_crop_and_resize)."""
    matrix = np.zeros((new, old))
    places = _coordinates(method.coordinates, old, new, factor, span)
    for row, place in enumerate(places):
        if method.mode == "nearest":
            matrix[row, int(np.clip(_rounded(place, method.nearest, factor), 0, old - 1))] = 1.0
            continue
        columns, weights = _taps(method, place, factor)
        if method.exclude_outside:
            weights = np.where((columns >= 0) & (columns < old), weights, 0.0)
            weights = weights / weights.sum()
        np.add.at(matrix[row], np.clip(columns, 0, old - 1), weights)
    inside = np.ones(new, bool)
    if method.coordinates == "tf_crop_and_resize":
        inside = (places >= 0) & (places <= old - 1)
    return matrix, inside


def _coordinates(mode: str, old: int, new: int, factor: float, span: tuple[float, float]) -> np.ndarray:
    # In single precision as everywhere else, so that ties are ties.
    at = np.arange(new, dtype=np.float32)
    factor = np.float32(factor)
    length = factor * old
    if mode == "align_corners":
        return np.zeros(new) if new == 1 else at * np.float32(old - 1) / np.float32(new - 1)
    if mode == "asymmetric":
        return at / factor
    if mode == "tf_half_pixel_for_nn":
        return (at + np.float32(0.5)) / factor
    if mode == "tf_crop_and_resize":
        start, end = span
        if new == 1:
            return np.full(1, (end + start) * (old - 1) / 2)
        return start * (old - 1) + at * (end - start) * (old - 1) / (length - 1)
    places = (at + 0.5) / factor - 0.5
    if mode == "pytorch_half_pixel" and length == 1:
        return np.full(new, -0.5)
    if mode == "half_pixel_symmetric":
        return places + old / 2 * (1 - new / length)
    return places


def _rounded(place: float, mode: str, factor: float) -> float:
    if mode == "simple":  # before opset 11
        mode = "floor" if factor >= 1 else "ceil"
    if mode == "floor":
        return np.floor(place)
    if mode == "ceil":
        return np.ceil(place)
    return np.ceil(place - 0.5) if mode == "round_prefer_floor" else np.floor(place + 0.5)


def _taps(method: Method, place: float, factor: float) -> tuple[np.ndarray, np.ndarray]:
    """Old samples a new one at ``place`` is made of, and their weights."""
    base = int(np.floor(place))
    reach = 1 if method.mode == "linear" else 2
    stretch = min(factor, 1.0) if method.antialias else 1.0
    first = int(np.floor(-reach / stretch)) + 1
    offsets = np.arange(first, 2 - first)
    distance = np.abs(offsets - (place - base)) * stretch
    weights = np.clip(1 - distance, 0, 1) if method.mode == "linear" else _cubic(distance, method.cubic_a)
    return base + offsets, weights / weights.sum() if method.antialias else weights


def _cubic(t: np.ndarray, a: float) -> np.ndarray:
    """Keys, "Cubic convolution interpolation for digital image processing" (1981), with parameter ``a``."""
    near = (a + 2) * t**3 - (a + 3) * t**2 + 1
    far = a * t**3 - 5 * a * t**2 + 8 * a * t - 4 * a
    return np.where(t <= 1, near, np.where(t < 2, far, 0.0))


@operator("GridSample")
def grid_sample(node: Node) -> Run:
    modes = {"linear": "bilinear", "nearest": "nearest", "cubic": "bicubic"}
    mode = modes[node.choice("mode", "linear", *modes)]
    padding = node.choice("padding_mode", "zeros", "zeros", "border", "reflection")
    corners = node.flag("align_corners")
    if node.rank(0) not in (None, 4) and mode == "bicubic":
        node.refuse("mode='cubic' is supported in two dimensions only")
    return lambda x, grid: torch.nn.functional.grid_sample(x, grid, mode, padding, corners)
