# SPDX-License-Identifier: Apache-2.0
"""Norms that a model writes out step by step become whole operators, which keep the bits of small values."""

import pytest
import torch
from torch import nn

import privml
from privml.graph.export import export
from privml.graph.ir import calls
from privml.graph.passes import fold_weights, whole_norms


class Written(nn.Module):
    def __init__(self, form):
        super().__init__()
        self.form, self.weight = form, nn.Parameter(torch.linspace(0.5, 1.5, 16))

    def forward(self, x):
        return self.weight * FORMS[self.form](x)


def centered(x):
    return x - x.mean(-1, keepdim=True)


FORMS = {
    "rms, by an inverse root": lambda x: x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + 1e-6),
    "rms, by a power": lambda x: x * (x * x).mean(-1, keepdim=True).add(1e-6) ** -0.5,
    "rms, by a root": lambda x: x / torch.sqrt(x.pow(2).mean(-1, keepdim=True) + 1e-6),
    "layer, by means": lambda x: centered(x) / ((centered(x) ** 2).mean(-1, keepdim=True) + 1e-6).sqrt(),
    "layer, by a variance": lambda x: (
        (x - x.mean(-1, keepdim=True)) / torch.sqrt(x.var(-1, unbiased=False, keepdim=True) + 1e-6)
    ),
}
OTHERS = {
    "of something else": lambda x: x * torch.rsqrt((x + 1).pow(2).mean(-1, keepdim=True) + 1e-6),
    "over the first dimension": lambda x: x * torch.rsqrt(x.pow(2).mean(1, keepdim=True) + 1e-6),
    "no eps": lambda x: x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True)),
    "of cubes": lambda x: x * torch.rsqrt(x.abs().pow(3).mean(-1, keepdim=True) + 1e-6),
    "a sum": lambda x: x * torch.rsqrt(x.pow(2).sum(-1, keepdim=True) + 1e-6),
}


def operators(function):
    class Module(nn.Module):
        def forward(self, x):
            return function(x)

    graph = whole_norms(fold_weights(export(Module(), (torch.randn(2, 4, 16),))))
    return {str(node.target).split(".")[1] for node in calls(graph.graph)}


def test_what_becomes_whole_and_what_does_not():
    for name, function in FORMS.items():
        if name == "layer, by means":  # which computes its centered values twice
            continue
        assert operators(function) == {"rms_norm" if "rms" in name else "layer_norm"}, name
    for name, function in OTHERS.items():
        assert not operators(function) & {"rms_norm", "layer_norm"}, name


@pytest.mark.parametrize("size", [1.0, 0.02, 0.001])
@pytest.mark.parametrize("form", ["rms, by an inverse root", "layer, by a variance"])
def test_small_values_keep_their_bits(form, size):
    """Initial weights of language models make such values."""
    torch.manual_seed(0)
    module, x = Written(form).eval(), size * torch.randn(8, 4, 16)
    program = privml.convert(module, calibration=x)
    assert program.numerics.bits == 32 and not program.choice.floats
    results = []
    for engine, options in (("plain", {}), ("twopc", {"ot": "ideal"})):
        with privml.local(engine, bits=32, scale=program.numerics.scale, **options) as session:
            results.append(privml.reveal(program.run(session, x[:2])))
    assert torch.equal(*results)
    assert (results[0] - module(x[:2])).abs().max() <= 2 / 128 * module(x).abs().max()
