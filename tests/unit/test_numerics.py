# SPDX-License-Identifier: Apache-2.0
"""Formats and placements as they travel: what a node may ask for, mixed widths and scales, owners."""

import pytest
import torch
import torch.nn.functional as F

import privml
from privml.context import Session
from privml.engines.plain.engine import PlainEngine
from privml.engines.shares import NO_PROMISE
from privml.formats import FixedPoint, Integer, Owned, Shared
from privml.ops.ring_formats import plain_format

WIDE = FixedPoint(64, 32)


class Recording(PlainEngine):
    """The plain engine with a list of what it was asked for."""

    def __init__(self):
        super().__init__()
        self.calls = []

    def truncate(self, a, bits, shift, promise=NO_PROMISE, nearest=False):
        self.calls.append(("truncate", bits, shift, promise.nonnegative))
        return super().truncate(a, bits, shift, promise, nearest)

    def truncate_reduce(self, a, bits, shift):
        self.calls.append(("truncate_reduce", bits, shift))
        return super().truncate_reduce(a, bits, shift)

    def extend(self, a, bits, to_bits, signed=True, promise=NO_PROMISE):
        self.calls.append(("extend", bits, to_bits, promise.nonnegative))
        return super().extend(a, bits, to_bits, signed, promise)

    def matmul(self, a, b, out_bits):
        self.calls.append(("matmul", (a.bits, a.owner), (b.bits, b.owner), out_bits))
        return super().matmul(a, b, out_bits)

    def relu(self, a, bits):
        self.calls.append(("relu", bits))
        return super().relu(a, bits)


@pytest.fixture
def engine():
    return Recording()


@pytest.fixture(autouse=True)
def session(engine):
    with Session(engine) as opened, torch.no_grad():
        yield opened


def shared(value, fmt=None):
    return privml.share(value, owner=0, format=fmt) + privml.share(torch.zeros_like(value), owner=1, format=fmt)


def error(x, exact):
    return (privml.reveal(x).double() - exact.double()).abs().max().item()


def test_a_product_is_truncated_once_to_the_working_scale(engine):
    x, w, b = torch.randn(3, 4), torch.randn(2, 4), torch.randn(2)
    y = F.linear(shared(x), privml.share(w, owner=0), privml.share(b, owner=0))
    assert engine.calls == [("matmul", (64, None), (64, 0), 64), ("truncate", 64, 16, False)]
    assert (
        plain_format(y.format) == FixedPoint(64, 16) and y.placement == Shared() and error(y, F.linear(x, w, b)) < 1e-3
    )


def test_a_node_may_keep_the_doubled_scale_past_relu_and_pooling(engine):
    image, kernel, weight = torch.randn(1, 2, 6, 6), torch.randn(3, 2, 3, 3), torch.randn(5, 12)
    x = shared(image)
    with privml.node("conv", output=WIDE):
        x = F.conv2d(x, kernel)
    assert x.format == WIDE and engine.calls == []
    x = F.max_pool2d(torch.relu(x), 2)
    assert x.format == FixedPoint(64, 32, nonnegative=True) and engine.calls == [("relu", 64)]
    y = F.linear(x.flatten(1), weight)
    assert engine.calls[1:] == [("truncate", 64, 16, True), ("truncate", 64, 16, False)]
    exact = F.linear(F.max_pool2d(torch.relu(F.conv2d(image, kernel)), 2).flatten(1), weight)
    assert plain_format(y.format) == FixedPoint(64, 16) and error(y, exact) < 1e-3


def test_an_operand_is_truncated_once_for_several_products(engine):
    x = torch.relu(shared(torch.randn(3, 4), WIDE))
    engine.calls.clear()
    first, second = x @ torch.eye(4), x @ torch.ones(4, 2)
    assert [c for c in engine.calls if c[3]] == [("truncate", 64, 16, True)]
    x.mul_(2)
    third = x @ torch.eye(4)
    assert len([c for c in engine.calls if c[2] == 16 and c[0] == "truncate"]) == 5
    assert error(third, 2 * privml.reveal(first)) < 1e-4 and second.shape == (3, 2)


