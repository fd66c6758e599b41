# SPDX-License-Identifier: Apache-2.0
"""Division by public whole numbers: the engines' composition for all numbers, its limits, and what it costs."""

import pytest
import torch
from additive_engine import AdditiveEngine
from torch import nn

import privml
from privml.engines.catalogue import LARGEST_DIVISOR
from privml.engines.plain.engine import PlainEngine
from privml.errors import OverflowDetected

DIVISORS = (1, 2, 3, 5, 6, 7, 12, 96, 100, 255, 257, 2**20 + 7, LARGEST_DIVISOR)


def divided(value, bits, divisor):
    engine = AdditiveEngine()
    return engine.reveal(engine.divide_public(engine.input(value, value.shape, 0, bits), bits, divisor), bits)


@pytest.mark.parametrize("divisor", DIVISORS)
def test_every_number_of_eight_bits(divisor):
    value = torch.arange(-128, 128)
    assert torch.equal(divided(value, 8, divisor), value.div(divisor, rounding_mode="floor"))


@pytest.mark.parametrize("bits", [28, 29, 30, 37, 53, 64])
@pytest.mark.parametrize("divisor", DIVISORS)
def test_multiples_and_their_neighbours(bits, divisor):
    low, high = -(2 ** (bits - 1)), 2 ** (bits - 1) - 1
    factor = torch.randint(low // divisor, high // divisor, (50,), generator=torch.Generator().manual_seed(bits))
    ends = torch.tensor([low, low + 1, -1, 0, 1, high - 1, high])
    value = torch.cat([ends, *((factor * divisor + d).clamp(low, high) for d in (-1, 0, 1))])
    assert torch.equal(divided(value, bits, divisor), value.div(divisor, rounding_mode="floor"))


@pytest.mark.parametrize("divisor", [0, -3, LARGEST_DIVISOR + 1])
def test_other_divisors_are_refused(divisor):
    with pytest.raises(ValueError, match="public divisor"):
        divided(torch.zeros(1, dtype=torch.int64), 32, divisor)
    with pytest.raises(ValueError, match="public divisor"):
        PlainEngine().divide_public((torch.zeros(1),), 32, divisor)


def test_what_is_divided_may_fill_its_ring():
    with privml.local("plain", bits=20, scale=8):
        x = torch.tensor([1000.0, 2047.0, -2047.0])
        assert torch.allclose(privml.reveal(privml.share(x) / 3), x / 3, atol=2**-9)
        with pytest.raises(OverflowDetected, match="needs 21 bits"):
            privml.share(torch.tensor([2048 - 2**-8])) / 3


def test_ties_are_rounded_upwards():
    with privml.local("plain", bits=32, scale=1):
        x = privml.share(torch.tensor([1.5, -1.5, 4.5, -4.5]))
        assert privml.reveal(x / 6).tolist() == [0.5, 0.0, 1.0, -0.5]


def test_a_mean_in_a_program_is_exact():
    """Division takes an untruncated product and drops its bits too: the mean is the nearest number of its format."""
    torch.manual_seed(0)
    model = nn.Sequential(nn.Conv2d(1, 2, 3, bias=False), nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(2, 2))
    with torch.no_grad():
        model[0].weight.copy_((model[0].weight * 16).round() / 16)
    x = torch.randint(0, 16, (4, 1, 7, 7)) / 16.0
    program = privml.convert(model.eval(), calibration=x, numerics={"scale": 10, "weight_bits": 12})
    found = []
    with privml.local("plain", bits=32, scale=10) as session:
        divide = session.engine.divide_public

        def record(share, bits, divisor, promise):
            result = divide(share, bits, divisor, promise)
            found.append(result[0].double() * 2.0**-10)
            return result

        session.engine.divide_public = record
        program.run(session, x)
    assert len(found) == 1
    assert (found[0] - model[:2](x).double().reshape(found[0].shape)).abs().max() <= 2.0**-11
