# SPDX-License-Identifier: Apache-2.0
"""A convolution as a product of matrices: the patches of an image as columns."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import torch
import torch.nn.functional as F

from privml.engines.shares import Share, Window


def out_size(x: torch.Size, w: torch.Size, window: Window) -> tuple[int, int]:
    """Height and width of the result of x [n, c, h, w] and w [o, c / groups, kh, kw]."""
    places = zip(x[2:], w[2:], window.stride, window.padding, window.dilation, strict=True)
    high, wide = ((n + 2 * pad - d * (k - 1) - 1) // s + 1 for n, k, s, pad, d in places)
    if high < 1 or wide < 1 or w[1] * window.groups != x[1]:
        raise ValueError(f"conv2d: shapes {tuple(x)} and {tuple(w)} do not fit")
    return high, wide


def patches(x: torch.Tensor, kernel: Sequence[int], window: Window, size: tuple[int, int]) -> torch.Tensor:
    """[groups, c / groups * kh * kw, n * h' * w'] of x [n, c, h, w], with zero padding."""
    (top, left), (high, wide) = window.padding, size
    x = F.pad(x, (left, left, top, top)).contiguous()
    n, c = x.shape[:2]
    image, channel, row, column = x.stride()
    strides = (channel, row * window.dilation[0], column * window.dilation[1], image)
    steps = row * window.stride[0], column * window.stride[1]
    columns = x.as_strided((c, *kernel, n, high, wide), (*strides, *steps))
    return columns.reshape(window.groups, c // window.groups * kernel[0] * kernel[1], n * high * wide)


def convolution(
    x: Share, w: Share | tuple[torch.Tensor], window: Window, matmul: Callable[[Share, Share], Share]
) -> Share:
    """conv2d of x [n, c, h, w] with w [o, c / groups, kh, kw], where ``matmul`` multiplies batches of matrices: those
    of the weights [groups, o / groups, k] with the patches."""
    (n, _, _, _), (o, _, *kernel) = x[0].shape, w[0].shape
    size = out_size(x[0].shape, w[0].shape, window)
    rows = tuple(c.reshape(window.groups, o // window.groups, -1) for c in w)
    products = matmul(rows, tuple(patches(c, kernel, window, size) for c in x))
    return tuple(c.view(o, n, *size).transpose(0, 1).contiguous() for c in products)
