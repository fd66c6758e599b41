# SPDX-License-Identifier: Apache-2.0
"""Exact products modulo 2^bits against Python integers."""

import pytest
import torch

import privml
from privml.engines import limb_products, ring
from privml.engines.shares import Window

ALL_LOWEST = 0x7F7F7F7F7F7F7F80  # every limb of 8 bits is -128
UNITS = {"core": None, "int8": limb_products.INT8, "float64": limb_products.FLOAT64}


def random(rng, shape, width):
    value = torch.randint(-(2**63), 2**63 - 1, shape, generator=rng)
    return ring.wrap(value, width)


def matmul(unit, a, b, bits=64):
    return ring.matmul(a, b, bits) if UNITS[unit] is None else limb_products.matmul(a, b, bits, UNITS[unit])


def conv2d(unit, *arguments):
    return ring.conv2d(*arguments) if UNITS[unit] is None else limb_products.conv2d(*arguments, UNITS[unit])


def exact_matmul(a, b):
    return [
        [sum(x * y for x, y in zip(row, column, strict=True)) for column in zip(*b.tolist(), strict=True)]
        for row in a.tolist()
    ]


def signed(value):
    return (value + 2**63) % 2**64 - 2**63


@pytest.mark.parametrize("width_a", [2, 20, 33, 64])
@pytest.mark.parametrize("width_b", [1, 26, 47, 64])
def test_matmul_and_its_estimate(width_a, width_b):
    rng = torch.Generator().manual_seed(width_a * 100 + width_b)
    a, b = random(rng, (3, 17), width_a), random(rng, (17, 2), width_b)
    result, estimate = ring.estimated_matmul(a, b)
    exact = exact_matmul(a, b)
    assert result.tolist() == [[signed(v) for v in row] for row in exact]
    over = [[not -(2**63) <= v < 2**63 for v in row] for row in exact]
    if estimate is None:
        assert not any(any(row) for row in over)
    else:
        assert ring.wrapped(result, estimate).tolist() == over


@pytest.mark.parametrize("width", [25, 26, 27])
def test_products_are_exact_on_both_sides_of_what_float64_holds(width):
    """Sums of 7 products of ``width`` and 25 bits have up to 53 bits at most in the first case."""
    largest, other = 2**width - 1, 2**25 - 1
    a, b = torch.full((2, 7), largest), torch.full((7, 3), -other)
    result, estimate = ring.estimated_matmul(a, b)
    assert result.unique().tolist() == [-7 * largest * other] and estimate is None
    result, estimate = ring.estimated_conv2d(a.reshape(2, 1, 1, 7), b.t().reshape(3, 1, 1, 7), Window())
    assert result.unique().tolist() == [-7 * largest * other] and estimate is None


@pytest.mark.parametrize("width", [8, 64])
def test_a_matrix_of_which_little_is_not_zero(width):
    rng = torch.Generator().manual_seed(width)
    a, b = torch.zeros(5, 400, dtype=torch.int64), random(rng, (400, 3), width)
    a[0, 7] = 1
    a[1, 399], a[1, 0], a[1, 7] = -3, 2**20, 1
    result, estimate = ring.estimated_matmul(a, b)
    exact = exact_matmul(a, b)
    assert result.tolist() == [[signed(v) for v in row] for row in exact]
    over = [[not -(2**63) <= v < 2**63 for v in row] for row in exact]
    assert any(any(row) for row in over) == (width == 64)
    assert estimate is None or ring.wrapped(result, estimate).tolist() == over
    assert (estimate is None) == (width == 8)


@pytest.mark.parametrize("unit", UNITS)
@pytest.mark.parametrize("bits", [1, 8, 24, 32, 33, 40, 64])
def test_matmul_of_every_unit(unit, bits):
    rng = torch.Generator().manual_seed(bits)
    for n, k, m in [(1, 1, 1), (3, 17, 2), (40, 65, 33), (2, 0, 3)]:
        a, b = random(rng, (n, k), 64), random(rng, (k, m), 64)
        expected = [[v % 2**bits for v in row] for row in exact_matmul(a, b)]
        result = matmul(unit, a, b, bits)
        assert result.shape == (n, m) and result.dtype == torch.int64
        assert [[v % 2**bits for v in row] for row in result.tolist()] == (expected if k else [[0] * m] * n)


