# SPDX-License-Identifier: Apache-2.0
"""Made-up colour images, and models with random weights that look at them: networks whose cost is of interest, not
their answers."""

from __future__ import annotations

import torch
from torch import nn
from torch.nn import functional

from . import Model

SAMPLES = 4
CALIBRATION = 8


def made_up(count: int, seed: int) -> torch.Tensor:
    """uint8 [count, 3, 32, 32]: smooth blobs of colour with some noise."""
    random = torch.Generator().manual_seed(seed)
    blobs = functional.interpolate(torch.rand(count, 3, 5, 5, generator=random), 32, mode="bicubic")
    noise = torch.rand(count, 3, 32, 32, generator=random) / 8
    return ((blobs + noise).clamp(0, 1) * 255).to(torch.uint8)


def preprocess(images: torch.Tensor) -> torch.Tensor:
    """uint8 images [n, 3, 32, 32] to float: pixel / 64 - 2, exact in six fractional bits."""
    return images.to(torch.float32) / 64 - 2


def initialise(module: nn.Module) -> None:
    """Weights as He et al. draw them (fixed seed), which keep activations at the scale of the input; statistics of
    batch norms as made-up images give them."""
    random = torch.Generator().manual_seed(1)
    for layer in module.modules():
        if isinstance(layer, (nn.Conv2d, nn.Linear)):
            nn.init.kaiming_normal_(layer.weight, nonlinearity="relu", generator=random)
            if layer.bias is not None:
                nn.init.uniform_(layer.bias, -0.1, 0.1, generator=random)
    if any(isinstance(layer, nn.BatchNorm2d) for layer in module.modules()):
        module.train()
        with torch.no_grad():
            for seed in range(4):
                module(preprocess(made_up(CALIBRATION, 100 + seed)))


def with_random_weights(name: str, module: nn.Module) -> Model:
    """``module`` initialised and in evaluation mode; the labels are its own predictions."""
    initialise(module)
    module.eval().requires_grad_(False)
    samples = made_up(SAMPLES, 0)
    labels = module(preprocess(samples)).argmax(1)
    ranges = made_up(CALIBRATION, 1)
    return Model(name, module, preprocess(samples[:1]), preprocess, samples, labels, ranges, learned=False)
