# SPDX-License-Identifier: Apache-2.0
"""GELU, SiLU and others that a model writes out become one operator, in whatever way they are written."""

import math

import pytest
import torch
import torch.nn.functional as F
from onnx import parser
from torch import nn

import privml

FORMS = {
    "GPT-2's": (lambda x: 0.5 * x * (1.0 + torch.tanh(math.sqrt(2.0 / math.pi) * (x + 0.044715 * x**3))), ["gelu"]),
    "BERT's, with tanh": (lambda x: 0.5 * x * (1 + torch.tanh(x * 0.7978845608 * (1 + 0.044715 * x * x))), ["gelu"]),
    "with erf": (lambda x: x * 0.5 * (1.0 + torch.erf(x / 1.41421)), ["gelu"]),
    "with erf, last halved": (lambda x: (x + x * torch.erf(x * math.sqrt(0.5))) / 2, ["gelu"]),
    "a coarse GELU": (lambda x: x * torch.sigmoid(1.702 * x), ["mul", "silu", "mul"]),
    "a product": (lambda x: torch.sigmoid(x) * x, ["silu"]),
    "a quotient": (lambda x: x / (1 + torch.exp(-x)), ["silu"]),
    "softplus": (lambda x: torch.log(1 + torch.exp(x)), ["softplus"]),
    "sigmoid": (lambda x: 1 / (1 + torch.exp(-x)), ["sigmoid"]),
    "tanh": (lambda x: (torch.exp(x) - torch.exp(-x)) / (torch.exp(x) + torch.exp(-x)), ["tanh"]),
}
# What must stay as it is.
OTHERS = {
    "another coefficient": lambda x: 0.5 * x * (1 + torch.tanh(0.7978845608 * (x + 0.0457 * x**3))),
    "another factor": lambda x: x * torch.sigmoid(1.6 * x),
    "twice": lambda x: 2 * x * torch.sigmoid(x),
    "of another value": lambda x: x * torch.sigmoid(x.flip(-1)),
    "cut off": lambda x: x.clamp(max=1.0) * torch.sigmoid(x),
}


class Layer(nn.Module):
    def __init__(self, function):
        super().__init__()
        self.linear, self.function = nn.Linear(8, 8), function

    def forward(self, x):
        return self.function(self.linear(x))


def operators(program):
    return [node.target.__name__.split(".")[0] for node in program.graph.nodes if node.op == "call_function"]


def converted(function):
    torch.manual_seed(0)
    model, x = Layer(function).eval(), torch.randn(40, 8) * 3
    return model, x, privml.convert(model, calibration=x)


@pytest.mark.parametrize("form", FORMS)
def test_a_formula_is_one_operator(form):
    function, expected = FORMS[form]
    model, x, program = converted(function)
    assert operators(program) == ["linear", *expected]
    found = {}
    for engine in ("plain", "twopc", "threepc"):
        with privml.local(program, engine=engine):
            found[engine] = program(x[:4])
    assert torch.equal(found["plain"], found["twopc"])
    clear = model(x).detach()
    for result in found.values():
        assert (result - clear[:4]).abs().max() < 0.02 * max(1.0, float(clear.abs().max()))


@pytest.mark.parametrize("form", OTHERS)
def test_other_formulas_stay(form):
    _, _, program = converted(OTHERS[form])
    assert not {"gelu", "silu"} & set(operators(program))


def test_a_step_that_something_else_uses_stays():
    def function(x):
        gate = torch.sigmoid(x)
        return x * gate + gate

    _, _, program = converted(function)
    assert "sigmoid" in operators(program) and "silu" not in operators(program)


def test_a_formula_of_an_onnx_file_with_its_constants_as_tensors():
    text = """
    <ir_version: 8, opset_import: ["" : 17]>
    written (float[n, 8] x) => (float[n, 8] y)
    <float[1] root = {1.4142135}, float one = {1.0}, float half = {0.5}>
    {
        scaled = Div(x, root)
        bent = Erf(scaled)
        raised = Add(bent, one)
        product = Mul(x, raised)
        y = Mul(product, half)
    }
    """
    x = torch.randn(40, 8, generator=torch.Generator().manual_seed(0)) * 3
    program = privml.convert(parser.parse_model(text), calibration=x)
    assert operators(program) == ["gelu"]
    with privml.local(program, engine="plain"):
        assert (program(x[:4]) - F.gelu(x[:4])).abs().max() < 0.05


def test_a_network_of_many_formulas():
    """Each is found, also where one begins at the end of another."""

    class Chain(nn.Module):
        def forward(self, x):
            for _ in range(3):
                x = x * torch.sigmoid(x)
            return x * 0.5 * (1.0 + torch.erf(x / math.sqrt(2.0)))

    x = torch.randn(40, 8, generator=torch.Generator().manual_seed(0))
    program = privml.convert(Chain(), calibration=x)
    assert operators(program) == ["silu", "silu", "silu", "gelu"]
