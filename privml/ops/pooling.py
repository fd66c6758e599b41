# SPDX-License-Identifier: Apache-2.0
"""Maximum pooling by the engine's tournament over windows; its backward reuses the tournament's outcome."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch._ops import OpOverload

from privml.context import keeps_byproducts
from privml.dispatch import dispatch, implements, implements_floating, intercepts
from privml.engines.base import Engine, Share
from privml.formats import FixedPoint, current_node
from privml.ops.activation import SignBit
from privml.ops.creation import filled
from privml.ops.maximum import position, rectified_in
from privml.ops.ring_formats import RingFormat, interval, plain_format, proved, ring_format, width
from privml.ops.values import engine_of, expand, finish, is_secret, join, ring_value, settle
from privml.ops.windows import Windows, as_tuple, bordered_windows, fold, pad, unfold, windows_of
from privml.tensor import SecretTensor

aten = torch.ops.aten


@dataclass(frozen=True, slots=True)
class WindowPosition:
    """Left on the indices: Boolean share [..., windows, window size] of each maximum's position."""

    share: Share


def _max_windows(engine: Engine, share: Share, fmt: RingFormat, w: Windows, places: bool = False) -> Share:
    """Windows padded with what no element undercuts and, where ``places`` are asked for, none equals. Values without
    places are padded with what has their format too, so that their maxima have it in any case."""
    lowest = 1 - (1 << (fmt.bits - 2))
    if not places:
        lowest = max(lowest, interval(fmt)[0])
    return bordered_windows(share, w, lambda shape: engine.public(torch.full(shape, lowest), fmt.bits))


def _max_pool(x: SecretTensor, w: Windows) -> SecretTensor:
    engine, (share, fmt) = engine_of(x), ring_value(x, x.dtype)
    windows = _max_windows(engine, share, fmt, w)
    rounded = _rectified(engine, windows, fmt)
    if rounded is not None:
        return SecretTensor(*rounded, x.placement, x.session, x.dtype)
    values, _ = engine.max_last(windows, fmt.bits)
    return finish(engine, values, fmt, x.placement, x.session, x.dtype)


def _rectified(engine: Engine, windows: Share, fmt: RingFormat) -> tuple[Share, RingFormat] | None:
    """The maxima after the ReLU that alone uses them, if the engine makes both at once and nothing is rounded between
    them. The format then says that they are not negative, so that ReLU leaves them as they are."""
    here = current_node()
    to, own = here.rectified, here.output
    if not engine.rectifies_maxima or not isinstance(to, FixedPoint) or not isinstance(fmt, FixedPoint):
        return None
    if own is not None and (not isinstance(own, FixedPoint) or (own.bits, own.scale) != (fmt.bits, fmt.scale)):
        return None
    return rectified_in(engine, windows, fmt, to, windows=True)


@implements(aten.max_pool2d_with_indices.default, aten.max_pool3d_with_indices.default)
def max_pool_with_indices(
    x: SecretTensor,
    kernel: Any,
    stride: Any = (),
    padding: Any = 0,
    dilation: Any = 1,
    ceil_mode: bool = False,
) -> tuple[SecretTensor, SecretTensor]:
    """Positions cost as much again: they are computed for a backward pass, or when asked for."""
    w = windows_of(x, rank_of(kernel, x), kernel, stride, padding, dilation, ceil_mode)
    engine, placement, session = engine_of(x), x.placement, x.session
    share, fmt = ring_value(x, x.dtype)
    place: Share | None = None
    if keeps_byproducts(x):
        largest, place = engine.max_last(_max_windows(engine, share, fmt, w, True), fmt.bits, True)
        compared = width(fmt) < fmt.bits or not any((*w.before, *w.after))  # or the padding may be the largest
        values = finish(engine, largest, fmt if compared else plain_format(fmt), placement, session, x.dtype)
    else:
        values = _max_pool(x, w)
        share = tuple(c.clone() for c in share)  # later writes must not change the indices

    def index() -> Share:
        found = place or engine.max_last(_max_windows(engine, share, fmt, w, True), fmt.bits, True)[1]
        return flat_index(engine, found, w)

    index_format = proved(64, 0, False, 0, math.prod(w.size) - 1)
    indices = SecretTensor(index, index_format, placement, session, torch.int64, shape=values.shape)
    indices.aux = WindowPosition(place) if place else None
    return values, indices


def rank_of(kernel: Any, x: torch.Tensor) -> int:
    """Spatial dimensions of a pooling of x [n, c, ...] or [c, ...]."""
    return x.dim() - 2 if x.dim() == 5 or isinstance(kernel, int) else len(kernel)


def flat_index(engine: Engine, place: Share, w: Windows) -> Share:
    """torch's flat index into the unpadded image."""
    grid = torch.arange(math.prod(w.size)).reshape(w.size)
    return position(engine, place, unfold(pad(grid, w, 0), w))


