# SPDX-License-Identifier: Apache-2.0
"""Sessions that wait and sessions that run: a bounded queue, and threads that each run one session after another."""

from __future__ import annotations

import math
import threading
import time
from collections import deque
from collections.abc import Callable
from typing import Generic, Protocol, TypeVar

from privml.service.options import Capacity

# How much the duration of the newest session counts in the average that retry_after reckons with.
_NEWEST = 0.2
# The shortest and the longest time after which a client is asked to come again, in seconds.
_SOONEST, _LATEST = 1, 300
# How long threads of sessions that were cut off may take to clean up.
SECONDS_TO_END = 10.0


class Visitor(Protocol):
    """Who asks for a session; ``peer``: the name it has proved; ``gone``: whether its connection has ended."""

    @property
    def peer(self) -> str: ...

    @property
    def gone(self) -> bool: ...

    def close(self) -> None:
        """Ends its connections; any thread may call it."""


Guest = TypeVar("Guest", bound=Visitor)


class Dispatcher(Generic[Guest]):
    """Runs ``run(guest)`` for every guest that ``offer`` has taken, in the order in which they came, on ``workers``
    threads. ``run`` deals with whatever a guest does; what it raises ends the service (see ``failure``). ``spare``: how
    many of the sessions under way give way to guests who wait."""

    def __init__(self, capacity: Capacity, run: Callable[[Guest], None], spare: Callable[[], int] = lambda: 0) -> None:
        self._capacity, self._run, self._spare = capacity, run, spare
        self._changed = threading.Condition()
        self._waiting: deque[tuple[float, Guest]] = deque()
        self._running: dict[Guest, float] = {}  # since when
        self._late: set[Guest] = set()  # that ``overlong`` has told of
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

    # ---- guests
    def offer(self, guest: Guest) -> bool:
        """Takes a guest; False when there is no room, for its name or at all, or no session is begun any more."""
        with self._changed:
            if self._is_full() or self.has_enough(guest.peer):
                return False
            self._waiting.append((time.monotonic(), guest))
            self._changed.notify()
            return True

    def overdue(self) -> list[Guest]:
        """Guests that have waited too long: no longer in the queue, and the caller's."""
        gone, now = [], time.monotonic()
        with self._changed:
            while self._waiting and now - self._waiting[0][0] > self._capacity.queue_seconds:
                gone.append(self._waiting.popleft()[1])
        return gone

    def overlong(self) -> list[Guest]:
        """Guests whose sessions have lasted too long, each once: their connections are the caller's to close."""
        now = time.monotonic()
        with self._changed:
            gone = [guest for guest, since in self._running.items() if now - since > self._longest]
            gone = [guest for guest in gone if guest not in self._late]
            self._late.update(gone)
        return gone

    def is_late(self, guest: Guest) -> bool:
        """Whether ``overlong`` has told of it."""
        return guest in self._late

    def is_past_half(self, guest: Guest) -> bool:
        """Whether less than half of its session's time is left: too little to begin something."""
        return time.monotonic() - self._running.get(guest, math.inf) > self._longest / 2

    @property
    def _longest(self) -> float:
        return self._capacity.session_seconds or math.inf

    def drain(self) -> list[Guest]:
        """From here on no session begins; those that wait are the caller's."""
        with self._changed:
            self._open = False
            waiting = [guest for _, guest in self._waiting]
            self._waiting.clear()
            self._changed.notify_all()
        return waiting

    def end(self) -> int:
        """Cuts off what runs, and waits for the threads; how many sessions that were, but for those that give way."""
        waiting = self.drain()
        with self._changed:
            self._ended = True
            cut = list(self._running)
            lost = max(len(cut) - self._spare(), 0)
        for guest in (*waiting, *cut):
            guest.close()
        end = time.monotonic() + SECONDS_TO_END
        for thread in filter(threading.Thread.is_alive, self._threads):
            thread.join(max(end - time.monotonic(), 0.0))
        return lost

    # ---- how it stands
    @property
    def waiting(self) -> int:
        return len(self._waiting)

    @property
    def running(self) -> int:
        return len(self._running)

    @property
    def full(self) -> bool:
        """Whether one more guest would be sent away."""
        with self._changed:
            return self._is_full()

    def _is_full(self) -> bool:
        room = self._capacity.workers + self._capacity.queue + self._spare()
        return not self._open or len(self._waiting) + len(self._running) >= room

    def has_enough(self, name: str) -> bool:
        """Whether one more guest of this name would be sent away, room or not."""
        most = self._capacity.sessions_per_name
        if not most or not name:  # peers without certificates are not told apart
            return False
        with self._changed:
            there = (*self._running, *(each for _, each in self._waiting))
        return sum(guest.peer == name and not guest.gone for guest in there) >= most

    @property
    def idle(self) -> bool:
        with self._changed:
            return not self._waiting and not self._running

    def retry_after(self) -> float:
        """Whole seconds until there should be room, from how long the last sessions took."""
        with self._changed:
            ahead = (len(self._waiting) + len(self._running)) / self._capacity.workers
            expected = math.ceil(ahead * (self._average or 0.0))
        return float(min(max(expected, _SOONEST), _LATEST))

    # ---- threads
    def _work(self) -> None:
        while (guest := self._next()) is not None:
            start = time.monotonic()
            try:
                self._run(guest)
            except BaseException as error:
                self.failure = self.failure or error
            finally:
                guest.close()
                self._done(guest, time.monotonic() - start)
                del guest  # its sockets are free once nobody knows it

    def _next(self) -> Guest | None:
        with self._changed:
            self._changed.wait_for(lambda: self._waiting or not self._open)
            if self._ended or not self._waiting:
                return None
            guest = self._waiting.popleft()[1]
            self._running[guest] = time.monotonic()
            return guest

    def _done(self, guest: Guest, seconds: float) -> None:
        with self._changed:
            self._running.pop(guest, None)
            self._late.discard(guest)
            old = seconds if self._average is None else self._average
            self._average = old + _NEWEST * (seconds - old)
            self._changed.notify_all()
