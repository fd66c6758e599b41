# SPDX-License-Identifier: Apache-2.0
"""Products modulo 2^bits on a device equal those of the compiled core, bit for bit."""

import pytest
import torch

from privml.engines import limb_products, ring
from privml.engines.shares import Window

pytestmark = [
    pytest.mark.gpu,
    pytest.mark.skipif(not torch.cuda.is_available(), reason="torch sees no CUDA device"),
]
UNITS = {"chosen": None, "int8": limb_products.INT8, "float64": limb_products.FLOAT64}
SHAPES = [(1, 1, 1), (3, 17, 2), (128, 768, 768), (33, 4099, 65), (2, 40000, 3), (257, 96, 1)]


def random(rng, *shape):
    value = torch.randint(-(2**63), 2**63 - 1, shape, generator=rng)
    value.view(-1)[::7] = 0x7F7F7F7F7F7F7F80  # every limb of 8 bits is -128
    value.view(-1)[::11] = -(2**63)
    return value


@pytest.mark.parametrize("unit", UNITS)
@pytest.mark.parametrize("bits", [32, 48, 64])
def test_matmul(unit, bits):
    rng = torch.Generator().manual_seed(bits)
    for n, k, m in SHAPES:
        a, b = random(rng, n, k), random(rng, k, m)
        result = limb_products.matmul(a.cuda(), b.cuda(), bits, UNITS[unit])
        assert result.is_cuda
        assert torch.equal(ring.wrap(result.cpu(), bits), ring.wrap(ring.matmul(a, b, bits), bits))


def test_batches_and_views():
    rng = torch.Generator().manual_seed(1)
    a, b = random(rng, 2, 3, 40, 50), random(rng, 2, 3, 60, 50)
    result = ring.matmul(a.cuda()[:, :, ::2], b.cuda().transpose(-1, -2))
    assert torch.equal(result.cpu(), ring.matmul(a[:, :, ::2], b.transpose(-1, -2)))


@pytest.mark.parametrize("unit", UNITS)
@pytest.mark.parametrize(
    "shape, kernel, stride, padding, dilation, groups",
    [
        ((2, 3, 32, 32), (64, 3, 3, 3), (1, 1), (1, 1), (1, 1), 1),
        ((1, 64, 8, 8), (128, 64, 3, 3), (2, 2), (1, 1), (1, 1), 1),
        ((3, 1, 28, 28), (6, 1, 5, 5), (1, 1), (2, 2), (1, 1), 1),
        ((2, 8, 9, 7), (4, 4, 3, 2), (2, 1), (1, 0), (1, 2), 2),
        ((2, 16, 9, 7), (16, 1, 3, 3), (1, 1), (1, 1), (1, 1), 16),
        ((1, 512, 1, 1), (512, 512, 3, 3), (1, 1), (1, 1), (1, 1), 1),
    ],
)
def test_conv2d(unit, shape, kernel, stride, padding, dilation, groups):
    rng = torch.Generator().manual_seed(groups)
    x, w = random(rng, *shape), random(rng, *kernel)
    window = Window(stride, padding, dilation, groups)
    for bits in (32, 64):
        expected = ring.wrap(ring.conv2d(x, w, window, bits), bits)
        result = limb_products.conv2d(x.cuda(), w.cuda(), window, bits, UNITS[unit])
        assert torch.equal(ring.wrap(result.cpu(), bits), expected)
