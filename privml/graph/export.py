# SPDX-License-Identifier: Apache-2.0
"""Converts a PyTorch module with torch.export to a graph of the operators of privml."""

from __future__ import annotations

import contextlib
import difflib
import warnings
from collections.abc import Iterator, Sequence
from typing import Any

import torch
from torch import fx

from privml.dispatch import HINTS
from privml.encoding import is_mask
from privml.errors import InvalidInput, UnsupportedOperator
from privml.graph.decompose import IDENTITIES, VIEWS, decompose
from privml.graph.ir import (
    attribute,
    calls,
    copy_meta,
    is_allowed,
    mark_secrets,
    operators,
    placeholders,
    set_attribute,
    source_line,
)
from privml.graph.randomness import refuse_training
from privml.graph.tracing import Lengths, trace

aten = torch.ops.aten


def export(
    module: torch.nn.Module,
    example_inputs: Sequence[torch.Tensor],
    dynamic_batch: bool = True,
    names: Sequence[str] | None = None,
    sizes: Any = None,
    lengths: Lengths | None = None,
) -> fx.GraphModule:
    """``module`` in evaluation mode as an ``fx.GraphModule`` in the form that ``privml.graph.ir`` describes.

    Parameters and floating-point buffers are secret attributes, integers, masks (also infinite ones), buffers that no
    state dict holds and numbers written in the model's code public ones. With ``dynamic_batch`` the batch of every
    input may vary if the model allows it; ``meta["notes"]`` says where it does not. ``names``: those of the inputs;
    ``sizes``: those that vary, as torch.export takes them, in place of the batch; ``lengths``: those of states that
    vary beside it. The graph returns a flat tuple.

    Raises UnsupportedOperator naming every operator that has no secure implementation, and with file and line those
    that draw at random or train (``F.dropout(x)`` without ``training=self.training``); InvalidInput, with file and
    line, when the model cannot be run or traced.
    """
    example_inputs = tuple(value.clone() for value in example_inputs)  # one tensor twice would be taken for one input
    with evaluating(module), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        exported, notes = trace(module, example_inputs, dynamic_batch, sizes, lengths)
        refuse_training(exported.graph_module)
        graph_module = decompose(exported)
        fixed = _fixed_by_operators(graph_module, example_inputs) if sizes is None else ""
        if fixed:
            exported, _ = trace(module, example_inputs, False, None, lengths)
            graph_module, notes = decompose(exported), (*notes, fixed)
    graph_module = _clean(graph_module, exported)
    graph_module.meta["notes"] = notes
    if names is not None:
        for node, name in zip(placeholders(graph_module.graph), names, strict=True):
            node._rename(name)
            node.target = node.name
        graph_module.recompile()
    return graph_module


def _fixed_by_operators(module: fx.GraphModule, examples: Sequence[torch.Tensor]) -> str:
    """What there is to say if the parts of some operator, such as a recurrent layer with a state, take one batch alone;
    empty if they do not."""
    for node, example in zip(placeholders(module.graph), examples, strict=True):
        for dim, size in enumerate(node.meta["val"].shape):
            if not isinstance(size, int) and str(size).isdigit():
                batch = example.shape[dim]
                return (
                    f"the batch is fixed at {batch}, as in the example inputs: an operator's parts allow no other one"
                )
    return ""


@contextlib.contextmanager
def evaluating(module: torch.nn.Module) -> Iterator[None]:
    """All parts in evaluation mode, attention made of single operators, and afterwards everything as it was."""
    modes = {part: part.training for part in module.modules()}
    module.eval()
    fused = torch.backends.mha.get_fastpath_enabled()
    torch.backends.mha.set_fastpath_enabled(False)
    try:
        with torch.no_grad():
            yield
    finally:
        torch.backends.mha.set_fastpath_enabled(fused)
        for part, mode in modes.items():
            part.training = mode


def _clean(module: fx.GraphModule, exported: Any) -> fx.GraphModule:
    graph = module.graph
    graph.set_codegen(fx.graph.CodeGen())
    if exported.graph_signature.buffers_to_mutate:
        names = ", ".join(exported.graph_signature.buffers_to_mutate.values())
        raise UnsupportedOperator(
            f"the model changes its buffers while it runs ({names}); a program cannot do that: "
            "make them inputs and outputs"
        )
    for node in list(graph.nodes):
        name = str(node.target)
        if node.op == "call_module" or "_assert" in name or "sym_constrain" in name:
            node.replace_all_uses_with(None)
            graph.erase_node(node)
        elif node.op == "call_function" and node.target in IDENTITIES:
            node.replace_all_uses_with(node.args[0])
            graph.erase_node(node)
        elif node.op == "call_function" and node.target in VIEWS:
            node.target = aten.reshape.default
    _flatten_output(graph)
    _drop_unused(graph)
    _mark_weights(module, exported)
    mark_secrets(module)
    _fold_unknown(module)
    _refuse_unknown(graph)
    _name_layers(graph)
    return fx.GraphModule(module, graph)


