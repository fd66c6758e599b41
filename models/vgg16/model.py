# SPDX-License-Identifier: Apache-2.0
"""VGG-16 for 32 x 32 colour images with average pooling (Simonyan and Zisserman, Very deep convolutional networks,
2015; in the variant of Watson, Wagh and Popa, Piranha, USENIX Security 2022: 13 convolutions, pooling before the
ReLU, three fully connected layers)."""

from __future__ import annotations

import torch
from torch import nn

LAYERS = (2, 2, 3, 3, 3)  # convolutions of each block


class Vgg16(nn.Module):
    """[n, 3, 32, 32] to [n, 10] scores. ``width``: channels of the first block, 64 in the original."""

    def __init__(self, width: int = 64) -> None:
        super().__init__()
        layers: list[nn.Module] = []
        channels = 3
        for block, count in enumerate(LAYERS):
            for index in range(count):
                outputs = width * min(2**block, 8)
                layers.append(nn.Conv2d(channels, outputs, 3, padding=1))
                if index == count - 1:
                    layers.append(nn.AvgPool2d(2))
                layers.append(nn.ReLU())
                channels = outputs
        self.features = nn.Sequential(*layers)
        hidden = 4 * width
        self.classifier = nn.Sequential(
            nn.Linear(channels, hidden), nn.ReLU(), nn.Linear(hidden, hidden), nn.ReLU(), nn.Linear(hidden, 10)
        )

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.classifier(self.features(x).flatten(1))
