# SPDX-License-Identifier: Apache-2.0
"""Losses of classification: the likelihood of classes whose numbers are public or secret, and of probabilities."""

from __future__ import annotations

from typing import Any

import torch

from privml.dispatch import implements
from privml.errors import InvalidInput
from privml.ops.values import is_secret
from privml.tensor import SecretTensor

aten = torch.ops.aten


@implements(aten.nll_loss_forward.default, aten.nll_loss2d_forward.default)
def nll_loss_forward(
    x: Any, target: Any, weight: Any, reduction: int, ignore_index: int
) -> tuple[SecretTensor, torch.Tensor]:
    """For public class numbers (any weights), and for secret ones without weights, none of which is ignored."""
    if is_secret(weight) or (is_secret(target) and (weight is not None or not is_secret(x))):
        return NotImplemented
    if is_secret(target):
        picked, factor = -_chosen(x, target), torch.ones(target.shape)
    else:
        factor = _weights(x, target, weight, ignore_index)
        index = target.clamp(min=0).unsqueeze(1 if x.dim() > 1 else 0)
        picked = -x.gather(1 if x.dim() > 1 else 0, index).squeeze(1 if x.dim() > 1 else 0)
        picked = picked * factor if weight is not None or bool((factor != 1).any()) else picked
    count = factor.sum()
    if reduction == 0:
        return picked, torch.zeros(())
    if reduction == 1 and not count:
        raise InvalidInput("mean of the losses of no rows: there are none, or all of them are ignored or have weight 0")
    summed = torch.sum(picked)
    return (summed / count if reduction == 1 else summed), count


def _weights(x: torch.Tensor, target: torch.Tensor, weight: Any, ignore_index: int) -> torch.Tensor:
    factor = torch.ones(target.shape) if weight is None else weight[target.clamp(min=0)]
    return factor * (target != ignore_index)


def _one_hot(x: torch.Tensor, target: SecretTensor) -> SecretTensor:
    """[..., classes, ...] as the scores lie, from secret class numbers."""
    axis = 1 if x.dim() > 1 else 0
    classes = torch.arange(x.shape[axis]).reshape([-1] + [1] * (x.dim() - 1 - axis))
    return target.unsqueeze(axis) == classes


def _chosen(x: SecretTensor, target: SecretTensor) -> SecretTensor:
    return torch.sum(_one_hot(x, target) * x, [1 if x.dim() > 1 else 0])


@implements(aten.nll_loss_backward.default, aten.nll_loss2d_backward.default)
def nll_loss_backward(
    grad: Any, x: Any, target: Any, weight: Any, reduction: int, ignore_index: int, total_weight: Any
) -> SecretTensor:
    axis = 1 if x.dim() > 1 else 0
    if is_secret(target):
        grad = grad / target.numel() if reduction == 1 else grad
        spread = grad.unsqueeze(axis) if reduction == 0 else grad
        return -(_one_hot(x, target) * spread)
    factor = _weights(x, target, weight, ignore_index)
    if reduction == 1:
        factor = factor / total_weight
    places = torch.zeros(x.shape).scatter(axis, target.clamp(min=0).unsqueeze(axis), -factor.unsqueeze(axis).float())
    return (grad.unsqueeze(axis) if reduction == 0 else grad) * places


@implements(aten.binary_cross_entropy_with_logits.default)
def binary_cross_entropy_with_logits(
    x: Any, target: Any, weight: Any = None, pos_weight: Any = None, reduction: int = 1
) -> SecretTensor:
    """softplus(x) - x * target; with weights of the positive class w, (1 - t) x + (1 + (w - 1) t) softplus(-x)."""
    if pos_weight is None:
        loss = torch.nn.functional.softplus(x) - x * target
    else:
        loss = (1 - target) * x + (1 + (pos_weight - 1) * target) * torch.nn.functional.softplus(-x)
    loss = loss if weight is None else loss * weight
    return loss if reduction == 0 else torch.mean(loss) if reduction == 1 else torch.sum(loss)
