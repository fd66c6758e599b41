# SPDX-License-Identifier: Apache-2.0
"""A cluster: one process accepts every client and redirects it to the worker with the fewest sessions.

Workers are servers in processes of their own, each with a port; all have the party's certificate, so that clients find
the same name wherever they are redirected. A worker that dies takes its own sessions with it; it is started again, and
clients are redirected to the others meanwhile.
"""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any, Protocol

import privml._core as _core
from privml.errors import ConfigError, PrivmlError, ProtocolError, ServiceBusy
from privml.program import INPUT_OWNER
from privml.service.events import Event, Events, printable, text_lines
from privml.service.metrics import Monitor
from privml.service.options import DEFAULT_CAPACITY, DEFAULT_HOOKS, Capacity, Hooks
from privml.service.server import ClientRequest
from privml.service.sessions import SECONDS_TO_END, SessionServer, State
from privml.service.worker import event_of
from privml.session.connections import Link, listening
from privml.session.handshake import MAGIC, answer_busy, answer_moved, receive_hello
from privml.session.identity import check_addresses, parse_address
from privml.session.lanes import session_token
from privml.session.session import Settings

# After which clients retry that found no worker, in seconds.
_BUSY_SECONDS = 2.0


def serve_cluster(
    settings: Settings,
    listen: str,
    start: Start,
    *,
    capacity: Capacity = DEFAULT_CAPACITY,
    hooks: Hooks = DEFAULT_HOOKS,
) -> None:
    """Listens on ``listen`` ("host:port") and redirects clients to ``capacity.workers`` workers that ``start`` makes,
    until ``hooks.stop`` is asked. ``settings``: those of the workers' sessions; the others as in ``serve``. Events of
    the workers are reported too, each with the number of its worker. Raises ConfigError."""
    workers = capacity.workers
    check_addresses(settings.spec, listen)
    with contextlib.ExitStack() as stack:
        listener = stack.enter_context(listening(listen))
        monitor = None if hooks.monitor is None else stack.enter_context(Monitor(hooks.monitor))
        events = Events(text_lines(hooks.log), None if monitor is None else monitor.note, hooks.on_event)
        made = ClusterServer(Cluster(workers, start, events), settings, listener, events, capacity, hooks)
        if monitor is not None:
            monitor.observe(made)
        if hooks.on_listening is not None:
            hooks.on_listening(listener.port)
        text = f"listening on port {listener.port}, {workers} workers, program {settings.program[:12]}"
        events.emit("listening", text=text, port=listener.port, program=settings.program)
        made.run()


def public_host(listen: str, advertise: str | None) -> str:
    """The host name by which clients reach the workers. ConfigError if ``listen`` names none."""
    host = advertise or parse_address(listen)[0]
    if host in ("0.0.0.0", "::"):
        raise ConfigError(f"listen={listen} names no host to send clients to: add advertise=HOST")
    return host


class ClusterServer(SessionServer[ClientRequest]):
    """Answers every hello that fits with the address of a worker; it counts redirected clients."""

    peers = (INPUT_OWNER,)

    def __init__(self, cluster: Cluster, *service: Any) -> None:
        super().__init__(*service)
        self._cluster, self._moved, self._drained = cluster, 0, False

    @property
    def count(self) -> int:
        return self._moved

    @property
    def ready(self) -> bool:
        return not self.closing and any(state.ready for state in self._cluster.states)

    @property
    def idle(self) -> bool:
        return self._cluster.idle

    @property
    def waiting(self) -> int:
        return sum(state.waiting for state in self._cluster.states)

    @property
    def running(self) -> int:
        return sum(state.running for state in self._cluster.states)

    def end(self) -> int:
        super().end()
        return self._cluster.end()

    def poll(self) -> None:
        super().poll()
        if self.closing and not self._drained:
            self._drained = True
            self._cluster.drain()

    def receive(self, channel: _core.Channel) -> Callable[[], None]:
        if channel.read(len(MAGIC)) != MAGIC:
            raise ProtocolError("its first bytes are not a hello")
        handshake = receive_hello(channel, self.settings.hello(0, "server"), magic_read=True)
        token = session_token(handshake.ours, handshake.theirs)
        return partial(self._redirect, ClientRequest(Link(channel), handshake, token, channel.peer_name, 0.0))

    def _redirect(self, client: ClientRequest) -> None:
        address = None if self.closing else self._cluster.choose()
        with contextlib.suppress(PrivmlError):
            if address is None:
                answer_busy(client.link.channels[0], _BUSY_SECONDS)
            else:
                answer_moved(client.link.channels[0], address)
        client.close()
        if address is None:
            self.refuse(ServiceBusy("no worker has room", _BUSY_SECONDS), client.peer, client.address)
        else:
            self._moved += 1
            self.events.emit("moved", client.name, peer=client.peer, address=client.address, to=address)

    def run_session(self, request: ClientRequest) -> None:
        raise AssertionError("sessions are the workers'")

    def refuse_busy(self, request: ClientRequest, seconds: float) -> None:
        raise AssertionError("the queue is the workers'")


# A worker that dies is started again after so many seconds, and after twice as many each time that it dies soon again.
_PAUSE, _LONGEST_PAUSE = 0.5, 30.0
# A worker that has lived so many seconds has started well.
_LONG_LIFE = 60.0
# For a worker's message that it has cut off its sessions, beyond the time of their threads.
_SECONDS_TO_REPORT = 2.0


