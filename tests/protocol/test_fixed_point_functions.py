# SPDX-License-Identifier: Apache-2.0
"""Fixed-point functions from Python: values, shares, formats, and the checked-in constants."""

import math
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from parties import run_both, succeed

from privml import _core

F = _core.fixmath
ROOT = Path(__file__).resolve().parents[2]
FORMATS = (16, 12, 16, 12)

# name: (numpy's function, smallest and largest input, largest error in units in the last place)
FUNCTIONS = {
    "exp_negative": (np.exp, -(2**15), 0, 3),
    "exp_negative_spline": (np.exp, -(2**15), 0, 1),
    "exp_negative_exact": (np.exp, -(2**15), 0, 0.71),
    "exp_negative_product": (np.exp, -(2**15), 0, 0.5001),
    "exp": (np.exp, -(2**15), 8517, 3),  # ln 8 = 8517.4 / 4096
    "reciprocal": (np.reciprocal, 513, 2**15 - 1, 3),
    "reciprocal1p": (lambda x: 1 / (1 + x), 0, 2**15 - 1, 1),
    "sigmoid": (lambda x: 1 / (1 + np.exp(-x)), -(2**15), 2**15 - 1, 3),
    "tanh": (np.tanh, -(2**15), 2**15 - 1, 4),
    "rsqrt": (lambda x: 1 / np.sqrt(x), 66, 2**15 - 1, 1.1),
    "rsqrt_significant": (lambda x: 1 / np.sqrt(x), 66, 2**15 - 1, 1.1),
    "rsqrt_significant_14": (lambda x: 1 / np.sqrt(x), 66, 2**15 - 1, 1.1),
    "sqrt": (np.sqrt, 0, 2**15 - 1, 1),
    "log": (np.log, 2, 2**15 - 1, 1),
    "erf": (np.vectorize(math.erf), -(2**15), 2**15 - 1, 1),
    "gelu": (lambda x: x * np.vectorize(math.erfc)(-x / math.sqrt(2)) / 2, -(2**15), 2**15 - 1, 1),
    "gelu_tanh": (lambda x: x / (1 + np.exp(-math.sqrt(8 / math.pi) * (x + 0.044715 * x**3))), -(2**15), 2**15 - 1, 1),
    "silu": (lambda x: x / (1 + np.exp(-x)), -(2**15), 2**15 - 1, 1),
    "softplus": (lambda x: np.logaddexp(0, x), -(2**15), 2**15 - 4, 1),
}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_values_are_within_the_stated_error(name):
    exact, low, high, bound = FUNCTIONS[name]
    x = np.arange(low, high + 1, dtype=np.int64)
    y = getattr(F, f"clear_{name}")(x, *FORMATS)
    assert y.dtype == np.int64
    assert np.abs(y - exact(x / 4096) * 4096).max() <= bound


def formats_and_inputs(name: str, random: np.random.Generator):
    """Formats of 8 to 32 bits with inputs of every magnitude, as (x, in_bits, in_scale, out_bits, out_scale)."""
    for _ in range(40):
        in_bits, out_bits = random.integers(8, 33, 2).tolist()
        in_scale, out_scale = int(random.integers(0, in_bits - 1)), int(random.integers(0, out_bits - 1))
        size = random.integers(1, 2 ** (in_bits - 1), 100) >> random.integers(0, in_bits - 1, 100)
        if name == "reciprocal":
            x = np.maximum(size, 1)
        elif name.startswith("exp_negative"):
            x = -size
        else:
            x = size * random.choice([-1, 1], 100)
        yield x, in_bits, in_scale, out_bits, out_scale


# Largest errors stated for any formats of up to 32 bits.
BOUNDS = {
    "exp_negative": 1.5,
    "exp_negative_spline": 1,
    "exp_negative_product": 0.5001,
    "exp": 1.75,
    "reciprocal": 1.5,
    "sigmoid": 1,
    "tanh": 1,
}


