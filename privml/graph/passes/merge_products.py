# SPDX-License-Identifier: Apache-2.0
"""Independent products with weights become one: the same input, the same weight, or the same shapes.

What an unrolled recurrent network needs: the products of one input with the weights of several gates, of all time
steps with one weight (the input's part leaves the loop), of both directions' states with their weights.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch
from torch import fx

from privml.graph.ir import attribute, tensor_of
from privml.graph.passes.kinds import is_float, is_secret
from privml.graph.passes.rewriting import (
    groups,
    is_from_input,
    new_call,
    new_split,
    new_weight,
    replace_all,
    shape_key,
    tidy,
)

aten = torch.ops.aten


@dataclass(frozen=True, slots=True)
class Product:
    """x @ weight.T + bias; ``weight``, ``bias``: names of attributes (``transposed``: x @ weight)."""

    x: fx.Node
    weight: str
    bias: str | None
    transposed: bool


def merge_products(module: fx.GraphModule) -> fx.GraphModule:
    """Changes and returns ``module``; products that depend on each other, or of inputs alone, stay as they are."""
    for members in groups(module, _same_input):
        _side_by_side(module, members)
    for members in groups(module, _same_weight):
        _stacked_rows(module, members)
    for members in groups(module, _same_shapes):
        _batched(module, members)
    return tidy(module)


def product_of(node: fx.Node) -> Product | None:
    """A product of a value that depends on an input with a weight matrix; None for anything else."""
    product = weight_product(node)
    return product if product is not None and is_from_input(product.x) else None


def weight_product(node: fx.Node) -> Product | None:
    """A product of a value with a weight matrix, however it is written; None for anything else."""
    if node.kwargs or not is_float(node):
        return None
    if node.target is aten.linear.default:
        x, weight, bias = (*node.args, None)[:3]
        transposed = False
    elif node.target is aten.mm.default:
        (x, weight), bias, transposed = node.args, None, True
    elif node.target is aten.addmm.default:
        (bias, x, weight), transposed = node.args, True
    else:
        return None
    if transposed and is_secret(weight) and weight.target is aten.t.default:
        weight, transposed = weight.args[0], False
    if not is_secret(x) or not _is_weight(weight, 2) or tensor_of(x).dim() < 2:
        return None
    if bias is not None and not _is_weight(bias, 1):
        return None
    return Product(x, weight.target, None if bias is None else bias.target, transposed)


def _is_weight(value: Any, dims: int) -> bool:
    return is_secret(value) and value.op == "get_attr" and tensor_of(value).dim() == dims


def _same_input(node: fx.Node) -> Any:
    product = product_of(node)
    if product is None:
        return None
    # A slice that was written twice is one input.
    return (*product.x.args, "slice") if product.x.target is aten.select.int else product.x


def _same_weight(node: fx.Node) -> Any:
    product = product_of(node)
    return product and (product.weight, product.bias, product.transposed, shape_key(tensor_of(product.x).shape))


def _same_shapes(node: fx.Node) -> Any:
    product = product_of(node)
    x = product and tensor_of(product.x)
    if product is None or not (x.dim() == 2 or x.dim() == 3 and str(x.shape[0]) == "1"):
        return None
    return shape_key(x.shape), tensor_of(node).shape[-1], product.bias is None


def _matrix(module: fx.GraphModule, product: Product) -> torch.Tensor:
    """The weight as [out, in]."""
    value = attribute(module, product.weight).detach()
    return value.t() if product.transposed else value


def _bias(module: fx.GraphModule, product: Product) -> torch.Tensor:
    if product.bias is not None:
        return attribute(module, product.bias).detach()
    matrix = _matrix(module, product)
    return matrix.new_zeros(matrix.shape[0])


def _weights_of(module: fx.GraphModule, products: list[Product], stacked: bool) -> tuple[fx.Node, fx.Node | None]:
    """Weights one below the other ([sum of out, in]) or, ``stacked``, as [products, in, out]; and their biases."""
    front = next(iter(module.graph.nodes))
    name = f"{products[0].weight}_of_{len(products)}"
    matrices, biases = [_matrix(module, p) for p in products], [_bias(module, p) for p in products]
    value = torch.stack([m.t() for m in matrices]) if stacked else torch.cat(matrices)
    weight = _reused(module, front, name, value.contiguous())
    if all(p.bias is None for p in products):
        return weight, None
    value = torch.stack(biases).unsqueeze(1) if stacked else torch.cat(biases)
    return weight, _reused(module, front, f"{name}_bias", value)


def _reused(module: fx.GraphModule, front: fx.Node, name: str, value: torch.Tensor) -> fx.Node:
    """One attribute for all steps of a loop."""
    for node in module.graph.nodes:
        if node.op == "get_attr" and node.target.rstrip("_") == name:
            known = attribute(module, node.target)
            if known.shape == value.shape and torch.equal(known, value):
                return node
    return new_weight(module, front, name, value)


def _side_by_side(module: fx.GraphModule, members: list[fx.Node]) -> None:
    """[W1; W2] x instead of W1 x and W2 x."""
    members = sorted(members, key=lambda member: product_of(member).weight)  # the same order at every step
    products = [product_of(member) for member in members]
    weight, bias = _weights_of(module, products, False)
    sizes = [tensor_of(member).shape[-1] for member in members]
    first = members[0]
    shape = (*tensor_of(first).shape[:-1], sum(sizes))
    whole = new_call(first, aten.linear.default, (products[0].x, weight, bias), shape, first)
    replace_all(members, new_split(first, whole, sizes))


def _stacked_rows(module: fx.GraphModule, members: list[fx.Node]) -> None:
    """W [x1, x2] instead of W x1 and W x2; slices of one tensor are multiplied as the tensor they come from."""
    products = [product_of(member) for member in members]
    first, x = members[0], products[0].x
    weight, bias = _weights_of(module, products[:1], False)
    source, dim, order = _slices([p.x for p in products])
    if source is None:
        shape = (len(members), *tensor_of(x).shape)
        source, dim, order = new_call(first, aten.stack.default, ([p.x for p in products], 0), shape, x), 0, None
    shape = (*tensor_of(source).shape[:-1], tensor_of(first).shape[-1])
    whole = new_call(first, aten.linear.default, (source, weight, bias), shape, first)
    places = range(len(members)) if order is None else order
    rows = tensor_of(first).shape
    replace_all(members, [new_call(first, aten.select.int, (whole, dim, i), rows, first) for i in places])


def _slices(parts: list[fx.Node]) -> tuple[fx.Node | None, int, list[int] | None]:
    """(tensor, dimension, index per part) if the parts are all slices of one tensor, else (None, 0, None)."""
    if any(part.target is not aten.select.int for part in parts):
        return None, 0, None
    source = parts[0].args[0]
    rank, size = tensor_of(source).dim(), None
    dim = parts[0].args[1] % rank
    size = tensor_of(source).shape[dim]
    if not isinstance(size, int) or dim == rank - 1:
        return None, 0, None
    same = all(part.args[0] is source and part.args[1] % rank == dim for part in parts)
    order = [part.args[2] % size for part in parts]
    return (source, dim, order) if same and sorted(order) == list(range(size)) else (None, 0, None)


def _batched(module: fx.GraphModule, members: list[fx.Node]) -> None:
    """One batch of products instead of several products of equal shapes."""
    products = [product_of(member) for member in members]
    first, x = members[0], tensor_of(products[0].x)
    weight, bias = _weights_of(module, products, True)
    join = aten.stack.default if x.dim() == 2 else aten.cat.default
    inputs = new_call(first, join, ([p.x for p in products], 0), (len(members), *x.shape[-2:]), products[0].x)
    shape = (len(members), *tensor_of(first).shape[-2:])
    arguments = (inputs, weight) if bias is None else (bias, inputs, weight)
    whole = new_call(first, aten.bmm.default if bias is None else aten.baddbmm.default, arguments, shape, first)
    parts = [new_call(first, aten.select.int, (whole, 0, i), shape[1:], first) for i in range(len(members))]
    if x.dim() == 3:
        parts = [new_call(first, aten.unsqueeze.default, (part, 0), (1, *shape[1:]), first) for part in parts]
    replace_all(members, parts)
