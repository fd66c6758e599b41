# SPDX-License-Identifier: Apache-2.0
"""What the verb ``train`` trains: a model, data with a fixed split, a loss and what counts as right."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

import torch
from torch import nn
from torch.nn import functional

from .lenet.model import LeNet, preprocess


class Task(NamedTuple):
    """``make``: a model with its first weights, from the global generator. Targets are float32: one row per class
    (one-hot), or one column of zeros and ones. ``channels``: the dimension of x along which columns are split."""

    make: Callable[[], nn.Module]
    x: torch.Tensor
    y: torch.Tensor
    test_x: torch.Tensor
    test_y: torch.Tensor
    loss: Callable[[torch.Tensor, torch.Tensor], torch.Tensor]
    columns: int = -1

    def right(self, scores: torch.Tensor, targets: torch.Tensor) -> torch.Tensor:
        """Which rows are classified rightly; also of secret tensors."""
        if targets.shape[1] == 1:
            return ((scores > 0) == (targets > 0.5)).squeeze(1)
        return scores.argmax(1) == targets.argmax(1)


def logistic() -> Task:
    """569 tumours of the breast, 30 measurements each (Wolberg, Street and Mangasarian, 1995): benign or not."""
    return _tumours(lambda columns: nn.Linear(columns, 1))


def mlp(hidden: Sequence[int] = (128,)) -> Task:
    """MNIST digits by dense layers."""
    task = lenet()
    x, test = task.x.flatten(1), task.test_x.flatten(1)
    return task._replace(make=lambda: _dense([x.shape[1], *hidden, 10]), x=x, test_x=test)


def small(hidden: Sequence[int] = (8,)) -> Task:
    """The tumours by a network so small that expensive engines train it."""
    return _tumours(lambda columns: _dense([columns, *hidden, 1]))


def lenet() -> Task:
    """5,000 MNIST digits by a LeNet-5, 4,000 of them for training."""
    from .lenet.data import split

    def pixels(images: torch.Tensor) -> torch.Tensor:
        return (preprocess(images) - 0.125) * 3  # centred and stretched, by numbers that fixed point holds exactly

    training, test = split()
    return Task(
        lambda: _undecided(_he(LeNet())), pixels(training.images), _one_hot(training.labels), pixels(test.images),
        _one_hot(test.labels), functional.cross_entropy,
    )  # fmt: skip


def gru() -> Task:
    """40 + 40 recordings of a smart watch, four motions."""
    from .motions.model import Motions, preprocess
    from .motions.train import split

    training, test = split()
    return Task(
        Motions, preprocess(training.values), _one_hot(training.labels), preprocess(test.values),
        _one_hot(test.labels), functional.cross_entropy,
    )  # fmt: skip


def relevance(hidden: Sequence[int] = (300, 200, 100), features: int = 874) -> Task:
    """Made-up cases of relevance, features standardized."""
    from .relevance.data import CLASSES, cases, units

    scale = units(features)
    training, test = cases(4096, features, seed=1), cases(1024, features, seed=0)
    return Task(
        lambda: _dense([features, *hidden, CLASSES]), (training.values / scale).float(), _one_hot(training.labels),
        (test.values / scale).float(), _one_hot(test.labels), functional.cross_entropy,
    )  # fmt: skip


TASKS = {
    "logistic": logistic, "mlp": mlp, "small": small, "lenet": lenet, "gru": gru, "relevance": relevance,
}  # fmt: skip


def _tumours(make: Callable[[int], nn.Module]) -> Task:
    from sklearn.datasets import load_breast_cancer

    data = load_breast_cancer()
    x = torch.tensor(data.data, dtype=torch.float64)
    y = torch.tensor(data.target, dtype=torch.float32).unsqueeze(1)
    order = torch.randperm(len(y), generator=torch.Generator().manual_seed(7))
    training, test = order[:455], order[455:]
    mean, deviation = x[training].mean(0), x[training].std(0)
    x = ((x - mean) / deviation).float()  # every column's owner does this by itself
    loss = functional.binary_cross_entropy_with_logits
    return Task(lambda: make(x.shape[1]), x[training], y[training], x[test], y[test], loss)


def _dense(widths: Sequence[int]) -> nn.Module:
    layers: list[nn.Module] = []
    for inputs, outputs in zip(widths[:-1], widths[1:], strict=True):
        layers += [nn.Linear(inputs, outputs), nn.ReLU()]
    return _he(nn.Sequential(*layers[:-1]))


def _he(model: nn.Module) -> nn.Module:
    """First weights by the rule of He et al. for ReLU."""
    for parameter in model.parameters():
        if parameter.dim() > 1:
            nn.init.kaiming_uniform_(parameter, nonlinearity="relu")
    return model


def _undecided(model: LeNet) -> LeNet:
    """With all classes equally likely at first: large first losses make training follow its rounding errors."""
    nn.init.zeros_(model.fc3.weight)
    nn.init.zeros_(model.fc3.bias)
    return model


def _one_hot(labels: torch.Tensor) -> torch.Tensor:
    return functional.one_hot(labels).float()
