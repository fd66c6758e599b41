# SPDX-License-Identifier: Apache-2.0
"""Which values of a graph are floats: all of them, or those of the layers that are named."""

from __future__ import annotations

from collections.abc import Mapping
from fnmatch import fnmatchcase

import torch
from torch import fx

from privml.errors import ConfigError
from privml.formats import Boolean, FixedPoint, Float, Integer, float_format
from privml.graph.ir import name_of, tensor_of
from privml.graph.passes.kinds import is_float, is_secret

# The ring of integers in a program of floats.
INTEGER_BITS = 64


def all_floats(module: fx.GraphModule, fmt: Float) -> None:
    """Writes ``fmt`` as the format of every real secret of ``module``, and those of its integers and bits."""
    for node in module.graph.nodes:
        for key in ("format", "request", "working", "fixed"):
            node.meta.pop(key, None)
        if is_secret(node) and node.op != "output":
            dtype = tensor_of(node).dtype
            integral = Boolean() if dtype is torch.bool else Integer(INTEGER_BITS)
            node.meta["format"] = fmt if dtype.is_floating_point else integral


def named_floats(module: fx.GraphModule, layers: Mapping[str, str]) -> dict[fx.Node, Float]:
    """The format of every real secret that a layer among ``layers`` computes, or that such layers alone read.

    ``layers``: names of float formats by patterns (as of file names) of a layer's or an operator's name. ConfigError
    for a pattern that no layer has."""
    formats = {pattern: float_format(name) for pattern, name in layers.items()}
    unused = set(formats)
    found: dict[fx.Node, Float] = {}
    for node in module.graph.nodes:
        if node.op != "call_function" or not is_secret(node):
            continue
        names = (str(node.meta.get("layer", node.name)), name_of(node.target))
        for pattern, fmt in formats.items():
            if any(fnmatchcase(name, pattern) for name in names):
                unused.discard(pattern)
                if is_float(node):
                    found.setdefault(node, fmt)
    if unused:
        there = sorted({str(n.meta.get("layer", n.name)) for n in module.graph.nodes if n.op == "call_function"})
        raise ConfigError(f"numerics: no layer is called {sorted(unused)[0]!r}; layers: {', '.join(there)[:500]}")
    for node in module.graph.nodes:
        if node.op in ("placeholder", "get_attr") and is_secret(node) and is_float(node) and node.users:
            readers = [found.get(user) for user in node.users]
            if None not in readers:
                found[node] = readers[0]
    return found


def inner_floats(floats: Mapping[fx.Node, Float]) -> set[fx.Node]:
    """Those that no fixed-point layer reads: their range matters to no ring."""
    return {node for node in floats if all(user in floats for user in node.users)}


def write_floats(floats: Mapping[fx.Node, Float]) -> None:
    """Makes these values floats in a graph of fixed-point formats; those remain as ``fixed``, in which fixed-point
    layers read them."""
    for node, fmt in floats.items():
        fixed = node.meta["format"]
        for key in ("request", "working", "fixed"):
            node.meta.pop(key, None)
        node.meta["format"] = fmt
        if node.op == "call_function":
            node.meta["request"] = fmt
        if isinstance(fixed, FixedPoint):
            node.meta["fixed"] = FixedPoint(fixed.bits, fixed.scale)
