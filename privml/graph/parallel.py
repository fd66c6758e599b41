# SPDX-License-Identifier: Apache-2.0
"""Runs a program's graph over the lanes of a session: independent nodes side by side, so that their rounds overlap.

What runs where is decided by ``privml.graph.schedule`` from a rehearsal: the graph on shapes, on an engine that only
counts. Both parties rehearse alike, so their lanes meet the same nodes in the same order. A node waits for its inputs
and tells its lane's message clock how deep they are; depth therefore stays exact.
"""

from __future__ import annotations

import contextlib
import contextvars
import threading
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import fx

from privml.context import Session, lane
from privml.engines.shape_tensor import zeros
from privml.errors import PeerDisconnected
from privml.formats import Boolean
from privml.formats import node as current
from privml.graph.execution import call_node, execute
from privml.graph.ir import calls
from privml.graph.schedule import Cost, Stage, schedule
from privml.ops.values import ring_operand
from privml.session.ledger import Snapshot
from privml.tensor import SecretTensor
from privml.transcript import Chain, along, as_one_step


@dataclass(frozen=True, slots=True)
class Task:
    """A node, or (``operand``) the conversion of one of its inputs that other nodes need too."""

    node: fx.Node
    operand: fx.Node | None = None

    @property
    def reads(self) -> list[fx.Node]:
        return self.node.all_input_nodes if self.operand is None else [self.operand]


@dataclass(frozen=True, slots=True)
class Plan:
    """Tasks in the graph's order, what each needs (by number), and the stages of their schedule."""

    tasks: tuple[Task, ...]
    inputs: tuple[tuple[int, ...], ...]
    stages: tuple[Stage, ...]


Plans = dict[Any, Plan | None]
# Neither a plan nor that there is none.
_UNKNOWN: Any = object()
# Plans that a program remembers.
KEPT_PLANS = 256


def run_graph(
    graph: fx.Graph,
    inputs: Sequence[Any],
    attributes: Mapping[str, Any],
    session: Session,
    plans: Plans | None = None,
) -> list[Any]:
    """The graph's results, as ``execute`` gives them. ``plans`` keeps what was decided, by the inputs' shapes."""
    engine = session.engine
    if engine.lanes == 1:
        return execute(graph, inputs, attributes, session)
    plans = {} if plans is None else plans
    key = (engine.lanes, engine.ot, tuple(_kind(value) for value in inputs))
    plan = plans.get(key, _UNKNOWN)  # sessions on other threads may clear them
    if plan is _UNKNOWN:
        plan = _plan(graph, inputs, attributes, session)
        if len(plans) >= KEPT_PLANS:  # peers choose the shapes
            plans.clear()
        plans[key] = plan
    if plan is None or not any(stage.overlaps for stage in plan.stages):
        return execute(graph, inputs, attributes, session)
    return _Run(graph, inputs, attributes, session, plan).results()


def _kind(value: Any) -> Any:
    return (tuple(value.shape), value.format, value.placement) if isinstance(value, SecretTensor) else type(value)