@pytest.mark.parametrize("name", BOUNDS)
def test_errors_of_random_formats(name):
    exact = FUNCTIONS[name][0]
    for x, in_bits, in_scale, out_bits, out_scale in formats_and_inputs(name, np.random.default_rng(7)):
        with np.errstate(over="ignore"):
            target = np.ldexp(exact(np.ldexp(x.astype(float), -in_scale)), out_scale)
        try:
            y = getattr(F, f"clear_{name}")(x, in_bits, in_scale, out_bits, out_scale)
        except ValueError:
            assert name == "exp_negative_spline", "the other forms serve all formats"
            continue
        largest = 2 ** (out_bits - 1) - 1
        assert y.max() <= largest
        fits = target <= largest
        errors = np.abs(y - target)[fits]
        assert errors.max(initial=0) <= BOUNDS[name], (in_bits, in_scale, out_bits, out_scale)
        if name == "reciprocal":
            assert (y[~fits] == largest).all()


@pytest.mark.parametrize("name, significant", [("rsqrt_significant", 20), ("rsqrt_significant_14", 14)])
def test_inverse_roots_of_fewer_significant_bits(name, significant):
    """1.1 units of the last place, or 1.4 above half of the largest number, as rsqrt, and 2^-20 or 2^-14 of it."""
    random = np.random.default_rng(11)
    formats = [
        (26, 16, 26, 16),
        (25, 16, 26, 16),
        (32, 18, 32, 21),
        (32, 18, 32, 24),
        (28, 18, 32, 21),
        (24, 20, 32, 22),
        (32, 30, 32, 15),
    ]
    for _, *drawn in formats_and_inputs("rsqrt", random):
        formats.append(tuple(drawn))
    for in_bits, in_scale, out_bits, out_scale in formats:
        magnitudes = random.integers(0, in_bits - 1, 4000)
        x = np.unique(np.concatenate([random.integers(1, 2 ** (in_bits - 1), 4000) >> magnitudes, 2**magnitudes]))
        x = x[x > 0]
        exact = np.ldexp(1 / np.sqrt(np.ldexp(x.astype(float), -in_scale)), out_scale)
        y = getattr(F, f"clear_{name}")(x, in_bits, in_scale, out_bits, out_scale)
        fits = exact <= 2 ** (out_bits - 1) - 1
        assert (y > 0)[fits & (exact >= 1)].all() and y.max() < 2 ** (out_bits - 1)
        allowed = np.where(exact > 2.0 ** (out_bits - 2), 1.4, 1.1) + exact * 2.0**-significant
        assert (np.abs(y - exact) <= allowed)[fits].all(), (in_bits, in_scale, out_bits, out_scale)


@pytest.mark.parametrize("name", FUNCTIONS)
def test_shares_give_what_the_clear_function_gives(name):
    _, low, high, _ = FUNCTIONS[name]
    random = np.random.default_rng(1)
    x = random.integers(low, high, (3, 50), endpoint=True)
    mask = random.integers(0, 2**16, x.shape)
    shares = [mask, (x - mask) & 0xFFFF]

    def party(rank, channel):
        session = _core.TwoPartySession(channel, rank, "softspoken", 4)
        return getattr(F, name)(session, shares[rank], *FORMATS)

    first, second = succeed(run_both(party))
    together = ((first + second + 2**15) & 0xFFFF) - 2**15
    off = 1 if name == "exp_negative_product" else 0  # its last place depends on the shares
    assert np.abs(together - getattr(F, f"clear_{name}")(x, *FORMATS)).max() <= off


@pytest.mark.parametrize("name", FUNCTIONS)
def test_a_meter_books_the_cost_and_formats_out_of_range_are_refused(name):
    meter = _core.TwoPartySession.meter(0, "softspoken", 4)
    x = np.zeros((4, 5), np.int64)
    assert getattr(F, name)(meter, x, *FORMATS).shape == x.shape
    assert meter.counters()["online"]["sent"] > 0
    too_wide = (65 if "negative_" in name else 33, 12, 16, 12)
    for formats in ((16, 12, 16, 15), (1, 0, 16, 12), too_wide, (16, -1, 16, 12)):
        with pytest.raises(ValueError, match="format: (bits|scale) must lie in"):
            getattr(F, name)(meter, x, *formats)
        with pytest.raises(ValueError, match=name):
            getattr(F, f"clear_{name}")(x, *formats)


def test_the_checked_in_constants_are_what_the_script_makes():
    pytest.importorskip("mpmath")
    command = [sys.executable, str(ROOT / "scripts" / "make_tables.py"), "--check"]
    result = subprocess.run(command, capture_output=True, text=True, timeout=120)
    assert result.returncode == 0, result.stdout + result.stderr
