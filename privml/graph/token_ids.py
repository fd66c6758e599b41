# SPDX-License-Identifier: Apache-2.0
"""Embeddings of the client's token ids: what the graph computes in place of a look-up at a secret place.

Three ways, chosen per input. "secret": the client shares rows of bits, of which one is 1, and a product with the table
adds up the chosen row; no party learns anything. Large tables are looked up in two steps, among groups of rows and then
within the group, which takes fewer bits. "public": all parties learn the ids. "client": the client has the table,
looks up for itself and shares the rows; it learns the table, and nothing is sent for the look-up.

What depends on ids alone (positions counted by cumsum, say) the client computes by itself too: these operators become
a graph of their own, which runs in clear before anything is shared.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import torch
from torch import fx

from privml.errors import ConfigError, UnsupportedOperator
from privml.graph.ir import attribute, calls, mark_secrets, placeholders, set_attribute, source_line, tensor_of
from privml.ops.choices import CHECKED_INDEX, ONE_HOT_ROWS, SELECT_OF_EACH, SELECT_ROWS

aten = torch.ops.aten

# Operators that find places.
_FINDERS = {
    aten.argmax.default, aten.argmin.default, aten.sort.default, aten.sort.stable, aten.topk.default,
    aten.argsort.default,
}  # fmt: skip
WAYS = ("secret", "public", "client")


@dataclass(frozen=True, slots=True)
class Lookup:
    """An embedding of ids: the inputs that the ids come from, the size of its table, and the way taken; ``groups``: of
    a look-up in two steps the rows of one group, else 1."""

    layer: str
    inputs: tuple[str, ...]
    rows: int
    width: int
    way: str
    groups: int = 1

    def __str__(self) -> str:
        table = f"{self.layer}: {self.rows} rows of {self.width} numbers, looked up at {' and '.join(self.inputs)}"
        if self.way == "public":
            return f"{table}, which all parties learn; no cost"
        if self.way == "client":
            return f"{table} by the client, which learns the table; no cost"
        shared = self.rows if self.groups == 1 else math.ceil(self.rows / self.groups) + self.groups
        steps = "one product" if self.groups == 1 else f"two products, among groups of {self.groups} rows"
        return f"{table}, secret: {shared} bits are shared per id and {steps} computed"


def ways_of(settings: str | Mapping[str, str], inputs: list[str]) -> dict[str, str]:
    """The way of every input; ConfigError for a way or an input that there is not."""
    ways = dict.fromkeys(inputs, settings) if isinstance(settings, str) else {**dict.fromkeys(inputs, "secret")}
    if not isinstance(settings, str):
        unknown = sorted(set(settings) - set(inputs))
        if unknown:
            raise ConfigError(f"token_ids: the model has no input {unknown[0]!r}; there are {', '.join(inputs)}")
        ways.update(settings)
    wrong = next((way for way in ways.values() if way not in WAYS), None)
    if wrong is not None:
        raise ConfigError(f"token_ids must be one of {', '.join(WAYS)}, got {wrong!r}")
    return ways


def embed(
    module: fx.GraphModule, settings: str | Mapping[str, str] = "secret"
) -> tuple[fx.GraphModule, fx.GraphModule | None, list[Lookup]]:
    """``module`` without look-ups at secret places, the graph of what the client computes before (None: nothing), whose
    results are the inputs of the first, and the look-ups there were.

    Changes ``module``. ConfigError for settings that fit no input, UnsupportedOperator for ids that depend on weights
    or on inputs of different ways.
    """
    found = _lookups(module)
    ways = ways_of(settings, [node.name for node in placeholders(module.graph)])
    if not found:
        return module, None, []
    lookups, client = [], _Client(module)
    for node, inputs in found.items():
        way = _way_of(node, inputs, ways)
        weight = node.args[0]
        rows, width = (int(n) for n in tensor_of(weight).shape)
        groups = _groups(rows, width) if way == "secret" else 1
        layer = str(node.meta.get("layer", node.name))
        lookups.append(Lookup(layer, tuple(i.name for i in inputs), rows, width, way, groups))
        if way == "public":
            for each in inputs:
                each.meta["secret"] = False
            _check(node, rows)
        elif way == "client":
            client.look_up(node)
        else:
            client.choose(node, rows, groups)
    graph = client.finish()
    mark_secrets(module)
    module.graph.lint()
    module.recompile()
    return module, graph, lookups


def _lookups(module: fx.GraphModule) -> dict[fx.Node, list[fx.Node]]:
    """The embeddings at secret places, and the inputs that each place depends on; without those at places that the
    model finds among numbers which depend on weights."""
    found: dict[fx.Node, list[fx.Node]] = {}
    for node in calls(module.graph):
        if node.target is aten.embedding.default and node.args[1].meta.get("secret"):
            ancestors = _ancestors(node.args[1])
            if any(a.op == "get_attr" and a.meta.get("secret") for a in ancestors):
                if any(a.target in _FINDERS for a in ancestors):
                    continue  # the operator itself looks up at places within the table
                raise UnsupportedOperator(
                    f"the embedding {node.meta.get('layer', node.name)!r} looks up at places that depend on weights "
                    f"({source_line(node) or 'source unknown'}); only ids of the client can be looked up, and "
                    "places that sort, topk or argmax find"
                )
            found[node] = [a for a in module.graph.nodes if a in ancestors and a.op == "placeholder"]
    return found


def _ancestors(node: fx.Node) -> set[fx.Node]:
    found, waiting = set(), [node]
    while waiting:
        each = waiting.pop()
        if each not in found:
            found.add(each)
            waiting += each.all_input_nodes
    return found


def _way_of(node: fx.Node, inputs: list[fx.Node], ways: Mapping[str, str]) -> str:
    chosen = {ways[each.name] for each in inputs}
    if len(chosen) > 1:
        names = ", ".join(each.name for each in inputs)
        raise ConfigError(
            f"token_ids: {node.meta.get('layer', node.name)!r} depends on {names}; give them the same value"
        )
    return chosen.pop()


def _groups(rows: int, width: int) -> int:
    """The rows of a group: those for which fewest numbers are shared or computed, 1 if two steps take as many."""
    best = max(1, round(math.sqrt(rows / width)))
    return best if rows / best + best * width < rows / 2 else 1


def _check(node: fx.Node, rows: int) -> None:
    index = node.args[1]
    with node.graph.inserting_before(node):
        checked = node.graph.call_function(CHECKED_INDEX, (index, rows))
    checked.meta = {key: value for key, value in index.meta.items() if key in ("val", "stack_trace", "layer")}
    node.update_arg(1, checked)


def _is_secret(node: fx.Node) -> bool:
    return any(operand.meta["secret"] for operand in node.all_input_nodes)


class _Client:
    """Builds the client's graph beside the one in which the parties compute together."""

    def __init__(self, module: fx.GraphModule) -> None:
        self.module, self.graph = module, fx.Graph()
        self.root = torch.nn.Module()
        self.copies: dict[fx.Node, fx.Node] = {}
        self.results: dict[fx.Node, fx.Node] = {}  # of inputs of the common graph
        for node in placeholders(module.graph):
            if node.meta.get("held"):  # a state: no input of the client's
                continue
            self.copies[node] = self.graph.node_copy(node)
            self.results[node] = self.copies[node]

    def _copy(self, node: fx.Node) -> fx.Node:
        """A node of the model, with what it depends on, in the client's graph."""
        for each in self.module.graph.nodes:  # in order
            if each in self.copies or each not in _ancestors(node):
                continue
            if each.op == "get_attr":
                set_attribute(self.root, each.target, attribute(self.module, each.target).detach())
            self.copies[each] = self.graph.node_copy(each, self.copies.__getitem__)
        return self.copies[node]

    def _enter(self, node: fx.Node, result: fx.Node, name: str) -> fx.Node:
        """A new input of the common graph, with a result of the client's."""
        last = next(node for node in reversed(placeholders(self.module.graph)) if not node.meta.get("held"))
        with self.module.graph.inserting_after(last):
            entered = self.module.graph.placeholder(name)
        entered.target = entered.name
        entered.meta = {"val": result.meta["val"], "secret": True, "layer": node.meta.get("layer", node.name)}
        self.results[entered] = result
        return entered

    def look_up(self, node: fx.Node) -> None:
        rows = self._copy(node)
        node.replace_all_uses_with(self._enter(node, rows, f"{node.name}_rows"))
        self.module.graph.erase_node(node)

    def choose(self, node: fx.Node, rows: int, groups: int) -> None:
        """Puts products with rows of bits in the place of ``node``."""
        weight, index = node.args[0], self._copy(node.args[1])
        width, count = int(tensor_of(weight).shape[1]), math.ceil(rows / groups)
        sizes = [-1 if isinstance(size, torch.SymInt) else size for size in index.meta["val"].shape]
        bits = self._bits(node, index, rows, count * groups)
        if groups == 1:
            value = self._call(node, SELECT_ROWS, self._entered(node, bits, rows), weight)
        else:
            each = self._own(node, aten.reshape.default, bits, [*sizes, count, groups])
            group, place = (self._own(node, aten.any.dim, each, dim) for dim in (-1, -2))
            table = self._in_groups(node, weight, count, groups)
            value = self._call(node, SELECT_ROWS, self._entered(node, group, count), table)
            value = self._call(node, aten.reshape.default, value, [-1, groups, width])
            value = self._call(node, SELECT_OF_EACH, self._entered(node, place, groups), value)
        value = self._call(node, aten.reshape.default, value, [*sizes, width])
        node.replace_all_uses_with(value)
        self.module.graph.erase_node(node)

    def _bits(self, node: fx.Node, index: fx.Node, rows: int, size: int) -> fx.Node:
        """[..., size] of ``index`` [...]: whether each place is the one that the index says."""
        checked = self._own(node, CHECKED_INDEX, index, rows)
        column = self._own(node, aten.unsqueeze.default, checked, -1)
        return self._own(node, aten.eq.Tensor, column, self._own(node, aten.arange.default, size))

    def _in_groups(self, node: fx.Node, weight: fx.Node, count: int, groups: int) -> fx.Node:
        """The table with a group of rows in each row."""
        table, name = attribute(self.module, weight.target).detach(), f"{weight.target}_groups"
        padded = torch.nn.functional.pad(table, (0, 0, 0, count * groups - len(table))).reshape(count, -1)
        set_attribute(self.module, name, padded)
        with self.module.graph.inserting_before(node):
            made = self.module.graph.get_attr(name)
        made.meta = {"val": tensor_of(node).new_empty(tuple(padded.shape)), "secret": True}
        return made

    def _entered(self, node: fx.Node, bits: fx.Node, size: int) -> fx.Node:
        """The client's bits as an input of the common graph, a row for each id."""
        flat = self._call(node, aten.reshape.default, self._enter(node, bits, f"{node.name}_bits"), [-1, size])
        return self._call(node, ONE_HOT_ROWS, flat)

    def _own(self, node: fx.Node, target: Any, *args: Any) -> fx.Node:
        """A call in the client's graph."""
        made = self.graph.call_function(target, args)
        made.meta = {"val": self._value(node, target, args), "secret": _is_secret(made)}
        return made

    def _call(self, node: fx.Node, target: Any, *args: Any) -> fx.Node:
        """A call in the common graph, in front of ``node``."""
        with self.module.graph.inserting_before(node):
            made = self.module.graph.call_function(target, args)
        made.meta = {key: node.meta[key] for key in ("layer", "stack_trace") if key in node.meta}
        made.meta.update(val=self._value(node, target, args), secret=_is_secret(made))
        return made

    def _value(self, node: fx.Node, target: Any, args: tuple) -> Any:
        with tensor_of(node).fake_mode:
            return target(*fx.map_arg(args, lambda a: a.meta["val"]))

    def finish(self) -> fx.GraphModule | None:
        """The client's graph, once all look-ups are replaced; None if it would hand on the inputs alone."""
        for node in reversed(list(self.module.graph.nodes)):
            unused = not node.users and node.op in ("call_function", "get_attr")
            if unused or (node in self.results and not node.users and len(self.results) > 1):
                self.results.pop(node, None)
                self.module.graph.erase_node(node)
        handed_on = len(self.results) == len(placeholders(self.graph))
        if handed_on and not any(result.op == "call_function" for result in self.results.values()):
            return None
        for node in self.results:
            if not all(isinstance(n, int) or str(n).isidentifier() for n in tensor_of(node).shape):
                raise UnsupportedOperator(f"input {node.name!r}: its size is a function of the batch; fix the batch")
        self.graph.output(tuple(self.results[node] for node in placeholders(self.module.graph) if node in self.results))
        self.graph.eliminate_dead_code()
        return fx.GraphModule(self.root, self.graph)
