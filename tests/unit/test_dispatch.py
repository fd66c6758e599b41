# SPDX-License-Identifier: Apache-2.0
import copy
import inspect

import pytest
import torch
from torch import nn

import privml
from privml import dispatch
from privml.errors import UnsupportedOperator

aten = torch.ops.aten


@pytest.fixture(autouse=True)
def session():
    with privml.local() as opened:
        yield opened


NONLINEAR = {
    "asin": torch.asin, "atan": torch.atan, "asinh": torch.asinh,
    "acosh": torch.acosh, "erfinv": torch.erfinv, "lgamma": torch.lgamma,
    "secret_exponent": lambda x: x**x, "rounded_division": lambda x: torch.div(x, x, rounding_mode="floor"),
}  # fmt: skip


@pytest.mark.parametrize("name", NONLINEAR)
def test_no_function_falls_back_to_floats(name):
    with pytest.raises(UnsupportedOperator, match=r"no secure implementation of aten\.\w+.*secret float32"):
        NONLINEAR[name](privml.share(torch.rand(2, 3) + 0.5))


def test_the_error_says_what_where_and_what_instead():
    x = privml.share(torch.ones(2, 3))
    with privml.node("head.scores"), pytest.raises(UnsupportedOperator) as error:
        torch.gather(x, 1, privml.share(torch.zeros(2, 1, dtype=torch.int64)))
    text = str(error.value)
    assert "aten.gather.default(secret float32[2, 3], 1, secret int64[2, 1])" in text
    assert "'head.scores'" in text and "indices must be public" in text
    with pytest.raises(UnsupportedOperator, match=r"aten\.kthvalue"):
        x.kthvalue(2)
    with pytest.raises(UnsupportedOperator, match="supported_operators"):
        torch.fft.rfft(x)
    with pytest.raises(UnsupportedOperator, match=r"aten\.view\.dtype.*aten\.view\.default"):
        x.view(torch.int32)


def test_one_rule_per_operator():
    with pytest.raises(RuntimeError, match="has two rules"):
        dispatch.implements(aten.relu.default)(lambda x: x)


def test_every_rule_can_take_the_arguments_of_its_operator():
    for operator, rule in dispatch.TABLE.items():
        parameters = inspect.signature(rule).parameters.values()
        kinds = {p.kind for p in parameters}
        positional = [a for a in operator._schema.arguments if not a.kwarg_only]
        room = sum(p.kind is p.POSITIONAL_OR_KEYWORD for p in parameters)
        assert inspect.Parameter.VAR_POSITIONAL in kinds or room >= len(positional), operator
        needed = sum(p.kind is p.POSITIONAL_OR_KEYWORD and p.default is p.empty for p in parameters)
        assert needed <= sum(not a.has_default_value() for a in positional), operator


def test_support_can_be_asked_for():
    assert dispatch.is_supported(aten.relu.default) and dispatch.is_supported(aten.relu_.default)
    assert dispatch.is_supported(aten._foreach_add_.Scalar) and not dispatch.is_supported(aten.asin.default)
    names = dispatch.supported_operators()
    assert names == sorted(names) and {"convolution.default", "max_pool2d_with_indices.default"} <= set(names)


def test_torch_never_takes_a_fused_path():
    """Above dispatch torch would choose kernels that read memory a secret does not have."""
    x0 = torch.rand(1, 2, 4)
    layer = nn.TransformerEncoderLayer(4, 2, 8, batch_first=True, dropout=0.0)
    recurrent = [kind(4, 3, batch_first=True) for kind in (nn.LSTM, nn.GRU, nn.RNN)]
    for module in (layer, copy.deepcopy(layer).eval(), *recurrent):
        expected = module(x0)
        with torch.no_grad():
            result = module(privml.share(x0))
        if isinstance(result, tuple):
            expected, result = expected[0], result[0]
        assert (privml.reveal(result) - expected).abs().max() < 1e-3


def test_rectified_recurrence():
    x0, module = torch.rand(2, 5, 4) - 0.5, nn.RNN(4, 3, 2, batch_first=True, nonlinearity="relu")
    expected = module(x0)[0].detach()
    for parameters in (module, privml.secret(module)):
        with torch.no_grad():
            assert (privml.reveal(parameters(privml.share(x0))[0]) - expected).abs().max() < 1e-3
