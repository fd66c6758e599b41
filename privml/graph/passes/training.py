# SPDX-License-Identifier: Apache-2.0
"""Rewrites of the graph of a training step (forward, gradient and update in one), for fewer rounds and bytes."""

from __future__ import annotations

import operator
from collections.abc import Iterator

import torch
from torch import fx

from privml.graph.ir import calls
from privml.ops.pooling import gated_pool_backward, gated_positions
from privml.ops.softmax import softmax_gradient, softmax_logarithm, softmax_parts

aten = torch.ops.aten

_ALIASES = (
    aten.detach.default,
    aten.alias.default,
    aten.lift_fresh_copy.default,
    aten.clone.default,
)
# Tensors whose values follow from the shape of their argument.
_KNOWN = {
    aten.ones_like.default: 1.0,
    aten.zeros_like.default: 0.0,
    aten.new_ones.default: 1.0,
    aten.new_zeros.default: 0.0,
}
_POOLS = {
    aten.max_pool2d_with_indices.default: aten.max_pool2d_with_indices_backward.default,
    aten.max_pool3d_with_indices.default: aten.max_pool3d_with_indices_backward.default,
}
# Whose results carry what a backward operator needs.
KEEPING = (*_POOLS, aten.relu.default)


def drop_aliases(module: fx.GraphModule) -> fx.GraphModule:
    """Copies and other names of values go: nothing in the graph is written to."""
    for node in list(calls(module.graph)):
        if node.target in _ALIASES:
            node.replace_all_uses_with(node.args[0])
    return clean(module)


def fold_public(module: fx.GraphModule) -> fx.GraphModule:
    """What depends on no input is computed now, in float32: the seed of the gradient, the mean's factor, states that
    start at zero. A constant is then rounded once, when it meets a secret."""
    graph = module.graph
    known: dict[fx.Node, torch.Tensor] = {}
    for node in list(graph.nodes):
        if node.op == "get_attr":
            known[node] = getattr(module, node.target)
            continue
        if node.op != "call_function":
            continue
        like = node.meta.get("val")
        if node.target in _KNOWN:
            value = torch.full(tuple(like.shape), _KNOWN[node.target], dtype=like.dtype)
        elif isinstance(like, torch.Tensor) and all(parent in known for parent in node.all_input_nodes):
            args, kwargs = fx.map_arg((node.args, node.kwargs), known.__getitem__)
            value = node.target(*args, **kwargs)
        else:
            continue
        known[node] = value
        name = f"_constant_{len(known)}"
        module.register_buffer(name, value, persistent=False)
        with graph.inserting_before(node):
            constant = graph.get_attr(name)
        constant.meta = dict(node.meta)
        known[constant] = value
        node.replace_all_uses_with(constant)
    return clean(module)


def split_log_softmax(module: fx.GraphModule) -> fx.GraphModule:
    """The gradient of log_softmax takes the exponentials and their sum; the logarithm goes its own way, or none at all
    if the loss is not revealed."""
    graph = module.graph
    for node in list(calls(graph)):
        if node.target is not aten._log_softmax.default or not node.meta["val"].dim():
            continue
        x, dim = node.args[:2]
        with graph.inserting_before(node):
            parts = graph.call_function(softmax_parts, (x, dim))
        for user in list(node.users):
            if user.target is aten._log_softmax_backward_data.default and user.args[1] is node:
                with graph.inserting_before(user):
                    gradient = graph.call_function(softmax_gradient, (user.args[0], parts, dim))
                _take_over(user, gradient)
        with graph.inserting_before(node):
            logarithm = graph.call_function(softmax_logarithm, (parts,))
        _take_over(node, logarithm)
    return clean(module)


