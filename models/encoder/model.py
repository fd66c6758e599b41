# SPDX-License-Identifier: Apache-2.0
"""A transformer encoder that reads an image of a digit row by row."""

from __future__ import annotations

import torch
from torch import nn

DIGITS, ROWS, WIDTH = 10, 8, 32


class Encoder(nn.Module):
    """[n, 8, 8] rows of pixels in [0, 1] to [n, 10] scores; 17,962 parameters."""

    def __init__(self) -> None:
        super().__init__()
        self.embedding = nn.Linear(8, WIDTH)
        self.position = nn.Parameter(0.1 * torch.randn(ROWS, WIDTH))
        layer = nn.TransformerEncoderLayer(WIDTH, 4, 64, dropout=0.1, activation="gelu", batch_first=True)
        self.encoder = nn.TransformerEncoder(layer, 2, enable_nested_tensor=False)
        self.head = nn.Linear(WIDTH, DIGITS)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.head(self.encoder(self.embedding(x) + self.position).mean(1))


def preprocess(images: torch.Tensor) -> torch.Tensor:
    """[n, 8, 8] counts from 0 to 16, as in the file, to [n, 8, 8] in [0, 1]."""
    return images.to(torch.float32) / 16
