# SPDX-License-Identifier: Apache-2.0
"""Floating-point primitives as the core's module offers them: in the clear against numpy."""

import numpy as np
import pytest

from privml import _core

secfloat = _core.secfloat


def words(x):
    """Words of the float32 numbers `x`, denormals flushed."""
    bits = np.ascontiguousarray(x, dtype=np.float32).view(np.uint32).astype(np.int64)
    biased = (bits >> 23) & 255
    word = (bits & 0x7FFFFF) | 0x800000 | biased << 24 | (bits >> 31) << 34 | 1 << 35
    return np.where(biased == 0, (bits >> 31) << 34, word)


def numbers(word):
    """The float32 numbers of words."""
    return (
        ((((word >> 34) & 1) << 31) | (((word >> 24) & 255) << 23) | (word & 0x7FFFFF))
        .astype(np.uint32)
        .view(np.float32)
    )


@pytest.fixture
def pairs():
    rng = np.random.default_rng(5)
    return [(rng.normal(size=2000) * 2.0 ** rng.integers(-9, 9, 2000)).astype(np.float32) for _ in range(2)]


def test_clear_primitives_are_those_of_float32(pairs):
    a, b = pairs
    x, y = words(a), words(b)
    for name, expected in [
        ("add", a + b),
        ("subtract", a - b),
        ("multiply", a * b),
        ("divide", a / b),
        ("maximum", np.maximum(a, b)),
    ]:
        assert np.array_equal(numbers(getattr(secfloat, f"clear_{name}")(x, y, 8, 23)), expected), name
    for name, expected in [("less_than", a < b), ("less_equal", a <= b), ("equal", a == b)]:
        assert np.array_equal(getattr(secfloat, f"clear_{name}")(x, y, 8, 23), expected), name
        assert np.array_equal(getattr(secfloat, f"clear_{name}")(x, x, 8, 23), np.full(2000, name != "less_than")), name
    for name, expected in [
        ("negate", -a),
        ("absolute", abs(a)),
        ("relu", np.maximum(a, 0)),
        ("round_to_integer", np.rint(a)),
    ]:
        assert np.array_equal(numbers(getattr(secfloat, f"clear_{name}")(x, 8, 23)), expected), name
    assert np.array_equal(numbers(secfloat.clear_sqrt(words(abs(a)), 8, 23)), np.sqrt(abs(a)))


def test_clear_conversions(pairs):
    a, _ = pairs
    fixed = secfloat.clear_to_fixed(words(a), 8, 23, 32, 12)
    assert np.array_equal(fixed, np.rint(a.astype(np.float64) * 4096))
    assert np.array_equal(numbers(secfloat.clear_from_fixed(fixed, 32, 12, 8, 23)), (fixed / 4096).astype(np.float32))
    half = secfloat.clear_cast(words(a), 8, 23, 5, 10)
    expected = a.astype(np.float16).astype(np.float32)
    expected = np.where(abs(expected) < 2.0**-14, np.copysign(0, expected), expected)
    assert np.array_equal(numbers(secfloat.clear_cast(half, 5, 10, 8, 23)), expected)


def test_words_of_other_formats_are_refused():
    x = np.zeros(3, dtype=np.int64)
    for p, q in [(8, 53), (2, 5), (11, 50), (3, 10)]:
        with pytest.raises(ValueError, match="float format"):
            secfloat.clear_negate(x, p, q)
    with pytest.raises(ValueError, match="shapes differ"):
        secfloat.clear_add(x, x[:2].copy(), 8, 23)
