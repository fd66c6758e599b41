# SPDX-License-Identifier: Apache-2.0
"""Floating-point primitives as the core's module offers them: against numpy in the clear, then shares against these."""

import numpy as np
import pytest
from parties import run_both, succeed

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


BITS = {"less_than", "less_equal", "equal"}
BINARY = ["add", "subtract", "multiply", "divide", "maximum", *BITS]
UNARY = ["relu", "negate", "absolute", "sqrt", "round_to_integer"]


def shares(word, p, q, rng):
    """Random shares of words: mantissa, exponent modulo their sizes, two XOR-shared bits above."""
    place, total = 0, [np.zeros_like(word), np.zeros_like(word)]
    for k, size in enumerate([q + 1, p + 2, 1, 1]):
        value, mask = (word >> place) & ((1 << size) - 1), (1 << size) - 1
        first = rng.integers(0, 1 << size, word.shape)
        second = value ^ first if k >= 2 else (value - first) & mask
        total[0] |= first << place
        total[1] |= second << place
        place += size
    return total


def revealed(one, other, p, q):
    """The words of shares."""
    e, s = q + 1, p + q + 3
    mantissa = (one + other) & ((1 << e) - 1)
    exponent = ((one >> e) + (other >> e)) & ((1 << (p + 2)) - 1)
    return mantissa | exponent << e | ((one ^ other) >> s) << s


@pytest.mark.parametrize(("p", "q"), [(8, 23), (5, 10)])
def test_protocols_equal_the_clear_primitives(pairs, p, q):
    operands = [secfloat.clear_cast(words(x), 8, 23, p, q) for x in pairs]
    rng = np.random.default_rng(7)
    a, b = (shares(x, p, q, rng) for x in operands)

    def party(rank, channel):
        session = _core.TwoPartySession(channel, rank, "softspoken", 4)
        results = {name: getattr(secfloat, name)(session, a[rank], b[rank], p, q) for name in BINARY}
        results |= {name: getattr(secfloat, name)(session, a[rank], p, q) for name in UNARY}
        return results, session.counters()

    (one, counters), (other, _) = succeed(run_both(party))
    for name in BINARY + UNARY:
        clear = getattr(secfloat, f"clear_{name}")(*operands[: 1 if name in UNARY else 2], p, q)
        result = one[name] ^ other[name] if name in BITS else revealed(one[name], other[name], p, q)
        assert np.array_equal(result, clear), name

    meter = _core.TwoPartySession.meter(0, "softspoken", 4)
    for name in BINARY:
        getattr(secfloat, name)(meter, operands[0], operands[1], p, q)
    for name in UNARY:
        getattr(secfloat, name)(meter, operands[0], p, q)
    booked = meter.counters()
    for phase in ("preprocess", "online"):
        assert {k: v for k, v in booked[phase].items() if k != "seconds"} == {
            k: v for k, v in counters[phase].items() if k != "seconds"
        }


def test_conversions_of_shares_equal_the_clear_ones(pairs):
    x, rng = words(pairs[0]), np.random.default_rng(8)
    fixed = rng.integers(-(2**31), 2**31, 500)
    mask = rng.integers(0, 2**32, 500)
    a, numbers = shares(x, 8, 23, rng), [mask, (fixed - mask) & 0xFFFFFFFF]
    calls = [
        ("to_fixed", a, (8, 23, 32, 12)),
        ("cast", a, (8, 23, 5, 10)),
        ("cast", a, (8, 23, 8, 7)),
        ("from_fixed", numbers, (32, 12, 8, 23)),
    ]

    def party(rank, channel):
        session = _core.TwoPartySession(channel, rank, "ideal", test_seed=3)
        return [getattr(secfloat, name)(session, operand[rank], *formats) for name, operand, formats in calls]

    to_fixed, half, brain, floats = zip(*succeed(run_both(party)), strict=True)
    together = ((to_fixed[0] + to_fixed[1] + 2**31) & 0xFFFFFFFF) - 2**31
    assert np.array_equal(together, secfloat.clear_to_fixed(x, 8, 23, 32, 12))
    assert np.array_equal(revealed(*half, 5, 10), secfloat.clear_cast(x, 8, 23, 5, 10))
    assert np.array_equal(revealed(*brain, 8, 7), secfloat.clear_cast(x, 8, 23, 8, 7))
    assert np.array_equal(revealed(*floats, 8, 23), secfloat.clear_from_fixed(fixed, 32, 12, 8, 23))
