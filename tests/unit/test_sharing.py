# SPDX-License-Identifier: Apache-2.0
import pytest
import torch
from torch import nn

import privml
from privml.errors import ConfigError, InvalidInput
from privml.formats import Boolean, FixedPoint, Integer, Owned


def test_round_trip_of_every_kind():
    values = [torch.randn(3, 4), torch.tensor([3, -4]), torch.tensor([[True], [False]]), torch.tensor(1.5)]
    formats = [FixedPoint(40, 12), Integer(40), Boolean(), FixedPoint(40, 12)]
    with privml.local(bits=40, scale=12):
        for value, fmt in zip(values, formats, strict=True):
            x = privml.share(value, owner=1)
            assert x.format == fmt and x.placement == Owned(1)
            assert x.dtype is value.dtype and x.shape == value.shape
            revealed = privml.reveal(x, to=0)
            assert revealed.dtype is value.dtype and (revealed.double() - value.double()).abs().max() <= 2**-13


def test_numpy_and_lists_are_taken():
    with privml.local():
        assert privml.reveal(privml.share(torch.eye(2).numpy())).tolist() == [[1, 0], [0, 1]]
        assert privml.reveal(privml.share([1.0, 2.0])).tolist() == [1, 2]


def test_the_input_stays_the_callers_own():
    value = torch.tensor([1, 2])
    with privml.local():
        x = privml.share(value)
        value[0] = 7
        opened = privml.reveal(x)
        opened[1] = 9
        assert privml.reveal(x).tolist() == [1, 2]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"x": torch.ones(2), "owner": 2}, r"owner must be in \[0, 2\)"),
        ({"x": torch.ones(2), "shape": (3,)}, r"expected an input of shape \(3,\), got \(2,\)"),
        ({"x": None, "shape": (3,)}, "party 0 owns this input"),
        ({"x": torch.ones(2), "format": Integer()}, "needs a FixedPoint format"),
        ({"x": torch.ones(2).bool(), "format": FixedPoint()}, "needs a Boolean format"),
        ({"x": torch.ones(2, dtype=torch.complex64)}, "complex"),
        ({"x": torch.tensor([0.0, float("nan")])}, r"index \(1,\) is NaN or infinite"),
    ],
)
def test_wrong_inputs(arguments, message):
    with privml.local(), pytest.raises(InvalidInput, match=message):
        privml.share(**arguments)


def test_wrong_reveals():
    with privml.local():
        x = privml.share(torch.ones(2))
        with pytest.raises(InvalidInput, match="already secret"):
            privml.share(x)
        with pytest.raises(InvalidInput, match="to must be"):
            privml.reveal(x, to=2)
        with pytest.raises(InvalidInput, match="already public"):
            privml.reveal(torch.ones(2))


def test_sessions_nest_and_end():
    with pytest.raises(ConfigError, match="no session is open"):
        privml.share(torch.ones(1))
    with privml.local(scale=8) as outer:
        with privml.local(scale=4) as inner:
            assert privml.share(torch.ones(1)).session is inner
        x = privml.share(torch.ones(1))
        assert x.session is outer and x.format.scale == 8
    assert privml.share(torch.ones(1), session=outer).session is outer
    with pytest.raises(ConfigError):
        privml.share(torch.ones(1))


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"engine": "magic"}, "'magic' is not one of"),
        ({"colour": 3}, "'plain'.*colour"),
        ({"bits": 65}, "8 <= bits <= 64"),
        ({"bits": 16, "scale": 15}, "scale < bits - 2"),
    ],
)
def test_wrong_settings(settings, message):
    with pytest.raises(ConfigError, match=message):
        privml.local(**settings)


class Tied(nn.Module):
    def __init__(self):
        super().__init__()
        self.a, self.b = nn.Linear(3, 3), nn.Linear(3, 3)
        self.b.weight = self.a.weight
        self.norm = nn.BatchNorm1d(3)
        self.register_buffer("steps", torch.tensor(3))

    def forward(self, x):
        return self.norm(self.b(self.a(x)))


def test_secret_module():
    module = Tied().eval()
    x0 = torch.randn(4, 3)
    expected = module(x0).detach()
    with privml.local(weight_bits=20, weight_scale=14):
        assert privml.secret(module, owner=1) is module
        assert module.a.weight is module.b.weight and isinstance(module.a.weight, nn.Parameter)
        assert module.a.weight.format == FixedPoint(20, 14) and module.a.weight.placement == Owned(1)
        assert isinstance(module.norm.running_var, privml.SecretTensor)
        assert not isinstance(module.steps, privml.SecretTensor)
        assert len(list(module.parameters())) == 5
        assert (privml.reveal(module(privml.share(x0))) - expected).abs().max() < 2e-3


def test_secret_module_names_the_parameter_that_does_not_fit():
    module = nn.Sequential(nn.Linear(2, 2))
    with torch.no_grad():
        module[0].weight[1, 0] = 100.0
    with privml.local(weight_bits=8, weight_scale=4), pytest.raises(InvalidInput, match=r"'0\.weight'.*index \(1, 0\)"):
        privml.secret(module)


def test_revealing_is_differentiable():
    with privml.local():
        x = privml.share(torch.tensor([1.0, 2.0]).requires_grad_())
        loss = (privml.reveal(x * 3.0) ** 2).sum()
        loss.backward()
        assert privml.reveal(x.grad).tolist() == [18.0, 36.0]