# ---- rehearsal
@dataclass(slots=True)
class _Rehearsal:
    """Costs and order of the tasks, found by running the graph on an engine that counts."""

    session: Session
    tasks: list[Task] = field(default_factory=list)
    costs: list[Cost] = field(default_factory=list)
    inputs: list[tuple[int, ...]] = field(default_factory=list)
    lazy: bool = False
    _values: dict[fx.Node, Any] = field(default_factory=dict)
    _number: dict[fx.Node, int] = field(default_factory=dict)
    _operands: dict[fx.Node, list[int]] = field(default_factory=dict)  # conversions of a node's value

    def known(self, node: fx.Node, value: Any) -> None:
        self._values[node] = _zeros_like(value, self.session)

    def compute(self, node: fx.Node) -> None:
        used = node.all_input_nodes
        before = {v: _converted(self._values[v]) for v in used if isinstance(self._values[v], SecretTensor)}
        args, kwargs = fx.map_arg((node.args, node.kwargs), self._values.__getitem__)
        value, cost = self._count(lambda: call_node(node, args, kwargs, self.session))
        for operand, known in before.items():
            if len(operand.users) > 1 and _converted(self._values[operand]) > known:
                apart = self._conversion(node, operand)
                cost = Cost(max(cost.hops - apart.hops, 0), max(cost.bytes - apart.bytes, 0))
        self._add(Task(node), cost, [i for v in used for i in (*self._made(v), *self._operands.get(v, ()))])
        self._number[node] = len(self.tasks) - 1
        self._values[node] = value
        if isinstance(value, SecretTensor) and type(value._share) is not tuple and node.users:
            self.lazy = True

    def _conversion(self, node: fx.Node, operand: fx.Node) -> Cost:
        fresh = _zeros_like(self._values[operand], self.session)
        _, cost = self._count(lambda: _convert(node, fresh, self.session))
        self._add(Task(node, operand), cost, self._made(operand))
        self._operands.setdefault(operand, []).append(len(self.tasks) - 1)
        return cost

    def _made(self, node: fx.Node) -> tuple[int, ...]:
        return (self._number[node],) if node in self._number else ()

    def _add(self, task: Task, cost: Cost, inputs: Sequence[int]) -> None:
        self.tasks.append(task)
        self.costs.append(cost)
        self.inputs.append(tuple(dict.fromkeys(inputs)))

    def _count(self, call: Callable[[], Any]) -> tuple[Any, Cost]:
        counters = self.session.engine.counters
        before = Snapshot.of(counters())
        value = call()
        spent = (Snapshot.of(counters()) - before).total
        return value, Cost(spent.depth, spent.bytes)


def _plan(graph: fx.Graph, inputs: Sequence[Any], attributes: Mapping[str, Any], session: Session) -> Plan | None:
    """None where nodes must run one after another: an engine that sends nothing, or values computed on demand."""
    twin = session.engine.twin()
    if twin is None:
        return None
    rehearsal = _Rehearsal(Session(twin, session.numerics))
    remaining = iter(inputs)
    with torch.no_grad():
        for node in graph.nodes:
            if node.op == "placeholder":
                rehearsal.known(node, next(remaining))
            elif node.op == "get_attr":
                rehearsal.known(node, attributes[node.target])
            elif node.op == "call_function":
                rehearsal.compute(node)
    if rehearsal.lazy:
        return None
    stages = schedule(rehearsal.costs, rehearsal.inputs, session.engine.lanes)
    return Plan(tuple(rehearsal.tasks), tuple(rehearsal.inputs), stages)


def _zeros_like(value: Any, session: Session) -> Any:
    if not isinstance(value, SecretTensor):
        return value
    kind = torch.uint8 if isinstance(value.format, Boolean) else torch.int64
    nothing = zeros(value.shape, kind, session.engine.counts_only)
    return SecretTensor((nothing,), value.format, value.placement, session, value.dtype)


def _converted(value: SecretTensor) -> int:
    return 0 if value._operand is None else len(value._operand[1])


def _convert(node: fx.Node, value: SecretTensor, session: Session) -> None:
    """Brings ``value`` to the scale that ``node`` multiplies it at; the node finds it there."""
    with current(node.meta.get("layer", node.name), node.meta.get("request"), node.meta.get("working")):
        ring_operand(value, session)


