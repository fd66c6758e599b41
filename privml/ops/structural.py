# SPDX-License-Identifier: Apache-2.0
"""Operators that move elements: applied to every component of the share, the same on every engine."""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce
from typing import Any

import torch
from torch._ops import OpOverload

from privml.dispatch import implements
from privml.engines.shares import Promise
from privml.errors import SecretLeakError
from privml.formats import Boolean, Float
from privml.ops import secret_places
from privml.ops.masks import mask_of, masked
from privml.ops.rescaling import convert
from privml.ops.ring_formats import bit_value, interval, nonnegative, of_interval, plain_format, proved, width
from privml.ops.values import claimed, constant, engine_of, is_secret, like, ring_value, settle, unify
from privml.tensor import SecretTensor

aten = torch.ops.aten


# ---- views: results alias the storage, so they share its cell (a copy that shares one loses nothing)
def _alias(x: SecretTensor, share: tuple[torch.Tensor, ...]) -> SecretTensor:
    if torch.is_inference_mode_enabled() and not x.is_inference():
        with torch.inference_mode(False):  # a view of a normal tensor is a normal tensor
            return SecretTensor(share, x.format, x.placement, x.session, x.dtype, cell=x.cell)
    return SecretTensor(share, x.format, x.placement, x.session, x.dtype, cell=x.cell)


def _view(operator: OpOverload) -> None:
    @implements(operator)
    def rule(x: SecretTensor, *args: Any, **kwargs: Any) -> SecretTensor:
        result = _alias(x, tuple([operator(component, *args, **kwargs) for component in x.share]))
        if x._aux is None:
            return result
        hidden = None if operator is aten.as_strided.default else mask_of(x)
        return result if hidden is None else masked(result, operator(hidden.contiguous(), *args, **kwargs))

    rule.__name__ = str(operator)


def _many_views(operator: OpOverload, alias: bool = True) -> None:
    @implements(operator)
    def rule(x: SecretTensor, *args: Any, **kwargs: Any) -> list[SecretTensor]:
        parts = [operator(component, *args, **kwargs) for component in x.share]
        make = _alias if alias else like
        return [make(x, piece) for piece in zip(*parts, strict=True)]

    rule.__name__ = str(operator)


for _operator in (
    aten._unsafe_view.default, aten.t.default, aten.transpose.int, aten.permute.default, aten.expand.default,
    aten.slice.Tensor, aten.select.int, aten.unsqueeze.default, aten.squeeze.default, aten.squeeze.dim,
    aten.squeeze.dims, aten.as_strided.default, aten.unfold.default, aten.diagonal.default, aten.movedim.int,
    aten.numpy_T.default, aten.flatten.using_ints, aten.reshape.default, aten._reshape_alias.default,
    aten.unflatten.int, aten.swapaxes.default, aten.contiguous.default,
):  # fmt: skip
    _view(_operator)

for _operator in (aten.split.Tensor, aten.split_with_sizes.default, aten.unbind.int, aten.chunk.default):
    _many_views(_operator)
for _operator in (
    aten.unsafe_split.Tensor, aten.unsafe_split_with_sizes.default, aten.unsafe_chunk.default,
    aten.split_copy.Tensor, aten.split_with_sizes_copy.default, aten.unbind_copy.int,
):  # fmt: skip
    _many_views(_operator, alias=False)


@implements(aten.view.default)
def view(x: SecretTensor, size: Sequence[int]) -> SecretTensor:
    try:
        result = _alias(x, tuple([component.view(size) for component in x.share]))
    except RuntimeError:  # an exported graph may assume other strides; a copy is right in a functional graph
        result = like(x, tuple([component.reshape(size) for component in x.share]))
    hidden = mask_of(x)
    return result if hidden is None else masked(result, hidden.reshape(size))


@implements(aten.detach.default, aten.alias.default)
def detach(x: SecretTensor) -> SecretTensor:
    if x.is_deferred:
        result = SecretTensor(lambda: x.share, x.format, x.placement, x.session, x.dtype, cell=x.cell, shape=x.shape)
    else:
        result = _alias(x, tuple([torch.ops.aten.alias(component) for component in x.share]))
    result._aux = x._aux  # autograd saves outputs through detach
    return result


# ---- copies
def _copying(operator: OpOverload) -> None:
    @implements(operator)
    def rule(x: SecretTensor, *args: Any, **kwargs: Any) -> SecretTensor:
        if any(is_secret(a) for a in args):
            return NotImplemented
        return like(x, tuple([operator(component, *args, **kwargs) for component in x.share]))

    rule.__name__ = str(operator)


