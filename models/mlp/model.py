# SPDX-License-Identifier: Apache-2.0
"""A multilayer perceptron for 28 x 28 grey digits, of the shape that SecureML (Mohassel and Zhang, S&P 2017) trains."""

from __future__ import annotations

import torch
from torch import nn


class Mlp(nn.Module):
    """[n, 784] pixels in [0, 1) to [n, 10] scores; 118,282 parameters."""

    def __init__(self) -> None:
        super().__init__()
        self.fc1 = nn.Linear(784, 128)
        self.fc2 = nn.Linear(128, 128)
        self.fc3 = nn.Linear(128, 10)
        self.relu = nn.ReLU()

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = self.relu(self.fc1(x))
        x = self.relu(self.fc2(x))
        return self.fc3(x)


def preprocess(images: torch.Tensor) -> torch.Tensor:
    """uint8 images [n, 28, 28] to float [n, 784]: pixel / 256, exact in eight fractional bits."""
    return images.reshape(-1, 784).to(torch.float32) / 256
