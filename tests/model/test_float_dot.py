# SPDX-License-Identifier: Apache-2.0
"""Fused products of floats: their error bound, and that scales of features do not matter to them."""

import pytest
import torch

import privml
from privml.formats import FLOATS, Float, Shared
from privml.ops.floating.dot import guard_bits


def spread(generator, *shape, exponents):
    """Random mantissas and signs, exponents uniform in a range."""
    mantissa = 1 + torch.rand(shape, generator=generator, dtype=torch.float64)
    low, high = exponents
    exponent = torch.randint(low, high, shape, generator=generator)
    sign = 1 - 2 * torch.randint(0, 2, shape, generator=generator)
    return torch.ldexp(sign * mantissa, exponent).float()


def bound(a, b, given_by_left, fmt, guard):
    """4 n 2^(r_i + s_j - q - guard), and half a unit of the result's own rounding."""
    ea, eb = (torch.frexp(v.abs().double().clamp(min=2.0**-127))[1] - 1 for v in (a, b))
    scale = ea.amax(-2) if given_by_left else eb.amax(-1)
    left = ea - scale if given_by_left else ea + scale
    right = eb + scale[:, None] if given_by_left else eb - scale[:, None]
    exponent = left.amax(-1)[:, None] + right.amax(-2)[None]
    exact = a.double() @ b.double()
    sums = 4 * a.shape[-1] * 2.0 ** (exponent - fmt.mantissa - guard).double()
    return sums + exact.abs() * 2.0 ** -(fmt.mantissa + 1)


@pytest.mark.parametrize("name", ["float32", "bfloat16", "tf32"])
@pytest.mark.parametrize("shape", [(1, 40, 9), (6, 40, 3), (5, 2, 5), (2, 3000, 2)])
def test_error_is_within_the_bound(name, shape):
    fmt, (m, k, n) = FLOATS[name], shape
    generator = torch.Generator().manual_seed(k)
    a, b = spread(generator, m, k, exponents=(-9, 9)), spread(generator, k, n, exponents=(-20, 4))
    with privml.local(floating=name):
        x, w = privml.share(a), privml.share(b, owner=1)
        a, b = privml.reveal(x), privml.reveal(w)
        result = privml.reveal(x @ w).double()
        both = privml.reveal((x + 0.0) @ (w + 0.0)).double()
    # both are known: the larger one gives the scales
    limit = bound(a, b, a.numel() > b.numel(), fmt, guard_bits(fmt, k))
    assert bool(((result - a.double() @ b.double()).abs() <= limit).all())
    assert torch.equal(result, both)


def test_units_of_features_do_not_matter():
    generator = torch.Generator().manual_seed(1)
    a, b = torch.randn(4, 30, generator=generator), torch.randn(30, 5, generator=generator)
    units = torch.ldexp(torch.ones(30), torch.randint(-60, 60, (30,), generator=generator))
    with privml.local(floating="float32"):
        plain = privml.share(a, owner=1) @ privml.share(b)
        scaled = privml.share(a * units, owner=1) @ privml.share(b / units[:, None])
        assert torch.equal(privml.reveal(plain), privml.reveal(scaled))


@pytest.mark.parametrize("shared", [(True, True), (False, True), (True, False)])
def test_two_parties_compute_what_plain_does(shared):
    generator = torch.Generator().manual_seed(3)
    operands = [spread(generator, 4, 9, exponents=(-9, 9)), spread(generator, 9, 3, exponents=(-20, 4))]
    results = []
    for engine, settings in (("plain", {}), ("twopc", {"ot": "ideal"})):
        with privml.local(engine, floating="float32", **settings):
            a, b = (
                privml.share(x, owner=1) + 0 * privml.share(x) if mixed else privml.share(x, owner=1)
                for x, mixed in zip(operands, shared, strict=True)
            )
            assert isinstance(a.placement, Shared) == shared[0]
            results.append(privml.reveal(a @ b))
    assert torch.equal(*results)


@pytest.mark.parametrize("groups", [1, 2])
def test_convolution_as_matmul(groups):
    generator = torch.Generator().manual_seed(2)
    x = torch.randn(2, 4, 6, 5, generator=generator)
    w = torch.randn(6, 4 // groups, 3, 2, generator=generator) * torch.tensor([1e-6, 1e-3, 1, 10, 1e3, 1e5]).view(
        6, 1, 1, 1
    )
    expected = torch.conv2d(x.double(), w.double(), stride=2, padding=1, groups=groups)
    with privml.local(floating="float32"):
        result = privml.reveal(
            torch.conv2d(privml.share(x, owner=1), privml.share(w), stride=2, padding=1, groups=groups)
        )
    relative = (result - expected).abs().amax((0, 2, 3)) / expected.abs().amax((0, 2, 3))
    assert relative.max() < 24 * 2.0**-23


def test_exact_chain_rounds_every_operation():
    a, b = torch.tensor([[1.0, 2.0**-24, 2.0**-24]]), torch.ones(3, 1)
    with privml.local(floating="float32", dot="exact"):
        assert privml.reveal(privml.share(a) @ privml.share(b)).item() == 1.0
    with privml.local(floating="float32"):
        assert privml.reveal(privml.share(a) @ privml.share(b)).item() == 1 + 2.0**-23


def test_rings_without_room_mean_a_chain():
    assert guard_bits(Float(8, 23), 2) == 6
    assert guard_bits(Float(8, 23), 874) == 2 and guard_bits(Float(8, 7), 874) == 8
    assert guard_bits(Float(8, 30), 874) is None and guard_bits(Float(4, 12), 9) is None
    with privml.local(floating=Float(11, 40)):
        assert privml.reveal(privml.share(torch.ones(1, 3)) @ privml.share(torch.ones(3, 1))).item() == 3
