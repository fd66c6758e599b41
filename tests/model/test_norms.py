# SPDX-License-Identifier: Apache-2.0
"""Layer and group norms on secrets: the same on plain and twopc for any values, and what they send."""

import math

import pytest
import torch
from torch import nn

import privml
from privml.context import Session
from privml.engines.correlations import OtChoice
from privml.errors import OverflowDetected
from privml.formats import Numerics
from privml.ops.fixed import real
from privml.ops.moments import divided_by_deviation
from privml.session.ledger import Snapshot
from privml.spec import SessionSpec

F = torch.nn.functional
SHAPES = {
    "power of two": lambda x: F.layer_norm(x, x.shape[-1:]),
    "weights": lambda x: F.layer_norm(x, x.shape[-1:], torch.linspace(-2, 2, x.shape[-1]), torch.ones(x.shape[-1])),
    "two dimensions": lambda x: F.layer_norm(x, x.shape[-2:]),
    "groups": lambda x: F.group_norm(x, 2 - x.shape[-1] % 2),
    "root mean square": lambda x: F.rms_norm(x, x.shape[-1:]),
}


def results(engine: str, norm, x: torch.Tensor, bits: int, scale: int) -> torch.Tensor:
    with privml.local(engine, bits=bits, scale=scale), torch.no_grad():
        return privml.reveal(norm(privml.share(x, 0) + privml.share(x / 2, 1)))


@pytest.mark.parametrize("shape", [(6, 16), (4, 10), (3, 3)])
@pytest.mark.parametrize(("bits", "scale"), [(16, 10), (32, 12), (64, 16)])
@pytest.mark.parametrize("name", SHAPES)
def test_plain_and_twopc_agree(name, bits, scale, shape):
    torch.manual_seed(0)
    x = torch.randn(shape) * 2
    x[0] = 0.25  # no deviation at all
    x[1] *= 2.0**-8
    plain = results("plain", SHAPES[name], x, bits, scale)
    assert torch.equal(plain, results("twopc", SHAPES[name], x, bits, scale))
    expected = SHAPES[name](x * 1.5)
    large = x.std(-1, keepdim=True).expand(x.shape) > 0.1
    if name in ("power of two", "root mean square"):
        assert ((plain - expected).abs() < 4 * 2.0**-scale + 0.01 * expected.abs())[large].all()


def test_values_at_the_ends_of_the_ring():
    """What is proved of means and deviations holds for them."""
    x = torch.tensor([[31.9, -32.0] * 8, [-32.0] * 16, [31.9] * 16, [-32.0] + [31.9] * 15])
    y = results("plain", SHAPES["power of two"], x / 1.5, 16, 10)
    assert torch.equal(y, results("twopc", SHAPES["power of two"], x / 1.5, 16, 10))
    assert (y[0].abs() - 1).abs().max() < 0.01


