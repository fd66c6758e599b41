# SPDX-License-Identifier: Apache-2.0
"""Attention masks: public ones leave elements out exactly, secret ones by a number that makes them vanish."""

import pytest
import torch
import torch.nn.functional as F
from torch import nn

import privml
from privml.formats import FixedPoint
from privml.graph.export import export
from privml.graph.passes import bound_masks

LEAST = torch.finfo(torch.float32).min
# How models write that scores at which a mask is zero do not count.
FORMS = {
    "where": lambda a, m: torch.where(m > 0, a, float("-inf")),
    "where, least number": lambda a, m: torch.where(m > 0, a, torch.tensor(LEAST)),
    "masked_fill": lambda a, m: a.masked_fill(m == 0, float("-inf")),
    "masked_fill, least number": lambda a, m: a.masked_fill(m == 0, LEAST),
    "sum": lambda a, m: a + torch.where(m > 0, 0.0, float("-inf")),
    "product": lambda a, m: a + (1.0 - m.to(a.dtype)) * LEAST,
    "product, -1e4": lambda a, m: a + (1.0 - m.to(a.dtype)) * -10000.0,
    "inverted": lambda a, m: a + (1.0 - m.to(a.dtype)).masked_fill((1.0 - m.to(a.dtype)).bool(), LEAST),
    "with a public one": lambda a, m: a + causal(a).masked_fill(m == 0, LEAST),
    "on a public one": lambda a, m: torch.where(causal(a) == 0, a, LEAST) + (1.0 - m.to(a.dtype)) * LEAST,
}


def causal(a):
    return torch.full(a.shape[-2:], LEAST).triu(1).expand(a.shape[0], 1, -1, -1)


class Attention(nn.Module):
    def __init__(self, form, gain=1.0):
        super().__init__()
        torch.manual_seed(0)
        self.form, self.q = form, nn.Linear(8, 24)
        with torch.no_grad():
            self.q.weight.mul_(gain)

    def forward(self, x, mask):
        q, k, v = (t.unflatten(-1, (2, 4)).transpose(1, 2) for t in self.q(x).chunk(3, -1))
        mask = mask[:, None, None, :]
        if self.form == "sdpa":
            y = F.scaled_dot_product_attention(q, k, v, attn_mask=mask > 0)
        elif self.form == "sdpa, causal too":
            shown = torch.ones(x.shape[1], x.shape[1], dtype=torch.bool).tril()
            y = F.scaled_dot_product_attention(q, k, v, attn_mask=(mask > 0) & shown)
        elif self.form == "sdpa, sum":
            y = F.scaled_dot_product_attention(q, k, v, attn_mask=(1.0 - mask.to(x.dtype)) * LEAST)
        else:
            y = torch.softmax(FORMS[self.form](q @ k.transpose(-1, -2) / 2, mask), -1) @ v
        return y.transpose(1, 2).flatten(2)


def cases(count=12, length=5):
    torch.manual_seed(1)
    lengths = torch.randint(1, length + 1, (count,))
    return torch.randn(count, length, 8), (torch.arange(length) < lengths[:, None]).long()


SOME = ("where", "product", "with a public one", "sdpa, causal too")


@pytest.mark.parametrize(
    "form",
    [
        f if f in SOME else pytest.param(f, marks=pytest.mark.slow)
        for f in (*FORMS, "sdpa", "sdpa, causal too", "sdpa, sum")
    ],
)
def test_converted(form):
    module, (x, mask) = Attention(form).eval(), cases()
    with torch.no_grad():
        expected = module(x, mask)
    program = privml.convert(module, calibration=[x, mask])
    assert program.numerics.bits == 32 and not program.choice.floats
    results = []
    for engine, options in (("plain", {}), ("twopc", {"ot": "ideal"})):
        with privml.local(engine, bits=32, scale=program.numerics.scale, **options) as session:
            results.append(privml.reveal(program.run(session, x[:3], mask[:3])))
    assert torch.equal(*results)
    assert (results[0] - expected[:3]).abs().max() <= 2 / 128 * expected.abs().max()