for _operator in (
    aten.clone.default, aten.flip.default, aten.roll.default, aten.repeat.default, aten.tril.default,
    aten.triu.default, aten.slice_backward.default, aten.select_backward.default, aten.diagonal_backward.default,
    aten.diag_embed.default, aten.pixel_shuffle.default, aten.pixel_unshuffle.default, aten.channel_shuffle.default,
    aten.view_copy.default, aten.permute_copy.default, aten.transpose_copy.int, aten.t_copy.default,
    aten.expand_copy.default, aten.unsqueeze_copy.default, aten.squeeze_copy.dims, aten.slice_copy.Tensor,
    aten.select_copy.int, aten.detach_copy.default, aten.repeat_interleave.self_int, aten.rot90.default,
    aten.lift_fresh_copy.default,
):  # fmt: skip
    _copying(_operator)


@implements(aten.unfold_backward.default)
def unfold_backward(grad: SecretTensor, *args: Any) -> SecretTensor:
    engine = engine_of(grad)
    share = engine.additive(lambda c: aten.unfold_backward(c, *args), grad.share)
    return like(grad, settle(engine, share, grad.format), plain_format(grad.format))


@implements(aten._to_copy.default)
def to_copy(x: SecretTensor, dtype: torch.dtype | None = None, device: Any = None, **options: Any) -> Any:
    dtype = dtype or x.dtype
    share = x.share
    if device is not None and torch.device(device).type != share[0].device.type:
        raise SecretLeakError(
            f"a secret tensor stays on its engine's device ({share[0].device}); choose another engine instead"
        )
    if dtype is torch.bool and x.dtype is not torch.bool:
        return x != 0
    if x.dtype.is_floating_point and not dtype.is_floating_point:
        return _toward_zero(x, dtype)
    if dtype.is_floating_point and not x.dtype.is_floating_point and isinstance(x.session.real, Float):
        return like(x, convert(engine_of(x), share, x.format, x.session.real), x.session.real, dtype)
    if _is_narrower(dtype, x.dtype):
        return _wrapped(x, dtype)
    if x.dtype.is_floating_point == dtype.is_floating_point and x.dtype is not torch.bool:
        return like(x, tuple(component.clone() for component in share), None, dtype)
    share, fmt = ring_value(x, dtype)
    if isinstance(x.format, Boolean) and not dtype.is_floating_point:
        bits = x.session.working.bits
        fmt = bit_value(bits)
        share = convert(engine_of(x), x.share, x.format, fmt)
    return like(x, tuple(c.clone() for c in share) if share is x.share else share, fmt, dtype)


def _is_narrower(dtype: torch.dtype, source: torch.dtype) -> bool:
    """Whether integers of ``source`` may wrap in ``dtype``."""
    if dtype.is_floating_point or source.is_floating_point or source is torch.bool:
        return False
    held, wanted = torch.iinfo(source), torch.iinfo(dtype)
    return held.min < wanted.min or held.max > wanted.max


def _wrapped(x: SecretTensor, dtype: torch.dtype) -> SecretTensor:
    """Integers modulo the width of a narrow dtype, as torch wraps them."""
    info, (share, fmt) = torch.iinfo(dtype), ring_value(x, torch.int64)
    if info.bits >= width(fmt) and (info.min < 0 or fmt.nonnegative):
        return like(x, tuple(c.clone() for c in share), fmt, dtype)
    bits = min(info.bits, fmt.bits)
    share = engine_of(x).extend(share, bits, max(fmt.bits, bits + 1), info.min < 0)
    half = 1 << (bits - 1)
    low, high = (-half, half - 1) if info.min < 0 else (0, 2 * half - 1)
    return like(x, share, proved(max(fmt.bits, bits + 1), 0, False, low, high), dtype)


def _toward_zero(x: SecretTensor, dtype: torch.dtype) -> SecretTensor:
    """Fixed point to integer as torch does: floor of nonnegative values, ceiling of negative ones."""
    engine, (share, fmt) = engine_of(x), ring_value(x, x.dtype)
    if fmt.scale and not fmt.nonnegative:
        negative = engine.bits_to_ring(engine.less_than_zero(share, fmt.bits), fmt.bits)
        almost_one = engine.multiply_public(negative, (1 << fmt.scale) - 1, fmt.bits)
        share = engine.add(share, almost_one, fmt.bits)
    if fmt.scale:
        share = engine.floor(share, fmt.bits, fmt.scale, Promise(fmt.nonnegative))
    low, high = interval(fmt)
    return claimed(like(x, share, dtype=dtype), proved(fmt.bits, 0, False, -(-low >> fmt.scale), high >> fmt.scale))


@implements(aten.floor.default)
def floor(x: SecretTensor) -> SecretTensor:
    """The truncation of fixed point is a floor already."""
    fmt, engine = x.format, engine_of(x)
    if not fmt.scale:
        return x.clone()
    share = engine.floor(x.share, fmt.bits, fmt.scale, Promise(nonnegative(fmt)))
    low, high = interval(fmt)
    to = of_interval(fmt, low >> fmt.scale << fmt.scale, high)
    return like(x, engine.multiply_public(share, 1 << fmt.scale, fmt.bits), to)


