# SPDX-License-Identifier: Apache-2.0
"""What parties 0 and 1 pick of a table's polynomials, in operations of torch on any device; the kernel of
csrc/threepc/pieces.h does the same on a CPU."""

from __future__ import annotations

import torch

# Elements whose tables are computed at a time.
_TILE = 1 << 18


def piece_sums(
    coefficients: torch.Tensor, shifts: tuple[int, int], index: torch.Tensor, place: torch.Tensor, hot: torch.Tensor
) -> torch.Tensor:
    """Of each piece k the coefficients [power, piece] of its polynomial around the public place, times the part of
    [M - R = k]: sums [power, n]. ``shifts``: bits that products with the place lose, and those that the coefficients of
    power 0 lose in the end, of power i as many more; ``hot``: [n, pieces]."""
    flat = (each.split(_TILE) for each in (index, place, hot))
    sums = [_of_tile(coefficients, shifts, *tile) for tile in zip(*flat, strict=True)]
    return torch.cat(sums, 1) if sums else index.new_zeros((len(coefficients), 0))


def _of_tile(
    coefficients: torch.Tensor, shifts: tuple[int, int], index: torch.Tensor, place: torch.Tensor, hot: torch.Tensor
) -> torch.Tensor:
    count, (powers, dropped) = coefficients.shape[1], shifts
    order = torch.arange(count, device=index.device)
    turned = hot.gather(1, (index.unsqueeze(1) - order) & (count - 1))
    rows = [row.expand(turned.shape) for row in coefficients]
    at, degree = place.unsqueeze(1), len(rows) - 1
    for first in range(degree):
        for k in range(degree - 1, first - 1, -1):
            rows[k] = rows[k] + (rows[k + 1] * at >> powers)
    result = []
    for more, row in enumerate(rows, dropped):
        rounded = (row + (1 << (more - 1))) >> more
        result.append((rounded * turned).sum(1))
    return torch.stack([-row if i & 1 else row for i, row in enumerate(result)])
