# SPDX-License-Identifier: Apache-2.0
"""A bidirectional LSTM that recognizes a speaker by two vowels."""

from __future__ import annotations

import torch
from torch import nn

SPEAKERS = 9


class Vowels(nn.Module):
    """[n, 16, 12] cepstra to [n, 9] scores; 4,137 parameters."""

    def __init__(self) -> None:
        super().__init__()
        self.lstm = nn.LSTM(12, 16, batch_first=True, bidirectional=True)
        self.dropout = nn.Dropout(0.3)
        self.head = nn.Linear(32, SPEAKERS)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        _, (state, _) = self.lstm(x)
        return self.head(self.dropout(torch.cat([state[0], state[1]], 1)))


def preprocess(series: torch.Tensor) -> torch.Tensor:
    """[n, 12, 16] coefficients, channels first as in the file, to [n, 16, 12]."""
    return series.transpose(1, 2).to(torch.float32).contiguous()
