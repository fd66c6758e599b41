# SPDX-License-Identifier: Apache-2.0
"""Models that still draw at random or train are refused at conversion, with the line of the model that does it."""

import inspect

import numpy as np
import onnx
import pytest
import torch
from onnx import TensorProto, helper
from torch import nn
from torch.nn import functional

import privml
from privml.errors import UnsupportedOperator
from privml.graph.export import export


class Model(nn.Module):
    """A layer, and ``function(model, x)`` behind it."""

    def __init__(self, function):
        super().__init__()
        self.layer, self.function = nn.Linear(4, 4), function
        self.norm, self.dropout = nn.BatchNorm1d(4), nn.Dropout(0.3)

    def forward(self, x):
        return self.function(self, self.layer(x))


def in_a_block(m, x):
    with torch.autocast("cpu", enabled=False):
        return functional.dropout(x, 0.5)


def batch_norm(m, x):
    return functional.batch_norm(x, m.norm.running_mean, m.norm.running_var, training=True)


REFUSED = {
    "dropout": (lambda m, x: functional.dropout(x, 0.5), "training=self.training"),
    "dropout1d": (lambda m, x: functional.dropout1d(x, 0.5), "training=self.training"),
    "alpha_dropout": (lambda m, x: functional.alpha_dropout(x, 0.5, training=True), "training=self.training"),
    "rrelu": (lambda m, x: functional.rrelu(x, training=True), "training=self.training"),
    "batch_norm": (batch_norm, "training=self.training"),
    "attention": (
        lambda m, x: functional.scaled_dot_product_attention(x[None], x[None], x[None], dropout_p=0.2)[0],
        "dropout_p=self.dropout if self.training else 0.0",
    ),
    "noise": (lambda m, x: x + torch.randn_like(x), "an input of the model"),
    "bernoulli": (lambda m, x: x * torch.bernoulli(torch.full((4,), 0.5)), "an input of the model"),
    "gumbel": (lambda m, x: functional.gumbel_softmax(x), "an input of the model"),
}  # fmt: skip


@pytest.mark.parametrize("name", REFUSED)
def test_what_draws_or_trains_is_refused_with_its_line_and_a_remedy(name):
    function, remedy = REFUSED[name]
    line = inspect.getsourcelines(Model.forward)[1] + 1
    with pytest.raises(UnsupportedOperator) as refusal:
        privml.convert(Model(function), torch.randn(8, 4))
    text = str(refusal.value)
    assert f'File "{__file__}", line {line}, in forward' in text
    assert "draw at random or train" in text and remedy in text


def test_all_such_operators_are_named_at_once():
    model = Model(lambda m, x: functional.dropout(x, 0.5) + torch.rand(4))
    with pytest.raises(UnsupportedOperator, match=r"(?s)2 operator\(s\).*aten\.dropout.*aten\.rand\."):
        privml.convert(model, torch.randn(8, 4))


def test_a_block_with_a_graph_of_its_own_is_searched_too():
    """torch.export keeps what is computed under autocast apart."""
    with pytest.raises(UnsupportedOperator, match=r"(?s)draw at random or train.*aten\.dropout.*training="):
        export(Model(in_a_block), (torch.randn(8, 4),))


ACCEPTED = {
    "layers": lambda m, x: m.dropout(m.norm(x)),
    "told": lambda m, x: functional.dropout(x, 0.5, training=m.training),
    "nothing dropped": lambda m, x: functional.dropout(x, 0.0),
}


@pytest.mark.parametrize("name", ACCEPTED)
def test_layers_in_evaluation_mode_are_exported(name):
    model = Model(ACCEPTED[name]).train()
    assert export(model, (torch.randn(8, 4),))
    assert model.training and model.dropout.training


def onnx_model(operator, inputs=("x",), **attributes):
    ones = helper.make_tensor("ones", TensorProto.FLOAT, [4], np.ones(4, np.float32))
    half = helper.make_tensor("half", TensorProto.FLOAT, [], [0.5])
    on = helper.make_tensor("on", TensorProto.BOOL, [], [True])
    outputs = ["drawn", "mean", "variance"] if operator == "BatchNormalization" else ["drawn"]
    nodes = [helper.make_node(operator, inputs, outputs, **attributes)]
    nodes += [helper.make_node("Cast", ["drawn"], ["cast"], to=TensorProto.FLOAT)]
    nodes += [
        helper.make_node("ReduceSum", ["cast"], ["total"], keepdims=0),
        helper.make_node("Add", ["x", "total"], ["y"]),
    ]
    x, y = (helper.make_tensor_value_info(name, TensorProto.FLOAT, [8, 4]) for name in ("x", "y"))
    used = [t for t in (ones, half, on) if t.name in inputs]
    graph = helper.make_graph(nodes, "g", [x], [y], used)
    return onnx.helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)])


ONNX = {
    "dropout": onnx_model("Dropout", ("x", "half", "on")),
    "batch_norm": onnx_model("BatchNormalization", ("x", "ones", "ones", "ones", "ones"), training_mode=1),
    "normal": onnx_model("RandomNormal", (), shape=[8, 4]),
    "normal_like": onnx_model("RandomNormalLike"),
    "uniform": onnx_model("RandomUniform", (), shape=[8, 4]),
    "bernoulli": onnx_model("Bernoulli"),
    "multinomial": onnx_model("Multinomial", sample_size=2),
}


@pytest.mark.parametrize("name", ONNX)
def test_onnx_nodes_that_draw_or_train_are_refused(name):
    with pytest.raises(UnsupportedOperator, match=r"random results|training_mode"):
        privml.convert(ONNX[name], torch.randn(8, 4))