def split_gates(module: fx.GraphModule) -> fx.GraphModule:
    """The slopes y (1 - y) and 1 - y^2 of sigmoid and tanh as nodes of their own: they need not wait for gradients."""
    graph = module.graph
    for node in list(calls(graph)):
        if node.target not in (aten.sigmoid_backward.default, aten.tanh_backward.default):
            continue
        grad, y = node.args
        sigmoid = node.target is aten.sigmoid_backward.default
        with graph.inserting_before(node):
            inner = graph.call_function(*((aten.rsub.Scalar, (y, 1)) if sigmoid else (aten.mul.Tensor, (y, y))))
            slope = graph.call_function(*((aten.mul.Tensor, (y, inner)) if sigmoid else (aten.rsub.Scalar, (inner, 1))))
            gradient = graph.call_function(aten.mul.Tensor, (grad, slope))
        inner.meta, slope.meta = dict(y.meta), dict(y.meta)
        _take_over(node, gradient)
    return clean(module)


def split_convolution_backward(module: fx.GraphModule) -> fx.GraphModule:
    """The gradients of a convolution's input, weight and bias as nodes of their own: they need not wait for one
    another."""
    graph = module.graph
    for node in list(calls(graph)):
        if node.target is not aten.convolution_backward.default:
            continue
        *others, mask = node.args
        for part in list(node.users):
            place = part.args[1]
            if not mask[place]:
                continue
            with graph.inserting_before(part):
                alone = graph.call_function(node.target, (*others, [place == i for i in range(3)]))
                own = graph.call_function(operator.getitem, (alone, place))
            alone.meta = dict(node.meta)
            _take_over(part, own)
    return clean(module)


def pool_before_relu(module: fx.GraphModule) -> fx.GraphModule:
    """pool(relu(x)) becomes relu(pool(x)) in both directions: as many comparisons, selections and bits fewer as a
    window has places. Values are the same; gradients too, unless a window's largest value is exactly 0."""
    graph = module.graph
    for pool in list(calls(graph)):
        relu = pool.args[0] if pool.target in _POOLS else None
        if relu is None or relu.op != "call_function" or relu.target is not aten.relu.default:
            continue
        backward = [user for user in relu.users if user.target is _POOLS[pool.target] and user.args[1] is relu]
        threshold = [user for user in relu.users if user.target is aten.threshold_backward.default]
        values = [user for user in pool.users if user.args[1] == 0]
        if len(relu.users) != 1 + len(backward) + len(threshold) or len(values) != 1 or len(backward) > 1:
            continue
        if list(backward[0].users if backward else ()) != threshold or any(t.args[2] != 0 for t in threshold):
            continue
        x = relu.args[0]
        pool.update_arg(0, x)
        with graph.inserting_after(values[0]):
            positive = graph.call_function(aten.relu.default, (values[0],))
        positive.meta = dict(values[0].meta)
        values[0].replace_all_uses_with(positive, delete_user_cb=lambda user, own=positive: user is not own)
        if backward:
            grad, _, *window, indices = backward[0].args
            with graph.inserting_before(backward[0]):
                gates = graph.call_function(gated_positions, (indices, positive))
                gradient = graph.call_function(gated_pool_backward, (grad, x, window, indices, positive, gates))
            gradient.meta = dict(backward[0].meta)
            threshold[0].replace_all_uses_with(gradient)
    return clean(module)


def _take_over(old: fx.Node, new: fx.Node) -> None:
    new.meta = dict(old.meta)
    old.replace_all_uses_with(new)


def clean(module: fx.GraphModule) -> fx.GraphModule:
    """Removes unused nodes; changes and returns ``module``."""
    module.graph.eliminate_dead_code(lambda node: node.op in ("placeholder", "output"))
    module.graph.lint()
    module.recompile()
    return module


def secret_nodes(graph: fx.Graph, secret_inputs: set[int]) -> Iterator[fx.Node]:
    """The calls that depend on a secret input, given by place."""
    secret: set[fx.Node] = set()
    places = iter(range(len(graph.nodes)))
    for node in graph.nodes:
        if node.op == "placeholder" and next(places) in secret_inputs:
            secret.add(node)
        elif node.op == "call_function" and any(parent in secret for parent in node.all_input_nodes):
            secret.add(node)
            yield node


PASSES = (
    drop_aliases, fold_public, split_log_softmax, split_gates, split_convolution_backward,
    pool_before_relu,
)  # fmt: skip
