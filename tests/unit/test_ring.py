# SPDX-License-Identifier: Apache-2.0
"""Exact products modulo 2^64 against Python integers."""

import pytest
import torch

from privml.engines import ring


def random(rng, shape, width):
    value = torch.randint(-(2**63), 2**63 - 1, shape, generator=rng)
    return ring.wrap(value, width)


def exact_matmul(a, b):
    return [
        [sum(x * y for x, y in zip(row, column, strict=True)) for column in zip(*b.tolist(), strict=True)]
        for row in a.tolist()
    ]


def signed(value):
    return (value + 2**63) % 2**64 - 2**63


@pytest.mark.parametrize("width_a", [2, 20, 33, 64])
@pytest.mark.parametrize("width_b", [1, 26, 47, 64])
def test_matmul_and_its_estimate(width_a, width_b):
    rng = torch.Generator().manual_seed(width_a * 100 + width_b)
    a, b = random(rng, (3, 17), width_a), random(rng, (17, 2), width_b)
    result, estimate = ring.bilinear(torch.matmul, a, b, 17)
    exact = exact_matmul(a, b)
    assert result.tolist() == [[signed(v) for v in row] for row in exact]
    if estimate is None:
        assert all(abs(v) < 2**53 for row in exact for v in row)
    else:
        over = [[not -(2**63) <= v < 2**63 for v in row] for row in exact]
        assert ring.wrapped(result, estimate).tolist() == over


def test_extreme_values():
    low, high = -(2**63), 2**63 - 1
    a = torch.tensor([[low, high, low, -1]])
    b = torch.tensor([[low], [high], [high], [low]])
    assert ring.matmul(a, b).item() == signed(low * low + high * high + low * high + 2**63)


@pytest.mark.parametrize("groups", [1, 2])
def test_conv2d_equals_its_matrix_form(groups):
    rng = torch.Generator().manual_seed(groups)
    x, w = random(rng, (2, 4, 5, 6), 64), random(rng, (6, 4 // groups, 3, 2), 40)
    result = ring.conv2d(x, w, (2, 1), (1, 0), (1, 2), groups)
    padded = torch.nn.functional.pad(x, (0, 0, 1, 1))
    for n, o, i, j in [(0, 0, 0, 0), (1, 5, 2, 3), (0, 3, 1, 2), (1, 2, 2, 0)]:
        channels = range(o // (6 // groups) * (4 // groups), (o // (6 // groups) + 1) * (4 // groups))
        total = sum(
            int(padded[n, c, 2 * i + p, j + 2 * q]) * int(w[o, k, p, q])
            for k, c in enumerate(channels)
            for p in range(3)
            for q in range(2)
        )
        assert int(result[n, o, i, j]) == signed(total)


@pytest.mark.parametrize("bits", [2, 8, 37, 63, 64])
def test_wrap(bits):
    values = [0, 1, -1, 2 ** (bits - 1) - 1, -(2 ** (bits - 1)), 2**62 + 5, -(2**61) - 3]
    half = 2 ** (bits - 1)
    assert ring.wrap(torch.tensor(values), bits).tolist() == [(v + half) % (2 * half) - half for v in values]


def test_empty_tensors():
    assert ring.magnitude_bits(torch.empty(0, dtype=torch.int64)) == 0
    assert ring.matmul(torch.empty(2, 0, dtype=torch.int64), torch.empty(0, 3, dtype=torch.int64)).sum() == 0
