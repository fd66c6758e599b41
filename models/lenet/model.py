# SPDX-License-Identifier: Apache-2.0
"""LeNet-5 for 28 x 28 grey digits (LeCun et al., Gradient-based learning applied to document recognition,
1998), with ReLU and max pooling in place of the sigmoid and the average pooling."""

from __future__ import annotations

import torch
from torch import nn


class LeNet(nn.Module):
    """[n, 1, 28, 28] pixels in [0, 1) to [n, 10] scores; 61,706 parameters."""

    def __init__(self) -> None:
        super().__init__()
        self.conv1 = nn.Conv2d(1, 6, 5, padding=2)
        self.conv2 = nn.Conv2d(6, 16, 5)
        self.pool = nn.MaxPool2d(2)
        self.relu = nn.ReLU()
        self.fc1 = nn.Linear(400, 120)
        self.fc2 = nn.Linear(120, 84)
        self.fc3 = nn.Linear(84, 10)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = self.pool(self.relu(self.conv1(x)))
        x = self.pool(self.relu(self.conv2(x)))
        x = x.flatten(1)
        x = self.relu(self.fc1(x))
        x = self.relu(self.fc2(x))
        return self.fc3(x)


def preprocess(images: torch.Tensor) -> torch.Tensor:
    """uint8 images [n, 28, 28] to float [n, 1, 28, 28]: pixel / 256, exact in eight fractional bits."""
    return images.reshape(-1, 1, 28, 28).to(torch.float32) / 256
