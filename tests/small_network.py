# SPDX-License-Identifier: Apache-2.0
"""A network that is quickly converted, with weights that are always the same, for tests of what runs around it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch

from privml.conversion import convert
from privml.program import Program


class Net(torch.nn.Module):
    def __init__(self, hidden=6, outputs=3):
        super().__init__()
        torch.manual_seed(3)
        self.first, self.second = torch.nn.Linear(4, hidden), torch.nn.Linear(hidden, outputs)

    def forward(self, x):
        return self.second(torch.relu(self.first(x)))


def converted(numerics: Mapping[str, Any] | None = None) -> Program:
    return convert(Net().eval(), calibration=torch.randn(64, 4) * 2, numerics=numerics)
