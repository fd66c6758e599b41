# SPDX-License-Identifier: Apache-2.0
"""What rules promise of the library's functions holds for the functions' own arithmetic."""

import pytest
import torch

import privml
from privml.engines.catalogue import FORMS, FUNCTIONS
from privml.engines.exponentials import exp_negative_function
from privml.engines.plain.engine import PlainEngine
from privml.formats import FixedPoint
from privml.ops.fixed import evaluate, target_of

SOURCES = [(16, 12), (16, 8), (13, 4), (20, 12), (24, 16), (32, 16), (32, 20), (32, 10), (8, 4)]
TARGETS = [(10, 8), (14, 12), (18, 16), (22, 20), (26, 24), (32, 30), (32, 16)]


def inputs(bits, domain):
    """All values of up to 16 bits; of wider formats random ones of all magnitudes, and those around zero."""
    if bits <= 16:
        values = torch.arange(-(2 ** (bits - 1)), 2 ** (bits - 1))
    else:
        generator = torch.Generator().manual_seed(bits)
        draw = torch.randint(0, 2 ** (bits - 1), (20_000,), generator=generator)
        draw = draw >> torch.randint(0, bits - 1, draw.shape, generator=generator)
        values = torch.cat([draw, -draw - 1, torch.arange(-2000, 2000)])
    keep = {"all": values == values, "x > 0": values > 0, "x >= 0": values >= 0, "x <= 0": values <= 0}[domain]
    return values[keep]


def serves(name, source, target):
    """Forms of exponentials are not there for all formats."""
    if not name.startswith("exp_negative_"):
        return True
    return exp_negative_function(name.removeprefix("exp_negative_"), source, target) == name


@pytest.mark.parametrize("name", FUNCTIONS | FORMS)
def test_signs_and_bounds(name):
    """A claim that fails on one value would make the next protocol compute something else."""
    engine = PlainEngine()
    with privml.local("plain"):
        for bits, scale in SOURCES:
            x = inputs(bits, (FUNCTIONS | FORMS)[name])
            for target in TARGETS:
                if not serves(name, FixedPoint(bits, scale), FixedPoint(*target)):
                    continue
                fitting = x
                if name == "softplus":  # grows beyond the format and wraps there, as every sum does
                    fitting = x[x < (2.0 ** (target[0] - 1 - target[1]) - 1) * 2**scale]
                like = privml.share(torch.zeros(fitting.shape))
                secret = privml.SecretTensor((fitting,), FixedPoint(bits, scale), like.placement, like.session)
                result = evaluate(secret, name, FixedPoint(*target))
                fmt, value = result.format, result.share[0]
                assert (fmt.bits, fmt.scale) == target
                what = f"{name} from {bits, scale} to {target}"
                assert not fmt.nonnegative or int(value.min()) >= 0, what
                assert fmt.bound is None or int(value.abs().max()) < fmt.bound, what
    assert engine.components == 1


@pytest.mark.parametrize("wanted", [(64, 16), (64, 24), (64, 32), (32, 12), (18, 16), (12, 10), (9, 3), (40, 5)])
@pytest.mark.parametrize("size", [None, 0, 1, 5, 12, 30])
def test_targets_are_formats_of_the_library(size, wanted):
    target = target_of(size, FixedPoint(*wanted))
    assert 8 <= target.bits <= 32 and 0 <= target.scale <= target.bits - 2 and target.scale <= max(wanted[1], 6)
    if size is not None and size <= 12 and wanted[1] <= 16:
        assert target.scale == wanted[1] and target.bits - 1 - target.scale >= size


@pytest.mark.parametrize("bits, scale", [(13, 12), (17, 16), (32, 31)])
@pytest.mark.parametrize("engine", ["plain", "twopc"])
def test_functions_of_values_known_to_be_small(engine, bits, scale):
    """Calibration gives such values formats without a bit for ones, which the functions do not take."""
    x = torch.linspace(-0.9, 0.9, 7)
    with privml.local(engine, **({} if engine == "plain" else {"ot": "ideal"})):
        small = privml.share(x, 0, FixedPoint(bits, scale))
        for function in (torch.sigmoid, torch.tanh, torch.nn.functional.gelu):
            assert (privml.reveal(function(small)) - function(x)).abs().max() < 2.0**-9, function
