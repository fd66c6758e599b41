# SPDX-License-Identifier: Apache-2.0
"""Exported graphs taken apart operator by operator compute what the module computes."""

import torch
from torch import nn

from privml.graph.export import export
from privml.graph.ir import SYM_SIZE, calls, is_allowed, placeholders

aten = torch.ops.aten


def converted(module, *inputs):
    graph = export(module.eval(), inputs)
    assert all(is_allowed(node.target) for node in calls(graph.graph))
    with torch.no_grad():
        expected = module(*inputs)
    for found, clear in zip(graph(*inputs), expected if isinstance(expected, tuple) else (expected,), strict=True):
        torch.testing.assert_close(found, clear)
    return graph


class Attention(nn.Module):
    def forward(self, q, k, v):
        return nn.functional.scaled_dot_product_attention(q, k, v, is_causal=True)


def test_attention_is_made_of_products_and_softmax():
    graph = converted(Attention(), *(torch.randn(2, 4, 5, 8) for _ in range(3)))
    assert [n.target for n in calls(graph.graph)].count(aten.bmm.default) == 2


def test_sizes_are_those_of_inputs():
    graph = converted(Attention(), *(torch.randn(3, 2, 5, 8) for _ in range(3)))
    inputs = placeholders(graph.graph)
    assert all(node.args[0] in inputs for node in calls(graph.graph) if node.target is SYM_SIZE)


class Writing(nn.Module):
    def __init__(self):
        super().__init__()
        self.linear = nn.Linear(4, 4)

    def forward(self, x):
        y = self.linear(x)
        z = y * 2
        y += x
        y.relu_()
        return y + z


class WritingThroughViews(nn.Module):
    def forward(self, x):
        y = x * 1.5
        part = y[:, :2]
        part.add_(1)
        y.mul_(2)
        return y, part


def test_writes_become_values():
    graph = converted(Writing(), torch.randn(2, 4))
    assert not any(n.target._schema.is_mutable for n in calls(graph.graph) if hasattr(n.target, "_schema"))
    converted(WritingThroughViews(), torch.randn(2, 4))


class Recurrent(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = nn.GRU(4, 5, batch_first=True)

    def forward(self, x):
        return self.layer(x)[0]


def test_recurrent_layers_keep_their_products():
    graph = converted(Recurrent(), torch.randn(2, 3, 4))
    assert aten.linear.default in [n.target for n in calls(graph.graph)]


class Dropping(nn.Module):
    def __init__(self):
        super().__init__()
        self.drop = nn.Dropout(0.5, inplace=True)

    def forward(self, x):
        return self.drop(x.flatten(1)) + 1


def test_dropout_in_evaluation_is_nothing():
    graph = converted(Dropping(), torch.randn(2, 3, 4))
    assert sorted(str(n.target) for n in calls(graph.graph) if n.target is not SYM_SIZE) == [
        "aten.add.Tensor",
        "aten.reshape.default",
    ]