def test_a_sum_takes_the_larger_scale(engine):
    x, y = torch.randn(4), torch.randn(4)
    total = shared(x, WIDE) + shared(y)
    assert total.format == WIDE and error(total, x + y) < 1e-4 and engine.calls == []
    assert torch.cat([shared(x, WIDE), shared(y)]).format == WIDE and engine.calls == []
    assert error(torch.where(shared(x, WIDE) > shared(y), x, y), torch.maximum(x, y)) < 1e-4


def test_a_smaller_ring_for_the_result_costs_one_reducing_truncation(engine):
    x, w = torch.randn(3, 4), torch.randn(4, 2)
    secret = shared(x)
    with privml.node("head", output=FixedPoint(40, 16)):
        y = secret @ w
    assert y.format == FixedPoint(40, 16) and engine.calls == [("truncate_reduce", 56, 16)]
    assert error(y, x @ w) < 1e-3
    z = torch.relu(y) @ w.t()
    assert ("extend", 40, 64, True) in engine.calls and error(z, torch.relu(x @ w) @ w.t()) < 1e-2


def test_the_working_format_of_a_node_overrides_the_sessions(engine):
    x, w = torch.randn(3, 4), torch.randn(4, 2)
    with privml.node("coarse", working=FixedPoint(64, 8)):
        y = shared(x) @ w
    assert ("truncate", 64, 8, False) in engine.calls and y.format.scale == 8 and error(y, x @ w) < 0.1


def test_owned_weights_keep_their_width(engine):
    x, w = torch.randn(3, 4), torch.randn(4, 2)
    weight = privml.share(w, owner=0, format=FixedPoint(12, 8))
    y = shared(x) @ weight.t().t()
    assert engine.calls[0] == ("matmul", (64, None), (12, 0), 64)
    assert engine.calls[1] == ("truncate", 64, 8, False)  # scale 24 back to 16
    assert plain_format(y.format) == FixedPoint(64, 16) and error(y, x @ (w * 256).round() / 256) < 1e-3


def test_owned_meets_owned():
    a, b = torch.randn(3, 3), torch.randn(3, 3)
    mine, also_mine, yours = privml.share(a, owner=1), privml.share(b, owner=1), privml.share(b, owner=0)
    for x in (mine + also_mine, mine @ also_mine, torch.relu(mine) * 3, mine.t()[0] - 1.5, F.max_pool1d(mine, 3)):
        assert x.placement == Owned(1)
    for x in (mine + yours, mine @ yours, torch.where(mine > 0, yours, mine), torch.cat([mine, yours])):
        assert x.placement == Shared()


def test_batch_normalization_of_one_owner_is_folded_in_clear(engine):
    mean, variance, weight, bias = torch.randn(3), torch.rand(3) + 0.1, torch.randn(3), torch.randn(3)
    owned = [privml.share(v, owner=0) for v in (mean, variance, weight, bias)]
    x = torch.randn(4, 3, 5)
    y = F.batch_norm(shared(x), *owned)
    assert len(engine.calls) == 1 and error(y, F.batch_norm(x, mean, variance, weight, bias)) < 1e-3


def test_what_is_known_nonnegative_needs_no_relu(engine):
    x = torch.relu(shared(torch.randn(5)))
    assert x.format.nonnegative and not (x * 2 + 1).format.nonnegative and not (x - 1).format.nonnegative
    engine.calls.clear()
    assert torch.equal(privml.reveal(torch.relu(x)), privml.reveal(x)) and engine.calls == []


@pytest.mark.parametrize(("bits", "scale"), [(24, 6), (32, 12), (37, 12), (48, 16), (64, 24)])
def test_other_rings(bits, scale):
    x, w = torch.randn(3, 8).clamp(-2, 2), torch.randn(4, 8).clamp(-2, 2)
    with privml.local(bits=bits, scale=scale):
        y = torch.relu(F.linear(shared(x), privml.share(w, owner=0))).mean(1)
        assert y.format.bits == bits and error(y, torch.relu(F.linear(x, w)).mean(1)) < 30 * 2.0**-scale


