# SPDX-License-Identifier: Apache-2.0
"""The scheduler of sessions with several lanes: independent nodes side by side, so that their rounds overlap.

What runs where is decided by ``privml.graph.schedule`` from a rehearsal: the graph on shapes, on an engine that only
counts. Both parties rehearse in the same way, so their lanes meet the same nodes in the same order. A node waits for
its inputs and tells its lane's message clock how deep they are; depth therefore stays exact.
"""

from __future__ import annotations

import contextvars
import threading
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

import torch
from torch import fx

from privml.context import Session, lane
from privml.engines.shape_tensor import zeros
from privml.errors import PeerDisconnected
from privml.formats import Boolean
from privml.graph.ir import calls, placeholders
from privml.graph.run import Run, Scheduler, in_order
from privml.graph.schedule import Cost, Stage, schedule
from privml.ops.values import kept_operands, ring_operand
from privml.session.ledger import Snapshot
from privml.tensor import SecretTensor
from privml.transcript import along


@dataclass(frozen=True, slots=True)
class Task:
    """A node, or (``operand``) the conversion of one of its inputs that other nodes need too."""

    node: fx.Node
    operand: fx.Node | None = None

    def compute(self, run: Run) -> None:
        if self.operand is None:
            run.compute(self.node)
        else:
            run.convert(self.node, self.operand)


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


def over_lanes(session: Session, plans: Plans | None = None) -> Scheduler | None:
    """The scheduler of a session of several lanes; None for one of a single lane, whose nodes run in order. ``plans``
    keeps what was decided for a graph, by the inputs' shapes."""
    if session.engine.lanes == 1:
        return None
    plans = {} if plans is None else plans

    def scheduler(run: Run) -> None:
        plan = _plan_of(run, plans)
        if plan is None or not any(stage.overlaps for stage in plan.stages):
            in_order(run)
        else:
            _follow(run, plan)

    return scheduler


def _plan_of(run: Run, plans: Plans) -> Plan | None:
    engine = run.session.engine
    key = (engine.lanes, engine.ot, tuple(_kind(run.values[node]) for node in placeholders(run.graph)))
    plan = plans.get(key, _UNKNOWN)  # sessions on other threads may clear them
    if plan is _UNKNOWN:
        plan = _plan(run)
        if len(plans) >= KEPT_PLANS:  # peers choose the shapes
            plans.clear()
        plans[key] = plan
    return plan


def _kind(value: Any) -> Any:
    if isinstance(value, SecretTensor):
        return (tuple(value.shape), value.format, value.placement)
    return (tuple(value.shape), value.dtype) if isinstance(value, torch.Tensor) else type(value)


# ---- rehearsal
def _plan(run: Run) -> Plan | None:
    """None where nodes must run one after another: an engine that sends nothing, or values computed on demand."""
    twin = run.session.engine.twin()
    if twin is None:
        return None
    session = Session(twin, run.session.numerics)
    zeros_like = {node: _zeros_like(value, session) for node, value in run.values.items()}
    rehearsal = Run(run.graph, zeros_like, session, run.number)
    tasks: list[Task] = []
    costs: list[Cost] = []
    inputs: list[tuple[int, ...]] = []
    made: dict[fx.Node, list[int]] = {}  # the task that computes a node's value
    converted: dict[fx.Node, list[int]] = {}  # those that convert it

    def add(task: Task, cost: Cost, needed: Iterable[int], kind: dict[fx.Node, list[int]], of: fx.Node) -> None:
        kind.setdefault(of, []).append(len(tasks))
        tasks.append(task)
        costs.append(cost)
        inputs.append(tuple(dict.fromkeys(needed)))

    for node in calls(run.graph):
        used = {each: rehearsal.values[each] for each in node.all_input_nodes}
        shared = {each: value for each, value in used.items() if isinstance(value, SecretTensor)}
        before = {each: kept_operands(value) for each, value in shared.items()}
        value, cost = _counted(session, lambda node=node: rehearsal.compute(node))
        if isinstance(value, SecretTensor) and value.is_deferred and node.users:
            return None
        for operand, known in before.items():
            if len(operand.users) > 1 and kept_operands(shared[operand]) > known:
                apart = _conversion_cost(rehearsal, node, _zeros_like(shared[operand], session))
                cost = Cost(max(cost.hops - apart.hops, 0), max(cost.bytes - apart.bytes, 0))
                add(Task(node, operand), apart, made.get(operand, ()), converted, operand)
        needed = [i for each in used for kind in (made, converted) for i in kind.get(each, ())]
        add(Task(node), cost, needed, made, node)
    return Plan(tuple(tasks), tuple(inputs), schedule(costs, inputs, run.session.engine.lanes))


def _conversion_cost(rehearsal: Run, node: fx.Node, operand: SecretTensor) -> Cost:
    with torch.no_grad(), rehearsal.step("", [node], None):
        return _counted(operand.session, lambda: ring_operand(operand, operand.session))[1]


def _counted(session: Session, call: Callable[[], Any]) -> tuple[Any, Cost]:
    counters = session.engine.counters
    before = Snapshot.of(counters())
    value = call()
    spent = (Snapshot.of(counters()) - before).total
    return value, Cost(spent.depth, spent.bytes)


def _zeros_like(value: Any, session: Session) -> Any:
    if not isinstance(value, SecretTensor):
        return value
    kind = torch.uint8 if isinstance(value.format, Boolean) else torch.int64
    nothing = zeros(value.shape, kind, session.engine.counts_only)
    return SecretTensor((nothing,), value.format, value.placement, session, value.dtype)


# ---- running
def _follow(run: Run, plan: Plan) -> None:
    """Computes all tasks. Each goes on with a branch of the transcript of its own, so that their order in time does not
    count."""
    session, transcript = run.session, run.session.transcript
    if session.ledger is not None:
        for node in calls(run.graph):
            if node.meta.get("secret"):
                session.ledger.expect(node.meta.get("layer", node.name), str(node.target))
    for task in plan.tasks:
        if task.operand is not None:
            run.expect_conversion(task.operand)
    chain = None if transcript is None else transcript.chain
    branches = [None if chain is None else chain.branch(number) for number in range(len(plan.tasks))]

    def compute(number: int) -> None:
        with along(branches[number]):
            plan.tasks[number].compute(run)

    for stage in plan.stages:
        if stage.overlaps:
            _Overlap(session, plan, stage, compute).run()
        else:
            for number in stage.lanes[0]:
                compute(number)
    if chain is not None:
        chain.joined(branches)


class _Overlap:
    """One stage whose lanes run at the same time, each in a thread of its own."""

    def __init__(self, session: Session, plan: Plan, stage: Stage, compute: Callable[[int], None]) -> None:
        self._session, self._inputs, self._stage, self._compute = session, plan.inputs, stage, compute
        self._numbers = {number for numbers in stage.lanes for number in numbers}
        self._changed = threading.Condition()
        self._clocks: dict[int, Any] = {}  # of finished tasks: their lane's message clock
        self._error: BaseException | None = None

    def run(self) -> None:
        engine, lanes = self._session.engine, self._stage.lanes
        engine.advance(engine.clock())
        with ThreadPoolExecutor(len(lanes), "lane") as executor:
            futures = [
                executor.submit(contextvars.copy_context().run, self._lane, index, numbers)
                for index, numbers in enumerate(lanes)
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
            with lane(index):
                engine = self._session.engine
                for number in numbers:
                    if not self._wait(number):
                        return
                    for needed in self._inputs[number]:
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
        needed = [i for i in self._inputs[number] if i in self._numbers]
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
        self._session.close()
