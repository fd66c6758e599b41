# SPDX-License-Identifier: Apache-2.0
"""A server with many clients at a time.

Each connection says first what it is: the hello of a session, which must fit before it may wait for a thread, or a
further connection of a session under way. No client holds up another one: connections are heard apart from each other,
and sessions share the program, the weights and the store, none of which they change but for the store's position.
"""

from __future__ import annotations

import contextlib
import itertools
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import privml._core as _core
from privml.context import Session
from privml.errors import PrivmlError, ProtocolError
from privml.program import INPUT_OWNER, WEIGHTS_OWNER
from privml.service.answering import Answered, GaveWay, answer
from privml.service.events import Events, error_fields, one_line
from privml.service.host import Host
from privml.service.options import Hooks, Limits
from privml.service.request import Room, Service
from privml.session.connections import Joiner, Link
from privml.session.dealer import dealer_opener
from privml.session.handshake import DEALER, MAGIC, Greeting, answer_busy, receive_hello
from privml.session.identity import connect_options
from privml.session.lanes import LANE_MAGIC, PendingLanes, session_name, session_token
from privml.session.ledger import PHASES, Snapshot
from privml.session.session import open_session

# Why a session ended well whose client might have gone on.
GAVE_WAY = "it was idle and gave way"
PAST_HALF = "too little of its time was left for another query"


@dataclass(slots=True, eq=False)
class Client:
    """Whose hello fits; ``peer``: the name it has proved, "" without TLS; ``since``: when it came; ``on_close``: what
    else ends with its connections."""

    link: Link
    greeting: Greeting
    token: bytes
    peer: str
    since: float
    on_close: Callable[[], None] = lambda: None

    @property
    def name(self) -> str:
        return session_name(self.token)

    @property
    def gone(self) -> bool:
        return self.link.channels[0].peer_closed

    def close(self) -> None:
        self.on_close()  # first, so that who waits for further connections hears of it from there
        self.link.close()