def _drop_unused(graph: fx.Graph) -> None:
    for node in reversed(list(graph.nodes)):
        if not node.users and node.op in ("call_function", "get_attr"):
            graph.erase_node(node)


def _flatten_output(graph: fx.Graph) -> None:
    output = next(node for node in reversed(graph.nodes) if node.op == "output")
    results = torch.utils._pytree.tree_leaves(output.args[0])
    if not results or not all(isinstance(r, fx.Node) for r in results):
        raise InvalidInput("the model returns something besides tensors; wrap it in a module that returns tensors")
    output.args = (tuple(results),)


def _mark_weights(module: fx.GraphModule, exported: Any) -> None:
    """Trained values are secret; constants of the model's code (and indices, masks) are public."""
    signature = exported.graph_signature
    buffers = set(signature.inputs_to_buffers.values())
    trained = (set(signature.inputs_to_parameters.values()) | buffers) - set(signature.non_persistent_buffers)
    for node in module.graph.nodes:
        if node.op == "get_attr":
            tensor = node.meta.get("val")
            floating = isinstance(tensor, torch.Tensor) and tensor.dtype.is_floating_point
            secret = floating and node.target in trained
            node.meta["secret"] = secret and not (node.target in buffers and is_mask(attribute(module, node.target)))


def _fold_unknown(module: torch.nn.Module) -> None:
    """Computes operators without a secure implementation that depend on weights alone, as position embeddings resized
    for an image do."""
    for node in list(calls(module.graph)):
        if is_allowed(node.target) or not isinstance(node.meta.get("val"), torch.Tensor):
            continue
        try:
            value = _value(node, module)
        except LookupError:
            continue
        name = f"folded_{node.name}"
        set_attribute(module, name, value.detach())
        with module.graph.inserting_before(node):
            weight = copy_meta(module.graph.get_attr(name), node)
        node.replace_all_uses_with(weight)
        module.graph.erase_node(node)
    _drop_unused(module.graph)


def _value(node: fx.Node, module: torch.nn.Module) -> torch.Tensor:
    """What a node always is; LookupError if it depends on an input."""
    if node.op == "get_attr":
        return attribute(module, node.target)
    if node.op != "call_function":
        raise LookupError(node.name)
    args, kwargs = fx.map_arg((node.args, node.kwargs), lambda a: _value(a, module))
    return node.target(*args, **kwargs)


def _refuse_unknown(graph: fx.Graph) -> None:
    unknown = [node for node in calls(graph) if not is_allowed(node.target)]
    if not unknown:
        return
    places: dict[tuple[str, str], list[str]] = {}
    for node in unknown:
        places.setdefault((str(node.target), source_line(node) or "source unknown"), []).append(node.name)
    lines = []
    for (target, where), nodes in places.items():
        more = f" and {len(nodes) - 1} more" if len(nodes) > 1 else ""
        lines.append(f"  {target} (node {nodes[0]!r}{more}; {where})")
        packet = target.removeprefix("aten.").split(".")[0]
        lines.append(f"    {HINTS.get(packet) or _nearest(packet)}")
    count = f"{len(unknown)} nodes of the model have" if len(unknown) > 1 else "a node of the model has"
    raise UnsupportedOperator(f"{count} no secure implementation:\n" + "\n".join(lines))


def _nearest(packet: str) -> str:
    """What there is instead of an operator without a hint."""
    names = sorted({name.removeprefix("aten.").split(".")[0] for name in operators()})
    names = [name for name in names if not name.startswith("_")]
    near = difflib.get_close_matches(packet, names, n=4, cutoff=0.5)
    listed = "privml.dispatch.supported_operators() lists all"
    return f"the nearest that are supported: {', '.join(near)}; {listed}" if near else listed


def _name_layers(graph: fx.Graph) -> None:
    """``layer``: the module's path if it is one operator, else path.operator; numbered when called again."""
    paths = {}
    for node in calls(graph):
        stack = list((node.meta.get("nn_module_stack") or {}).items())
        key, path = (stack[-1][0], stack[-1][1][0]) if stack else ("", "")
        paths[node] = (key, path.removeprefix("operators.").removeprefix("adapted."))
    members: dict[str, int] = {}
    for node, (key, path) in paths.items():
        if path and node.meta.get("secret"):
            members[key] = members.get(key, 0) + 1
    seen: dict[str, int] = {}
    for node, (key, path) in paths.items():
        packet = str(getattr(node.target, "__name__", node.target)).split(".")[0]
        if not path or path.startswith("_empty"):
            name = packet
        else:
            name = path if members.get(key, 0) == 1 else f"{path}.{packet}"
        count = seen[name] = seen.get(name, 0) + 1
        node.meta["layer"] = name if count == 1 else f"{name}_{count}"