@implements(aten.max_pool2d_with_indices_backward.default, aten.max_pool3d_with_indices_backward.default)
def max_pool_with_indices_backward(
    grad: Any, x: Any, kernel: Any, stride: Any, padding: Any, dilation: Any, ceil_mode: bool, indices: Any
) -> Any:
    aux = indices.aux if is_secret(indices) else None
    if not isinstance(aux, WindowPosition):
        return NotImplemented
    return _to_places(grad, x, (kernel, stride, padding, dilation, ceil_mode), indices, aux)


def _to_places(grad: Any, x: Any, window: Sequence[Any], indices: Any, aux: WindowPosition) -> SecretTensor:
    """The gradient at the places that ``aux`` marks, zero elsewhere."""
    if not is_secret(grad):
        grad = filled(indices, grad.shape, grad, grad.dtype)
    kernel, stride, padding, dilation, ceil_mode = window
    w = windows_of(x, rank_of(kernel, x), kernel, stride, padding, dilation, ceil_mode)
    share, fmt = ring_value(grad, grad.dtype)
    placement = join(grad.placement, indices.placement)
    engine = grad.session.engine_for(placement)
    spread = expand(tuple(c.unsqueeze(-1) for c in share), aux.share[0].shape)
    chosen = engine.select(aux.share, spread, fmt.bits)
    to = ring_format(fmt.bits, fmt.scale, True)
    total = settle(engine, engine.additive(lambda c: fold(c, w), chosen), to)
    return SecretTensor(total, to, placement, grad.session, grad.dtype)


# ---- relu(max_pool(x)), for graphs that have both directions
def gated_positions(indices: Any, positive: Any) -> WindowPosition | None:
    """The places whose values went through, for ``positive`` = relu of the pooled values; None if other rules serve
    (``gated_pool_backward`` then takes two steps)."""
    if not is_secret(indices) or not is_secret(positive):
        return None
    place, bit = indices.aux, positive.aux
    if not isinstance(place, WindowPosition) or not isinstance(bit, SignBit):
        return None
    engine = positive.session.engine_for(join(indices.placement, positive.placement))
    spread = expand(tuple(c.unsqueeze(-1) for c in bit.share), place.share[0].shape)
    return WindowPosition(engine.logical_and(place.share, spread))


def gated_pool_backward(
    grad: Any, x: Any, window: Sequence[Any], indices: Any, positive: Any, gates: WindowPosition | None
) -> Any:
    """The gradient of relu(max_pool(x)), by one selection if the bits of both are available."""
    if gates is None:
        through = aten.threshold_backward(grad, positive, 0)
        backward = (
            aten.max_pool2d_with_indices_backward if len(window[0]) == 2 else aten.max_pool3d_with_indices_backward
        )
        return backward(through, x, *window, indices)
    return _to_places(grad, x, window, indices, gates)


@implements(aten.max_pool1d.default, aten.max_pool2d.default, aten.max_pool3d.default)
def max_pool(
    x: SecretTensor,
    kernel: Any,
    stride: Any = (),
    padding: Any = 0,
    dilation: Any = 1,
    ceil_mode: bool = False,
) -> SecretTensor:
    return _max_pool(x, windows_of(x, len(kernel), kernel, stride, padding, dilation, ceil_mode))


@implements_floating(aten.adaptive_max_pool2d.default, aten.adaptive_max_pool3d.default)
@implements(aten.adaptive_max_pool2d.default, aten.adaptive_max_pool3d.default)
def adaptive_max_pool(x: SecretTensor, size: Sequence[int]) -> Any:
    """Where the windows are all of one size."""
    lengths = x.shape[-len(size) :]
    if any(n % m for n, m in zip(lengths, size, strict=True)):
        return NotImplemented
    pool = aten.max_pool2d_with_indices if len(size) == 2 else aten.max_pool3d_with_indices
    return dispatch(pool.default, (x, [n // m for n, m in zip(lengths, size, strict=True)]), {})


def _without_indices(operator: OpOverload, rank: int, *functions: Callable) -> None:
    @intercepts(*functions, operator)
    def rule(
        input: Any,
        kernel_size: Any,
        stride: Any = None,
        padding: Any = 0,
        dilation: Any = 1,
        ceil_mode: bool = False,
    ) -> Any:
        """torch always asks for indices; without a backward pass they are not used."""
        if not is_secret(input) or keeps_byproducts(input):
            return NotImplemented
        kernel = as_tuple(kernel_size, rank)
        return dispatch(operator, (input, kernel, stride or (), padding, dilation, ceil_mode), {})


_without_indices(aten.max_pool2d.default, 2, torch.max_pool2d)
_without_indices(aten.max_pool3d.default, 3, torch.max_pool3d)