@pytest.mark.parametrize("form, gain", [("where", 4.0), ("product", 4.0), ("with a public one", 0.1)])
def test_what_a_secret_mask_hides_has_no_effect(form, gain):
    """Not a unit of the last place, whatever stands there within the range of calibration."""
    module, (x, mask) = Attention(form, gain).eval(), cases()
    program = privml.convert(module, calibration=[x, mask])
    other = torch.where(mask[:, :, None] > 0, x, x.roll(1, 0).roll(1, 1).flip(2))
    with privml.local("plain", bits=program.numerics.bits, scale=program.numerics.scale) as session:
        first, second = (privml.reveal(program.run(session, v, mask)) for v in (x, other))
    shown = mask > 0
    assert torch.equal(first[shown], second[shown]) and not torch.equal(other, x)


@pytest.mark.parametrize("form", [f for f in FORMS if "product" not in f and "public" not in f] + ["sdpa"])
def test_layer_by_layer(form, open_session):
    module, (x, mask) = Attention(form).eval(), cases(2)
    with torch.no_grad():
        expected = module(x, mask)
        with open_session():
            secret = privml.secret(Attention(form).eval())
            found = privml.reveal(secret(privml.share(x, owner=1), privml.share(mask, owner=1)))
    assert (found - expected).abs().max() < 2e-3


def test_the_bound_covers_twice_the_scores_and_the_exponentials():
    module, (x, mask) = Attention("product", 3.0).eval(), cases()
    graph = bound_masks(export(module, (x[:1], mask[:1])), [x, mask], 2.0)
    numbers = [a for n in graph.graph.nodes for a in n.args if isinstance(a, float) and a < -20]
    with torch.no_grad():
        q, k, _ = (t.unflatten(-1, (2, 4)).transpose(1, 2) for t in module.q(x).chunk(3, -1))
        reach = float((q @ k.transpose(-1, -2) / 2)[(mask > 0)[:, None, None, :].expand(-1, 2, 5, -1)].abs().max())
    assert len(numbers) == 1 and 2 * 2 * reach + 24 <= -numbers[0] <= 2 * (2 * 2 * reach + 24)


def test_public_masks_are_left_alone():
    """They hide exactly, and cost nothing."""
    module = nn.Sequential(nn.Linear(4, 4), nn.Softmax(-1))

    class Hidden(nn.Module):
        def __init__(self):
            super().__init__()
            self.inner = module
            self.register_buffer("mask", torch.tensor([0.0, 0.0, float("-inf"), 0.0]))

        def forward(self, x):
            return torch.softmax(self.inner[0](x).masked_fill(self.mask < 0, float("-inf")) + self.mask, -1)

    x = torch.randn(8, 4)
    graph = export(Hidden().eval(), (x[:1],))
    before = [(n.target, n.args) for n in graph.graph.nodes]
    assert [(n.target, n.args) for n in bound_masks(graph, [x], 2.0).graph.nodes] == before
    program = privml.convert(Hidden().eval(), calibration=x)
    with privml.local("plain", bits=32, scale=program.numerics.scale) as session:
        assert bool((privml.reveal(program.run(session, x))[:, 2] == 0).all())


def test_sums_of_secrets_keep_what_a_public_mask_hides():
    with privml.local("plain"):
        x = privml.share(torch.tensor([1.0, 2.0, 3.0]), 0, FixedPoint(64, 16))
        hidden = x.masked_fill(torch.tensor([False, True, False]), float("-inf"))
        for result in (hidden + x, x + hidden):
            expected = torch.softmax(torch.tensor([2.0, float("-inf"), 6.0]), 0)
            found = privml.reveal(torch.softmax(result, 0))
            assert found[1] == 0 and (found - expected).abs().max() < 1e-4
