# SPDX-License-Identifier: Apache-2.0
"""The scheduler of compiled steps: the rounds of independent nodes in common.

Every node whose inputs are there computes until it needs a message, and waits. When all wait, the request of the node
with the longest way to the graph's end is answered, and with it every waiting request that can share its messages
(``privml.engines.batching``).

A rule asks from deep within ordinary functions, and only a thread can stop there and go on later. So each node that has
begun has one, at most ``_MOST_OPEN`` in all, and takes turns with the scheduler through two queues: exactly one thread
computes at any time, and the order follows from the graph alone, so that all parties do the same.
"""

from __future__ import annotations

import contextvars
import threading
from collections import deque
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from queue import SimpleQueue
from typing import Any

from torch import fx

from privml.engines.batching import BatchingEngine, Call, answer
from privml.errors import ConfigError
from privml.graph.run import Run, operation_of

# Nodes that have begun and not ended, each with a thread; further ones begin when one of them ends. A training step has
# about one for each tensor of weights, whose update can wait longest.
_MOST_OPEN = 1024
# What a node weighs on the way to the end, by the name of its operator: about its rounds. Others count as one.
_WEIGHTS = {
    "sigmoid": 12, "tanh": 12, "exp": 16, "log": 16, "rsqrt": 16, "sqrt": 16, "reciprocal": 16, "div": 4, "relu": 3,
    "max_pool2d_with_indices": 8, "softmax_parts": 24, "softmax_gradient": 20, "softmax_logarithm": 16,
    "mm": 2, "bmm": 2, "addmm": 2, "mul": 2, "convolution": 2, "convolution_backward": 2,
}  # fmt: skip


def batched(run: Run) -> None:
    """Scheduler: see above. The session's engine answers in batches until the run ends."""
    engines = run.session.engines
    scheduler = _Batched(run)
    engines.front = BatchingEngine(scheduler.engine, scheduler.ask)
    try:
        scheduler.compute_all()
    finally:
        engines.front = None


class _Abandoned(BaseException):
    """Ends a node that waits for an answer that will not come."""


class _Coroutine:
    """The computation of one node, which alternates with the scheduler: each waits while the other one works.

    ``request``: what the node waits for now; None once it has ``ended``."""

    def __init__(self, node: fx.Node) -> None:
        self.node = node
        self.request: Call | None = None
        self.ended = False
        self._thread: int | None = None
        self._requests: SimpleQueue[Call | None] = SimpleQueue()
        self._answers: SimpleQueue[Any] = SimpleQueue()

    # ---- of the scheduler's thread; each returns at the next request, or at the end
    def begin(self, threads: ThreadPoolExecutor, compute: Callable[[], Any]) -> None:
        self._outcome: Future[Any] = threads.submit(contextvars.copy_context().run, self._body, compute)
        self._wait()

    def resume(self, result: Any) -> None:
        self._answers.put(result)
        self._wait()

    def abandon(self) -> None:
        """Refuses every request, the one under way included, until the computation has ended."""
        while not self.ended:
            self.resume(_Abandoned())

    def check(self) -> None:
        """Raises the error that has ended the computation, if any."""
        self._outcome.result()

    def _wait(self) -> None:
        self.request = self._requests.get()
        self.ended = self.request is None

    # ---- of the node's thread
    def _body(self, compute: Callable[[], Any]) -> None:
        self._thread = threading.get_ident()
        try:
            compute()
        finally:
            self._requests.put(None)

    def ask(self, request: Call) -> Any:
        if threading.get_ident() != self._thread:
            raise ConfigError("a compiled step is running in this session: compute in it on one thread at a time")
        self._requests.put(request)
        result = self._answers.get()
        if isinstance(result, _Abandoned):
            raise result
        return result


class _Batched:
    def __init__(self, run: Run) -> None:
        self.engine = run.session.engine
        self._run = run
        ways = _ways(run.graph)
        self._urgency = {node: (-ways[node], place) for place, node in enumerate(run.graph.nodes)}
        self._missing = {node: len(node.all_input_nodes) for node in run.graph.nodes}
        self._ready: deque[fx.Node] = deque()
        self._open: list[_Coroutine] = []
        self._running: _Coroutine | None = None  # the node that computes now

    def compute_all(self) -> None:
        for node in self._run.graph.nodes:
            if node.op in ("placeholder", "get_attr"):
                self._ended(node)
            elif node.op == "call_function" and not node.all_input_nodes:
                self._ready.append(node)
        threads = ThreadPoolExecutor(_MOST_OPEN, "node")
        try:
            while self._ready or self._open:
                if self._ready and len(self._open) < _MOST_OPEN:
                    coroutine = _Coroutine(self._ready.popleft())
                    self._open.append(coroutine)
                    self._let(coroutine, coroutine.begin, threads, self._computation(coroutine.node))
                else:
                    self._answer()
        finally:
            for coroutine in self._open:  # after an error
                self._running = coroutine
                coroutine.abandon()
            self._running = None
            threads.shutdown()

    def ask(self, request: Call) -> Any:
        """The result of a request of the node that computes now."""
        if self._running is None:  # a by-product that is asked for after the run
            return answer(self.engine, [request])[0]
        return self._running.ask(request)

    def _computation(self, node: fx.Node) -> Callable[[], Any]:
        return lambda: self._run.compute(node, booked=False)

    def _let(self, coroutine: _Coroutine, compute: Callable[..., None], *given: Any) -> None:
        """Lets a node compute until it waits again or has ended."""
        self._running = coroutine
        compute(*given)
        self._running = None
        if coroutine.ended:
            self._open.remove(coroutine)
            coroutine.check()
            self._ended(coroutine.node)

    def _ended(self, node: fx.Node) -> None:
        for user in node.users:
            self._missing[user] -= 1
            if self._missing[user] == 0 and user.op == "call_function":
                self._ready.append(user)

    def _answer(self) -> None:
        """Answers the most urgent request and all that can join it, and lets their nodes go on."""
        first = min(self._open, key=lambda coroutine: self._urgency[coroutine.node])
        chosen = [coroutine for coroutine in self._open if _joins(coroutine.request, first.request)]
        chosen.sort(key=lambda coroutine: self._urgency[coroutine.node][1])
        requests = [coroutine.request for coroutine in chosen]
        name = first.request.name
        nodes = [first.node, *(coroutine.node for coroutine in chosen if coroutine is not first)]
        with self._run.step(f"{name} for {operation_of(first.node)}", nodes, name):
            results = answer(self.engine, requests)
        for coroutine, result in zip(chosen, results, strict=True):
            self._let(coroutine, coroutine.resume, result)


def _joins(call: Call, first: Call) -> bool:
    return call is first or (call.opens and first.opens) or (call.key == first.key and call.name != "conv2d")


def _ways(graph: fx.Graph) -> dict[fx.Node, int]:
    """The weight of the longest way from each node, itself included, to the end."""
    ways: dict[fx.Node, int] = {}
    for node in reversed(graph.nodes):
        own = _WEIGHTS.get(str(getattr(node.target, "__name__", node.target)).split(".")[0], 1)
        ways[node] = max((ways[user] for user in node.users), default=0) + (own if node.op == "call_function" else 0)
    return ways
