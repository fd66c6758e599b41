# SPDX-License-Identifier: Apache-2.0
"""Into secrecy and out of it: share, reveal, secret (whole modules)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, TypeVar, overload

import torch

from privml.context import Session, current_session
from privml.dispatch import dispatch
from privml.encoding import decode, encode_input, format_for, is_mask
from privml.errors import InvalidInput
from privml.formats import Boolean, FixedPoint, Float, Format, Owned, limit
from privml.tensor import SHARED, SecretTensor
from privml.transcript import as_one_step

aten = torch.ops.aten
Module = TypeVar("Module", bound=torch.nn.Module)


def share(
    x: Any,
    owner: int = 0,
    format: Format | None = None,
    *,
    shape: Sequence[int] | None = None,
    dtype: torch.dtype | None = None,
    session: Session | None = None,
    wide: bool = False,
) -> SecretTensor:
    """A SecretTensor of ``x``, which only party ``owner`` needs to pass.

    The others pass None with ``shape`` and ``dtype`` (default float32), or any tensor of that shape, whose values are
    ignored. The result has the shape of ``x``, a tensor, an array or nested lists, and its dtype or ``dtype``.
    ``format`` defaults to the session's FixedPoint (or Float) for floating dtypes, Integer for integral and Boolean for
    bool. Numbers are rounded to the nearest multiple of 2^-scale; to Float, to nearest (ties to even), those smaller
    than its smallest become zero, larger ones infinity. ``wide``: an engine whose values stay in wide rings takes those
    of a narrow format into the session's ring at once. ``session``: the one entered last where None.

    Raises InvalidInput, before anything is sent, for an owner that is no party, a wrong shape or dtype, and for NaN,
    and unless the format is Float infinities and values too large, naming the first index; ConfigError without a
    session.
    """
    session = session or current_session()
    if isinstance(x, SecretTensor):
        raise InvalidInput("share() of a tensor that is already secret")
    if not 0 <= owner < session.parties:
        raise InvalidInput(f"owner must be in [0, {session.parties}), got {owner}")
    mine = session.rank is None or session.rank == owner
    if x is None:
        if mine:
            raise InvalidInput(f"party {owner} owns this input and must pass its value")
        if shape is None:
            raise InvalidInput(f"pass the shape of what party {owner} shares")
        dtype = dtype or torch.float32
    else:
        x = x if isinstance(x, torch.Tensor) else torch.as_tensor(x)
        dtype = dtype or x.dtype
        if shape is not None and tuple(shape) != tuple(x.shape):
            raise InvalidInput(f"expected an input of shape {tuple(shape)}, got {tuple(x.shape)}")
        shape = tuple(x.shape)
    fmt = format or format_for(dtype, session.working, session.real)
    _check_kind(fmt, dtype)
    ring = encode_input(x, fmt) if mine else None
    engine = session.engine
    if wide and engine.stays_wide and isinstance(fmt, FixedPoint) and fmt.bits < session.working.bits:
        fmt = replace(fmt, bits=session.working.bits, bound=limit(fmt))
    session.step("share", owner, tuple(shape), repr(fmt), draws=True)
    with as_one_step():
        if isinstance(fmt, Boolean):
            components = engine.input_bits(ring, tuple(shape), owner)
        else:
            components = engine.input(ring, tuple(shape), owner, 64 if isinstance(fmt, Float) else fmt.bits)
    placement = Owned(owner) if engine.trivial_inputs else SHARED
    wants_gradient = isinstance(x, torch.Tensor) and x.requires_grad
    shared = SecretTensor(components, fmt, placement, session, dtype, requires_grad=wants_gradient)
    session.name(shared)
    return shared


def _check_kind(fmt: Format, dtype: torch.dtype) -> None:
    kind = "FixedPoint" if dtype.is_floating_point else "Boolean" if dtype is torch.bool else "Integer"
    if type(fmt).__name__ != kind and not (dtype.is_floating_point and isinstance(fmt, Float)):
        raise InvalidInput(f"a {dtype} input needs a {kind} format, got {fmt}")


@overload
def reveal(x: SecretTensor, to: None = None) -> torch.Tensor: ...


@overload
def reveal(x: SecretTensor, to: int) -> torch.Tensor | None: ...


def reveal(x: SecretTensor, to: int | None = None) -> torch.Tensor | None:
    """The value as a public tensor of the same shape and dtype, to party ``to`` (None: to all); None at parties that
    learn nothing.

    All parties make the same call. A gradient of what was revealed becomes secret again. Raises InvalidInput for a
    public ``x`` and for a ``to`` that is no party, and in an actively secure session SecurityAbort in place of a value
    that another party made wrong.
    """
    if not isinstance(x, SecretTensor):
        raise InvalidInput(f"reveal() of a {type(x).__name__}; it is already public")
    if torch.is_grad_enabled() and x.requires_grad:
        return _Reveal.apply(x, to)
    return _open(x, to)


def _open(x: SecretTensor, to: int | None) -> torch.Tensor | None:
    engine = x.session.engine
    if to is not None and not 0 <= to < x.session.parties:
        raise InvalidInput(f"to must be None or in [0, {x.session.parties}), got {to}")
    x.session.step("reveal", x, to, draws=True)
    with as_one_step():
        if isinstance(x.format, Boolean):
            value = engine.reveal_bits(x.share, to)
        elif isinstance(x.format, Float):
            value = engine.reveal_words(x.share, x.format, to)
        else:
            value = engine.reveal(x.share, x.format.bits, to)
    return None if value is None else decode(value, x.format, x.dtype)


class _Reveal(torch.autograd.Function):
    """Opens the value; the public gradient that comes back becomes secret again."""

    @staticmethod
    def forward(ctx: Any, x: SecretTensor, to: int | None) -> Any:
        ctx.like = x.detach()
        return _open(x, to)

    @staticmethod
    def backward(ctx: Any, grad: Any) -> Any:
        if isinstance(grad, SecretTensor):
            return grad, None
        return dispatch(aten.new_full.default, (ctx.like, grad.shape, grad), {"dtype": grad.dtype}), None


def secret(
    module: Module,
    owner: int = 0,
    format: Format | None = None,
    *,
    session: Session | None = None,
) -> Module:
    """Replaces parameters and floating buffers of ``module`` by SecretTensors of party ``owner``, in place.

    Parties other than the owner pass a module of the same architecture; its values are ignored. Tied parameters
    stay tied. Buffers that hold minus infinity are masks and stay public, as do buffers of whole numbers. ``format``
    defaults to the session's weight format; without it, buffers have a finer one. ``session``: the one entered last
    where None. Returns ``module``. Raises InvalidInput naming the parameter whose value does not fit its format.
    """
    session = session or current_session()
    fmt = format or session.weight
    # statistics are used by their owner in clear, or scaled before anyone multiplies by them: no reason to be coarse
    buffer_format = format or session.numerics.floating
    if buffer_format is None:
        buffer_format = FixedPoint(64, 32) if session.engine.trivial_inputs else session.working
    done: dict[int, torch.Tensor] = {}
    for name, part in module.named_modules():
        for table in (part._parameters, part._buffers):
            for key, tensor in list(table.items()):
                if tensor is None or isinstance(tensor, SecretTensor) or not tensor.dtype.is_floating_point:
                    continue
                if table is part._buffers and is_mask(tensor):
                    continue
                if id(tensor) not in done:
                    kind = fmt if table is part._parameters else buffer_format
                    done[id(tensor)] = _secret_parameter(tensor, f"{name}.{key}".strip("."), owner, kind, session)
                table[key] = done[id(tensor)]
    return module


def _secret_parameter(tensor: torch.Tensor, name: str, owner: int, fmt: Format, session: Session) -> torch.Tensor:
    try:
        value = share(tensor.detach(), owner, fmt, session=session)
    except InvalidInput as error:
        raise InvalidInput(f"parameter {name!r}: {error}") from None
    if isinstance(tensor, torch.nn.Parameter):
        return torch.nn.Parameter(value, requires_grad=tensor.requires_grad)
    return value
