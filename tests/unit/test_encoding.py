# SPDX-License-Identifier: Apache-2.0
import math
from fractions import Fraction

import pytest
import torch

from privml.encoding import as_given, decode, encode_constant, encode_factor, encode_input, encode_threshold
from privml.errors import InvalidInput, OverflowDetected
from privml.formats import Boolean, FixedPoint, Float, Integer

FORMAT = FixedPoint(16, 8)


def test_input_rounds_to_nearest_and_back():
    x = torch.tensor([0.0, 1 / 256, -0.3, 127.99, -128.0])
    ring = encode_input(x, FORMAT)
    assert ring.tolist() == [0, 1, -77, 32765, -32768]
    assert (decode(ring, FORMAT, torch.float32) - x).abs().max() <= 2**-9


@pytest.mark.parametrize("bad", [math.nan, math.inf, -math.inf])
def test_input_names_the_index_of_what_is_not_a_number(bad):
    x = torch.zeros(2, 3)
    x[1, 2] = bad
    with pytest.raises(InvalidInput, match=r"index \(1, 2\).*NaN or infinite"):
        encode_input(x, FORMAT)


@pytest.mark.parametrize("bad", [128.0, -128.01, 3e38])
def test_input_too_large(bad):
    x = torch.tensor([[1.0, bad], [bad, 0.0]])
    with pytest.raises(InvalidInput, match=r"\[-128, 128\).*index \(0, 1\) \(and 1 more\)") as error:
        encode_input(x, FORMAT)
    assert str(bad) not in str(error.value)  # the value itself is a secret


def test_input_of_other_kinds():
    assert encode_input(torch.tensor([3, -4]), Integer(8)).tolist() == [3, -4]
    with pytest.raises(InvalidInput, match=r"index \(1,\)"):
        encode_input(torch.tensor([3, 128]), Integer(8))
    with pytest.raises(InvalidInput, match=r"\[0, 128\)"):
        encode_input(torch.tensor([-1.0]), FixedPoint(16, 8, nonnegative=True))
    assert encode_input(torch.tensor([True, False]), Boolean()).dtype is torch.uint8
    with pytest.raises(InvalidInput, match="0 and 1"):
        encode_input(torch.tensor([2]), Boolean())
    assert encode_input(torch.tensor([0.0, 1.0]), Float(5, 10)).tolist() == [0, (1 << 19) + (15 << 11) + (1 << 10)]


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float32, torch.float64])
def test_every_float_type_rounds_alike(dtype):
    rng = torch.Generator().manual_seed(0)
    x = torch.cat([torch.rand(200, generator=rng) * 200 - 100, torch.arange(-8, 8) / 512]).to(dtype)
    assert encode_input(x, FORMAT).tolist() == [round(Fraction(v) * 256) for v in x.tolist()]
    assert encode_input(x, FixedPoint(60, 50)).tolist() == [round(Fraction(v) * 2**50) for v in x.tolist()]


@pytest.mark.parametrize("bound", [None, 2**29 + 1])
def test_inputs_at_the_ends_of_their_range(bound):
    most = bound or 2**31
    fmt = FixedPoint(32, 0, bound=bound)
    assert encode_input(torch.tensor([-most, most - 1.0], dtype=torch.float64), fmt).tolist() == [-most, most - 1]
    assert encode_input(torch.empty(0), fmt).shape == (0,)
    for wrong in (float(most), -most - 1.0):
        with pytest.raises(InvalidInput, match=r"index \(1,\) is not"):
            encode_input(torch.tensor([0.0, wrong], dtype=torch.float64), fmt)


def test_constants():
    assert encode_constant(0.3, 16, 8) == 77
    assert encode_constant(-3, 16, 8) == -768
    assert encode_constant(torch.tensor([0.3, 2.0]), 16, 8).tolist() == [77, 512]
    assert encode_constant(torch.tensor([5, -6]), 16, 8).tolist() == [1280, -1536]


def test_masks_saturate_where_comparisons_are_sound():
    mask = torch.tensor([0.0, -math.inf, torch.finfo(torch.float32).min, math.inf])
    assert encode_constant(mask, 16, 8).tolist() == [0, -(2**13), -(2**13), 2**13]
    assert encode_constant(-math.inf, 16, 8) == -(2**13)
    assert encode_constant(-math.inf, 16, 8, headroom=3) == -(2**12)


@pytest.mark.parametrize("constant", [200.0, -129, torch.tensor([1.0, 200.0]), torch.tensor([300])])
def test_constants_too_large(constant):
    with pytest.raises(OverflowDetected, match="needs .* bits at scale 8, the ring has 16"):
        encode_constant(constant, 16, 8)


@pytest.mark.parametrize("constant", [math.nan, torch.tensor([1.0, math.nan])])
def test_nan_constant(constant):
    with pytest.raises(InvalidInput, match="NaN"):
        encode_constant(constant, 16, 8)
    with pytest.raises(InvalidInput, match="NaN"):
        encode_threshold(constant, 16, 8, True)


@pytest.mark.parametrize("factor", [3, -7, 0.5, 0.75, -2.0, 1e-4, 1 / 3, 1 / 49, 0.9, -1.7, 12345.678])
def test_factor_is_exact_or_close(factor):
    ring, shift = encode_factor(factor, 16, 64)
    exact = Fraction(factor)
    assert abs(Fraction(ring, 2**shift) - exact) <= abs(exact) * Fraction(1, 2**16)
    if exact.denominator <= 2**8:
        assert Fraction(ring, 2**shift) == exact
    assert ring % 2 == 1 or shift == 0


def test_factor_tensor():
    ring, shift = encode_factor(torch.tensor([0.5, 0.25, -0.75]), 16, 64)
    assert (ring.tolist(), shift) == ([2, 1, -3], 2)
    ring, shift = encode_factor(torch.tensor([4.0, 6.0]), 16, 64)
    assert (ring.tolist(), shift) == ([4, 6], 0)
    assert encode_factor(torch.zeros(2), 16, 64)[1] == 0
    with pytest.raises(InvalidInput, match="NaN or infinite"):
        encode_factor(1.0 / torch.tensor([1.0, 0.0]), 16, 64)


def test_thresholds_keep_the_order():
    for value in (0.3, -0.3, 1.0, 100.0, -2.5):
        up, down = (encode_threshold(value, 16, 8, u) for u in (True, False))
        for ring in range(-800, 800):
            x = Fraction(ring, 256)
            assert (x < Fraction(value)) == (ring < up)
            assert (x > Fraction(value)) == (ring > down)
    assert encode_threshold(math.inf, 16, 8, True) == 2**14
    assert encode_threshold(torch.tensor([-math.inf, 0.3]), 16, 8, True).tolist() == [-(2**14), 77]


def test_a_value_is_taken_in_another_dtype_only_if_that_keeps_it():
    kept = [
        (torch.tensor([4.0, -2.0]), torch.int64),
        (torch.tensor([0, 1]), torch.bool),
        (torch.tensor([255]), torch.uint8),
    ]
    for value, dtype in kept:
        assert as_given(value, dtype).dtype is dtype
    wrong = [
        (torch.tensor([1.0, 4.5]), torch.int64), (torch.tensor([0.0, float("inf")]), torch.int64),
        (torch.tensor([0, 2]), torch.bool), (torch.tensor([0, 256]), torch.uint8),
    ]  # fmt: skip
    for value, dtype in wrong:
        with pytest.raises(InvalidInput, match=r"input index \(1,\) is not"):
            as_given(value, dtype)
    assert as_given([1, 2], torch.float32).tolist() == [1.0, 2.0]
