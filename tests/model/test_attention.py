# SPDX-License-Identifier: Apache-2.0
"""Attention, transformer layers and normalized networks: run layer by layer, converted, and trained."""

import copy
import warnings

import pytest
import torch
import torch.nn.functional as F
from torch import nn

import privml
from privml.engines.correlations import OtChoice
from privml.spec import SessionSpec

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


class Rotary(nn.Module):
    """A decoder block in the manner of LLaMA: RMS norms, grouped heads turned by position, a gated perceptron."""

    def __init__(self, width=8, heads=4, groups=2, length=4):
        super().__init__()
        self.heads, self.groups, size = heads, groups, width // heads
        self.q, self.o = nn.Linear(width, width, bias=False), nn.Linear(width, width, bias=False)
        self.k, self.v = (nn.Linear(width, groups * size, bias=False) for _ in range(2))
        self.gate, self.up = (nn.Linear(width, 12, bias=False) for _ in range(2))
        self.down = nn.Linear(12, width, bias=False)
        self.before, self.after = nn.RMSNorm(width, eps=1e-5), nn.RMSNorm(width, eps=1e-5)
        angle = torch.outer(torch.arange(length), 100.0 ** -(torch.arange(0, size, 2) / size)).repeat(1, 2)
        self.register_buffer("cos", angle.cos())
        self.register_buffer("sin", angle.sin())

    def turned(self, x):
        first, second = x.chunk(2, -1)
        return x * self.cos + torch.cat([-second, first], -1) * self.sin

    def forward(self, x):
        y = self.before(x)
        q, k, v = (f(y).unflatten(-1, (n, -1)).transpose(1, 2) for f, n in (
            (self.q, self.heads), (self.k, self.groups), (self.v, self.groups)))  # fmt: skip
        y = F.scaled_dot_product_attention(self.turned(q), self.turned(k), v, is_causal=True, enable_gqa=True)
        x = x + self.o(y.transpose(1, 2).flatten(2))
        y = self.after(x)
        return x + self.down(F.silu(self.gate(y)) * self.up(y))


class Padded(nn.Module):
    """An encoder whose last token is padding."""

    def __init__(self):
        super().__init__()
        layer = nn.TransformerEncoderLayer(8, 2, 16, batch_first=True, activation="gelu", norm_first=True)
        self.encoder = nn.TransformerEncoder(layer, 2, nn.LayerNorm(8), enable_nested_tensor=False)
        self.register_buffer("padding", torch.tensor([[False, False, False, True]]))

    def forward(self, x):
        return self.encoder(x, src_key_padding_mask=self.padding.expand(x.shape[0], -1))


class Translator(nn.Module):
    """Attention to another sequence."""

    def __init__(self):
        super().__init__()
        self.layer = nn.TransformerDecoderLayer(8, 2, 16, batch_first=True)

    def forward(self, x):
        return self.layer(x, x.flip(1)[:, :3], tgt_mask=nn.Transformer.generate_square_subsequent_mask(4))


def perceptron():
    return nn.Sequential(nn.Linear(8, 12), nn.LayerNorm(12), nn.GELU(), nn.Linear(12, 8), nn.Tanh(), nn.RMSNorm(8))


NETWORKS = {
    "encoder": lambda: nn.TransformerEncoderLayer(8, 2, 16, batch_first=True, activation="gelu"),
    "encoder, norm first": lambda: nn.TransformerEncoderLayer(8, 2, 16, batch_first=True, norm_first=True),
    "encoder, two layers": Padded,
    "decoder": Translator,
    "rotary": Rotary,
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
    """A program hands its functions rings as narrow as the values, and takes narrow results, or those of products that
    read them."""
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
    assert {"gelu", "tanh", "rsqrt_significant_14"} <= set(found)
    assert found["gelu"][0] <= 20 and max(found["tanh"]) <= 20
    product = next(node for node in program.graph.nodes if "gelu" in str(node.target))
    assert found["gelu"][1] == product.meta["format"].bits


def test_cost_of_a_transformer_is_predicted():
    """The meter knows what every function draws and sends, exactly."""
    module, x = network("encoder")
    program = privml.convert(module, calibration=x)
    with privml.local("twopc", ot="ideal", bits=program.numerics.bits, scale=program.numerics.scale) as session:
        program.prepare(session)
        before = session.engine.counters()
        program.run(session, x)
        after = session.engine.counters()
    drawn = program.correlations([tuple(x.shape)], SessionSpec(ot=OtChoice("ideal", 0)))
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


@pytest.mark.parametrize("opset", [18, 23])
def test_encoder_from_onnx(opset):
    """Attention as exporters write it: one operator from opset 23 on, products and a softmax before."""
    onnx = pytest.importorskip("onnx")
    from privml.graph.onnx.module import OnnxModule

    module, x = network("rotary")
    with warnings.catch_warnings(), torch.no_grad():
        warnings.simplefilter("ignore")
        shapes = ({0: torch.export.Dim("batch", min=1, max=64)},)
        model = torch.onnx.export(
            module, (x,), dynamo=True, opset_version=opset, dynamic_shapes=shapes, verbose=False
        ).model_proto
        expected = module(x)
    onnx.checker.check_model(model)
    assert ("Attention" in {node.op_type for node in model.graph.node}) == (opset == 23)
    program = privml.convert(OnnxModule(model), calibration=x)
    results = []
    for engine, options in (("plain", {}), ("twopc", {"ot": "ideal"})):
        with privml.local(engine, bits=program.numerics.bits, scale=program.numerics.scale, **options) as session:
            results.append(privml.reveal(program.run(session, x)))
    assert torch.equal(*results)
    assert (results[0] - expected).abs().max() <= program.choice.precision.tolerance * expected.abs().max()