class Worker(Protocol):
    """A process that serves: see ``privml.service.worker`` for its messages."""

    host: str

    def messages(self) -> Iterator[dict[str, Any]]:
        """Its messages, until it has ended."""

    def drain(self) -> None:
        """Asks it to finish what it has begun."""

    def cut(self) -> None:
        """Asks it to cut off what it has begun, and to end."""

    def end(self) -> None:
        """Ends it at once."""


# A new worker of a number, on a port (0: any).
Start = Callable[[int, int], Worker]


@dataclass(slots=True)
class _Slot:
    """What is known of one worker; ``sent``: clients redirected there since its last state; ``cut``: sessions that it
    has cut off at its end, None until it reports them."""

    number: int
    worker: Worker | None = None
    port: int = 0
    state: State = State()
    sent: int = 0
    cut: int | None = None

    @property
    def load(self) -> int:
        return self.state.waiting + self.state.running + self.sent


class Cluster:
    """``count`` workers that ``start`` makes. Their events go on to ``events``, each with the number of its worker;
    what all of them note of the program goes on once, without a number."""

    def __init__(self, count: int, start: Start, events: Events) -> None:
        self._start, self._events = start, events
        self._noted: set[str] = set()
        self._changed = threading.Condition()
        self._slots = [_Slot(number) for number in range(count)]
        self._closing, self._lost = False, 0
        self._threads = [threading.Thread(target=self._supervise, args=(slot,), daemon=True) for slot in self._slots]
        for thread in self._threads:
            thread.start()

    def choose(self) -> str | None:
        """The address of the worker with the fewest sessions, for one client more; None if all are full or dead."""
        with self._changed:
            able = [slot for slot in self._slots if slot.state.ready and slot.worker is not None]
            if self._closing or not able:
                return None
            best = min(able, key=lambda slot: slot.load)
            best.sent += 1
            host = best.worker.host
            return f"[{host}]:{best.port}" if ":" in host else f"{host}:{best.port}"

    @property
    def states(self) -> list[State]:
        """Of the workers that run."""
        with self._changed:
            return [slot.state for slot in self._slots if slot.worker is not None]

    @property
    def idle(self) -> bool:
        """Whether all workers have ended."""
        return not any(thread.is_alive() for thread in self._threads)

    def drain(self) -> None:
        """No worker is started any more; those that run finish what they have begun."""
        with self._changed:
            self._closing = True
            self._changed.notify_all()
        for worker in self._workers():
            worker.drain()

    def end(self) -> int:
        """Ends all workers; returns how many sessions were cut off, which workers report if they are asked to end."""
        self.drain()
        for worker in self._workers():
            worker.cut()
        end = time.monotonic() + SECONDS_TO_END + _SECONDS_TO_REPORT
        for thread in self._threads:
            thread.join(max(end - time.monotonic(), 0.0))
        for worker in self._workers():
            worker.end()
        for thread in self._threads:
            thread.join(_LONGEST_PAUSE)
        return self._lost

    def _workers(self) -> list[Worker]:
        with self._changed:
            return [slot.worker for slot in self._slots if slot.worker is not None]

    # ---- one thread for each worker
    def _supervise(self, slot: _Slot) -> None:
        pause = _PAUSE
        while not self._closing:
            begun = time.monotonic()
            error = self._run_worker(slot)
            if self._closing:
                return
            pause = _PAUSE if time.monotonic() - begun > _LONG_LIFE else min(2 * pause, _LONGEST_PAUSE)
            text = f"worker {slot.number} died; it is being restarted" + (f": {printable(error)}" if error else "")
            self._events.emit("worker_died", text=text, worker=slot.number, message=error)
            with self._changed:
                self._changed.wait_for(lambda: self._closing, pause)

    def _run_worker(self, slot: _Slot) -> str:
        """One life of a worker; the error that it ended with."""
        error = ""
        try:
            worker = self._start(slot.number, slot.port)
            with self._changed:
                slot.worker = worker
                if self._closing:
                    worker.end()
            for message in worker.messages():
                if "error" in message:
                    error = f"{message['error']['type']}: {message['error']['message']}"
                self._handle(slot, message)
        except Exception as raised:  # whatever starting it takes
            error = f"{type(raised).__name__}: {raised}"
            if slot.worker is not None:  # otherwise it would keep its port
                slot.worker.end()
        finally:
            with self._changed:
                if self._closing:
                    self._lost += slot.state.running if slot.cut is None else slot.cut
                slot.worker, slot.state, slot.sent, slot.cut = None, State(), 0, None
        return error

    def _note(self, event: Event) -> None:
        with self._changed:
            if event.text in self._noted:
                return
            self._noted.add(event.text)
        self._events.emit(event.kind, event.session, event.text, **event.fields)

    def _handle(self, slot: _Slot, message: dict[str, Any]) -> None:
        with self._changed:
            if "port" in message:
                slot.port = message["port"]
            if "state" in message:
                slot.state, slot.sent = State(**message["state"]), 0
        if "event" in message:
            event = event_of(message["event"])
            if event.kind == "stopped":
                slot.cut = event.fields["cut"]
            if event.kind == "note":
                self._note(event)
                return
            self._events.emit(event.kind, event.session, event.text, worker=slot.number, **event.fields)