# ---- running
class _Run:
    """One run of a plan. Threads of different lanes write different entries; what they share is under ``_changed``."""

    def __init__(
        self, graph: fx.Graph, inputs: Sequence[Any], attributes: Mapping[str, Any], session: Session, plan: Plan
    ) -> None:
        self.graph, self.session, self.plan = graph, session, plan
        self.values: dict[fx.Node, Any] = {}
        remaining = iter(inputs)
        for node in graph.nodes:
            if node.op == "placeholder":
                self.values[node] = next(remaining)
            elif node.op == "get_attr":
                self.values[node] = attributes[node.target]
        self._uses: dict[fx.Node, int] = {}
        for task in plan.tasks:
            for node in task.reads:
                self._uses[node] = self._uses.get(node, 0) + 1
        for node in self._outputs():
            self._uses[node] = self._uses.get(node, 0) + 1
        self._changed = threading.Condition()
        self._stage: set[int] = set()
        self._clocks: dict[int, Any] = {}  # of finished tasks of the stage: their lane's message clock
        self._error: BaseException | None = None
        transcript = session.transcript
        self._chain = None if transcript is None else transcript.chain
        self._branches: list[Chain | None] = [
            None if self._chain is None else self._chain.branch(number) for number in range(len(plan.tasks))
        ]

    def _outputs(self) -> Sequence[fx.Node]:
        return next(node for node in reversed(self.graph.nodes) if node.op == "output").args[0]

    def results(self) -> list[Any]:
        if self.session.ledger is not None:
            for node in calls(self.graph):
                if node.meta.get("secret"):
                    self.session.ledger.expect(node.meta.get("layer", node.name), str(node.target))
        with torch.no_grad():
            for stage in self.plan.stages:
                if stage.overlaps:
                    self._overlap(stage)
                else:
                    for number in stage.lanes[0]:
                        self._compute(number)
        if self._chain is not None:
            self._chain.joined(branch for branch in self._branches if branch is not None)
        return [self.values[node] for node in self._outputs()]

    def _overlap(self, stage: Stage) -> None:
        engine = self.session.engine
        engine.advance(engine.clock())
        self._stage, self._clocks = {number for numbers in stage.lanes for number in numbers}, {}
        with ThreadPoolExecutor(len(stage.lanes), "lane") as executor:
            futures = [
                executor.submit(contextvars.copy_context().run, self._lane, index, numbers)
                for index, numbers in enumerate(stage.lanes)
            ]
            try:
                for future in futures:
                    future.result()
            except BaseException as error:  # an interrupt of the waiting thread
                self._fail(error)
                raise
        if self._error is not None:
            raise self._error
        engine.advance(engine.clock())

    def _lane(self, index: int, numbers: Sequence[int]) -> None:
        try:
            with torch.no_grad(), lane(index):
                engine = self.session.engine
                for number in numbers:
                    if not self._wait(number):
                        return
                    for needed in self.plan.inputs[number]:
                        if needed in self._clocks:
                            engine.advance(self._clocks[needed])
                    self._compute(number)
                    with self._changed:
                        self._clocks[number] = engine.clock()
                        self._changed.notify_all()
        except BaseException as error:
            self._fail(error)

    def _wait(self, number: int) -> bool:
        """Until the task's inputs are there; False when the run has failed."""
        needed = [i for i in self.plan.inputs[number] if i in self._stage]
        with self._changed:
            self._changed.wait_for(lambda: self._error is not None or all(i in self._clocks for i in needed))
            return self._error is None

    def _fail(self, error: BaseException) -> None:
        """Ends the session on all lanes, since they have no common step any more. The first error counts; that a
        connection was closed is a consequence where there is another one."""
        with self._changed:
            if self._error is None or isinstance(self._error, PeerDisconnected):
                consequence = isinstance(error, PeerDisconnected) and self._error is not None
                self._error = self._error if consequence else error
            self._changed.notify_all()
        self.session.close()

    def _compute(self, number: int) -> None:
        task = self.plan.tasks[number]
        with along(self._branches[number]):
            if task.operand is None:
                args, kwargs = fx.map_arg((task.node.args, task.node.kwargs), self.values.__getitem__)
                self.values[task.node] = call_node(task.node, args, kwargs, self.session)
            else:
                self._convert(task.node, self.values[task.operand])
        with self._changed:
            for node in task.reads:
                self._uses[node] -= 1
                if self._uses[node] == 0:
                    del self.values[node]

    def _convert(self, node: fx.Node, value: Any) -> None:
        ledger = self.session.ledger
        name = node.meta.get("layer", node.name)
        entry = contextlib.nullcontext() if ledger is None else ledger.node(name, str(node.target), part=True)
        self.session.step(f"an operand of {node.target} in layer {name}", node.name, where="")
        with entry, as_one_step():
            _convert(node, value, self.session)
