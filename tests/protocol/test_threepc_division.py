# SPDX-License-Identifier: Apache-2.0
"""Quotients by a public number with a dealer, against integers: all values of small rings, random ones of others."""

import pytest
import torch

from privml.engines import ring
from privml.engines.catalogue import LARGEST_DIVISOR
from privml.engines.shares import Promise
from privml.engines.threepc import backend as threepc
from privml.engines.threepc.links import DEALER

# What is divided, by what is promised of it.
PROMISES = {
    "nothing": lambda bits: (-(1 << (bits - 1)), (1 << (bits - 1)) - 1, Promise()),
    "not negative": lambda bits: (0, (1 << (bits - 1)) - 1, Promise(nonnegative=True)),
    "small": lambda bits: (-(1 << (bits - 2)), (1 << (bits - 2)) - 1, Promise(bound=1 << (bits - 2))),
}


@pytest.fixture(scope="module", params=["few_bytes", "few_rounds"])
def engine(request):
    made = threepc.create(threepc.Config(comparison=request.param), deadline=20.0)
    yield made
    made.close()


def check(engine, x, bits, divisor, promise, owner):
    found = engine.divide_public(engine.input(x, x.shape, owner, bits), bits, divisor, promise)
    wanted = ring.wrap(torch.div(x, divisor, rounding_mode="floor"), bits)
    assert torch.equal(engine.reveal(found, bits), wanted), (bits, divisor)


@pytest.mark.parametrize("promise", PROMISES)
@pytest.mark.parametrize("bits", [4, 6, 8])
def test_all_values_of_small_rings(engine, promise, bits):
    low, high, promised = PROMISES[promise](bits)
    x = torch.arange(low, high + 1).repeat(3)
    for divisor in (3, 5, 7, 12, (1 << bits) - 1, 1 << bits | 1, 300):
        for owner in (0, 1, DEALER):
            check(engine, x, bits, divisor, promised, owner)


@pytest.mark.parametrize("promise", PROMISES)
@pytest.mark.parametrize("bits", [31, 32, 48, 62, 63, 64])
def test_large_rings(engine, promise, bits):
    low, high, promised = PROMISES[promise](bits)
    generator = torch.Generator().manual_seed(bits)
    x = torch.randint(low, high, (100,), generator=generator)
    for divisor in (3, 768, 1000003, LARGEST_DIVISOR):
        multiples = torch.div(x[:30], divisor, rounding_mode="floor") * divisor
        edges = torch.tensor([low, low + 1, high - 1, high, 0, 1, divisor - 1, divisor])
        each = torch.cat([x, multiples, multiples - 1, edges]).clamp(low, high)
        check(engine, each, bits, divisor, promised, 1)


def test_masks_of_other_operations(engine):
    """Masks that are known, or parts of them."""
    x = torch.arange(-50, 50)
    public = engine.public(x, 32)
    assert torch.equal(engine.reveal(engine.divide_public(public, 32, 7), 32), x.div(7, rounding_mode="floor"))
    sums = engine.add(engine.input(x, x.shape, 0, 64), engine.input(x, x.shape, DEALER, 64), 64)
    assert torch.equal(engine.reveal(engine.divide_public(sums, 64, 6), 64), (2 * x).div(6, rounding_mode="floor"))
    none = engine.input(torch.zeros(0, dtype=torch.int64), (0,), 1, 32)
    assert engine.reveal(engine.divide_public(none, 32, 3), 32).shape == (0,)


@pytest.mark.parametrize("divisor", [0, LARGEST_DIVISOR + 1])
def test_divisors_that_are_refused(engine, divisor):
    with pytest.raises(ValueError, match="a public divisor must be from 1"):
        engine.divide_public(engine.public(torch.ones(3, dtype=torch.int64), 32), 32, divisor)