@pytest.mark.parametrize("norm", [F.rms_norm, F.layer_norm])
@pytest.mark.parametrize("count", [2, 3, 10, 16, 100, 128])
def test_the_bound_of_norms_holds_and_is_hardly_above_the_root_of_the_count(count, norm):
    """One value beside zeros is the largest part of its deviation."""
    sizes = torch.cat([torch.arange(1, 40) * 2.0**-10, torch.tensor([0.1, 0.5, 3.0, 31.9])])
    x = torch.zeros(2 * len(sizes), count)
    x[:, count // 2] = torch.cat([sizes, -sizes])
    with privml.local("plain", bits=16, scale=10), torch.no_grad():
        y = norm(privml.share(x, 0) * 1.0, (count,))
        limit = y.format.bound * 2.0**-10 if y.format.bound is not None else 32.0
        assert privml.reveal(y).abs().max() <= limit
    assert limit <= 1.01 * count**0.5 + 0.1


def test_nothing_is_claimed_of_sums_that_may_wrap():
    """The squares of these values add up to more than 2^63."""
    x = torch.tensor([[2047.0, -2047.0] * 384]) / 1.5
    with pytest.raises(OverflowDetected):
        results("plain", SHAPES["power of two"], x, 28, 16)
    found = [results("twopc", SHAPES["power of two"], x, 28, 16) for _ in range(3)]
    assert torch.equal(found[0], found[1])
    assert torch.equal(found[0], found[2])


def test_norms_of_values_whose_bound_only_a_wider_ring_shows():
    x = torch.randn(1, 32, 4, 4, generator=torch.Generator().manual_seed(0))

    def norm(x):
        return F.normalize(F.gelu(x) * 0.3, dim=1)

    found = results("plain", norm, x, 64, 16)
    assert torch.equal(found, results("twopc", norm, x, 64, 16))
    assert (found - norm(x * 1.5)).abs().max() < 0.01


@pytest.mark.parametrize("count", [16, 100, 128, 512, 2000])
@pytest.mark.parametrize("size", [1.0, 5.0, 30.0])
def test_quotients_of_programs_err_by_less_than_a_unit(count, size):
    """For inverse roots of any number of significant bits, of numbers of which one or all make up the deviation."""
    scale, unit = 8, 2.0**-8
    torch.manual_seed(count)
    x = torch.cat([torch.randn(300, count), torch.rand(300, count) - 0.5, torch.full((300, count), 0.0)]) * size
    x[600:, 0] = torch.linspace(1, 31, 300) * size * math.sqrt(count) / 32
    x = (x / unit).round() * unit
    found = {}
    for engine in ("plain", "twopc") if size == 5 else ("plain",):
        with privml.local(engine, bits=32, scale=scale), torch.no_grad():
            shared = real(privml.share(x, 0))
            quotient, _ = divided_by_deviation(shared, [1], count, 1e-5, scale, None, False)
            found[engine] = privml.reveal(quotient).double()
    square = x.double().square().mean(1, keepdim=True)
    errors = (found["plain"] - x / (square + 1e-5).sqrt()).abs()
    assert errors[(square > 0.5).expand_as(errors)].max() < unit
    assert all(torch.equal(each, found["plain"]) for each in found.values())


def test_bytes_and_depth():
    """Of silent transfers, with 16 bits in and out."""
    spec = SessionSpec(engine=privml.engine("twopc", linear="lattice"), ot=OtChoice("ideal"))
    meter = spec.backend.meter(spec, 1)
    with Session(meter, Numerics(bits=16, scale=12)), torch.no_grad():
        x = privml.share(torch.zeros(32, 128), 0) + privml.share(torch.zeros(32, 128), 1)
        F.layer_norm(x, (128,))  # the keys of ciphertexts serve further ones
        before = Snapshot.of(meter.counters())
        F.layer_norm(x, (128,))
        spent = Snapshot.of(meter.counters()) - before
    correlations = spent.cots_as_sender + spent.cots_as_receiver
    assert spent.total.bytes + 0.09 * correlations <= 246 * x.numel()
    assert spent.total.depth <= 60


class Heads(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.layer = torch.nn.Linear(8, 12)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        q, k, v = self.layer(x).unflatten(-1, (3, 4)).movedim(-2, 0)
        return (torch.softmax(q @ k.transpose(-1, -2), -1) @ v).contiguous().view(-1)


def test_views_keep_narrow_rings():
    torch.manual_seed(0)
    program = privml.convert(Heads(), calibration=torch.randn(16, 1, 5, 8)[:, 0])
    widths = [n.meta["format"].bits for n in program.graph.nodes if n.op == "call_function" and n.meta.get("format")]
    assert max(widths) < 32


@pytest.mark.parametrize("norm", [nn.RMSNorm(16), nn.LayerNorm(16)], ids=["rms", "layer"])
def test_squares_of_small_values_keep_their_bits_in_wide_rings(norm):
    """Their mean has as many bits as the node's ring leaves room for, wherever the values lie."""
    torch.manual_seed(0)
    weights = nn.Linear(8, 16)
    nn.init.normal_(weights.weight, std=2.0**-8)
    module, x = nn.Sequential(weights, norm).eval(), torch.randn(64, 8)
    nn.init.zeros_(weights.bias)
    program = privml.convert(module, calibration=x, numerics={"scale": 20, "weight_bits": 20})
    with torch.no_grad():
        expected = module(x)
    errors = []
    for like in ("twopc", "threepc"):
        with privml.local(program, engine="plain", like=like):
            errors.append(float((program(x) - expected).abs().max() / expected.abs().max()))
    assert errors[1] < 1.5 * errors[0] < 0.02
