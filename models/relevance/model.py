# SPDX-License-Identifier: Apache-2.0
"""Four dense layers: 874-300-200-100-4 as in SecFloat (Rathee et al., S&P 2022), section IX."""

from __future__ import annotations

from collections.abc import Sequence

import torch

from .data import CLASSES, FEATURES

HIDDEN = (300, 200, 100)


class Relevance(torch.nn.Module):
    """[n, features] to the probabilities [n, 4] of the classes; ``logits`` for the loss of training."""

    def __init__(self, features: int = FEATURES, hidden: Sequence[int] = HIDDEN) -> None:
        super().__init__()
        widths = [features, *hidden, CLASSES]
        layers: list[torch.nn.Module] = []
        for inputs, outputs in zip(widths[:-1], widths[1:], strict=True):
            layers += [torch.nn.Linear(inputs, outputs), torch.nn.ReLU()]
        self.logits = torch.nn.Sequential(*layers[:-1])

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.softmax(self.logits(x), 1)
