# SPDX-License-Identifier: Apache-2.0
"""Made-up cases: features of very different units, and classes that a hidden network of fixed seed decides."""

from __future__ import annotations

from typing import NamedTuple

import torch

FEATURES, CLASSES = 874, 4
SMALLEST, LARGEST = 0.0, 6.0  # decimal exponents of the units


class Cases(NamedTuple):
    values: torch.Tensor  # float32 [n, features]
    labels: torch.Tensor  # int64 [n]


def units(features: int = FEATURES) -> torch.Tensor:
    """Rates of clicks to numbers of visits: powers of ten, spread evenly, in an order of fixed seed."""
    exponents = torch.linspace(SMALLEST, LARGEST, features, dtype=torch.float64)
    return (10.0**exponents)[torch.randperm(features, generator=torch.Generator().manual_seed(1))]


def cases(count: int, features: int = FEATURES, seed: int = 0) -> Cases:
    """``count`` cases, all features of unit variance in their units."""
    teacher = torch.Generator().manual_seed(2)
    hidden = torch.randn(features, 32, generator=teacher, dtype=torch.float64) / features**0.5
    classes = torch.randn(32, CLASSES, generator=teacher, dtype=torch.float64)
    standard = torch.randn(count, features, generator=torch.Generator().manual_seed(100 + seed), dtype=torch.float64)
    labels = (torch.tanh(2 * standard @ hidden) @ classes).argmax(1)
    return Cases((standard * units(features)).float(), labels)
