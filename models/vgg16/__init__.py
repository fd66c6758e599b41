# SPDX-License-Identifier: Apache-2.0
"""VGG-16 with random weights."""

from __future__ import annotations

from .. import Model
from ..images import with_random_weights
from .model import Vgg16


def load(width: int = 64) -> Model:
    return with_random_weights("vgg16", Vgg16(width))
