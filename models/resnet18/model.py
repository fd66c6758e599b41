# SPDX-License-Identifier: Apache-2.0
"""ResNet-18 for 32 x 32 colour images (He et al., Deep residual learning for image recognition, 2016, with the stem of
its networks for CIFAR-10: one 3x3 convolution, no pooling)."""

from __future__ import annotations

import torch
from torch import nn


class Block(nn.Module):
    """Two 3x3 convolutions beside the identity, or beside a 1x1 convolution where the shape changes."""

    def __init__(self, inputs: int, outputs: int, stride: int) -> None:
        super().__init__()
        self.conv1 = nn.Conv2d(inputs, outputs, 3, stride, 1, bias=False)
        self.norm1 = nn.BatchNorm2d(outputs)
        self.conv2 = nn.Conv2d(outputs, outputs, 3, 1, 1, bias=False)
        self.norm2 = nn.BatchNorm2d(outputs)
        self.relu = nn.ReLU()
        self.beside: nn.Module = nn.Identity()
        if stride != 1 or inputs != outputs:
            self.beside = nn.Sequential(nn.Conv2d(inputs, outputs, 1, stride, bias=False), nn.BatchNorm2d(outputs))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y = self.relu(self.norm1(self.conv1(x)))
        return self.relu(self.norm2(self.conv2(y)) + self.beside(x))


class ResNet18(nn.Module):
    """[n, 3, 32, 32] to [n, 10] scores. ``width``: channels of the first stage, 64 in the original."""

    def __init__(self, width: int = 64) -> None:
        super().__init__()
        self.conv = nn.Conv2d(3, width, 3, 1, 1, bias=False)
        self.norm = nn.BatchNorm2d(width)
        self.relu = nn.ReLU()
        blocks: list[nn.Module] = []
        channels = width
        for stage in range(4):
            for index in range(2):
                outputs = width << stage
                blocks.append(Block(channels, outputs, 2 if stage > 0 and index == 0 else 1))
                channels = outputs
        self.blocks = nn.Sequential(*blocks)
        self.pool = nn.AdaptiveAvgPool2d(1)
        self.fc = nn.Linear(channels, 10)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = self.blocks(self.relu(self.norm(self.conv(x))))
        return self.fc(self.pool(x).flatten(1))
