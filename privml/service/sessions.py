# SPDX-License-Identifier: Apache-2.0
"""Sessions that wait and sessions that run: what a server, a dealer and a cluster have in common.

A bounded queue, threads that each run one session after another, and an orderly end.
"""

from __future__ import annotations

import math
import threading
import time
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Generic, Protocol, TypeVar

import privml._core as _core
from privml.errors import PeerDisconnected, SecurityAbort, ServiceBusy
from privml.service.acceptor import Acceptor
from privml.service.events import Events, Stop, error_fields, one_line, reason_of
from privml.service.options import Capacity, Hooks
from privml.session.identity import accept_options
from privml.session.session import Settings

# How much the duration of the newest session counts in the average that retry_after uses.
_NEWEST = 0.2
# The shortest and the longest time after which a client is asked to retry, in seconds.
_SOONEST, _LATEST = 1, 300
# How long threads of sessions that were cut off may take to clean up.
SECONDS_TO_END = 10.0
# How soon the end of the last session, or a signal, is seen.
_SLICE_SECONDS = 0.1


class Request(Protocol):
    """A request for a session; ``peer``: the name that its sender has proved; ``address``: where it connects from;
    ``gone``: whether its connection has ended."""

    @property
    def peer(self) -> str: ...

    @property
    def address(self) -> str: ...

    @property
    def gone(self) -> bool: ...

    def close(self) -> None:
        """Ends its connections; any thread may call it."""


RequestType = TypeVar("RequestType", bound=Request)


class Dispatcher(Generic[RequestType]):
    """Runs ``run(request)`` for every request that ``offer`` has taken, in the order in which they came, on
    ``capacity.workers`` threads. ``run`` handles the errors of a session; what it raises ends the service (see
    ``failure``). ``spare``: how many of the sessions under way would end in favour of waiting requests."""

    def __init__(
        self, capacity: Capacity, run: Callable[[RequestType], None], spare: Callable[[], int] = lambda: 0
    ) -> None:
        self._capacity, self._run, self._spare = capacity, run, spare
        self._changed = threading.Condition()
        self._waiting: deque[tuple[float, RequestType]] = deque()
        self._running: dict[RequestType, float] = {}  # since when
        self._late: set[RequestType] = set()  # that ``overlong`` has returned
        self._average: float | None = None
        self._open = True
        self._ended = False
        self.failure: BaseException | None = None
        self._threads = [
            threading.Thread(target=self._work, name=f"session-{number}", daemon=True)
            for number in range(capacity.workers)
        ]

    def start(self) -> None:
        for thread in self._threads:
            thread.start()

    # ---- requests
    def offer(self, request: RequestType) -> bool:
        """Takes a request; False if the queue is full, for its name or at all, or no session begins any more."""
        with self._changed:
            if self._is_full() or self.at_limit(request.peer):
                return False
            self._waiting.append((time.monotonic(), request))
            self._changed.notify()
            return True

    def overdue(self) -> list[RequestType]:
        """Requests that have waited too long: no longer in the queue, and the caller's."""
        gone, now = [], time.monotonic()
        with self._changed:
            while self._waiting and now - self._waiting[0][0] > self._capacity.queue_seconds:
                gone.append(self._waiting.popleft()[1])
        return gone

    def overlong(self) -> list[RequestType]:
        """Requests whose sessions have lasted too long, each once: their connections are the caller's to close."""
        now = time.monotonic()
        with self._changed:
            gone = [request for request, since in self._running.items() if now - since > self._longest]
            gone = [request for request in gone if request not in self._late]
            self._late.update(gone)
        return gone

    def is_late(self, request: RequestType) -> bool:
        """Whether ``overlong`` has returned it."""
        return request in self._late

    def is_past_half(self, request: RequestType) -> bool:
        """Whether less than half of its session's time is left: too little to begin another query."""
        return time.monotonic() - self._running.get(request, math.inf) > self._longest / 2

    @property
    def _longest(self) -> float:
        return self._capacity.session_seconds or math.inf

    def drain(self) -> list[RequestType]:
        """From here on no session begins; those that wait are the caller's."""
        with self._changed:
            self._open = False
            waiting = [request for _, request in self._waiting]
            self._waiting.clear()
            self._changed.notify_all()
        return waiting

    def end(self) -> int:
        """Cuts off what runs, and waits for the threads; how many sessions that were, except the spare ones."""
        waiting = self.drain()
        with self._changed:
            self._ended = True
            cut = list(self._running)
            lost = max(len(cut) - self._spare(), 0)
        for request in (*waiting, *cut):
            request.close()
        end = time.monotonic() + SECONDS_TO_END
        for thread in filter(threading.Thread.is_alive, self._threads):
            thread.join(max(end - time.monotonic(), 0.0))
        return lost

    # ---- state
    @property
    def waiting(self) -> int:
        return len(self._waiting)

    @property
    def running(self) -> int:
        return len(self._running)

    @property
    def full(self) -> bool:
        """Whether one more request would be rejected."""
        with self._changed:
            return self._is_full()

    def _is_full(self) -> bool:
        most = self._capacity.workers + self._capacity.queue + self._spare()
        return not self._open or len(self._waiting) + len(self._running) >= most

    def at_limit(self, name: str) -> bool:
        """Whether one more request of this name would be rejected, even if the queue is not full."""
        most = self._capacity.sessions_per_name
        if not most or not name:  # peers without certificates are all alike
            return False
        with self._changed:
            present = (*self._running, *(each for _, each in self._waiting))
        return sum(request.peer == name and not request.gone for request in present) >= most

    @property
    def idle(self) -> bool:
        with self._changed:
            return not self._waiting and not self._running

    def retry_after(self) -> float:
        """Whole seconds until the queue should have a place, from how long the last sessions took."""
        with self._changed:
            ahead = (len(self._waiting) + len(self._running)) / self._capacity.workers
            expected = math.ceil(ahead * (self._average or 0.0))
        return float(min(max(expected, _SOONEST), _LATEST))

    # ---- threads
    def _work(self) -> None:
        while (request := self._next()) is not None:
            start = time.monotonic()
            try:
                self._run(request)
            except BaseException as error:
                self.failure = self.failure or error
            finally:
                request.close()
                self._done(request, time.monotonic() - start)
                del request  # its sockets are free once nothing refers to it

    def _next(self) -> RequestType | None:
        with self._changed:
            self._changed.wait_for(lambda: self._waiting or not self._open)
            if self._ended or not self._waiting:
                return None
            request = self._waiting.popleft()[1]
            self._running[request] = time.monotonic()
            return request

    def _done(self, request: RequestType, seconds: float) -> None:
        with self._changed:
            self._running.pop(request, None)
            self._late.discard(request)
            old = seconds if self._average is None else self._average
            self._average = old + _NEWEST * (seconds - old)
            self._changed.notify_all()


