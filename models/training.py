# SPDX-License-Identifier: Apache-2.0
"""Training of the classifiers of time series: AdamW with a one-cycle rate on noisy copies of the data."""

from __future__ import annotations

import argparse
import math
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import torch
from safetensors.torch import save_file
from torch import nn
from torch.nn import functional

Preprocess = Callable[[torch.Tensor], torch.Tensor]


class Series(NamedTuple):
    values: torch.Tensor  # float32 [n, channels, steps]
    labels: torch.Tensor  # int64 [n]


@dataclass(frozen=True)
class Recipe:
    """``noise``: deviation added to every value of the preprocessed input; ``stretch``: of each sample's factor."""

    epochs: int
    batch: int
    rate: float
    noise: float
    stretch: float
    seed: int


def train(
    make: Callable[[], nn.Module],
    preprocess: Preprocess,
    data: Series,
    recipe: Recipe,
    augment: Callable[[torch.Tensor], torch.Tensor] = lambda x: x,
) -> nn.Module:
    """A trained module; ``augment`` alters every batch of preprocessed inputs at random."""
    torch.manual_seed(recipe.seed)
    module = make()
    x, y = preprocess(data.values), data.labels
    optimizer = torch.optim.AdamW(module.parameters(), lr=recipe.rate, weight_decay=1e-2)
    steps = recipe.epochs * math.ceil(len(y) / recipe.batch)
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, recipe.rate, total_steps=steps)
    for _ in range(recipe.epochs):
        for batch in torch.randperm(len(y)).split(recipe.batch):
            clean = augment(x[batch])
            factor = 1 + recipe.stretch * torch.randn(len(batch), *[1] * (clean.dim() - 1))
            noisy = clean * factor + recipe.noise * torch.randn_like(clean)
            loss = functional.cross_entropy(module(noisy), y[batch])
            optimizer.zero_grad()
            loss.backward()
            nn.utils.clip_grad_norm_(module.parameters(), 1.0)
            optimizer.step()
            schedule.step()
    return module.eval()


@torch.no_grad()
def accuracy(module: nn.Module, preprocess: Preprocess, data: Series) -> float:
    return float((module(preprocess(data.values)).argmax(1) == data.labels).float().mean())


def main(
    make: Callable[[], nn.Module],
    preprocess: Preprocess,
    split: Callable[[], tuple[Series, Series]],
    recipe: Recipe,
    folder: Path,
    shipped: int,
    calibration: int,
    source: str = "time series of the package sktime",
) -> None:
    """Trains, prints the test accuracy and writes the files of a model: ``shipped`` test samples and
    ``calibration`` training samples, both evenly over the file."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--out", type=Path, default=folder, help="folder to write into")
    out = parser.parse_args().out
    torch.set_num_threads(1)
    training, test = split()
    module = train(make, preprocess, training, recipe)
    write_weights(out, module, accuracy(module, preprocess, test), len(test.labels), recipe.seed)
    chosen, ranges = evenly(len(test.labels), shipped), evenly(len(training.labels), calibration)
    samples = {
        "series": test.values[chosen].contiguous(),
        "labels": test.labels[chosen].contiguous(),
        "calibration": training.values[ranges].contiguous(),
    }
    save_file(samples, out / "samples.safetensors", metadata={"source": source})


def write_weights(out: Path, module: nn.Module, reached: float, tested: int, seed: int) -> None:
    """Prints the test accuracy and writes it with the parameters to weights.safetensors in ``out``."""
    print(f"test accuracy: {reached:.4f} ({tested} samples)")
    out.mkdir(parents=True, exist_ok=True)
    state = {name: value.contiguous() for name, value in module.state_dict().items()}
    notes = {"test_accuracy": f"{reached:.4f}", "seed": str(seed)}
    save_file(state, out / "weights.safetensors", metadata=notes)


def evenly(length: int, count: int) -> torch.Tensor:
    """``count`` of ``length`` places."""
    return torch.arange(count) * length // count
