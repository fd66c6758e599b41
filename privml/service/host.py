# SPDX-License-Identifier: Apache-2.0
"""What a server and a dealer have in common: a door, a queue, sessions on threads, and an orderly end."""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Generic

import privml._core as _core
from privml.errors import PeerDisconnected, SecurityAbort, ServiceBusy
from privml.service.dispatcher import Dispatcher, Guest
from privml.service.door import Door
from privml.service.events import Events, error_fields, one_line, reason_of
from privml.service.options import Capacity, Hooks
from privml.service.stopping import Stop
from privml.session.identity import accept_options
from privml.session.session import Settings

# How soon the end of the last session, or a signal, is seen.
_SLICE_SECONDS = 0.1


@dataclass(frozen=True, slots=True)
class State:
    """How a service stands: whether a guest that comes now is taken, and how many sessions wait and run."""

    ready: bool = False
    waiting: int = 0
    running: int = 0


class Host(Generic[Guest]):
    """Takes guests at ``listener`` and runs their sessions with ``settings``. A subclass says how a connection is
    heard, a session is run, and a guest is sent away, and which parties connect here, ``callers``."""

    refused_text = "a connection was refused"
    callers: tuple[int, ...]

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
        self.dispatcher: Dispatcher[Guest] = Dispatcher(capacity, self.attend, lambda: self.spare)
        self.patience = min(capacity.hello_seconds, spec.deadline)
        link = accept_options(spec, *self.callers)
        self.door = Door(listener, link, self.hear, self.refuse, replace(capacity, hello_seconds=self.patience))

    # ---- what a subclass says
    def hear(self, channel: _core.Channel) -> Callable[[], None]:
        """See ``Door``."""
        raise NotImplementedError

    def attend(self, guest: Guest) -> None:
        """See ``Dispatcher``."""
        raise NotImplementedError

    def turn_away(self, guest: Guest, seconds: float) -> None:
        """Tells a guest to come again after so many seconds, and closes its connections."""
        raise NotImplementedError

    def make_room(self, name: str) -> None:
        """Ends an idle session of a peer that has proved ``name``, where there is one, in favour of its next one."""

    @property
    def count(self) -> int:
        """What ``limit`` is about."""
        raise NotImplementedError

    @property
    def spare(self) -> int:
        """Sessions under way that give way to others."""
        return 0

    # ---- for all
    def run(self, limit: int = 0) -> int:
        """Until it has ``limit`` of what it counts (0: for ever) or ``hooks.stop`` is asked; returns ``count``. Raises
        what a callback has raised."""
        self.limit = limit
        self.dispatcher.start()
        try:
            while not self._over():
                self.door.watch(_SLICE_SECONDS)
                self.tidy()
        finally:
            self.door.close()
            self._stop.cut = self.end()
            self.events.tell("stopped", count=self.count, cut=self._stop.cut)
        if self._failure is not None:
            raise self._failure
        return self.count

    def tidy(self) -> None:
        """Many times a second: sends away who has waited too long, cuts off sessions that have lasted too long, and
        tells when the state has changed."""
        for guest in self.dispatcher.overdue():
            self.send_away(guest)
        for guest in self.dispatcher.overlong():
            guest.close()
        state = State(self.ready, self.waiting, self.running)
        if self.hooks.on_state is not None and state != self._state:
            self._state = state
            self.events.call(self.hooks.on_state, state)

    def offer(self, guest: Guest, name: str) -> None:
        """Lets a guest wait for a thread, or sends it away."""
        if self.dispatcher.has_enough(guest.peer):
            self.make_room(guest.peer)
        if self.dispatcher.offer(guest):
            self.events.tell("queued", name, waiting=self.dispatcher.waiting)
        else:
            self.send_away(guest)

    def send_away(self, guest: Guest) -> None:
        left = self._cut_at - time.monotonic()
        seconds = self.dispatcher.retry_after() if left == math.inf else float(max(round(left), 1))
        self.turn_away(guest, seconds)
        self.refuse(ServiceBusy(f"asked to come again in {seconds:g} seconds", seconds), guest.peer)

    @property
    def too_long(self) -> str:
        """Of a session that was cut off for its length."""
        return f"the session took longer than session_seconds={self._capacity.session_seconds:g}"

    def cause(self, guest: Guest, error: Exception) -> tuple[Exception, str]:
        """What has ended the session of ``guest``, in which ``error`` was raised, and its result in one word."""
        if isinstance(error, SecurityAbort):
            return error, "aborted"
        if self.dispatcher.is_late(guest):
            return PeerDisconnected(self.too_long), "late"
        return error, "failed"

    def refuse(self, error: Exception, peer: str) -> None:
        """Tells of a connection that got no session."""
        text = f"{self.refused_text}: {one_line(error)}"
        self.events.tell("refused", text=text, reason=reason_of(error), peer=peer, **error_fields(error))

    # ---- how it stands
    @property
    def ready(self) -> bool:
        """Whether a guest that comes now would be taken."""
        return not self.closing and not self._stop.draining and not self.dispatcher.full

    @property
    def half_open(self) -> int:
        return self.door.half_open

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
        """Cuts off what still runs; how many sessions that were."""
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
        text = f"ending: {running} session(s) under way have {seconds:g} seconds" if self._stop.draining else ""
        self.events.tell("draining", text=text, running=running, waiting=len(waiting))
        for guest in waiting:
            self.send_away(guest)
