# SPDX-License-Identifier: Apache-2.0
"""Runs a program's graph: on public tensors (floats), or on secret ones in a session.

A ``Run`` holds the values of one run and computes single nodes: it converts operands, takes the node's step of the
transcript, books its cost, names it in errors, and drops every value after its last use. A scheduler decides only which
node is computed next, and on which lane: ``in_order`` (here), ``privml.graph.lanes`` and ``privml.graph.batched``.
"""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

import torch
from torch import fx
from torch._ops import OpOverload
from torch.utils._pytree import tree_leaves

from privml.context import Session
from privml.dispatch import dispatch
from privml.encoding import as_given
from privml.errors import InvalidInput, PrivmlError, ProgramsDiffer
from privml.formats import Boolean, FixedPoint, Float, Format, Integer
from privml.formats import node as current
from privml.graph.ir import SYM_SIZE, dtype_of, has_sizes, misfit, placeholders, shape_of, tensor_of
from privml.ops.values import constant, engine_of, like, ring_operand
from privml.ops.words import reformatted
from privml.sharing import reveal, share
from privml.tensor import SHARED, SecretTensor
from privml.transcript import as_one_step

Scheduler = Callable[["Run"], None]


def run_graph(
    graph: fx.Graph,
    inputs: Sequence[Any],
    attributes: Mapping[str, Any],
    session: Session | None = None,
    scheduler: Scheduler | None = None,
    number: int | None = None,
) -> list[Any]:
    """The graph's results. ``attributes``: the tensor of each get_attr target; ``scheduler``: calls ``Run.compute`` of
    every node after those that it reads; in the graph's order if None. ``number``: which one of the session's programs
    it is, with these attributes; None for graphs that are none."""
    remaining = iter(inputs)
    values: dict[fx.Node, Any] = {}
    for node in graph.nodes:
        if node.op == "placeholder":
            values[node] = next(remaining)
        elif node.op == "get_attr":
            values[node] = attributes[node.target]
    run = Run(graph, values, session, number)
    (scheduler or in_order)(run)
    return run.results()


@torch.no_grad()
def in_order(
    run: Run, observe: Callable[[fx.Node, Any], None] | None = None, given: Mapping[fx.Node, Any] | None = None
) -> None:
    """Scheduler: one node after another. ``observe`` sees every value, those of inputs and attributes too; ``given``
    are values in place of what nodes compute."""
    for node in run.graph.nodes:
        if node.op == "output":
            continue
        value = run.compute(node) if node.op == "call_function" else run.values[node]
        if given and node in given:
            value = given[node]
            if node.users:
                run.values[node] = value
        if observe is not None:
            observe(node, value)


