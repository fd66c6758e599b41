# SPDX-License-Identifier: Apache-2.0
"""What a program's graph may consist of, and small helpers on ``torch.fx`` graphs.

A program's graph is an ``fx.GraphModule`` of functional ATen operators. Node metadata used throughout:
``val`` (fake tensor) or ``shape`` and ``dtype``, ``secret`` (depends on an input or a weight), ``layer`` (name for
people), ``format`` (of the result), ``request`` and ``working`` (what the rule is asked for, see
``privml.formats.Node``), ``stack_trace`` (the model's source).
"""

from __future__ import annotations

import operator
import weakref
from collections.abc import Callable, Iterator, Sequence
from functools import cache
from typing import Any

import torch
from torch import fx
from torch._ops import OpOverload

import privml.ops.rules  # noqa: F401 - fills the operator table
from privml.dispatch import TABLE
from privml.ops.choices import CHECKED_INDEX

aten = torch.ops.aten

# Arithmetic on sizes and the selection of one of several results.
ARITHMETIC: dict[str, Callable] = {
    "getitem": operator.getitem,
    "add": operator.add,
    "sub": operator.sub,
    "mul": operator.mul,
    "floordiv": operator.floordiv,
    "mod": operator.mod,
    "neg": operator.neg,
}
SYM_SIZE = aten.sym_size.int
# Operators without secret operands that a graph may use besides those of the table.
_PUBLIC = (
    SYM_SIZE,
    CHECKED_INDEX,
    aten.arange.default,
    aten.arange.start,
    aten.arange.start_step,
    aten.empty.memory_format,
    aten.eye.default,
    aten.full.default,
    aten.ones.default,
    aten.scalar_tensor.default,
    aten.zeros.default,
)


# What files call a dtype.
DTYPES = {
    str(dtype).removeprefix("torch."): dtype
    for dtype in (
        torch.float64, torch.float32, torch.float16, torch.bfloat16, torch.int64, torch.int32, torch.int16,
        torch.int8, torch.uint8, torch.bool,
    )
}  # fmt: skip


@cache
def operators() -> dict[str, OpOverload]:
    """Name -> operator of everything a graph may call: the functional rows of the table and a few creators."""
    rows = [row for row, rule in TABLE.items() if not row._schema.is_mutable and not rule.__module__.endswith(".leak")]
    return {str(row): row for row in (*rows, *_PUBLIC)}


def placeholders(graph: fx.Graph) -> list[fx.Node]:
    """The graph's inputs, in order."""
    return [node for node in graph.nodes if node.op == "placeholder"]


def is_allowed(target: Any) -> bool:
    """Whether a graph may call ``target``."""
    if isinstance(target, OpOverload):
        return str(target) in operators()
    return any(target is function for function in ARITHMETIC.values())


def name_of(target: Any) -> str:
    """The name under which ``target`` is stored; ValueError for what a graph may not call."""
    if not is_allowed(target):
        raise ValueError(f"{target} is no operator of the table")
    if isinstance(target, OpOverload):
        return str(target)
    return next(name for name, function in ARITHMETIC.items() if function is target)


def target_of(name: str) -> Callable:
    """The inverse of ``name_of``; KeyError for any other name."""
    return ARITHMETIC[name] if name in ARITHMETIC else operators()[name]


def calls(graph: fx.Graph) -> Iterator[fx.Node]:
    return (node for node in graph.nodes if node.op == "call_function")


def attribute(module: torch.nn.Module, path: str) -> torch.Tensor:
    """The tensor at a dotted path."""
    *folders, name = path.split(".")
    for folder in folders:
        module = getattr(module, folder)
    return getattr(module, name)


def extremes_of(node: fx.Node, value: torch.Tensor) -> tuple[float, float]:
    """Smallest and largest number of ``value``, the floating tensor of a get_attr node; both NaN if it holds one. A
    tensor is read once, until it is replaced or an operation of torch changes it in place; changes through ``.data``
    or ``.numpy()`` while a search runs are not seen, but sharing checks every value."""
    version = None if value.is_inference() else value._version
    known = node.meta.get("extremes")
    if version is None or known is None or known[0]() is not value or known[1] != version:
        known = node.meta["extremes"] = weakref.ref(value), version, *real_extremes(value)
    return known[2:]


