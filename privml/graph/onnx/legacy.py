# SPDX-License-Identifier: Apache-2.0
"""Operators whose meaning changed between opsets in ways that onnx.version_converter does not follow."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import onnx
from onnx import helper

from privml.errors import UnsupportedOperator

# What Resize and Upsample did before opset 11 gave the choice.
_OLD_RESIZE = {"coordinate_transformation_mode": "asymmetric", "nearest_mode": "simple"}


def rewrite_old(model: onnx.ModelProto, version: int) -> None:
    """Writes such operators of opset ``version`` with others that mean the same in every opset."""
    if version < 13:
        _replace(model.graph, "Hardmax", 1, _hardmax)
    if 18 <= version < 21:
        _replace(model.graph, "GroupNormalization", 3, _group_normalization)
    for graph in graphs(model.graph):
        for node in graph.node:
            if not node.domain and node.op_type == "Scan" and version < 9:
                raise UnsupportedOperator("Scan of opset 8 has a batch dimension that later ones lack; export anew")
            if not node.domain and node.op_type == "PRelu" and version < 7:
                raise UnsupportedOperator("PRelu before opset 7 has its slope per channel; export anew")


def settle_resize(model: onnx.ModelProto, version: int) -> None:
    """Gives the Resize operators that came of opset ``version`` the attributes they implied there."""
    if version >= 11:
        return
    for graph in graphs(model.graph):
        for node in graph.node:
            if node.op_type == "Resize" and not node.domain:
                _drop(node, _OLD_RESIZE)
                node.attribute.extend(helper.make_attribute(name, value) for name, value in _OLD_RESIZE.items())


def graphs(graph: onnx.GraphProto) -> Iterator[onnx.GraphProto]:
    """The graph, and those in the attributes of its nodes."""
    yield graph
    for node in graph.node:
        for attribute in node.attribute:
            if attribute.type == onnx.AttributeProto.GRAPH:
                yield from graphs(attribute.g)


def _drop(node: onnx.NodeProto, names: Any) -> None:
    kept = [attribute for attribute in node.attribute if attribute.name not in names]
    del node.attribute[:]
    node.attribute.extend(kept)


def _replace(graph: onnx.GraphProto, name: str, operands: int, write: Callable[..., list[onnx.NodeProto]]) -> None:
    """Rewrites the operator ``name`` where it has its operands and result; the checker finds the others."""
    for part in graphs(graph):
        nodes = []
        for node in part.node:
            whole = len(node.input) == operands and len(node.output) == 1
            if node.op_type == name and not node.domain and whole:
                attributes = {a.name: helper.get_attribute_value(a) for a in node.attribute}
                nodes += write(node, attributes, f"{node.output[0]}/{name}")
            else:
                nodes.append(node)
        del part.node[:]
        part.node.extend(nodes)


def _hardmax(node: onnx.NodeProto, attributes: dict[str, Any], prefix: str) -> list[onnx.NodeProto]:
    """Before opset 13: over all dimensions from ``axis`` on, as one."""
    shape, flat, result = f"{prefix}/shape", f"{prefix}/flat", f"{prefix}/result"
    return [
        helper.make_node("Shape", [node.input[0]], [shape]),
        helper.make_node("Flatten", [node.input[0]], [flat], axis=attributes.get("axis", 1)),
        helper.make_node("Hardmax", [flat], [result], name=node.name, axis=1),
        helper.make_node("Reshape", [result, shape], [node.output[0]]),
    ]


def _group_normalization(node: onnx.NodeProto, attributes: dict[str, Any], prefix: str) -> list[onnx.NodeProto]:
    """Before opset 21: one weight per group, so that each group is an instance of its own."""
    x, weight, bias = node.input
    shape, grouped, flat, result = (f"{prefix}/{part}" for part in ("shape", "grouped", "flat", "result"))
    epsilon = attributes.get("epsilon", 1e-5)
    return [
        helper.make_node("Shape", [x], [shape]),
        helper.make_node("Constant", [], [grouped], value_ints=[0, attributes.get("num_groups", 1), -1]),
        helper.make_node("Reshape", [x, grouped], [flat]),
        helper.make_node("InstanceNormalization", [flat, weight, bias], [result], name=node.name, epsilon=epsilon),
        helper.make_node("Reshape", [result, shape], [node.output[0]]),
    ]
