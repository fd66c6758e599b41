# SPDX-License-Identifier: Apache-2.0
"""Runs a graph with the rounds of independent nodes in common.

Every node whose inputs are there computes until it has to talk, and waits. When all wait, the call of the node with the
longest way to the graph's end is answered, and with it every waiting call that can share its messages
(``privml.engines.batching``). Only one thread computes at a time and the order follows from the graph alone, so that
all parties do the same. A value is dropped after its last use.
"""

from __future__ import annotations

import contextlib
import contextvars
import os
import re
import threading
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import torch
from torch import fx
from torch._ops import OpOverload

from privml.context import Session, in_front
from privml.engines.batching import BatchingEngine, Call, answer
from privml.formats import node as current
from privml.graph.ir import source_line
from privml.transcript import as_one_step

Compute = Callable[[fx.Node, Any, Any], Any]
# More nodes than this never wait at once: the threads of those that wait are kept.
_MOST_WAITING = 4096
# What a node weighs on the way to the end, by the name of its operator: about its rounds. Others count as one.
_WEIGHTS = {
    "sigmoid": 12, "tanh": 12, "exp": 16, "log": 16, "rsqrt": 16, "sqrt": 16, "reciprocal": 16, "div": 4, "relu": 3,
    "max_pool2d_with_indices": 8, "softmax_parts": 24, "softmax_gradient": 20, "softmax_logarithm": 16,
    "mm": 2, "bmm": 2, "addmm": 2, "mul": 2, "convolution": 2, "convolution_backward": 2,
}  # fmt: skip


class _Abandoned(BaseException):
    """Ends a node that waits for an answer that will not come."""


class _Task:
    """A node that computes in a thread of its own while everybody else waits."""

    def __init__(self, node: fx.Node, order: tuple[int, int]) -> None:
        self.node, self.order = node, order
        self.gate = threading.Semaphore(0)
        self.call: Call | None = None
        self.answer: Any = None
        self.error: BaseException | None = None
        self.done = False


def run_batched(
    graph: fx.Graph, inputs: Sequence[Any], attributes: Mapping[str, Any], session: Session, compute: Compute
) -> list[Any]:
    """The graph's results. ``compute(node, args, kwargs)`` is the value of a node, ``attributes`` the tensor of each
    get_attr target."""
    return _Run(graph, session, compute).results(inputs, attributes)


