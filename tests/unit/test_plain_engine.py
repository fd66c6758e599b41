# SPDX-License-Identifier: Apache-2.0
"""The plain engine finds what does not fit, and without its checks wraps as the ring does."""

import pytest
import torch

import privml
from privml.engines.base import Operand
from privml.engines.plain.engine import PlainEngine
from privml.engines.ring import wrap
from privml.engines.shares import Window
from privml.errors import OverflowDetected

CHECKED, WRAPPING = PlainEngine(), PlainEngine(check_overflow=False)


def ring(*values):
    return (torch.tensor(values),)


def top(bits):
    return 2 ** (bits - 1) - 1


OVERFLOWS = {
    "add": lambda e, b: e.add(ring(top(b)), ring(1), b),
    "add_negative": lambda e, b: e.add(ring(-top(b)), ring(-2), b),
    "subtract": lambda e, b: e.subtract(ring(-top(b)), ring(2), b),
    "add_public": lambda e, b: e.add_public(ring(top(b)), 1, b),
    "multiply_public": lambda e, b: e.multiply_public(ring(top(b)), 3, b),
    "sum": lambda e, b: e.sum((torch.full((3,), top(b)),), [0], False, b),
    "multiply": lambda e, b: e.multiply(Operand(ring(top(b)), b), Operand(ring(top(b)), b), b),
    "multiply_far": lambda e, b: e.multiply(Operand(ring(2 ** (b - 2)), b), Operand(ring(2 ** (b - 3)), b), b),
    "matmul": lambda e, b: e.matmul(
        Operand((torch.full((1, 4), top(b)),), b), Operand((torch.ones(4, 1).long(),), b), b),
    "conv2d": lambda e, b: e.conv2d(
        Operand((torch.full((1, 1, 2, 2), top(b)),), b), Operand((torch.ones(1, 1, 2, 2).long(),), b),
        Window(), b),
}  # fmt: skip


@pytest.mark.parametrize("bits", [16, 37, 63, 64])
@pytest.mark.parametrize("name", OVERFLOWS)
def test_overflow_is_detected(name, bits):
    with pytest.raises(OverflowDetected, match=rf"its ring has {bits}"):
        OVERFLOWS[name](CHECKED, bits)


@pytest.mark.parametrize("bits", [16, 37, 64])
@pytest.mark.parametrize("name", OVERFLOWS)
def test_without_checks_it_wraps(name, bits):
    exact = {
        "add": top(bits) + 1, "add_negative": -top(bits) - 2, "subtract": -top(bits) - 2,
        "add_public": top(bits) + 1, "multiply_public": 3 * top(bits), "sum": 3 * top(bits),
        "multiply": top(bits) ** 2, "multiply_far": 2 ** (2 * bits - 5), "matmul": 4 * top(bits),
        "conv2d": 4 * top(bits),
    }[name]  # fmt: skip
    half = 2 ** (bits - 1)
    assert OVERFLOWS[name](WRAPPING, bits)[0].item() == (exact + half) % (2 * half) - half


@pytest.mark.parametrize("bits", [16, 63, 64])
def test_what_fits_passes(bits):
    low = -(2 ** (bits - 1))
    assert CHECKED.add(ring(low), ring(0), bits)[0].item() == low
    assert CHECKED.add(ring(low + 1), ring(-1), bits)[0].item() == low
    assert CHECKED.subtract(ring(top(bits)), ring(top(bits)), bits)[0].item() == 0
    assert CHECKED.multiply_public(ring(low // 2), 2, bits)[0].item() == low
    # intermediate sums may leave the ring as long as the result does not
    pair = Operand((torch.tensor([[top(bits), top(bits)]]),), bits), Operand((torch.tensor([[2], [-2]]),), bits)
    assert CHECKED.matmul(*pair, bits)[0].item() == 0


def test_comparisons_need_a_bit_of_room():
    fits = ring(2**14, -(2**14))
    assert CHECKED.max_last(fits, 16)[0][0].item() == 2**14
    for check in (CHECKED.max_last, CHECKED.argmax_last):
        with pytest.raises(OverflowDetected):
            check(ring(2**14 + 1, 0), 16)


def test_truncation_is_a_floor():
    assert CHECKED.truncate(ring(5, -5, -1, 4, -4), 16, 2)[0].tolist() == [1, -2, -1, 1, -1]


def test_first_maximum_wins():
    value, position = CHECKED.max_last((torch.tensor([[2, 7, 7], [1, 1, 1]]),), 16, one_hot=True)
    assert value[0].tolist() == [7, 1]
    assert position[0].tolist() == [[0, 1, 0], [1, 0, 0]]
    assert CHECKED.argmax_last((torch.tensor([[2, 7, 7], [1, 1, 1]]),), 16)[0].tolist() == [1, 0]


def test_lookup():
    table = torch.arange(16) * 3
    assert CHECKED.lookup(table, ring(1, 15, -1), 4, 8)[0].tolist() == [3, 45, 45]


def test_the_error_names_operator_and_node():
    with privml.local(bits=32, scale=12), privml.node("features.3"):
        x = privml.share(torch.full((2, 2), 600.0))
        with pytest.raises(OverflowDetected, match=r"aten\.mm\.default: .*node 'features\.3'.*use a ring with more"):
            x @ x


def test_check_overflow_is_a_setting_of_local():
    x0 = torch.full((2, 2), 600.0)
    with privml.local(bits=32, scale=12, check_overflow=False):
        x = privml.share(x0)
        value = privml.reveal(x @ x)
    product = wrap(torch.tensor(2 * (600 * 2**12) ** 2), 32) >> 12
    assert torch.equal(value, torch.full((2, 2), product.item() * 2.0**-12))
