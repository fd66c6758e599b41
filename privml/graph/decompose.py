# SPDX-License-Identifier: Apache-2.0
"""Takes apart the operators of an exported graph that privml has no rule for.

torch's own way traces the whole model again, several times, which takes most of a conversion. Here only the operators
in question are traced, each alone and on its own shapes, and put in their place.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import torch
from torch import fx
from torch._ops import OpOverload
from torch.fx.experimental.proxy_tensor import make_fx
from torch.utils._pytree import tree_flatten, tree_leaves, tree_unflatten

from privml.graph.ir import SYM_SIZE, calls, is_allowed

aten = torch.ops.aten

# Copies and changes of layout have no meaning in a functional graph whose views are reshapes.
IDENTITIES = (
    aten.alias.default,
    aten.clone.default,
    aten.contiguous.default,
    aten.detach.default,
    aten.detach_.default,
    aten.lift_fresh_copy.default,
)
VIEWS = (aten.view.default, aten._unsafe_view.default, aten._reshape_alias.default)
# Nothing in evaluation, which an exported graph was checked to be for.
_INERT = (
    aten.dropout.default,
    aten.dropout_.default,
    aten.feature_dropout.default,
    aten.feature_dropout_.default,
    aten.alpha_dropout.default,
    aten.alpha_dropout_.default,
)
# Traced alone these fix the batch, or fail where it varies.
_RECURRENT = (aten.gru.input, aten.lstm.input, aten.rnn_relu.input, aten.rnn_tanh.input)
# These have a rule, and a simpler form that passes look for.
_SIMPLER = (aten.flatten.using_ints,)
_CONVERSIONS = (aten.to.dtype, aten.to.dtype_layout, aten.to.device, aten.type_as.default)
# The metadata that a part inherits from the operator it is a part of.
_ORIGIN = ("stack_trace", "nn_module_stack", "source_fn_stack")


def decompose(exported: Any) -> fx.GraphModule:
    """The module of an exported program, functional, with what has a rule left whole."""
    table = _table()
    module = exported.module()
    for node in list(calls(module.graph)):
        if node.target in _INERT:
            node.replace_all_uses_with(node.args[0])
            module.graph.erase_node(node)
    plain = _is_plain(module) and _functionalize(module.graph)
    if not plain or not all(_inline(module, node, table) for node in _to_inline(module.graph)):
        module = exported.run_decompositions(table).module()
        for node in _to_inline(module.graph):
            _inline(module, node, table)
    _sizes_of_inputs(module.graph)
    return module


def _to_inline(graph: fx.Graph) -> list[fx.Node]:
    return [node for node in calls(graph) if _is_foreign(node) or node.target in _SIMPLER]


def _sizes_of_inputs(graph: fx.Graph) -> None:
    """Sizes that vary are read from an input, so that no value in between has a reader that needs nothing but its
    shape."""
    inputs = [node for node in graph.nodes if node.op == "placeholder"]
    known: dict[str, fx.Node] = {}
    for node in inputs:
        for dim, size in enumerate(getattr(node.meta.get("val"), "shape", ())):
            if isinstance(size, torch.SymInt) and str(size) not in known:
                with graph.inserting_after(inputs[-1]):
                    known[str(size)] = graph.call_function(SYM_SIZE, (node, dim))
                known[str(size)].meta["val"] = size
    for node in list(calls(graph)):
        if node.target is SYM_SIZE and node not in known.values():
            found = known.get(str(node.meta.get("val")))
            if found is not None:
                node.replace_all_uses_with(found)
                graph.erase_node(node)
    for node in known.values():
        if not node.users:
            graph.erase_node(node)


def _table() -> dict[OpOverload, Callable]:
    whole = (*IDENTITIES, *VIEWS)
    known = torch.export.default_decompositions()
    return {target: rule for target, rule in known.items() if not is_allowed(target) and target not in whole}


def _is_foreign(node: fx.Node) -> bool:
    target = node.target
    return isinstance(target, OpOverload) and not is_allowed(target) and target not in (*IDENTITIES, *VIEWS)


def _is_plain(module: fx.GraphModule) -> bool:
    """Whether there are operators of tensors alone, and no blocks with graphs of their own."""
    attributes = (node for node in module.graph.nodes if node.op == "get_attr")
    blocks = any(isinstance(getattr(module, str(node.target), None), fx.GraphModule) for node in attributes)
    return not blocks and not any(
        isinstance(node.target, torch._ops.HigherOrderOperator) for node in calls(module.graph)
    )


# ---- writing operators
def _functionalize(graph: fx.Graph) -> bool:
    """Puts the functional form in the place of operators that write to a value which nothing else aliases; False,
    with the graph as it was, if there are others."""
    writers = [n for n in calls(graph) if isinstance(n.target, OpOverload) and n.target._schema.is_mutable]
    forms = [_functional_form(node) for node in writers]
    if not all(forms):
        return False
    place = {node: index for index, node in enumerate(graph.nodes)}
    for node, form in zip(writers, forms, strict=True):
        node.target = form
        node.args[0].replace_all_uses_with(node, lambda user, node=node: place[user] > place[node])
    return True


def _functional_form(node: fx.Node) -> OpOverload | None:
    schema, written = node.target._schema, node.args[0] if node.args else None
    mutated = [argument.name for argument in schema.arguments if argument.is_write]
    packet = getattr(aten, schema.name.split("::")[1].removesuffix("_"), None)
    form = getattr(packet, schema.overload_name or "default", None)
    if form is None or len(mutated) != 1 or not schema.arguments[0].is_write or not isinstance(written, fx.Node):
        return None
    alone = written.op == "call_function" and not _aliases(written)
    before = {n for n in written.users if n is not node}
    if not alone or any(_aliases(user) for user in before) or not _same_kind(node, written):
        return None
    return form


def _aliases(node: fx.Node) -> bool:
    """Whether the result may share the storage of an operand."""
    if not isinstance(node.target, OpOverload):
        return node.op == "call_function" and any(
            isinstance(v, torch.Tensor) for v in tree_leaves(node.meta.get("val"))
        )
    schema = node.target._schema
    return node.target in (*VIEWS, *IDENTITIES, *_CONVERSIONS, aten.reshape.default, aten.flatten.using_ints) or any(
        result.alias_info is not None and not schema.is_mutable for result in schema.returns
    )


def _same_kind(node: fx.Node, written: fx.Node) -> bool:
    """A functional form could promote or broadcast, which a written tensor cannot."""
    a, b = node.meta.get("val"), written.meta.get("val")
    return isinstance(a, torch.Tensor) and isinstance(b, torch.Tensor) and a.dtype == b.dtype


# ---- one operator
def _inline(module: fx.GraphModule, node: fx.Node, table: dict[OpOverload, Callable]) -> bool:
    """Replaces a call by the operators it consists of; leaves it where nothing is known. False if it cannot be traced
    alone, as a recurrent layer, or if some of the operators write to their operands."""
    if node.target in _RECURRENT:
        return False
    values = fx.map_arg((node.args, node.kwargs), lambda a: a.meta["val"])
    flat, form = tree_flatten(values)
    sources = tree_leaves((node.args, node.kwargs))
    places = [i for i, value in enumerate(flat) if isinstance(value, (torch.Tensor, torch.SymInt))]

    def call(*given: Any) -> Any:
        every = list(flat)
        for place, value in zip(places, given, strict=True):
            every[place] = value
        args, kwargs = tree_unflatten(every, form)
        return node.target(*args, **kwargs)

    if node.target not in table and not node.target._can_decompose():
        return True
    trace = make_fx(call, decomposition_table=table, tracing_mode="real", _allow_non_fake_inputs=True)
    parts = trace(*(flat[place] for place in places))
    parts.graph.eliminate_dead_code()
    if any(isinstance(part.target, OpOverload) and part.target._schema.is_mutable for part in calls(parts.graph)):
        return False
    _paste(module, node, parts, [sources[place] for place in places])
    return True


def _paste(module: fx.GraphModule, node: fx.Node, parts: fx.GraphModule, operands: list[Any]) -> None:
    graph, copies = module.graph, {}
    inputs: Iterator[Any] = iter(operands)
    with graph.inserting_before(node):
        for part in parts.graph.nodes:
            if part.op == "placeholder":
                copies[part] = next(inputs)
            elif part.op == "output":
                result = fx.map_arg(part.args[0], copies.__getitem__)
            else:
                if part.op == "get_attr":
                    name = f"{node.name}_{part.target}".replace(".", "_")
                    module.register_buffer(name, getattr(parts, part.target), persistent=False)
                    copy = graph.get_attr(name)
                else:
                    copy = graph.node_copy(part, copies.__getitem__)
                copy.meta = {"val": part.meta.get("val"), **{k: node.meta[k] for k in _ORIGIN if k in node.meta}}
                copies[part] = copy
    if isinstance(result, fx.Node):
        node.replace_all_uses_with(result)
    else:  # several results, of which getitem takes one
        for user in list(node.users):
            user.replace_all_uses_with(result[user.args[1]])
            graph.erase_node(user)
    graph.erase_node(node)
