# SPDX-License-Identifier: Apache-2.0
"""The recipe (seconds): trained on standardized features, whose units the first layer's weights then take in.

``python -m models.relevance`` writes weights.safetensors beside this file, or into ``--out``.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path

import torch

from .. import training
from .data import FEATURES, cases, units
from .model import HIDDEN, Relevance

SMALLEST_HIDDEN, LARGEST_HIDDEN = -3.0, 2.5  # decimal exponents of hidden units


def train(features: int = FEATURES, hidden: Sequence[int] = HIDDEN, steps: int = 300, batch: int = 256) -> Relevance:
    """A trained network; equal arguments give equal networks. Its weights span seven decades and more."""
    torch.manual_seed(3)
    model = Relevance(features, hidden)
    optimizer = torch.optim.Adam(model.parameters(), lr=2e-3)
    scale = units(features)
    for step in range(steps):
        values, labels = cases(batch, features, seed=1 + step)
        optimizer.zero_grad()
        torch.nn.functional.cross_entropy(model.logits((values / scale).float()), labels).backward()
        optimizer.step()
    with torch.no_grad():
        first = model.logits[0]
        first.weight.copy_((first.weight / scale).float())
        for before, after in ((0, 2), (2, 4)):
            _in_own_units(model.logits[before], model.logits[after])
    return model.eval()


def _in_own_units(before: torch.nn.Linear, after: torch.nn.Linear) -> None:
    """Counts the hidden values between two layers in units of their own, as networks do that nothing normalizes."""
    count = before.out_features
    exponents = torch.linspace(SMALLEST_HIDDEN, LARGEST_HIDDEN, count)
    scale = (10.0**exponents)[torch.randperm(count, generator=torch.Generator().manual_seed(4))]
    before.weight.mul_(scale[:, None])
    before.bias.mul_(scale)
    after.weight.div_(scale)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, default=Path(__file__).parent, help="folder to write into")
    out = parser.parse_args().out
    torch.set_num_threads(1)
    module, test = train(), training.Series(*cases(1000, seed=-1))
    training.write_weights(out, module, training.accuracy(module, lambda x: x, test), len(test.labels), 3)