class _Run:
    def __init__(self, graph: fx.Graph, session: Session, compute: Compute) -> None:
        self._graph, self._session, self._compute = graph, session, compute
        self._engine = session.engine
        self._line = "" if session.transcript is None else session.transcript.line()
        self._numbers = {node: number for number, node in enumerate(graph.nodes)}
        self._front = BatchingEngine(self._engine, self._ask)
        self._values: dict[fx.Node, Any] = {}
        self._missing = {node: len(node.all_input_nodes) for node in graph.nodes}
        self._uses = {node: len(node.users) for node in graph.nodes}
        ways = _ways(graph)
        self._order = {node: (-ways[node], place) for place, node in enumerate(graph.nodes)}
        self._back = threading.Semaphore(0)
        self._here = threading.local()
        self._parked: list[_Task] = []

    def results(self, inputs: Sequence[Any], attributes: Mapping[str, Any]) -> list[Any]:
        remaining, ready = iter(inputs), []
        for node in self._graph.nodes:
            if node.op == "placeholder":
                self._values[node] = next(remaining)
            elif node.op == "get_attr":
                self._values[node] = attributes[node.target]
        for node in self._graph.nodes:
            if node.op in ("placeholder", "get_attr"):
                ready += self._finished(node)
            elif node.op == "call_function" and not node.all_input_nodes:
                ready.append(node)
        executor = ThreadPoolExecutor(_MOST_WAITING, "node")
        try:
            self._work(executor, ready)
        finally:
            for task in list(self._parked):  # after an error
                task.error = _Abandoned()
                self._let(task)
            executor.shutdown()
        output = next(node for node in reversed(self._graph.nodes) if node.op == "output")
        return [self._values[node] if isinstance(node, fx.Node) else node for node in output.args[0]]

    def _work(self, executor: ThreadPoolExecutor, ready: list[fx.Node]) -> None:
        while True:
            while ready:
                node = ready.pop(0)
                task = _Task(node, self._order[node])
                executor.submit(contextvars.copy_context().run, self._body, task)
                self._back.acquire()
                ready += self._settle(task)
            if not self._parked:
                return
            for task in self._answered():
                self._let(task)
                ready += self._settle(task)

    # ---- the thread that leads
    def _let(self, task: _Task) -> None:
        """Lets a task compute until it waits again or is done."""
        self._parked.remove(task)
        task.gate.release()
        self._back.acquire()

    def _settle(self, task: _Task) -> list[fx.Node]:
        """What can start now that ``task`` is done; nothing if it waits."""
        if not task.done:
            self._parked.append(task)
            return []
        if task.error is not None:
            raise task.error
        self._values[task.node] = task.answer
        return self._finished(task.node)

    def _finished(self, node: fx.Node) -> list[fx.Node]:
        started = []
        for user in node.users:
            self._missing[user] -= 1
            if self._missing[user] == 0 and user.op == "call_function":
                started.append(user)
        if node.op == "call_function":
            for used in node.all_input_nodes:
                self._uses[used] -= 1
                if self._uses[used] == 0:
                    self._values.pop(used, None)
        return started

    def _answered(self) -> list[_Task]:
        """Answers the most urgent call and all that can join it; returns their tasks in order."""
        first = min(self._parked, key=lambda task: task.order)
        chosen = [task for task in self._parked if _joins(task.call, first.call)]
        chosen.sort(key=lambda task: task.order[1])
        ledger = self._session.ledger
        name = first.node.meta.get("layer", first.node.name)
        entry = contextlib.nullcontext() if ledger is None else ledger.node(name, first.call.name)
        numbers = [self._numbers[task.node] for task in chosen]
        self._session.step(
            f"{first.call.name} for {_operation(first.node)}", numbers, where=_line(first.node, self._line)
        )
        with entry, current(name), as_one_step():
            results = answer(self._engine, [task.call for task in chosen])
        for task, result in zip(chosen, results, strict=True):
            task.answer, task.call = result, None
        return chosen

    # ---- the threads of the nodes
    def _body(self, task: _Task) -> None:
        self._here.task = task
        try:
            args, kwargs = fx.map_arg((task.node.args, task.node.kwargs), self._values.__getitem__)
            node = task.node
            self._session.step(
                _operation(node), self._numbers[node], repr((node.args, node.kwargs)), where=_line(node, self._line)
            )
            with torch.no_grad(), in_front(self._session, self._front), as_one_step():
                task.answer = self._compute(task.node, args, kwargs)
        except BaseException as error:
            task.error = error
        finally:
            self._here.task, task.done = None, True
            self._back.release()

    def _ask(self, call: Call) -> Any:
        task = getattr(self._here, "task", None)
        if task is None:  # a by-product that is asked for after the run
            return answer(self._engine, [call])[0]
        task.call = call
        self._back.release()
        task.gate.acquire()
        if task.error is not None:
            raise task.error
        return task.answer


def _operation(node: fx.Node) -> str:
    """What a node computes, alike in all processes: the text of a function holds its address."""
    return str(node.target) if isinstance(node.target, OpOverload) else node.target.__name__


def _line(node: fx.Node, otherwise: str) -> str:
    """File and line of the program that a node comes from, as errors name them."""
    found = re.match(r'File "(.*)", line (\d+)', source_line(node) or "")
    return f"{os.path.basename(found[1])}:{found[2]}" if found else otherwise


def _joins(call: Call | None, first: Call | None) -> bool:
    assert call is not None and first is not None
    return call is first or (call.opens and first.opens) or (call.key == first.key and call.name != "conv2d")


def _ways(graph: fx.Graph) -> dict[fx.Node, int]:
    """The weight of the longest way from each node, itself included, to the end."""
    ways: dict[fx.Node, int] = {}
    for node in reversed(graph.nodes):
        own = _WEIGHTS.get(str(getattr(node.target, "__name__", node.target)).split(".")[0], 1)
        ways[node] = max((ways[user] for user in node.users), default=0) + (own if node.op == "call_function" else 0)
    return ways