@pytest.mark.parametrize("unit", UNITS)
@pytest.mark.parametrize("inner", [671, 672, 673, 2049, 16367, 16368, 16369, 40000])
def test_sums_of_extreme_limbs_do_not_overflow(unit, inner):
    """Inner dimensions around those at which the units' sums are split; each row is one number, and each column."""
    extremes = [-(2**63), 2**63 - 1, 0x7F7F7F7F7F7F7F7F, ALL_LOWEST, -1]
    rows, columns = extremes, [*extremes, 1]
    a = torch.tensor(rows)[:, None].repeat(1, inner)
    b = torch.tensor(columns).repeat(inner, 1)
    exact = [[row * column * inner for column in columns] for row in rows]
    assert matmul(unit, a, b).tolist() == [[signed(v) for v in row] for row in exact]
    assert [[v % 2**32 for v in row] for row in matmul(unit, a, b, 32).tolist()] == [
        [v % 2**32 for v in row] for row in exact
    ]


def test_limbs_are_signed_and_sum_up():
    assert limb_products.limbs(torch.tensor([ALL_LOWEST]), 64, limb_products.INT8).flatten().tolist() == [-128] * 8
    rng = torch.Generator().manual_seed(3)
    value = torch.cat([random(rng, (100,), 64), torch.tensor([0, -1, 2**63 - 1, -(2**63), 0x80, -0x80])])
    for unit in (limb_products.INT8, limb_products.FLOAT64):
        for bits in (32, 64):
            parts = limb_products.limbs(value, bits, unit)
            assert len(parts) == -(-bits // unit.width)
            assert parts.long().abs().max() <= 2 ** (unit.width - 1)
            total = sum((int(2 ** (unit.width * i)) * p.to(torch.int64) for i, p in enumerate(parts)), value * 0)
            assert torch.equal(ring.wrap(total, bits), ring.wrap(value, bits))


@pytest.mark.parametrize("unit", UNITS)
def test_batches_and_views(unit):
    rng = torch.Generator().manual_seed(5)
    a, b = random(rng, (2, 3, 4, 5), 64), random(rng, (2, 3, 6, 5), 64)
    b = b.transpose(-1, -2)
    result = matmul(unit, a, b)
    for i in range(2):
        for j in range(3):
            assert result[i, j].tolist() == [[signed(v) for v in row] for row in exact_matmul(a[i, j], b[i, j])]
    assert torch.equal(matmul(unit, a[:, :, ::2], b[..., 1::3]), result[:, :, ::2, 1::3])


def test_leading_dimensions_broadcast():
    rng = torch.Generator().manual_seed(6)
    a, b = random(rng, (3, 1, 2, 5), 64), random(rng, (4, 5, 2), 64)
    result = ring.matmul(a, b)
    assert result.shape == (3, 4, 2, 2)
    for i in range(3):
        for j in range(4):
            assert torch.equal(result[i, j], ring.matmul(a[i, 0], b[j]))


def test_threads_change_nothing():
    rng = torch.Generator().manual_seed(7)
    a, b = random(rng, (300, 200), 64), random(rng, (200, 400), 64)
    before = torch.get_num_threads()
    try:
        torch.set_num_threads(1)
        one = ring.matmul(a, b)
        torch.set_num_threads(3)
        assert torch.equal(ring.matmul(a, b), one)
    finally:
        torch.set_num_threads(before)


def test_extreme_values():
    low, high = -(2**63), 2**63 - 1
    a = torch.tensor([[low, high, low, -1]])
    b = torch.tensor([[low], [high], [high], [low]])
    assert ring.matmul(a, b).item() == signed(low * low + high * high + low * high + 2**63)


@pytest.mark.parametrize("unit", UNITS)
@pytest.mark.parametrize("groups", [1, 2, 4])
def test_conv2d_equals_its_definition(unit, groups):
    rng = torch.Generator().manual_seed(groups)
    outputs = 4 if groups == 4 else 6
    x, w = random(rng, (2, 4, 5, 6), 64), random(rng, (outputs, 4 // groups, 3, 2), 40)
    padded = torch.nn.functional.pad(x, (0, 0, 1, 1))
    each = outputs // groups
    result = conv2d(unit, x, w, Window((2, 1), (1, 0), (1, 2), groups), 64)
    assert result.shape == (2, outputs, 3, 4)
    for n, o, i, j in torch.cartesian_prod(*(torch.arange(s) for s in result.shape)).tolist():
        channels = range(o // each * (4 // groups), (o // each + 1) * (4 // groups))
        total = sum(
            int(padded[n, c, 2 * i + p, j + 2 * q]) * int(w[o, k, p, q])
            for k, c in enumerate(channels)
            for p in range(3)
            for q in range(2)
        )
        assert result[n, o, i, j].item() == signed(total)


@pytest.mark.parametrize("unit", ["int8", "float64"])
def test_convolutions_in_several_runs(unit, monkeypatch):
    rng = torch.Generator().manual_seed(9)
    x, w = random(rng, (5, 3, 6, 7), 64), random(rng, (4, 3, 3, 3), 64)
    arguments = (x, w, Window((1, 2), (1, 1)), 64)
    monkeypatch.setattr(limb_products, "_BYTES", 30000)
    assert torch.equal(conv2d(unit, *arguments), ring.conv2d(*arguments))


def test_what_does_not_fit_is_refused():
    a = torch.zeros(2, 3, dtype=torch.int64)
    with pytest.raises(ValueError, match="shapes do not fit"):
        ring.matmul(a, a)
    with pytest.raises(ValueError, match="groups"):
        ring.conv2d(a.reshape(1, 3, 2, 1), a.reshape(2, 3, 1, 1), Window(groups=2))


def test_the_time_of_products_at_an_owner_does_not_depend_on_its_values(monkeypatch):
    def refused(*_):
        raise AssertionError("its time depends on the values")

    for name in ("estimated_matmul", "estimated_conv2d"):
        monkeypatch.setattr(ring, name, refused)
    x, w = torch.arange(32).view(1, 2, 4, 4), torch.arange(-9, 9).view(1, 2, 3, 3)
    with privml.local("twopc", ot="ideal") as session:
        owner, window = session.engine.owned(1), Window()
        share = owner.conv2d_public(owner.input(x, x.shape, 1, 40), w, window, 40)
        rows = owner.matmul_public(owner.input(x[0, 0], (4, 4), 1, 40), w[0, :, :2].reshape(4, 3), 40)
    expected = torch.nn.functional.conv2d(x.double(), w.double()).long()
    assert any(torch.equal(component, expected) for component in share)
    assert any(torch.equal(component, x[0, 0] @ w[0, :, :2].reshape(4, 3)) for component in rows)


def test_the_time_of_maxima_at_an_owner_does_not_depend_on_its_values(monkeypatch):
    def refused(*_):
        raise AssertionError("its time depends on the values")

    monkeypatch.setattr(ring, "extremes", refused)
    x = torch.tensor([[3, -7, 3, 1, 0], [-9, -8, -9, -9, -8]])
    with privml.local("twopc", ot="ideal") as session:
        owner = session.engine.owned(1)
        share = owner.input(x, x.shape, 1, 16)
        largest, place = owner.max_last(share, 16, one_hot=True)
        index = owner.argmax_last(share, 16)
    found = {tuple(value.tolist()) for value in largest}, {tuple(value.argmax(-1).tolist()) for value in place}
    assert (3, -8) in found[0] and (0, 1) in found[1]
    assert any(torch.equal(component, torch.tensor([0, 1])) for component in index)