@implements(aten.ceil.default)
def ceil(x: SecretTensor) -> SecretTensor:
    return -floor(-x)


@implements(aten.trunc.default)
def trunc(x: SecretTensor) -> SecretTensor:
    return x.to(torch.int64).to(x.dtype)


@implements(aten.nan_to_num.default)
def nan_to_num(x: SecretTensor, nan: Any = None, posinf: Any = None, neginf: Any = None) -> SecretTensor:
    return x.clone()  # ring elements are finite


# ---- several tensors into one
def _joined(tensors: Sequence[Any], function: Any) -> SecretTensor:
    """``function`` of each component of all tensors, brought to one format."""
    dtype = reduce(torch.promote_types, (t.dtype for t in tensors))
    shares, fmt, placement, session = unify(tensors, dtype)
    share = tuple(function(parts) for parts in zip(*shares, strict=True))
    return SecretTensor(share, fmt, placement, session, dtype)


@implements(aten.cat.default, aten.concat.default)
def cat(tensors: Sequence[Any], dim: int = 0) -> SecretTensor:
    tensors = [t for t in tensors if t.dim() != 1 or t.shape[0] != 0] or tensors[:1]
    return _joined(tensors, lambda parts: torch.cat(parts, dim))


@implements(aten.stack.default)
def stack(tensors: Sequence[Any], dim: int = 0) -> SecretTensor:
    return _joined(tensors, lambda parts: torch.stack(parts, dim))


# ---- padding and public indices
@implements(aten.constant_pad_nd.default)
def constant_pad_nd(x: SecretTensor, pad: Sequence[int], value: Any = 0) -> SecretTensor:
    share = tuple(aten.constant_pad_nd(component, pad, 0) for component in x.share)
    if not value:
        return like(x, share)
    inside = aten.constant_pad_nd(torch.ones(x.shape, dtype=torch.bool), pad, False)
    fmt = x.format if isinstance(x.format, (Boolean, Float)) else plain_format(ring_value(x, x.dtype)[1])
    border = constant(value, inside.shape, fmt, engine_of(x))
    return like(x, tuple(torch.where(inside, c, b) for c, b in zip(share, border, strict=True)), fmt)


def _gathered(x: SecretTensor, pick: Any) -> SecretTensor:
    return like(x, tuple(pick(component) for component in x.share))


@implements(aten.index_select.default)
def index_select(x: Any, dim: int, index: Any) -> Any:
    if is_secret(index):
        return secret_places.index_select(x, dim, index)
    return _gathered(x, lambda c: c.index_select(dim, index))


@implements(aten.gather.default)
def gather(x: Any, dim: int, index: Any, sparse_grad: bool = False) -> Any:
    if is_secret(index):
        return secret_places.gather(x, dim, index)
    return _gathered(x, lambda c: c.gather(dim, index))


@implements(aten.take.default)
def take(x: Any, index: Any) -> Any:
    return NotImplemented if is_secret(index) else _gathered(x, lambda c: c.take(index))


@implements(aten.index.Tensor, aten._unsafe_index.Tensor)
def index(x: Any, indices: Sequence[Any]) -> Any:
    if any(is_secret(i) for i in indices):
        if any(is_secret(i) and i.dtype is torch.bool for i in indices):
            raise SecretLeakError(
                "x[mask] with a secret mask has a shape that would reveal how many elements are chosen; "
                "use torch.where(mask, x, other)"
            )
        return secret_places.at(x, indices)
    return _gathered(x, lambda c: aten.index(c, indices))


@implements(aten.embedding.default)
def embedding(weight: Any, indices: Any, padding_idx: int = -1, scale_grad: bool = False, sparse: bool = False) -> Any:
    if is_secret(indices):
        return secret_places.at(weight, [indices])
    return _gathered(weight, lambda c: c[indices])


@implements(aten.embedding_dense_backward.default)
def embedding_dense_backward(grad: Any, indices: Any, count: int, padding_idx: int, scale_grad: bool) -> Any:
    if is_secret(indices) or scale_grad:
        return NotImplemented
    rows = grad.reshape(-1, grad.shape[-1])
    flat = indices.reshape(-1)
    if padding_idx >= 0:
        rows, flat = rows[flat != padding_idx], flat[flat != padding_idx]
    engine = engine_of(rows)
    share = engine.additive(lambda c: c.new_zeros(count, c.shape[-1]).index_add_(0, flat, c), rows.share)
    return like(rows, settle(engine, share, rows.format), plain_format(rows.format))


@implements(aten.is_pinned.default)
def is_pinned(x: SecretTensor, device: Any = None) -> bool:
    return False


@implements(aten.is_same_size.default)
def is_same_size(a: torch.Tensor, b: torch.Tensor) -> bool:
    return a.shape == b.shape


@implements(aten._assert_tensor_metadata.default, aten._assert_async.default, aten._assert_async.msg)
def nothing(*args: Any, **kwargs: Any) -> None:
    return None
