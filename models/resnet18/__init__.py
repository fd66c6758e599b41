# SPDX-License-Identifier: Apache-2.0
"""ResNet-18 with random weights."""

from __future__ import annotations

from .. import Model
from ..images import with_random_weights
from .model import ResNet18


def load(width: int = 64) -> Model:
    return with_random_weights("resnet18", ResNet18(width))
