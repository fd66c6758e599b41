# SPDX-License-Identifier: Apache-2.0
"""Composed functions: in the clear against float64, and the three-party engine against the clear ones."""

import math

import pytest
import torch
import torch.nn.functional as F

from privml.engines.catalogue import FUNCTIONS
from privml.engines.composed.functions import function
from privml.engines.composed.segments import segmented
from privml.engines.composed.steps import spline
from privml.engines.plain.engine import PlainEngine
from privml.engines.threepc import backend as threepc
from privml.formats import FixedPoint

CLEAR = PlainEngine(check_overflow=False, parties=3)
# name -> (function, lowest and highest argument, largest error in units of 2^-16 beyond the spline's)
CASES = {
    "exp_negative": (torch.exp, -40.0, 0.0, 1.5),
    "exp": (torch.exp, -40.0, 6.0, 2.0),
    "sigmoid": (torch.sigmoid, -30.0, 30.0, 1.5),
    "tanh": (torch.tanh, -30.0, 30.0, 1.5),
    "reciprocal": (torch.reciprocal, 0.01, 30000.0, 1.5),
    "rsqrt": (torch.rsqrt, 0.01, 30000.0, 1.5),
    "sqrt": (torch.sqrt, 0.0, 30000.0, 1.5),
    "log": (torch.log, 0.001, 30000.0, 1.5),
    "erf": (torch.erf, -8.0, 8.0, 1.5),
    "gelu": (F.gelu, -20.0, 20.0, 1.5),
    "gelu_tanh": (lambda x: F.gelu(x, approximate="tanh"), -20.0, 20.0, 1.5),
    "silu": (F.silu, -30.0, 30.0, 1.5),
    "softplus": (lambda x: F.softplus(x, threshold=1000.0), -30.0, 30.0, 1.5),
    "sin": (torch.sin, -300.0, 300.0, 1.5),
    "cos": (torch.cos, -300.0, 300.0, 1.5),
}
SPLINES = {"tanh": "sigmoid", "sin": "sine", "cos": "sine", "exp": None, "exp_negative": None}
TARGET = FixedPoint(32, 16)


def arguments(name, count, scale):
    _, low, high, _ = CASES[name]
    x = torch.rand(count, dtype=torch.float64, generator=torch.Generator().manual_seed(5)) * (high - low) + low
    if low >= 0:
        small = torch.logspace(math.log10(max(low, 0.001)), math.log10(high), count, dtype=torch.float64)
        x = torch.cat([x, small])
    x = torch.cat([(x * 2.0**scale).round(), torch.tensor([low, high]) * 2.0**scale]).ceil().long()
    return x.clamp(max=0 if name == "exp_negative" else 2**31 - 1)


def test_all_functions_are_here():
    assert set(CASES) == set(FUNCTIONS)


@pytest.mark.parametrize("scale", [12, 16, 20])
@pytest.mark.parametrize("name", CASES)
def test_errors(name, scale):
    x = arguments(name, 4000, scale)
    real = x.double() * 2.0**-scale
    found = function(CLEAR, name, (x,), FixedPoint(64, scale), TARGET)[0].double()
    of_spline = SPLINES.get(name, name)
    allowed = CASES[name][3] + (
        0 if of_spline is None else (2 if name == "tanh" else 1) * spline(of_spline).error * 2**16
    )
    exact = CASES[name][0](real)
    relative = 2.0**-20 * exact.abs() * 2**16  # of the exponential's polynomial and of results that are scaled back
    assert ((found - exact * 2**16).abs() <= allowed + relative).all()


def test_what_does_not_fit_saturates():
    x = torch.tensor([11 << 16, 200 << 16, 1 << 40])
    assert (function(CLEAR, "exp", (x,), FixedPoint(64, 16), TARGET)[0] == 2**31 - 1).all()
    tiny = torch.tensor([1, 2])
    result = function(CLEAR, "reciprocal", (tiny,), FixedPoint(64, 16), TARGET)[0]
    assert int(result[0]) == 2**31 - 1 and abs(int(result[1]) - 2**31) <= 2**9


@pytest.mark.parametrize(("bits", "scale", "beyond"), [(64, 13, 0.001), (64, 26, 0.0), (32, 13, 0.005)])
@pytest.mark.parametrize("name", ["sigmoid", "gelu"])
def test_segments(name, bits, scale, beyond):
    x = torch.cat([torch.arange(-8 << 13, 8 << 13, 37), torch.tensor([-4, -3, 0, 3, 4, 4000, -4000]) << 13])
    x = x << (scale - 13)
    real = x.double() * 2.0**-scale
    form = FixedPoint(bits, scale)
    found = segmented(CLEAR, name, (x,), form, form)[0].double() * 2.0**-scale
    exact = {"sigmoid": torch.sigmoid, "gelu": F.gelu}[name](real)
    assert (found - exact).abs().max() <= {"sigmoid": 0.134, "gelu": 0.0205}[name] + beyond


@pytest.fixture(scope="module", params=["exact", "faithful"])
def engine(request):
    made = threepc.create(threepc.Config(request.param), deadline=20.0)
    yield made
    made.close()


@pytest.mark.parametrize(("bits", "scale"), [(64, 16), (32, 13)])
@pytest.mark.parametrize("name", CASES)
def test_three_parties_compute_the_same(engine, name, bits, scale):
    x = arguments(name, 40, scale)
    source, target = FixedPoint(bits, scale), FixedPoint(32, scale)
    x = x.clamp(-(2 ** (bits - 1)), 2 ** (bits - 1) - 1)
    found = engine.reveal(engine.function(name, engine.input(x, x.shape, 0, bits), source, target), max(bits, 32))
    expected = function(CLEAR, name, (x,), source, target)[0]
    if engine.engines[0].truncation == "exact":
        assert torch.equal(found, expected)
    else:
        real = CASES[name][0](x.double() * 2.0**-scale) * 2.0**scale
        assert ((found - expected).abs() <= 4 + 2.0**-20 * real.abs()).all()


@pytest.mark.parametrize("bits", [32, 64])
@pytest.mark.parametrize("name", ["sigmoid", "gelu"])
def test_three_parties_compute_the_same_segments(name, bits):
    x = torch.cat([torch.arange(-8 << 13, 8 << 13, 1371), torch.tensor([-(4 << 13), 4 << 13, 1 << 29, -(1 << 29)])])
    fmt = FixedPoint(bits, 13)
    expected = segmented(CLEAR, name, (x,), fmt, fmt)[0]
    for truncation in ("exact", "faithful"):
        made = threepc.create(threepc.Config(truncation), deadline=20.0)
        found = made.reveal(segmented(made, name, made.input(x, x.shape, 0, bits), fmt, fmt), bits)
        # a unit more in each of four truncated powers counts up to ten times
        assert (found - expected).abs().max() <= (0 if truncation == "exact" else 40)
        made.close()


@pytest.mark.parametrize("name", CASES)
def test_the_meter_books_what_a_function_does(name):
    real, meter = threepc.create(deadline=20.0), threepc.meter(0)
    x, source = torch.full((9,), -1 if name == "exp_negative" else 3 << 16), FixedPoint(64, 16)
    for made in (real, meter):
        made.function(name, made.input(x, x.shape, 1, 64), source, TARGET)
    counted, booked = real.counters(), meter.counters()
    for phase in ("setup", "preprocess", "online"):
        assert all(counted[phase][k] == booked[phase][k] for k in ("sent", "received", "depth")), phase
    real.close()