class Server(Host[Client]):
    """Party 0; it counts answers.

    A session that is idle between two queries gives way when others wait for a thread, and when the server ends; so
    does, at that end, one that makes something ahead of a next query.
    """

    refused_text = "a connection ended without an answer"
    callers = (INPUT_OWNER,)

    def __init__(
        self, service: Service, listener: _core.TcpListener, events: Events, limits: Limits, hooks: Hooks
    ) -> None:
        super().__init__(service.settings, listener, events, limits.capacity, hooks)
        self._service, self._limits = service, limits
        self._join: Joiner | None = None
        if service.dealer is not None:  # further connections of sessions come from their clients otherwise
            link = connect_options(service.settings.spec, DEALER)
            self._join = dealer_opener(service.dealer, WEIGHTS_OWNER, self.patience, link)
        self._desk = PendingLanes()
        self._answers = 0
        self._lock = threading.Lock()  # guards what follows; nothing is asked of the dispatcher under it
        self._numbers = itertools.count(1)
        self._idle: dict[Client, None] = {}  # in the order in which they became idle
        self._making: set[Client] = set()  # something ahead, as nothing is asked
        self._leaving: set[Client] = set()  # whose sessions have given way and still run

    @property
    def count(self) -> int:
        return self._answers

    @property
    def spare(self) -> int:
        with self._lock:
            return len(self._idle) + len(self._leaving) + (len(self._making) if self.closing else 0)

    def hear(self, channel: _core.Channel) -> Callable[[], None]:
        magic = channel.read(len(MAGIC))
        if magic == LANE_MAGIC:
            return self._desk.receive(channel)
        if magic != MAGIC:
            raise ProtocolError("its first bytes are neither a hello nor join a session")
        greeting = receive_hello(channel, self._service.settings.hello(0, "server"), greeted=True)
        token = session_token(greeting.ours, greeting.theirs)
        forget = partial(self._desk.forget, token)
        client = Client(Link(channel), greeting, token, channel.peer_name, time.monotonic(), forget)
        return partial(self.offer, client, client.name)

    def turn_away(self, guest: Client, seconds: float) -> None:
        # Its hello was read to the end, and it says no more until it is answered: nothing unread is lost by closing.
        with contextlib.suppress(PrivmlError):
            answer_busy(guest.link.channels[0], seconds)
        guest.close()

    def make_room(self, name: str) -> None:
        with self._lock:
            self._dismiss([guest for guest in self._idle if guest.peer == name][:1])

    def tidy(self) -> None:
        super().tidy()
        with self._lock:
            wanted = max(self.waiting - len(self._leaving), 0)
            self._dismiss([*self._idle, *self._making] if self.closing else list(self._idle)[:wanted])

    def _dismiss(self, guests: list[Client]) -> None:
        """Their sessions give way; under the lock."""
        for guest in guests:
            self._rouse(guest)
            self._leaving.add(guest)
            guest.close()

    def _rouse(self, guest: Client) -> None:
        """It is not idle any more; under the lock."""
        self._idle.pop(guest, None)
        self._making.discard(guest)

    # ---- sessions
    def attend(self, guest: Client) -> None:
        start, opened = time.monotonic(), []
        self.events.tell("started", guest.name, peer=guest.peer, waited=round(start - guest.since, 6))
        spec = self._service.settings.spec
        further = spec.backend.connections(spec, 0) - 1
        if self._join is None and further > 0:
            self._desk.expect(guest.token, further, guest.link.channels[0])
        try:
            why = answer(
                partial(self._open, guest, opened),
                guest.link,
                self._service,
                _Turns(self, guest),
                partial(self._answered, guest),
                self.hooks.progress,
            )
            self._ended(guest, start, opened, why)
        except Exception as error:  # whatever a client does, the next one is served
            self._failed(guest, start, opened, error)
        finally:
            self._desk.forget(guest.token)
            with self._lock:
                self._rouse(guest)
                self._leaving.discard(guest)

    def _open(self, guest: Client, opened: list[Session], **options: Any) -> Session:
        deadline = self.settings.spec.deadline
        guest.link.join = self._join or (lambda token, count: self._desk.collect(token, deadline))
        session = open_session(guest.link, 0, self.settings, "server", greeting=guest.greeting, **options)
        opened.append(session)
        return session

    def begin_turn(self, guest: Client, behind: int) -> Room:
        """What there is room for in a session when ``behind`` queries, with the one that begins, are granted.
        Raises GaveWay."""
        with self._lock:
            if guest in self._leaving:
                raise GaveWay(GAVE_WAY)
            if behind > 1 and self.dispatcher.is_past_half(guest):
                raise GaveWay(PAST_HALF)
            self._rouse(guest)
            more = self._limits.session_queries
            if self.closing:
                more = behind
            elif self.limit:
                more = min(more, behind + max(self.limit - self._answers - 1, 0))
            return Room(max(more - behind, 0), self._limits.idle, self._limits.ahead)

    def begin_making(self, guest: Client) -> None:
        """A session has answered and makes something ahead."""
        self._may_be_closed(guest)
        with self._lock:
            self._making.add(guest)

    def begin_idle(self, guest: Client) -> float:
        """A session waits for its client; for how long it may."""
        self._may_be_closed(guest)
        with self._lock:
            self._making.discard(guest)
            if guest not in self._leaving:
                self._idle[guest] = None
        return self._limits.idle

    def is_leaving(self, guest: Client) -> bool:
        with self._lock:
            return guest in self._leaving

    @staticmethod
    def _may_be_closed(guest: Client) -> None:
        for channel in guest.link.channels:
            channel.flush()

    def _answered(self, guest: Client, done: Answered) -> None:
        done = replace(done, number=next(self._numbers))
        self.events.tell(
            "answered",
            guest.name,
            str(done),
            peer=guest.peer,
            number=done.number,
            turn=done.turn,
            shapes=done.shapes,
            seconds=round(done.seconds, 6),
            source=done.source,
            phases=phases_of(done.ledger.snapshot()),
        )
        self.events.call(self._count, done)

    def _count(self, done: Answered) -> None:
        self._answers += 1
        if self.hooks.on_answer is not None:
            self.hooks.on_answer(done)

    def _ended(self, guest: Client, start: float, opened: list[Session], why: str) -> None:
        if self.is_leaving(guest):
            why = GAVE_WAY
        elif self.dispatcher.is_late(guest):
            why = self.too_long
        told = _told(guest, start, opened)
        self.events.tell("ended", guest.name, f"a session ended: {why}", result="answered", why=why, **told)

    def _failed(self, guest: Client, start: float, opened: list[Session], error: Exception) -> None:
        error, result = self.cause(guest, error)
        text = f"{self.refused_text}: {one_line(error)}"
        told = _told(guest, start, opened)
        self.events.tell("failed", guest.name, text, result=result, **told, **error_fields(error))


class _Turns:
    """The limits of one session, as ``answer`` asks for them."""

    def __init__(self, server: Server, guest: Client) -> None:
        self._server, self._guest = server, guest

    @property
    def idle(self) -> float:
        return self._server.begin_idle(self._guest)

    @property
    def leaving(self) -> bool:
        return self._server.is_leaving(self._guest)

    def making(self) -> None:
        self._server.begin_making(self._guest)

    def room(self, behind: int) -> Room:
        return self._server.begin_turn(self._guest, behind)


def _told(guest: Client, start: float, opened: list[Session]) -> dict[str, Any]:
    """What is told about a session at its end."""
    cost = Snapshot.of(opened[0].engines.whole.counters()) if opened else Snapshot()
    return {"peer": guest.peer, "seconds": round(time.monotonic() - start, 6), "phases": phases_of(cost)}


def phases_of(cost: Snapshot) -> dict[str, dict[str, float]]:
    """Seconds and bytes of each phase, as plain numbers."""
    counts = {phase: getattr(cost, phase) for phase in PHASES}
    return {
        phase: {"seconds": round(count.seconds, 6), "sent": count.sent, "received": count.received}
        for phase, count in counts.items()
    }