def real_extremes(value: torch.Tensor) -> tuple[float, float]:
    """Smallest and largest number of a floating tensor; both NaN if it holds one, (0, 0) of an empty one."""
    if not value.numel():
        return 0.0, 0.0
    low, high = torch.aminmax(value.detach())
    return float(low), float(high)


def attributes_of(module: fx.GraphModule) -> dict[str, torch.Tensor]:
    """All tensors that the graph names, by their paths."""
    return {n.target: attribute(module, n.target) for n in module.graph.nodes if n.op == "get_attr"}


def set_attribute(module: fx.GraphModule, path: str, value: torch.Tensor) -> None:
    """Replaces the tensor at a dotted path, or puts a buffer there."""
    *folders, name = path.split(".")
    for folder in folders:
        if not hasattr(module, folder):
            module.add_module(folder, torch.nn.Module())
        module = getattr(module, folder)
    if hasattr(module, name):
        delattr(module, name)
    module.register_buffer(name, value)


def tensor_of(node: fx.Node) -> Any:
    """The fake tensor a node stands for (the first one of several), or None for sizes."""
    value = node.meta.get("val")
    if isinstance(value, (tuple, list)):
        value = next((v for v in value if isinstance(v, torch.Tensor)), None)
    return value if isinstance(value, torch.Tensor) else None


def shape_of(node: fx.Node) -> tuple[int | None, ...]:
    """The sizes of a node's tensor; None where it varies."""
    if "shape" in node.meta:
        return node.meta["shape"]
    return tuple(size if isinstance(size, int) else None for size in tensor_of(node).shape)


def sizes_text(shape: Sequence[int | None]) -> str:
    """The sizes of an input, those that may vary as "any"."""
    return f"({', '.join('any' if size is None else str(size) for size in shape)})"


def has_sizes(shape: Sequence[int], wanted: Sequence[int | None]) -> bool:
    """Whether a shape is the ``wanted`` one, where None is any size."""
    return len(shape) == len(wanted) and all(w in (None, n) for w, n in zip(wanted, shape, strict=True))


def misfit(shape: Sequence[int], wanted: Sequence[int | None]) -> str | None:
    """Why an input of this shape cannot serve where ``wanted`` is; None if it can."""
    if not has_sizes(shape, wanted):
        return f"shape {tuple(shape)}, but the program expects {sizes_text(wanted)}"
    return f"shape {tuple(shape)} has no elements; give at least one row" if 0 in shape else None


def dtype_of(node: fx.Node) -> torch.dtype:
    return node.meta["dtype"] if "dtype" in node.meta else tensor_of(node).dtype


def mark_secrets(module: fx.GraphModule) -> None:
    """Sets ``secret`` on every node: inputs are secret unless they say otherwise, get_attr nodes say so themselves, the
    rest inherits. Sizes of secret tensors are public."""
    for node in module.graph.nodes:
        if node.op == "placeholder":
            node.meta.setdefault("secret", True)
        elif node.op == "call_function":
            inherits = any(parent.meta.get("secret", False) for parent in node.all_input_nodes)
            node.meta["secret"] = inherits and tensor_of(node) is not None


def copy_meta(node: fx.Node, like: fx.Node) -> fx.Node:
    """Gives a new node the shape, name and origin of the one it replaces."""
    node.meta = {k: v for k, v in like.meta.items() if k in ("val", "secret", "layer", "stack_trace")}
    return node


def source_line(node: fx.Node) -> str | None:
    """The line of the model's own code that a node comes from, or None."""
    lines = [line.strip() for line in (node.meta.get("stack_trace") or "").splitlines()]
    frames = [i for i, line in enumerate(lines) if line.startswith("File ")]
    own = [i for i in frames if "/torch/" not in lines[i]] or frames
    if not own:
        return None
    code = lines[own[-1] + 1] if own[-1] + 1 < len(lines) else ""
    return lines[own[-1]] if not code or code.startswith("File ") else f"{lines[own[-1]]}: {code}"
