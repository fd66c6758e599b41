# SPDX-License-Identifier: Apache-2.0
"""Rules for operators made of others: ``_foreach_*`` loops, torch decompositions that are known to serve, and
functions that torch would otherwise send to fused kernels above dispatch."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch._decomp import get_decompositions
from torch._ops import OpOverload

from privml.dispatch import HINTS, Rule, intercepts, resolver
from privml.ops.creation import filled
from privml.ops.masks import HIDES
from privml.ops.values import is_secret
from privml.tensor import SecretTensor

aten = torch.ops.aten

# Only what stays within the table: other decompositions lead to prims.* or compare every element with -inf.
_DECOMPOSED = (
    aten.mse_loss, aten.mse_loss_backward, aten.smooth_l1_loss, aten.smooth_l1_loss_backward, aten.huber_loss,
    aten.huber_loss_backward, aten.hardsigmoid_backward, aten.hardswish_backward, aten._prelu_kernel_backward,
    aten.upsample_nearest2d_backward, aten.reflection_pad1d,
    aten.reflection_pad2d, aten.replication_pad1d, aten.replication_pad2d, aten.trace, aten.addr,
    aten.square, aten.diagonal_copy, aten.native_layer_norm_backward, aten.native_group_norm_backward,
    aten.native_batch_norm_backward, aten.addcdiv, aten.binary_cross_entropy, aten.binary_cross_entropy_backward,
    aten._fused_rms_norm_backward,
)  # fmt: skip
_DECOMPOSITIONS = get_decompositions(_DECOMPOSED)


@resolver
def foreach_rule(operator: OpOverload) -> Rule | None:
    """``aten._foreach_mul_.Scalar`` and similar operators as loops over ``aten.mul_``."""
    name = operator._schema.name.split("::")[1]
    if not name.startswith("_foreach_"):
        return None
    packet = getattr(aten, name.removeprefix("_foreach_"), None)
    if packet is None:
        return None
    listed = [str(a.type).startswith("List[") for a in operator._schema.arguments]
    names = [a.name for a in operator._schema.arguments]
    overloads = [getattr(packet, o) for o in packet.overloads()]
    keyword_only = {a.name for o in overloads for a in o._schema.arguments if a.kwarg_only}

    def rule(*args: Any, **kwargs: Any) -> Any:
        results = []
        for i in range(len(args[0])):
            one = [a[i] if many else a for a, many in zip(args, listed, strict=False)]
            keywords = {n: v for n, v in zip(names, one, strict=False) if n in keyword_only}
            positional = [v for n, v in zip(names, one, strict=False) if n not in keyword_only]
            results.append(packet(*positional, **keywords, **kwargs))
        return None if name.endswith("_") else results

    return rule


@resolver
def decomposition_rule(operator: OpOverload) -> Rule | None:
    return _DECOMPOSITIONS.get(operator)


@resolver
def composite_rule(operator: OpOverload) -> Rule | None:
    """Operators that torch itself defines by others; they arrive whole in inference mode and from graphs."""
    if not isinstance(operator, OpOverload) or not operator._can_decompose():
        return None
    return operator.decompose


# ---- above autograd
@intercepts(torch.nn.functional.scaled_dot_product_attention, aten.scaled_dot_product_attention.default)
def attention(
    query: Any,
    key: Any,
    value: Any,
    attn_mask: Any = None,
    dropout_p: float = 0.0,
    is_causal: bool = False,
    scale: float | None = None,
    enable_gqa: bool = False,
) -> Any:
    if isinstance(attn_mask, torch.Tensor) and attn_mask.dtype is torch.bool:
        attn_mask = _additive(attn_mask, query.dtype)
    return aten._scaled_dot_product_attention_math(
        query, key, value, attn_mask, dropout_p, is_causal, None, scale=scale, enable_gqa=enable_gqa
    )[0]


def _additive(shown: Any, dtype: torch.dtype) -> torch.Tensor:
    """What a Boolean mask adds to scores: minus infinity at hidden places, of a secret mask -HIDES."""
    return (shown.to(dtype) - 1) * HIDES if is_secret(shown) else torch.where(shown, 0.0, float("-inf")).to(dtype)


@intercepts(torch.nn.functional.multi_head_attention_forward)
def multi_head_attention(*args: Any, **kwargs: Any) -> Any:
    """Nested calls are not intercepted: fused attention is switched off around them."""
    with torch.nn.attention.sdpa_kernel(torch.nn.attention.SDPBackend.MATH):
        return torch.nn.functional.multi_head_attention_forward(*args, **kwargs)


def _recurrent(function: Callable) -> None:
    """Without the fused kernel; a public initial state becomes secret because gates are added to it in place."""

    @intercepts(function)
    def call(x: Any, state: Any, *args: Any, **kwargs: Any) -> Any:
        if is_secret(x) and isinstance(state, torch.Tensor) and state.dtype.is_floating_point:
            state = _secret_state(x, state)
        elif is_secret(x) and isinstance(state, (tuple, list)):
            state = [_secret_state(x, s) for s in state]
        with torch.backends.mkldnn.flags(enabled=False):
            return function(x, state, *args, **kwargs)


def _secret_state(x: SecretTensor, state: torch.Tensor) -> torch.Tensor:
    return state if is_secret(state) else filled(x, state.shape, state, state.dtype)


for _function in (
    torch._VF.lstm, torch._VF.gru, torch._VF.rnn_tanh, torch._VF.rnn_relu,
    aten.lstm.input, aten.gru.input, aten.rnn_tanh.input, aten.rnn_relu.input,
):  # fmt: skip
    _recurrent(_function)

_NONLINEAR = "this function of a shared value needs a protocol that no engine offers yet"
for _name in ("asin", "acos", "atan", "asinh", "acosh", "atanh", "erfinv"):
    HINTS[_name] = _NONLINEAR
HINTS["div"] = "division with a rounding mode needs whole numbers and a public positive divisor"
HINTS["pow"] = "either base or exponent must be public"
for _name in ("floor_divide", "remainder"):
    HINTS[_name] = "whole numbers are divided by public positive ones"
for _name in ("fmod", "round", "frac"):
    HINTS[_name] = "of the roundings floor, ceil, trunc and .long() are supported"
HINTS["nll_loss_forward"] = "with secret classes every class weighs the same, and none is ignored"
for _name in ("kthvalue", "median", "mode"):
    HINTS[_name] = "take what you need of torch.sort or torch.topk"
for _name in ("scatter", "scatter_add", "index_put", "take"):
    HINTS[_name] = "indices must be public; compare with each candidate (index == arange) and sum instead"
for _name in ("gather", "index", "index_select", "embedding"):
    HINTS[_name] = (
        "indices must be public, or places that sort, topk or argmax found in a dimension as long; compare others "
        "with each candidate (index == arange) and sum"
    )
