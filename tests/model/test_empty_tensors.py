# SPDX-License-Identifier: Apache-2.0
"""Tensors without elements: the shapes and values of torch, or an error where torch has none or NaN."""

import pytest
import torch
import torch.nn.functional as F

import privml
from privml.errors import InvalidInput

NONE, SQUARE, BATCH = torch.zeros(0, 3), torch.rand(0, 3, 3), torch.rand(0, 4, 5, 5)
ANSWERED = {
    "matmul_of_no_matrices": (torch.matmul, SQUARE, SQUARE),
    "matmul_of_no_terms": (torch.matmul, torch.rand(2, 2, 0), torch.rand(2, 0, 3)),
    "matmul_of_no_rows": (torch.matmul, torch.rand(2, 0, 3), torch.rand(2, 3, 4)),
    "attention": (lambda x: F.scaled_dot_product_attention(x, x, x, is_causal=True), torch.rand(0, 2, 3, 2)),
    "convolution": (F.conv2d, BATCH, torch.rand(2, 4, 3, 3)),
    "group_norm": (lambda x, w: F.group_norm(x, 2, w), BATCH, torch.rand(4)),
    "instance_norm": (F.instance_norm, BATCH),
    "softmax": (lambda x: F.softmax(x, 1), torch.zeros(2, 0)),
    "log_softmax": (lambda x: F.log_softmax(x, 0), torch.zeros(0)),
    "softmax_of_no_rows": (lambda x: F.softmax(x, 1), NONE),
    "logsumexp": (lambda x: torch.logsumexp(x, 0), torch.zeros(1, 0)),
    "sum": (torch.sum, NONE),
    "mean_of_no_rows": (lambda x: x.mean(1), NONE),
    "maximum_of_no_rows": (lambda x: x.amax(1), NONE),
    "count": (lambda x: (x > 0).sum(), NONE),
    "any": (lambda x: (x > 0).any(), NONE),
    "all": (lambda x: (x > 0).all(1), torch.zeros(2, 0)),
}
REFUSED = {
    "mean": (torch.mean, NONE, "mean of no numbers"),
    "cross_entropy": (lambda x: F.cross_entropy(x, torch.zeros(0).long()), NONE, "mean of the losses of no rows"),
    "mse": (lambda x: F.mse_loss(x, x + 1), NONE, "mean of no numbers"),
    "variance": (lambda x: x.var(0), NONE, "variance of no numbers"),
    "variance_of_one": (lambda x: x.var(0), torch.rand(1, 3), "variance of 1 number"),
    "deviation_of_one": (lambda x: x.std(0), torch.rand(1, 3), "variance of 1 number"),
    "amax": (lambda x: x.amax(0), NONE, "maximum or minimum of no numbers"),
    "argmin": (lambda x: x.argmin(0), NONE, "place of the maximum or minimum of no numbers"),
    "logsumexp": (lambda x: x.logsumexp(0), NONE, "logsumexp of no numbers"),
    "layer_norm": (lambda x: F.layer_norm(x, (0,)), torch.zeros(2, 0), "norm of no numbers"),
    "kernel": (lambda x: F.conv1d(x, torch.rand(1, 1, 3)), torch.rand(1, 1, 2), "result has no elements"),
}


@pytest.mark.parametrize("name", ANSWERED)
def test_answers_are_those_of_torch(name, open_session):
    function, *inputs = ANSWERED[name]
    clear = function(*inputs)
    with open_session(), torch.no_grad():
        secret = function(*(privml.share(value, owner=i) for i, value in enumerate(inputs)))
        assert torch.equal(privml.reveal(secret), clear)
        assert secret.shape == clear.shape and secret.dtype is clear.dtype


@pytest.mark.parametrize("name", REFUSED)
def test_what_has_no_number_is_refused(name, open_session):
    function, value, text = REFUSED[name]
    with open_session(), torch.no_grad(), pytest.raises(InvalidInput, match=text):
        function(privml.share(value, owner=1))