def test_integers_and_bits_join_fixed_point():
    n, b, x = torch.tensor([3, -2]), torch.tensor([True, False]), torch.tensor([0.5, 0.25])
    sn, sb, sx = (privml.share(v) for v in (n, b, x))
    assert (sn * sx).dtype is torch.float32 and error(sn * sx, n * x) == 0
    assert (sn / 2).dtype is torch.float32 and error(sn / 2, n / 2) == 0
    assert (sb + sx).dtype is torch.float32 and error(sb + sx, b + x) == 0
    assert (sb + sn).format == Integer(64) and error(sb + sn, b + n) == 0
    assert error(sn.float() * 0.3, n * 0.3) < 1e-4 and error(sx.long() + sn, n) == 0


def test_arithmetic_on_a_narrow_owned_value_has_room():
    x = torch.tensor([7.5, -8.0, 3.25])
    narrow = privml.share(x, owner=1, format=FixedPoint(8, 4))
    y = torch.tensor([1, 0, 2])
    for result, exact in [
        (narrow + narrow, 2 * x), (-narrow, -x), (narrow * 100, 100 * x), (narrow + 100.125, x + 100.125),
        (narrow.sum(), x.sum()), (narrow.cumsum(0), x.cumsum(0)), (narrow.amax(), x.amax()), (narrow.abs(), x.abs()),
        (narrow.argmax(), x.argmax()), (narrow > 100, x > 100), (narrow / 8, x / 8), (narrow * narrow, x * x),
        (F.pad(narrow, (1, 0), value=99.0), F.pad(x, (1, 0), value=99.0)), (narrow.long(), x.long()),
        (torch.cat([narrow, torch.tensor([50.0])]), torch.cat([x, torch.tensor([50.0])])),
        (narrow.index_add(0, y, narrow * 9), x.index_add(0, y, x * 9)),
        (F.max_pool1d(narrow[None], 2, 1), F.max_pool1d(x[None], 2, 1)),
        (torch.where(torch.tensor(False), narrow, torch.tensor(64.0)), torch.full((3,), 64.0)),
        (torch.where(narrow > 0, narrow, torch.tensor(-70.0)), torch.where(x > 0, x, torch.tensor(-70.0))),
    ]:  # fmt: skip
        assert result.placement == Owned(1) and error(result, exact) < 1e-4
    assert narrow.view(3, 1).format == narrow[1:].clone().format == FixedPoint(8, 4)


@pytest.mark.parametrize("form", ["mul", "div", "sum", "relu", "maximum"])
def test_results_never_alias_their_operands(form):
    x = torch.relu(shared(torch.rand(3)))
    apply = {
        "mul": lambda: x * 1, "div": lambda: x / 1.0, "sum": lambda: x[0].sum(), "relu": lambda: torch.relu(x),
        "maximum": lambda: x.clamp(min=0),
    }[form]  # fmt: skip
    before = privml.reveal(x)
    apply().add_(1)
    assert torch.equal(privml.reveal(x), before)


@pytest.mark.parametrize(
    "total",
    [
        lambda x: x.cumsum(0),
        lambda x: torch.zeros_like(x).index_add(0, torch.zeros(40, dtype=torch.int64), x),
        lambda x: torch.zeros_like(x).scatter_add(0, torch.zeros(40, dtype=torch.int64), x),
    ],
)
def test_sums_outside_the_engine_are_checked_too(total):
    with privml.local(bits=16, scale=8), pytest.raises(privml.errors.OverflowDetected):
        total(privml.share(torch.full((40,), 5.0)))


def test_statistics_of_a_module_are_kept_fine():
    norm = torch.nn.BatchNorm1d(3).eval()
    norm.running_var = torch.tensor([2e-3, 1e-4, 5e-3])
    x = torch.randn(4, 3) * 0.05
    expected = norm(x).detach()
    y = privml.secret(norm, owner=0)(shared(x))
    assert error(y, expected) < 5e-3


def test_rectified_twice_has_a_free_gradient(engine):
    with torch.enable_grad():
        x = privml.share(torch.tensor([1.0, -2.0]).requires_grad_())
        y = torch.relu(torch.relu(x))
        engine.calls.clear()
        engine.less_than_zero = None
        y.sum().backward()
    assert privml.reveal(x.grad).tolist() == [1.0, 0.0]
