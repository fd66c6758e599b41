# SPDX-License-Identifier: Apache-2.0
"""Attention, transformer layers and normalized networks: run layer by layer, converted, and trained."""

import copy

import pytest
import torch
import torch.nn.functional as F
from torch import nn

import privml
from privml.engines.correlations import OtChoice

HIDDEN = torch.ones(4, 4, dtype=torch.bool).triu(1)


class SelfAttention(nn.Module):
    def __init__(self, mask=None):
        super().__init__()
        self.attention = nn.MultiheadAttention(8, 2, batch_first=True)
        self.register_buffer("mask", mask)

    def forward(self, x):
        return self.attention(x, x, x, attn_mask=self.mask, need_weights=self.mask is None)[0]


class Causal(nn.Module):
    def forward(self, x):
        return F.scaled_dot_product_attention(x, x, x, is_causal=True)


def perceptron():
    return nn.Sequential(nn.Linear(8, 12), nn.LayerNorm(12), nn.GELU(), nn.Linear(12, 8), nn.Tanh(), nn.RMSNorm(8))


NETWORKS = {
    "encoder": lambda: nn.TransformerEncoderLayer(8, 2, 16, batch_first=True, activation="gelu"),
    "encoder, norm first": lambda: nn.TransformerEncoderLayer(8, 2, 16, batch_first=True, norm_first=True),
    "attention": SelfAttention,
    "attention, bool mask": lambda: SelfAttention(HIDDEN),
    "attention, infinite mask": lambda: SelfAttention(torch.zeros(4, 4).masked_fill(HIDDEN, float("-inf"))),
    "attention, large mask": lambda: SelfAttention(torch.zeros(4, 4).masked_fill(HIDDEN, -1e9)),
    "causal": Causal,
    "perceptron": perceptron,
}  # fmt: skip


def network(name):
    torch.manual_seed(3)
    module = NETWORKS[name]().eval()
    with torch.no_grad():
        for parameter in module.parameters():
            parameter.add_(0.1 * torch.randn_like(parameter))
    return module, torch.randn(2, 4, 8)


@pytest.mark.parametrize("name", NETWORKS)
def test_layer_by_layer(name, open_session):
    module, x = network(name)
    expected = module(x).detach()
    with open_session(), torch.no_grad():
        secret = privml.secret(copy.deepcopy(module))
        assert (privml.reveal(secret(privml.share(x, owner=1))) - expected).abs().max() < 2e-3


@pytest.mark.parametrize("numerics", [None, {"bits": 64, "scale": 16, "weight_bits": 16, "narrow": False}])
@pytest.mark.parametrize("name", NETWORKS)
def test_converted(name, numerics):
    """The plain engine within the tolerance, the protocols with the same numbers."""
    module, x = network(name)
    with torch.no_grad():
        expected = module(x)
    program = privml.convert(module, calibration=x, numerics=numerics)
    results = []
    for engine, options in (("plain", {}), ("twopc", {"ot": "ideal"})):
        with privml.local(engine, bits=program.numerics.bits, scale=program.numerics.scale, **options) as session:
            results.append(privml.reveal(program.run(session, x)))
    assert torch.equal(*results)
    limit = program.choice.precision.tolerance if numerics is None else 1e-3
    assert (results[0] - expected).abs().max() <= limit * expected.abs().max()


def test_what_a_mask_hides_has_no_influence():
    """Hidden positions may hold anything, in rings just as wide as the values too."""
    module, x = network("attention, infinite mask")
    program = privml.convert(module, calibration=x)
    other = x.clone()
    other[:, 3] = -x[:, 3]
    with privml.local("plain", bits=program.numerics.bits, scale=program.numerics.scale) as session:
        first, second = (privml.reveal(program.run(session, v)) for v in (x, other))
    assert torch.equal(first[:, :3], second[:, :3]) and not torch.equal(first[:, 3], second[:, 3])


def test_functions_ask_for_narrow_formats():
    """A program hands its functions rings as narrow as the values, and takes narrow results."""
    module, x = network("perceptron")
    program = privml.convert(module, calibration=x)
    asked = []
    with privml.local("plain", bits=32, scale=program.numerics.scale) as session:
        evaluate = session.engine.function

        def function(name, share, source, target):
            asked.append((name, source.bits, target.bits))
            return evaluate(name, share, source, target)

        session.engine.function = function
        program.run(session, x)
    found = {name: (source, target) for name, source, target in asked}
    assert {"gelu", "tanh", "rsqrt"} <= set(found)
    assert max(found["gelu"]) <= 20 and max(found["tanh"]) <= 20


def test_cost_of_a_transformer_is_predicted():
    """The meter knows what every function draws and sends, exactly."""
    module, x = network("encoder")
    program = privml.convert(module, calibration=x)
    with privml.local("twopc", ot="ideal", bits=program.numerics.bits, scale=program.numerics.scale) as session:
        program.prepare(session)
        before = session.engine.counters()
        program.run(session, x)
        after = session.engine.counters()
    drawn = program.correlations(tuple(x.shape), ot=OtChoice("ideal", 0))
    assert after["cots_as_sender"] - before["cots_as_sender"] == drawn.from0
    assert after["cots_as_receiver"] - before["cots_as_receiver"] == drawn.from1


def test_training_with_cross_entropy(open_session):
    torch.manual_seed(1)
    clear = nn.Sequential(nn.Linear(6, 8), nn.LayerNorm(8), nn.GELU(), nn.Linear(8, 3))
    x, y = torch.randn(10, 6), torch.arange(10) % 3
    start = copy.deepcopy(clear)

    def losses(net, inputs):
        optimizer, values = torch.optim.SGD(net.parameters(), 0.2), []
        for _ in range(4):
            optimizer.zero_grad()
            loss = F.cross_entropy(net(inputs), y)
            loss.backward()
            optimizer.step()
            values.append((privml.reveal(loss) if isinstance(loss, privml.SecretTensor) else loss).item())
        return torch.tensor(values)

    expected = losses(clear, x)
    with open_session():
        secret = privml.secret(start)
        assert (losses(secret, privml.share(x, owner=1)) - expected).abs().max() < 2e-3
    assert expected[-1] < expected[0]
