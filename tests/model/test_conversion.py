# SPDX-License-Identifier: Apache-2.0
"""Which modules become programs and which do not, and what converting leaves alone."""

import math
import sys

import pytest
import torch
from lenet_program import scores, session_for
from torch import nn

import privml
from privml.errors import ConfigError, InvalidInput, UnsupportedOperator


class Unsupported(nn.Module):
    def __init__(self):
        super().__init__()
        self.linear = nn.Linear(4, 4)

    def forward(self, x):
        y = torch.special.bessel_j0(self.linear(x))
        return torch.cummax(y, 1)[0] + torch.special.i0e(x)


def test_unsupported_operators_are_all_named_with_their_line():
    with pytest.raises(UnsupportedOperator) as caught:
        privml.convert(Unsupported(), torch.zeros(2, 4))
    text = str(caught.value)
    operators = ("special_bessel_j0", "cummax", "special_i0e")
    for needed in (*operators, "test_conversion.py", "line", "the nearest that are supported: "):
        assert needed in text, needed
    assert "conv2d" not in text and len(text) < 1200


class Prints(nn.Module):
    def forward(self, x):
        print("a graph", file=sys.stderr)
        print("a graph")
        return 2 * x


@pytest.mark.parametrize("debug", [False, True])
def test_what_is_printed_while_a_model_is_traced_is_kept_back(debug, capsys):
    privml.convert(Prints(), calibration=torch.rand(4, 2), debug=debug)
    for text in capsys.readouterr():  # the model also runs once on the examples, before it is traced
        assert text.count("a graph") > 1 if debug else text.count("a graph") <= 1


def test_models_that_cannot_be_traced():
    class Branches(nn.Module):
        def forward(self, x):
            return x if x.sum() > 0 else -x

    with pytest.raises(InvalidInput, match=r"depends on a tensor's value at .*test_conversion.py:\d+: return x if"):
        privml.convert(Branches(), torch.zeros(2, 4))
    with pytest.raises(InvalidInput, match="example inputs"):
        privml.convert(nn.Linear(2, 2))
    with pytest.raises(ConfigError, match="unknown setting 'scall'"):
        privml.convert(nn.Linear(2, 2), torch.zeros(1, 2), numerics={"scall": 3})
    broken = nn.Linear(2, 2)
    broken.weight.data[0, 1] = math.nan
    with pytest.raises(ConfigError, match="NaN or infinity at index"):
        privml.convert(broken, torch.zeros(1, 2))


def test_converting_leaves_the_model_alone():
    class Noisy(nn.Module):
        def __init__(self):
            super().__init__()
            self.norm, self.linear, self.dropout = nn.BatchNorm1d(4), nn.Linear(4, 3), nn.Dropout(0.5)

        def forward(self, x):
            return self.dropout(self.linear(self.norm(x)))

    torch.manual_seed(0)
    module, x = Noisy(), torch.randn(32, 4)
    before = {name: value.clone() for name, value in module.state_dict().items()}
    program = privml.convert(module, calibration=x)
    assert module.training and module.dropout.training
    assert all(torch.equal(value, before[name]) for name, value in module.state_dict().items())
    assert all(parameter.requires_grad for parameter in module.parameters())
    expected = module.eval()(x).detach()
    assert (scores(program, x) - expected).abs().max() < 0.03


def test_constants_of_the_code_are_public_and_saved(tmp_path):
    class Masked(nn.Module):
        def __init__(self):
            super().__init__()
            self.linear = nn.Linear(4, 4)
            self.register_buffer("order", torch.tensor([3, 1, 0, 2]))

        def forward(self, x):
            y = self.linear(x)[:, self.order]
            return y * torch.tensor([1.0, 0.5, 0.0, -2.0]) + 3

    torch.manual_seed(0)
    module, x = Masked().eval(), torch.randn(16, 4)
    privml.convert(module, calibration=x).save(tmp_path)
    program = privml.load(tmp_path / "program", tmp_path / "weights.safetensors")
    assert set(program.weights) == {"linear.weight", "linear.bias"} and len(program.constants) == 2
    assert (scores(program, x) - module(x).detach()).abs().max() < 0.1


def test_several_inputs_and_outputs():
    class Two(nn.Module):
        def __init__(self):
            super().__init__()
            self.linear = nn.Linear(3, 2)

        def forward(self, x, y):
            return self.linear(x * y), {"sum": x + y}

    torch.manual_seed(0)
    module, x, y = Two().eval(), torch.randn(16, 3), torch.randn(16, 3)
    program = privml.convert(module, calibration=[x, y], numerics={"scale": 10})
    with session_for(program) as session:
        first, second = (privml.reveal(r) for r in program.run(session, x, y))
    assert (first - module(x, y)[0]).abs().max() < 0.02
    assert (second - (x + y)).abs().max() < 0.01


def test_a_fixed_batch_stays_fixed():
    class Pairs(nn.Module):
        def __init__(self):
            super().__init__()
            self.linear = nn.Linear(6, 3)

        def forward(self, x):
            return self.linear(x.reshape(2, 6))

    torch.manual_seed(0)
    module, x = Pairs().eval(), torch.randn(9, 3)
    program = privml.convert(module, x[:4], calibration=x)
    assert program.inputs[0].shape == (4, 3)
    assert (scores(program, x[:4]) - module(x[:4]).detach()).abs().max() < 0.05
    with session_for(program) as session, pytest.raises(InvalidInput, match=r"expects \(4, 3\)"):
        program.run(session, x)


def test_secret_indices_are_refused_when_converting():
    class Gathering(nn.Module):
        def forward(self, x, index):
            return torch.gather(x, 1, index)

    with pytest.raises(UnsupportedOperator, match="indices must be public"):
        privml.convert(Gathering(), (torch.rand(2, 3), torch.tensor([[1], [2]])))
