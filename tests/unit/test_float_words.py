# SPDX-License-Identifier: Apache-2.0
"""Floats as words, against torch's own casts and exact integers."""

import math

import pytest
import torch

from privml.engines.ring import add_words, subtract_words
from privml.errors import ConfigError, InvalidInput
from privml.float_words import (
    exponent_of,
    float_values,
    float_words,
    joined,
    mantissa_of,
    nonzero_of,
    sign_of,
)
from privml.formats import FLOATS, Float, float_format

DTYPES = {"float32": torch.float32, "bfloat16": torch.bfloat16, "float16": torch.float16}


def random_singles(count):
    """Any bit pattern that is no NaN."""
    generator = torch.Generator().manual_seed(5)
    value = torch.randint(-(2**31), 2**31, (count,), generator=generator).to(torch.int32).view(torch.float32)
    edges = torch.tensor([0.0, -0.0, 1.0, -1.0, math.inf, -math.inf, 2.0**-126, 3.4e38, 65504.0, 65520.0, 2.0**-14])
    return torch.cat([value[~value.isnan()], edges])


@pytest.mark.parametrize("name", DTYPES)
def test_words_round_as_torch_does_and_flush_denormals(name):
    x = random_singles(200_000)
    expected = x.to(DTYPES[name]).float()
    value = float_values(float_words(x, FLOATS[name]), FLOATS[name], torch.float32)
    smallest = torch.finfo(DTYPES[name]).tiny
    # what rounds up to the smallest normal number from below it has too few bits there: zero, too
    flushed = (expected.abs() < smallest) | ((expected.abs() == smallest) & (x.abs() < smallest))
    assert torch.equal(value[~flushed].view(torch.int32), expected[~flushed].view(torch.int32))
    assert bool(((value[flushed] == 0) | (value[flushed].abs() == smallest)).all())
    assert torch.equal(torch.signbit(value), torch.signbit(x))
    assert bool((value[expected.abs() < smallest / 2] == 0).all())


def test_float64_is_rounded_once():
    below, above = 1 + 2.0**-24 - 2.0**-50, 1 + 2.0**-24 + 2.0**-50
    x = torch.tensor([below, 1 + 2.0**-24, above, 1e300, 1e-300, -1e-300], dtype=torch.float64)
    value = float_values(float_words(x, Float(8, 23)), Float(8, 23), torch.float64)
    assert value.tolist()[:5] == [1.0, 1.0, 1 + 2.0**-23, math.inf, 0.0]
    assert math.copysign(1, value[5]) == -1


def test_integers_are_rounded_once():
    generator = torch.Generator().manual_seed(6)
    x = torch.randint(-(2**62), 2**62, (50_000,), generator=generator)
    half = (1 << 60) + (1 << 36)
    tie = torch.tensor([2**63 - 1, -(2**63), half, half + 1, half + (1 << 37), 7, 0])
    x = torch.cat([x, tie])
    assert torch.equal(float_values(float_words(x, Float(8, 23)), Float(8, 23), torch.float32), x.float())


def test_zero_is_the_zero_word_and_parts_come_apart():
    fmt = Float(8, 23)
    words = float_words(torch.tensor([0.0, -0.0, -1.5]), fmt)
    assert words[0] == 0 and words[1] == 1 << fmt.sign_bit
    assert (mantissa_of(words, fmt)[2], exponent_of(words, fmt)[2]) == (3 << 22, 127)
    assert (sign_of(words, fmt)[2], nonzero_of(words, fmt)[2]) == (1, 1)
    parts = (part(words, fmt) for part in (mantissa_of, exponent_of, sign_of, nonzero_of))
    assert torch.equal(joined(*parts, fmt), words)


@pytest.mark.parametrize("fmt", [Float(8, 23), Float(11, 48), Float(3, 4)])
def test_words_as_shares(fmt):
    generator = torch.Generator().manual_seed(7)
    a, b = (torch.randint(-(2**63), 2**63 - 1, (1000,), generator=generator) for _ in range(2))
    used = -1 if fmt.word_bits == 64 else (1 << fmt.word_bits) - 1
    assert torch.equal(add_words(subtract_words(a, b, fmt), b, fmt) & used, a & used)


def test_nan_is_refused_by_index():
    x = torch.zeros(2, 3)
    x[1, 2] = math.nan
    with pytest.raises(InvalidInput, match=r"index \(1, 2\) is NaN"):
        float_words(x, Float())


@pytest.mark.parametrize("parts", [(2, 3), (12, 20), (8, 1), (8, 52), (3, 5), (8.0, 23)])
def test_formats_out_of_range(parts):
    with pytest.raises(ValueError, match="Float: "):
        Float(*parts)


def test_names_of_formats():
    assert float_format("bfloat16") == Float(8, 7) and float_format(None) is None
    with pytest.raises(ConfigError, match="there are float32, bfloat16, tf32, float16"):
        float_format("float8")