class Run:
    """One run of ``graph``. ``values``: those of inputs and attributes at first, then also what was computed, each
    until its last use. Different threads may compute different nodes. ``number``: see ``run_graph``."""

    def __init__(
        self, graph: fx.Graph, values: dict[fx.Node, Any], session: Session | None, number: int | None = None
    ) -> None:
        self.graph, self.values, self.session, self.number = graph, values, session, number
        self._uses = {node: len(node.users) for node in graph.nodes}
        self._fixed = _fixed_matrices(graph)
        self._changing = threading.Lock()
        transcript = None if session is None else session.transcript
        self._line = None if transcript is None else transcript.line()  # of the user's program, which runs the graph

    def results(self) -> list[Any]:
        """Once all nodes are computed."""
        return list(fx.map_arg(self.graph.output_node().args[0], self.values.__getitem__))

    def compute(self, node: fx.Node, booked: bool = True) -> Any:
        """Computes a node whose operands are there and returns its value. ``booked``: its cost becomes an entry of the
        session's ledger."""
        args, kwargs = fx.map_arg((node.args, node.kwargs), self.values.__getitem__)
        with torch.no_grad():
            if node.target is SYM_SIZE:
                value = args[0].shape[args[1]]
            elif self.session is None or not node.meta.get("secret"):
                value = node.target(*args, **kwargs)
            else:
                args, kwargs = (_in_formats(node, *pair) for pair in ((node.args, args), (node.kwargs, kwargs)))
                with self.step(operation_of(node), [node], str(node.target) if booked else None):
                    value = _called(node.target, args, kwargs)
        if node.users:
            self.values[node] = value
        self._release(node.all_input_nodes)
        return value

    def expect_conversion(self, operand: fx.Node) -> None:
        """Keeps the value of ``operand`` for a call of ``convert`` too."""
        self._uses[operand] += 1

    def convert(self, node: fx.Node, operand: fx.Node) -> None:
        """Brings ``operand`` to the scale that ``node`` multiplies it at; the node finds it there."""
        text = f"an operand of {operation_of(node)}"
        with torch.no_grad(), self.step(text, [node], str(node.target), part=True):
            ring_operand(self.values[operand], self.session)
        self._release([operand])

    def _release(self, nodes: Iterable[fx.Node]) -> None:
        with self._changing:
            for node in nodes:
                self._uses[node] -= 1
                if self._uses[node] == 0:
                    del self.values[node]

    def _place(self, node: fx.Node) -> str:
        """What names a node of a program among all of the session's, if one of its operands is a matrix that every run
        has alike."""
        if self._fixed.isdisjoint(node.all_input_nodes):
            return ""
        return "" if self.number is None else node.name if self.number == 0 else f"{node.name} of {self.number}"

    @contextlib.contextmanager
    def step(self, text: str, nodes: Sequence[fx.Node], booked: str | None, part: bool = False) -> Iterator[None]:
        """What is computed inside, called ``text``, is one step of the transcript, on behalf of ``nodes``, and belongs
        to the first of them: in the ledger, as the operator ``booked`` (None: not at all; ``part``: see
        ``Ledger.node``), for rules, and in errors."""
        node, session = nodes[0], self.session
        layer = node.meta.get("layer")
        name = node.name if layer is None else layer
        if self._line is not None:
            public = [each.name for each in nodes], repr((node.args, node.kwargs))
            session.step(text if layer is None else f"{text} in layer {layer}", *public, where=self._line)
        unbooked = booked is None or session.ledger is None
        entry = contextlib.nullcontext() if unbooked else session.ledger.node(name, booked, part=part)
        requests = node.meta.get("request"), node.meta.get("working"), node.meta.get("keeps", False)
        asked = current(name, *requests, self._place(node), _rectified(node))
        with entry, asked, as_one_step():
            try:
                yield
            except (PrivmlError, RuntimeError, ValueError, TypeError, IndexError) as error:
                if hasattr(error, "add_note") and not isinstance(error, ProgramsDiffer):  # which names its own place
                    error.add_note(f"in layer {name!r} ({operation_of(node)})")
                raise


def operation_of(node: fx.Node) -> str:
    """What a node computes, alike in all processes: the text of a function holds its address."""
    return str(node.target) if isinstance(node.target, OpOverload) else node.target.__name__


def _rectified(node: fx.Node) -> Any:
    """What ReLU is asked for if it alone uses the result and leaves nothing for a backward pass; else None."""
    user = next(iter(node.users), None)
    if user is None or len(node.users) > 1 or user.target is not torch.ops.aten.relu.default:
        return None
    return None if node.meta.get("keeps") or user.meta.get("keeps") else user.meta.get("request")


def _called(target: Callable, args: Any, kwargs: Any) -> Any:
    secret = any(isinstance(value, SecretTensor) for value in tree_leaves((args, kwargs)))
    if secret and isinstance(target, OpOverload):
        return dispatch(target, args, kwargs)  # torch would take apart what has a rule of its own
    return target(*args, **kwargs)


def _in_formats(node: fx.Node, spec: Any, value: Any) -> Any:
    """Operands of a layer of floats as floats, of a layer of fixed point in the formats kept for that."""
    if isinstance(spec, fx.Node):
        to = node.meta.get("format")
        to = spec.meta.get("fixed", to) if isinstance(to, FixedPoint) else to
        if (
            to is None
            or not isinstance(value, SecretTensor)
            or not value.dtype.is_floating_point
            or isinstance(to, (Boolean, Integer))
        ):
            return value
        if value.format == to or not (isinstance(value.format, Float) or isinstance(to, Float)):
            return value
        return like(value, reformatted(engine_of(value), value.share, value.format, to), to)
    if isinstance(spec, dict):
        return {key: _in_formats(node, part, value[key]) for key, part in spec.items()}
    if isinstance(spec, (list, tuple)):
        return type(value)(_in_formats(node, part, v) for part, v in zip(spec, value, strict=True))
    return value