@dataclass(frozen=True, slots=True)
class State:
    """Of a service: whether a request that comes now is taken, and how many sessions wait and run."""

    ready: bool = False
    waiting: int = 0
    running: int = 0


class SessionServer(Generic[RequestType]):
    """Takes requests at ``listener`` and runs their sessions with ``settings``. A subclass defines how a first message
    is received, a session is run and a request is refused; ``peers``: the ranks of the parties that connect."""

    refused_text = "a connection was refused"
    peers: tuple[int, ...]

    def __init__(
        self,
        settings: Settings,
        listener: _core.TcpListener,
        events: Events,
        capacity: Capacity,
        hooks: Hooks,
    ) -> None:
        spec = settings.spec
        self.settings, self.events, self.hooks = settings, events, hooks
        self._state, self._capacity, self._stop = State(), capacity, hooks.stop or Stop()
        self.limit = 0
        self.closing, self._cut_at = False, math.inf  # no session begins; when those under way are cut off
        self.dispatcher: Dispatcher[RequestType] = Dispatcher(capacity, self.run_session, lambda: self.spare)
        self.patience = min(capacity.hello_seconds, spec.deadline)
        link = accept_options(spec, *self.peers)
        self.acceptor = Acceptor(
            listener, link, self.receive, self.refuse, replace(capacity, hello_seconds=self.patience)
        )

    # ---- what a subclass defines
    def receive(self, channel: _core.Channel) -> Callable[[], None]:
        """See ``Acceptor``."""
        raise NotImplementedError

    def run_session(self, request: RequestType) -> None:
        """See ``Dispatcher``."""
        raise NotImplementedError

    def refuse_busy(self, request: RequestType, seconds: float) -> None:
        """Asks the sender to retry after so many seconds, and closes its connections."""
        raise NotImplementedError

    def close_idle(self, name: str) -> None:
        """Ends an idle session of a peer that has proved ``name``, if there is one, in favour of its next one."""

    @property
    def count(self) -> int:
        """What ``run``'s limit counts."""
        raise NotImplementedError

    @property
    def spare(self) -> int:
        """Sessions under way that would end in favour of others."""
        return 0

    # ---- for all
    def run(self, limit: int = 0) -> int:
        """Until it has ``limit`` of what it counts (0: for ever) or ``hooks.stop`` is asked; returns ``count``. Raises
        what a callback has raised."""
        self.limit = limit
        self.dispatcher.start()
        try:
            while not self._over():
                self.acceptor.accept(_SLICE_SECONDS)
                self.poll()
        finally:
            self.acceptor.close()
            self._stop.cut = self.end()
            self.events.emit("stopped", count=self.count, cut=self._stop.cut)
        if self._failure is not None:
            raise self._failure
        return self.count

    def poll(self) -> None:
        """Many times a second: rejects requests that have waited too long, cuts off sessions that have lasted too long,
        and reports changes of the state."""
        for request in self.dispatcher.overdue():
            self.reject(request)
        for request in self.dispatcher.overlong():
            request.close()
        state = State(self.ready, self.waiting, self.running)
        if self.hooks.on_state is not None and state != self._state:
            self._state = state
            self.events.call(self.hooks.on_state, state)

    def enqueue(self, request: RequestType, name: str) -> None:
        """Lets a request wait for a thread, or rejects it."""
        if self.dispatcher.at_limit(request.peer):
            self.close_idle(request.peer)
        if self.dispatcher.offer(request):
            self.events.emit("queued", name, waiting=self.dispatcher.waiting)
        else:
            self.reject(request)

    def reject(self, request: RequestType) -> None:
        left = self._cut_at - time.monotonic()
        seconds = self.dispatcher.retry_after() if left == math.inf else float(max(round(left), 1))
        self.refuse_busy(request, seconds)
        self.refuse(ServiceBusy(f"asked to retry in {seconds:g} seconds", seconds), request.peer, request.address)

    @property
    def too_long(self) -> str:
        """Of a session that was cut off for its length."""
        return f"the session took longer than session_seconds={self._capacity.session_seconds:g}"

    def cause(self, request: RequestType, error: Exception) -> tuple[Exception, str]:
        """What has ended the session of ``request``, in which ``error`` was raised, and its result in one word."""
        if isinstance(error, SecurityAbort):
            return error, "aborted"
        if self.dispatcher.is_late(request):
            return PeerDisconnected(self.too_long), "late"
        return error, "failed"

    def refuse(self, error: Exception, peer: str, address: str) -> None:
        """Reports a connection that got no session."""
        text = f"{self.refused_text}: {one_line(error)}"
        fields = {"reason": reason_of(error), "peer": peer, "address": address, **error_fields(error)}
        self.events.emit("refused", text=text, **fields)

    # ---- state
    @property
    def ready(self) -> bool:
        """Whether a request that comes now would be taken."""
        return not self.closing and not self._stop.draining and not self.dispatcher.full

    @property
    def half_open(self) -> int:
        return self.acceptor.half_open

    @property
    def idle(self) -> bool:
        """Whether nothing waits or runs."""
        return self.dispatcher.idle

    @property
    def waiting(self) -> int:
        return self.dispatcher.waiting

    @property
    def running(self) -> int:
        return self.dispatcher.running

    # ---- the end
    def end(self) -> int:
        """Cuts off what still runs; returns how many sessions."""
        return self.dispatcher.end()

    @property
    def _failure(self) -> BaseException | None:
        return self.dispatcher.failure or self.events.failure

    def _over(self) -> bool:
        if self._failure is not None:
            return True
        if self._stop.draining and self._cut_at == math.inf:
            self._cut_at = time.monotonic() + self._capacity.drain_seconds
        if not self.closing and (self._stop.draining or 0 < self.limit <= self.count):
            self._close()
        if not self.closing:
            return False
        return self._stop.ending or self.idle or time.monotonic() >= self._cut_at

    def _close(self) -> None:
        self.closing = True
        waiting, running = self.dispatcher.drain(), self.dispatcher.running
        seconds = self._capacity.drain_seconds
        text = f"ending: {running} running session(s) have {seconds:g} seconds" if self._stop.draining else ""
        self.events.emit("draining", text=text, running=running, waiting=len(waiting))
        for request in waiting:
            self.reject(request)
