# SPDX-License-Identifier: Apache-2.0
"""A product with a number disappears into the weights of the linear map before it.

Attention as torch takes it apart multiplies queries and keys each by the fourth root of their size. Both are rows of
one map, or of two; their weights and biases take the factor, before they are rounded. Keys of earlier steps, which are
state, come from no map: then the queries are multiplied by both numbers, for there are fewer of them.
"""

from __future__ import annotations

import operator
from typing import Any, NamedTuple

import torch
from torch import fx

from privml.graph.ir import ARITHMETIC, SYM_SIZE, attribute, calls, tensor_of
from privml.graph.passes.input_masks import MARK
from privml.graph.passes.kinds import is_float, is_secret
from privml.graph.passes.merge_factors import BY_NUMBER, PRODUCTS, VIEWS, factor_before, merge
from privml.graph.passes.merge_products import Product, weight_product
from privml.graph.passes.rewriting import new_weight, tidy

aten = torch.ops.aten

# Other rows of a weight keep their size: smaller factors would take more than two bits from those that shrink, larger
# ones from those that do not grow.
_LEAST, _MOST = 0.25, 1.0
_REARRANGED = VIEWS | {
    aten.unflatten.int, aten.flatten.using_ints, aten.squeeze.default, aten.squeeze.dims, aten.split.Tensor,
    aten.split_with_sizes.default, aten.chunk.default, aten.unbind.int, aten.contiguous.default, aten.clone.default,
    operator.getitem,
}  # fmt: skip


def fold_factors(module: fx.GraphModule) -> fx.GraphModule:
    """(W x + b) * factor = (factor W) x + factor b, also of some rows of W. Maps whose weights other nodes read, and
    rows that are read without the factor too, stay as they are. Changes and returns ``module``."""
    for node in calls(module.graph):
        if node.target in PRODUCTS:
            _merge_apart(module, node)
    for node in list(calls(module.graph)):
        found = _map_of(module, node)
        if found is not None:
            _scale_rows(module, found)
            node.replace_all_uses_with(node.args[0])
    return tidy(module)


def _merge_apart(module: fx.GraphModule, product: fx.Node) -> None:
    """If one operand of a matrix product holds values of earlier steps, and the other comes from a map, this one takes
    the factors of both."""
    first, second = (factor_before(operand, product) for operand in product.args[:2])
    if first is None or second is None or first is second:
        return
    for ours, others in ((first, second), (second, first)):
        if _is_joined(others) and _map_of(module, ours) is not None:
            return merge(ours, others)


def _is_joined(node: fx.Node) -> bool:
    """Whether a factor's operand is a view of what comes in and of what is appended to it."""
    value = _source_of(node)
    parts = value.args[0] if value is not None and value.target is aten.cat.default else ()
    return any(part.op == "placeholder" for part in parts)


class _Map(NamedTuple):
    """A linear map of which some rows are multiplied by a number."""

    product: Product
    rows: torch.Tensor
    factor: float


def _map_of(module: fx.GraphModule, node: fx.Node) -> _Map | None:
    """The map whose weights can take the number that ``node`` multiplies by."""
    factor = _factor_of(node)
    source = None if factor is None else _source_of(node)
    product = None if source is None else weight_product(source)
    rows = None if product is None else _rows_of(node, source)
    fits = rows is not None and len(_users(module, product)) == 1
    return _Map(product, rows, factor) if fits else None


def _factor_of(node: fx.Node) -> float | None:
    """The number that a secret is multiplied by, if weights can take it."""
    if node.target not in BY_NUMBER or node.kwargs or node.meta.get(MARK) or not is_secret(node.args[0]):
        return None
    factor = node.args[1]
    fits = isinstance(factor, (int, float)) and _LEAST <= factor <= _MOST
    return float(factor) if fits and is_float(node) and is_float(node.args[0]) else None


def _source_of(node: fx.Node) -> fx.Node | None:
    """What an operand is a view of."""
    value = node.args[0]
    while value.op == "call_function" and value.target in _REARRANGED:
        value = value.args[0]
    return value if value.op == "call_function" else None


def _users(module: fx.GraphModule, product: Product) -> list[fx.Node]:
    """The nodes that read the weight or the bias of a product, however often they are named."""
    names = {product.weight, product.bias}
    read = [node for node in module.graph.nodes if node.op == "get_attr" and node.target in names]
    found = {user: None for node in read for user in node.users}
    views = [user for user in found if user.target is aten.t.default]
    return [*(user for user in found if user not in views), *(user for view in views for user in view.users)]


def _rows_of(node: fx.Node, source: fx.Node) -> torch.Tensor | None:
    """The rows of the weight of ``source`` whose results ``node`` reads, if nothing else reads these; None if
    something does, or if sizes are not known."""
    sizes = [_size(size) for size in tensor_of(source).shape]
    if None in sizes:
        return None
    rows = torch.arange(sizes[-1])
    waiting: list[tuple[fx.Node, Any]] = [(source, rows.expand(sizes))]
    own = torch.zeros(sizes[-1], dtype=torch.bool)
    others = own.clone()
    while waiting:
        value, places = waiting.pop()
        for user in value.users:
            if user is node:
                own[places.unique()] = True
            elif user.op == "call_function" and user.target in _REARRANGED and user.args[0] is value:
                try:
                    args = fx.map_arg(user.args[1:], _number)
                    kwargs = fx.map_arg(user.kwargs, _number)
                except ValueError:
                    return None
                waiting.append((user, user.target(places, *args, **kwargs)))
            elif isinstance(places, torch.Tensor):
                others[places.unique()] = True
            elif user.target is not SYM_SIZE:
                return None
    return None if bool((own & others).any()) else rows[own]


def _size(size: Any) -> int | None:
    """A size of the example that the graph was traced on."""
    return size if isinstance(size, int) else size.node.hint


def _number(node: fx.Node) -> int:
    """What a node computes from sizes of that example; ValueError for other nodes."""
    if node.target is SYM_SIZE:
        size = _size(tensor_of(node.args[0]).shape[node.args[1]])
        if size is not None:
            return size
    elif node.op == "call_function" and any(node.target is each for each in ARITHMETIC.values()):
        return node.target(*fx.map_arg(node.args, _number))
    raise ValueError(f"{node.name} is no size")


def _scale_rows(module: fx.GraphModule, found: _Map) -> None:
    """Puts weights in the place of those of a map that are ``factor`` times as large in some rows."""
    product = found.product
    front = next(iter(module.graph.nodes))
    for name in (product.weight, product.bias):
        if name is None:
            continue
        known = attribute(module, name).detach()
        gain = torch.ones(known.shape[-1 if product.transposed or known.dim() == 1 else 0], dtype=torch.float64)
        gain[found.rows] = found.factor
        gain = gain if product.transposed or known.dim() == 1 else gain.unsqueeze(1)
        scaled = new_weight(module, front, f"{name}_folded", (known.double() * gain).to(known.dtype))
        for node in [n for n in module.graph.nodes if n.op == "get_attr" and n.target == name]:
            node.replace_all_uses_with(scaled)