# ---- what a run begins with
def _fixed_matrices(graph: fx.Graph) -> set[fx.Node]:
    """Nodes whose values depend on no input; not those of vectors, such as biases."""
    fixed: set[fx.Node] = set()
    for node in graph.nodes:
        if node.op == "get_attr" or (node.op == "call_function" and fixed.issuperset(node.all_input_nodes)):
            fixed.add(node)
    known = (node for node in fixed if "shape" in node.meta or tensor_of(node) is not None)
    return {node for node in known if len(shape_of(node)) > 1}


def share_attributes(
    graph: fx.Graph,
    session: Session,
    values: Mapping[str, torch.Tensor],
    owner: int = 0,
    kept: dict[str, SecretTensor] | None = None,
) -> dict[str, Any]:
    """The tensor of each get_attr target: weights as secrets of party ``owner``, public constants as they are.
    Only the owner needs the values of weights. ``kept``: secrets of the same values in an earlier session of the plain
    engine, which serve again where their formats are wanted again; those of this session replace them."""
    result: dict[str, Any] = {}
    for node in graph.nodes:
        if node.op != "get_attr" or node.target in result:
            continue
        if not node.meta.get("secret"):
            result[node.target] = values[node.target]
            continue
        known = None if kept is None else kept.pop(node.target, None)
        try:
            if known is not None and known.format == format_of(node):
                shared = SecretTensor(known.share, known.format, known.placement, session, known.dtype)
            else:
                known = None  # frees it
                shared = _share(node, values.get(node.target), shape_of(node), owner, session)
        except InvalidInput as error:
            raise InvalidInput(f"weight {node.target!r}: {error}") from None
        session.engine.keep(shared.share)
        result[node.target] = shared
        if kept is not None:
            kept[node.target] = shared
    return result


def given_to(node: fx.Node, value: Any) -> torch.Tensor:
    """A value in the dtype of an input; InvalidInput, naming this, where it is none of its whole numbers."""
    try:
        return as_given(value, dtype_of(node))
    except InvalidInput as error:
        raise InvalidInput(f"input {node.name!r}: {error}") from None


def share_inputs(graph: fx.Graph, session: Session, values: Sequence[Any], owner: int = 1) -> list[Any]:
    """Secrets of party ``owner``, one per placeholder, or public values where the graph has those. Others pass the
    shape instead of a tensor; secret tensors stay what they are."""
    nodes = placeholders(graph)
    if len(nodes) != len(values):
        raise InvalidInput(f"the program takes {len(nodes)} input(s), got {len(values)}")
    shared = []
    for node, value in zip(nodes, values, strict=True):
        if isinstance(value, SecretTensor):
            shared.append(value)
            continue
        known = value is not None and not isinstance(value, (tuple, torch.Size))
        tensor = given_to(node, value) if known else None
        shape = tuple(tensor.shape if known else value or ())
        wanted = shape_of(node)
        if 0 in shape and node.meta.get("held") and has_sizes(shape, wanted):  # a state that begins with nothing
            share = constant(0.0, shape, format_of(node), session.engine)
            shared.append(SecretTensor(share, format_of(node), SHARED, session, dtype_of(node)))
            continue
        wrong = misfit(shape, wanted)
        if wrong is not None:
            raise InvalidInput(f"input {node.name!r}: {wrong}")
        try:
            secret = _share(node, tensor, shape, owner, session)
        except InvalidInput as error:
            raise InvalidInput(f"input {node.name!r}: {error}") from None
        shared.append(secret if node.meta["secret"] else reveal(secret))
    return shared


def format_of(node: fx.Node) -> Format:
    """The format of a node, of public integers and bits the one in which they are shared before all learn them."""
    return node.meta.get("format") or (Boolean() if dtype_of(node) is torch.bool else Integer(64))


def _share(
    node: fx.Node, value: torch.Tensor | None, shape: Sequence[int], owner: int, session: Session
) -> SecretTensor:
    return share(value, owner, format_of(node), shape=tuple(shape), dtype=dtype_of(node), session=session, wide=True)
