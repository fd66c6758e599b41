# SPDX-License-Identifier: Apache-2.0
"""Geometry of sliding windows (convolution, pooling): ONNX's paddings in torch's terms."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch
import torch.nn.functional as F

from privml.graph.onnx.table import Node

Pads = list[tuple[int, int]]  # (before, after) per spatial dimension


@dataclass(frozen=True, slots=True)
class Window:
    """Attributes shared by convolution and pooling; None where the file gives none."""

    auto_pad: str
    pads: tuple[int, ...] | None
    strides: tuple[int, ...] | None
    dilations: tuple[int, ...] | None
    ceil_mode: bool

    def stride(self, n: int) -> list[int]:
        return [1] * n if self.strides is None else list(self.strides)

    def dilation(self, n: int) -> list[int]:
        return [1] * n if self.dilations is None else list(self.dilations)

    def padding(self, sizes: Sequence[Any], kernel: Sequence[int]) -> Pads:
        """Padding of each spatial dimension for an input of these sizes."""
        n = len(sizes)
        if self.auto_pad == "VALID":
            return [(0, 0)] * n
        if self.auto_pad == "NOTSET":
            flat = [0] * 2 * n if self.pads is None else list(self.pads)
            return list(zip(flat[:n], flat[n:], strict=True))
        pads = []
        for size, k, s, d in zip(sizes, kernel, self.stride(n), self.dilation(n), strict=True):
            total = max((-(-size // s) - 1) * s + (k - 1) * d + 1 - size, 0)
            less, more = total // 2, total - total // 2
            pads.append((less, more) if self.auto_pad == "SAME_UPPER" else (more, less))
        return pads

    def output(self, sizes: Sequence[Any], kernel: Sequence[int], pads: Pads) -> list[Any]:
        """Number of windows per dimension; with ceil_mode the last one may start no later than the padding
        before it ends."""
        result = []
        for size, k, s, d, (lo, hi) in zip(
            sizes, kernel, self.stride(len(sizes)), self.dilation(len(sizes)), pads, strict=True
        ):
            free = size + lo + hi - (k - 1) * d - 1
            if isinstance(free, int) and free < 0:  # onnxruntime counts one window, onnx none
                raise ValueError(f"a window of {(k - 1) * d + 1} elements on {size} and paddings {lo} and {hi}")
            count = (-(-free // s) if self.ceil_mode else free // s) + 1
            if self.ceil_mode and (count - 1) * s >= size + lo:
                count -= 1
            result.append(count)
        return result


def window(node: Node) -> Window:
    """The window of a node; refuses unknown paddings."""

    def sizes(name: str) -> tuple[int, ...] | None:
        value = node.attribute(name)
        return None if value is None else tuple(value)

    auto_pad = node.choice("auto_pad", "NOTSET", "NOTSET", "VALID", "SAME_UPPER", "SAME_LOWER")
    return Window(auto_pad, sizes("pads"), sizes("strides"), sizes("dilations"), node.flag("ceil_mode"))


def torch_pads(pads: Pads) -> list[int]:
    """Paddings in the order of torch.nn.functional.pad: last dimension first."""
    return [p for pair in reversed(pads) for p in pair]


def symmetric(pads: Pads) -> bool:
    return all(lo == hi for lo, hi in pads)


def pad(x: torch.Tensor, pads: Pads, value: float = 0.0) -> torch.Tensor:
    """Padding (cropping where negative) of the last dimensions; ``x`` itself when there is none."""
    for dim, (lo, hi) in enumerate(pads, x.dim() - len(pads)):
        if lo < 0 or hi < 0:  # torch's own cropping cannot be traced where the batch varies
            if x.shape[dim] < max(-lo, 0) + max(-hi, 0):
                raise ValueError(f"paddings {lo} and {hi} cut more off than the {x.shape[dim]} elements of axis {dim}")
            x = x[(slice(None),) * dim + (slice(max(-lo, 0), x.shape[dim] - max(-hi, 0)),)]
    added = [(max(lo, 0), max(hi, 0)) for lo, hi in pads]
    return x if all(p == (0, 0) for p in added) else F.pad(x, torch_pads(added), value=value)


def check_spatial(node: Node, index: int = 0) -> None:
    """torch has these operators for one to three spatial dimensions."""
    rank = node.rank(index)
    if rank is not None and not 3 <= rank <= 5:
        node.refuse(f"an input of rank {rank}; 1 to 3 spatial dimensions are supported")
