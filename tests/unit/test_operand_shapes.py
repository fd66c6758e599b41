# SPDX-License-Identifier: Apache-2.0
"""Operands of shapes that do not go together are refused with all of them, on every engine."""

import numpy
import pytest
import torch
import torch.nn.functional as F
from torch import nn

import privml
from privml.errors import InvalidInput

X0 = torch.tensor([[1.0, -2.0, 3.0], [0.5, 0.0, -1.0]])
ARRAY = numpy.ones((2, 2))
SHAPES = {
    "matmul": (lambda x: x @ x, r"\(2, 3\) and \(2, 3\)"),
    "public": (lambda x: x @ torch.ones(4, 2), r"\(2, 3\) and \(4, 2\)"),
    "linear": (lambda x: F.linear(x.detach(), torch.ones(2, 4)), r"\(2, 3\) and .*\(2, 4\)|\(2, 3\) and \(4, 2\)"),
    "layer": (lambda x: privml.secret(nn.Linear(4, 2))(x), r"\(2, 3\) and \(4, 2\)"),
    "vector": (lambda x: x @ torch.ones(4), r"\(2, 3\) and \(4, 1\)"),
    "batch": (lambda x: torch.bmm(x[None], x[None]), r"\(1, 2, 3\) and \(1, 2, 3\)"),
    "conv1d": (lambda x: F.conv1d(x[None], torch.ones(1, 3, 1)), r"\(1, 2, 3\) and weight \(1, 3, 1\)"),
    "conv2d": (
        lambda x: privml.secret(nn.Conv2d(3, 4, 1))(x[None, None]),
        r"\(1, 1, 2, 3\) and weight \(4, 3, 1, 1\) .* takes 3 channels",
    ),
    "transposed": (
        lambda x: F.conv_transpose2d(x[None, None], torch.ones(2, 1, 1, 1)),
        r"\(1, 1, 2, 3\) and weight \(2, 1, 1, 1\) .* takes 2 channels",
    ),
    "bias": (
        lambda x: torch.addmm(torch.ones(5, 3), x[:1], privml.share(torch.ones(3, 3), owner=1)),
        r"\(5, 3\) .*\(1, 3\)",
    ),
    "secret bias": (lambda x: torch.addmm(x, x[:1], privml.share(torch.ones(3, 3), owner=1)), r"\(2, 3\) .*\(1, 3\)"),
    "convolution's bias": (
        lambda x: F.conv2d(x[None, None], privml.share(torch.ones(1, 1, 1, 1), owner=1), torch.ones(3)),
        r"\(3,\) does not fit 1 output",
    ),
}


@pytest.mark.parametrize("engine", ["plain", "twopc", "threepc"])
@pytest.mark.parametrize("name", SHAPES)
def test_mismatched_products_name_both_shapes(name, engine):
    function, shapes = SHAPES[name]
    with privml.local(engine), pytest.raises(InvalidInput, match=f"{shapes}.* do not fit|{shapes}"):
        function(privml.share(X0, owner=0))


APART = {
    "array": (lambda x: x + ARRAY, r"add: shapes \(2, 3\) and \(2, 2\)"),
    "array before": (lambda x: ARRAY * x, r"mul(tiply)?: shapes \(2, 2\) and \(2, 3\)"),
    "public": (lambda x: torch.ones(4) - x, r"sub: shapes \(4,\) and \(2, 3\)"),
    "secret": (lambda x: x / x.t(), r"div: shapes \(2, 3\) and \(3, 2\)"),
    "comparison": (lambda x: x < x.t(), r"lt: shapes \(2, 3\) and \(3, 2\)"),
    "choice": (lambda x: torch.where(x > 0, x, x.t()), r"where: shapes \(2, 3\) and \(2, 3\) and \(3, 2\)"),
    "in place": (lambda x: x.clone().add_(torch.ones(4)), r"add: shapes \(2, 3\) and \(4,\)"),
    "loss": (lambda x: F.mse_loss(x, torch.ones(2, 2)), r"mse_loss: shapes \(2, 3\) and \(2, 2\)"),
}


@pytest.mark.filterwarnings("ignore:Using a target size")
@pytest.mark.parametrize("engine", ["plain", "twopc", "threepc"])
@pytest.mark.parametrize("name", APART)
def test_operands_that_do_not_broadcast_name_their_shapes(name, engine):
    function, words = APART[name]
    with privml.local(engine), pytest.raises(InvalidInput, match=f"^{words} do not fit$"):
        function(privml.share(X0, owner=0))


@pytest.mark.parametrize(
    "function, words",
    [
        (lambda x: x.expand(2, 5), "must match the existing size"),
        (lambda x: torch.einsum("ij,jk->ik", x, torch.ones(2, 5)), "subscript j has size"),
        (lambda x: torch.cat([x, torch.ones(2, 2)]), "Expected size 3 but got size 2"),
    ],
)
def test_other_errors_of_torch_stay(function, words):
    with privml.local(), pytest.raises(RuntimeError, match=words):
        function(privml.share(X0, owner=0))
