# SPDX-License-Identifier: Apache-2.0
"""Writes: ``foo_`` is ``foo`` and a copy into the target, for every operator that has both."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch._ops import OpOverload

from privml.dispatch import Rule, find_rule, implements, intercepts, resolver, rule_for
from privml.errors import SecretLeakError
from privml.formats import Boolean, FixedPoint, Float, Integer, Owned
from privml.ops.rescaling import convert
from privml.ops.ring_formats import plain_format, public_format, rescaled, ring_format, together
from privml.ops.structural import to_copy
from privml.ops.values import constant, engine_of, is_secret, settle, unify
from privml.tensor import SHARED, SecretTensor

aten = torch.ops.aten

IN_PLACE_VIEWS = (
    aten.transpose_.default, aten.t_.default, aten.squeeze_.default, aten.squeeze_.dim, aten.squeeze_.dims,
    aten.unsqueeze_.default, aten.as_strided_.default,
)  # fmt: skip


def _refuse_public_target(what: str) -> SecretLeakError:
    return SecretLeakError(
        f"{what} writes a secret into a public tensor, which would reveal it; make the destination secret "
        "first (x.new_zeros(...) on a secret x, privml.share, privml.secret(module)), or reveal the value"
    )


# ---- the one place that writes
@implements(aten.copy_.default)
def copy_(target: Any, source: Any, non_blocking: bool = False) -> Any:
    if not is_secret(target):
        raise _refuse_public_target("copy_")
    write(target, source)
    return target


def write(target: SecretTensor, source: Any) -> None:
    """Stores ``source`` (secret, public or number; broadcast) in the format of ``target``."""
    cell, known = target.cell, None
    if is_secret(source):
        if source.dtype is not target.dtype:
            source = to_copy(source, target.dtype)
        if isinstance(cell.placement, Owned) and source.placement != cell.placement:
            _open_to_all(target, source)
        fmt = cell.format
        share = source.share
        if not isinstance(fmt, Boolean):
            share = convert(engine_of(source), share, source.format, fmt)
        if isinstance(fmt, (FixedPoint, Integer)) and not isinstance(source.format, Float):
            known = rescaled(source.format, plain_format(fmt), engine_of(source).floors)
    else:
        fmt = cell.format
        value = source.to(target.dtype) if isinstance(source, torch.Tensor) else source
        share = constant(value, target.shape, fmt, engine_of(target))
        if isinstance(fmt, (FixedPoint, Integer)):
            known = public_format(torch.as_tensor(value), plain_format(fmt))
    for mine, new in zip(target.share, share, strict=True):
        mine.copy_(new)
    cell.version += 1
    if isinstance(fmt, (FixedPoint, Integer)):
        cell.format = together(fmt, [fmt, known or plain_format(fmt)])


def _open_to_all(target: SecretTensor, source: SecretTensor) -> None:
    """An owned tensor becomes shared: the value at the owner and zeros elsewhere already are a sharing, in
    any ring at least as wide as the value."""
    cell = target.cell
    fmt = cell.format
    cell.placement = SHARED
    if isinstance(fmt, (FixedPoint, Integer)):
        bits = max(fmt.bits, getattr(source.format, "bits", 0), target.session.working.bits)
        cell.format = ring_format(bits, fmt.scale, isinstance(fmt, FixedPoint))


@implements(aten.zero_.default)
def zero_(target: SecretTensor) -> SecretTensor:
    write(target, 0)
    return target


@implements(aten.fill_.Scalar, aten.fill_.Tensor)
def fill_(target: Any, value: Any) -> Any:
    return copy_(target, value)


@implements(aten.copy.default)
def copy(target: Any, source: Any, non_blocking: bool = False) -> SecretTensor:
    """The functional form that exported graphs use; a public target only gives shape and dtype."""
    result = source.expand(target.shape).clone() if is_secret(source) else torch.zeros_like(target) + source
    return result if result.dtype is target.dtype else result.to(target.dtype)


@implements(aten.fill.Scalar, aten.fill.Tensor)
def fill(target: SecretTensor, value: Any) -> SecretTensor:
    return torch.zeros_like(target) + value


@implements(aten.set_.source_Tensor, aten.set_.source_Storage, aten.resize_.default)
def set_(*args: Any, **kwargs: Any) -> Any:
    return NotImplemented


@intercepts(torch.Tensor.data.__set__)
def set_data(target: Any, value: Any) -> Any:
    """``p.data = v``: torch would swap the outer tensor alone and keep the old share."""
    if not is_secret(value):
        value = constant_like(target, value)
    torch.Tensor.data.__set__(target, value)
    target._share, target.cell, target.session = value._share, value.cell, value.session
    target._aux = target._operand = None
    return None


def constant_like(x: SecretTensor, value: torch.Tensor) -> SecretTensor:
    fmt = plain_format(x.format) if isinstance(x.format, (FixedPoint, Integer)) else x.format
    share = constant(value, value.shape, fmt, x.session.engine)
    return SecretTensor(tuple(c.contiguous() for c in share), fmt, SHARED, x.session, x.dtype)


# ---- views in place change the metadata of every component and of the outer tensor
def _view_in_place(operator: OpOverload) -> None:
    @implements(operator)
    def rule(x: SecretTensor, *args: Any) -> SecretTensor:
        for component in x.share:
            operator(component, *args)
        with torch.utils._mode_utils.no_dispatch():
            operator(x, *args)
        return x

    rule.__name__ = str(operator)


for _operator in IN_PLACE_VIEWS:
    _view_in_place(_operator)


@implements(aten.detach_.default)
def detach_(x: SecretTensor) -> SecretTensor:
    return x


# ---- public indices written to
def _scattered(x: Any, source: Any, function: Any) -> SecretTensor:
    """function(component of x, component of source); one of the two may be public; on bits and floats, it puts
    every element of the result in one place."""
    (target, values), fmt, placement, session = unify((x, source), x.dtype)
    engine = session.engine_for(placement)
    share = engine.additive(function, target, values)
    if isinstance(fmt, (Boolean, Float)):
        return SecretTensor(share, fmt, placement, session, x.dtype)
    share = settle(engine, share, fmt)
    return SecretTensor(share, plain_format(fmt), placement, session, x.dtype)


@implements(aten.index_put.default, aten._unsafe_index_put.default)
def index_put(x: Any, indices: Sequence[Any], values: Any, accumulate: bool = False) -> Any:
    if any(is_secret(i) for i in indices):
        mask = indices[0]
        if len(indices) != 1 or mask.dtype is not torch.bool or accumulate or values.dim():
            return NotImplemented
        return torch.where(mask.reshape(mask.shape + (1,) * (x.dim() - mask.dim())), values, x)
    return _scattered(x, values, lambda a, b: aten.index_put(a, indices, b, accumulate))


@implements(aten.scatter.src)
def scatter(x: Any, dim: int, index: Any, source: Any) -> Any:
    return NotImplemented if is_secret(index) else _scattered(x, source, lambda a, b: a.scatter(dim, index, b))


@implements(aten.scatter.value)
def scatter_value(x: Any, dim: int, index: Any, value: Any) -> Any:
    if is_secret(index):
        return NotImplemented
    filling = torch.full(index.shape, value, dtype=x.dtype)
    return _scattered(x, filling, lambda a, b: a.scatter(dim, index, b))


@implements(aten.scatter_add.default)
def scatter_add(x: Any, dim: int, index: Any, source: Any) -> Any:
    return NotImplemented if is_secret(index) else _scattered(x, source, lambda a, b: a.scatter_add(dim, index, b))


@implements(aten.index_add.default)
def index_add(x: Any, dim: int, index: Any, source: Any, *, alpha: float = 1) -> Any:
    if is_secret(index):
        return NotImplemented
    source = source if alpha == 1 else source * alpha
    return _scattered(x, source, lambda a, b: a.index_add(dim, index, b))


@implements(aten.index_copy.default)
def index_copy(x: Any, dim: int, index: Any, source: Any) -> Any:
    return NotImplemented if is_secret(index) else _scattered(x, source, lambda a, b: a.index_copy(dim, index, b))


@implements(aten.index_fill.int_Scalar)
def index_fill(x: SecretTensor, dim: int, index: Any, value: Any) -> Any:
    if is_secret(index):
        return NotImplemented
    shape = [*x.shape[:dim], len(index), *x.shape[dim % x.dim() + 1 :]]
    return index_copy(x, dim, index, torch.full(shape, value, dtype=x.dtype))


@implements(aten.slice_scatter.default)
def slice_scatter(x: Any, source: Any, *args: Any) -> SecretTensor:
    return _scattered(x, source, lambda a, b: aten.slice_scatter(a, b, *args))


@implements(aten.select_scatter.default)
def select_scatter(x: Any, source: Any, dim: int, index: int) -> SecretTensor:
    return _scattered(x, source, lambda a, b: aten.select_scatter(a, b, dim, index))


# ---- derived rules
def functional_of(operator: OpOverload) -> OpOverload | None:
    """aten.add_.Tensor -> aten.add.Tensor, aten.add.out -> the overload with the same arguments."""
    schema = operator._schema
    namespace, name = schema.name.split("::")
    arguments = schema.arguments
    if name.endswith("_") and not name.endswith("__"):
        if not arguments or arguments[0].alias_info is None or not arguments[0].alias_info.is_write:
            return None
        packet = getattr(getattr(torch.ops, namespace), name[:-1], None)
        overload = operator._overloadname
        return getattr(packet, overload) if packet is not None and overload in packet.overloads() else None
    if any(a.is_out for a in arguments):
        wanted = [(a.name, str(a.type)) for a in arguments if not a.is_out]
        packet = getattr(getattr(torch.ops, namespace), name)
        for overload in packet.overloads():
            candidate = getattr(packet, overload)
            if [(a.name, str(a.type)) for a in candidate._schema.arguments] == wanted:
                return candidate
    return None


@resolver
def in_place_rule(operator: OpOverload) -> Rule | None:
    if not operator._schema.is_mutable or operator._schema.name.startswith("aten::_foreach_"):
        return None
    functional = functional_of(operator)
    if functional is None or find_rule(functional) is None:
        return None

    def rule(*args: Any, out: Any = None, **kwargs: Any) -> Any:
        target = args[0] if out is None else out
        if not is_secret(target):
            raise _refuse_public_target(str(operator))
        compute = rule_for(functional, args, kwargs)
        result = NotImplemented if compute is None else compute(*args, **kwargs)
        if result is NotImplemented:
            return result
        if out is None and result.shape != target.shape:
            raise RuntimeError(f"{operator}: a result of shape {list(result.shape)} does not fit {list(target.shape)}")
        if not torch.can_cast(result.dtype, target.dtype):
            raise RuntimeError(f"{operator}: a {result.dtype} result cannot be written to a {target.dtype} tensor")
        write(target, result)
        if is_secret(result):
            target.aux = result.aux
        return target

    return rule
