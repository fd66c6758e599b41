# SPDX-License-Identifier: Apache-2.0
"""A GRU that tells from a smart watch's accelerometer and gyroscope what its wearer does."""

from __future__ import annotations

import torch
from torch import nn

CLASSES = ("standing", "running", "walking", "badminton")
STEPS, TOGETHER = 25, 4


class Motions(nn.Module):
    """[n, 25, 24] recordings to [n, 4] scores; 2,084 parameters."""

    def __init__(self) -> None:
        super().__init__()
        self.gru = nn.GRU(24, 16, batch_first=True)
        self.head = nn.Linear(16, len(CLASSES))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        _, state = self.gru(x)
        return self.head(state[-1])


def preprocess(series: torch.Tensor) -> torch.Tensor:
    """[n, 6, 100], ten samples per second, to [n, 25, 24]: four samples of six channels per step, divided by 8."""
    steps = series.reshape(-1, 6, STEPS, TOGETHER).transpose(1, 2)
    return steps.reshape(-1, STEPS, 6 * TOGETHER).to(torch.float32) / 8
