# SPDX-License-Identifier: Apache-2.0
"""Scaled dot-product attention (opset 23 and later)."""

from __future__ import annotations

import math
from typing import Any

import torch

from privml.graph.onnx.table import Node, Run, operator


@operator("Attention")
def attention(node: Node) -> Run:
    causal, scale, softcap = node.flag("is_causal"), node.attribute("scale"), node.attribute("softcap", 0.0)
    query_heads, heads = node.attribute("q_num_heads"), node.attribute("kv_num_heads")
    left, right = node.attribute("left_window_size", -1), node.attribute("right_window_size", -1)
    shown = node.attribute("qk_matmul_output_mode", 0)
    precision = node.attribute("softmax_precision")
    precision = None if precision is None else node.torch_type(precision)
    wanted = [node.wants(i) for i in range(4)]

    def run(
        q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, mask: Any = None, past_k: Any = None,
        past_v: Any = None, lengths: Any = None,
    ) -> Any:  # fmt: skip
        flat = q.dim() == 3
        if flat:
            q, k, v = _split_heads(q, query_heads), _split_heads(k, heads), _split_heads(v, heads)
        offset: Any = 0
        if past_k is not None:
            offset = past_k.shape[2]
            k, v = torch.cat([past_k, k], 2), torch.cat([past_v, v], 2)
        elif lengths is not None:
            offset = lengths.reshape(-1, 1, 1, 1) - q.shape[2]
        present = (k, v)
        if q.shape[1] != k.shape[1]:
            repeats = q.shape[1] // k.shape[1]
            k, v = k.repeat_interleave(repeats, 1), v.repeat_interleave(repeats, 1)
        scores = (q * (scale or 1 / math.sqrt(q.shape[-1]))) @ k.transpose(-1, -2)
        stages = [scores]
        if softcap:
            scores = torch.tanh(scores / softcap) * softcap
        stages.append(scores)
        allowed = _allowed(q.shape[2], k.shape[2], offset, lengths, causal, left, right)
        if mask is not None:
            scores, allowed = _masked(scores, mask, allowed)
        if allowed is not None:
            scores = scores + torch.where(allowed, 0.0, -math.inf).to(scores.dtype)
        stages.append(scores)
        weights = _softmax(scores, allowed, precision)
        stages.append(weights)
        y = weights @ v
        if flat:
            y = y.transpose(1, 2).flatten(2)
        results = (y, *present, stages[shown])
        return tuple(r if w else None for r, w in zip(results, wanted, strict=True))

    return run


def _split_heads(x: torch.Tensor, heads: int) -> torch.Tensor:
    return x.unflatten(2, (heads, -1)).transpose(1, 2)


def _allowed(
    queries: int, keys: int, offset: Any, lengths: Any, causal: bool, left: int, right: int
) -> torch.Tensor | None:
    """Which keys a query may see, [..., queries, keys]; None for all of them. Depends on positions only."""
    at = torch.arange(queries).reshape(-1, 1) + offset
    key = torch.arange(keys)
    rules = []
    if causal:
        rules.append(key <= at)
    if left >= 0:
        rules.append(key >= at - left)
    if right >= 0:
        rules.append(key <= at + right)
    if lengths is not None:
        rules.append(key < lengths.reshape(-1, 1, 1, 1))
    result = None
    for rule in rules:
        result = rule if result is None else result & rule
    return result


def _masked(scores: torch.Tensor, mask: torch.Tensor, allowed: Any) -> tuple[torch.Tensor, Any]:
    """Adds a floating mask to the scores, or narrows the allowed keys by a Boolean one; a mask that is too short
    forbids the keys beyond it."""
    missing = scores.shape[-1] - mask.shape[-1]
    if mask.dtype is torch.bool:
        mask = torch.nn.functional.pad(mask, [0, missing], value=False) if missing else mask
        return scores, mask if allowed is None else mask & allowed
    mask = torch.nn.functional.pad(mask, [0, missing], value=-math.inf) if missing else mask
    return scores + mask, allowed


def _softmax(scores: torch.Tensor, allowed: Any, precision: Any) -> torch.Tensor:
    """Softmax over keys; a query that may see none gets zeros."""
    dtype = scores.dtype
    if allowed is not None:
        some = allowed.any(-1, keepdim=True)
        scores = torch.where(some, scores, 0.0).to(dtype)
    weights = torch.softmax(scores if precision is None else scores.to(precision), -1).to(dtype)
    return weights if allowed is None else weights * some
