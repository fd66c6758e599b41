# SPDX-License-Identifier: Apache-2.0
"""The server: party 0 owns the weights and answers the queries of many clients at a time.

The first message of each connection says what it is: the hello of a session, which must fit before it may wait for a
thread, or a further connection of a session under way. No client holds up another one: first messages are read apart
from each other, and sessions share the program, the weights and the store, none of which they change except for the
store's position.
"""

from __future__ import annotations

import contextlib
import itertools
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import privml._core as _core
from privml.context import Session
from privml.errors import ConfigError, InvalidInput, PrivmlError, ProtocolError
from privml.program import INPUT_OWNER, WEIGHTS_OWNER, Program
from privml.service.aborts import Aborts, default_aborts_file
from privml.service.events import Events, error_fields, one_line, text_lines
from privml.service.metrics import Monitor
from privml.service.negotiation import Allowance, Service, settings_of
from privml.service.options import (
    DEFAULT_HOOKS,
    DEFAULT_LIMITS,
    DEFAULT_SPEC,
    Addresses,
    Hooks,
    Limits,
    addresses_of,
    refuse_moved,
)
from privml.service.session_worker import Answered, SessionClosing, answer_queries
from privml.service.sessions import SessionServer
from privml.session.connections import Joiner, Link, listening
from privml.session.dealer import dealer_opener
from privml.session.handshake import DEALER, MAGIC, Handshake, answer_busy, receive_hello
from privml.session.identity import check_addresses, connect_options
from privml.session.lanes import LANE_MAGIC, PendingLanes, session_name, session_token
from privml.session.ledger import PHASES, Snapshot
from privml.session.preprocessing import StoreHalf
from privml.session.session import load_torch, open_session
from privml.spec import SessionSpec


def serve(
    program: Program,
    listen: str | Addresses,
    spec: SessionSpec = DEFAULT_SPEC,
    *,
    preprocessing: StoreHalf | None = None,
    limits: Limits = DEFAULT_LIMITS,
    hooks: Hooks = DEFAULT_HOOKS,
    **moved: Any,
) -> int:
    """Answers queries on ``listen`` ("host:port") until ``limits.queries`` are answered or ``hooks.stop`` is asked;
    returns their number.

    ``program`` carries the weights. ``listen``: with a dealer, ``Addresses``. ``spec``: how sessions run, the same at
    the clients except for what is each party's own; formats are the program's. Each client has a session of its own, on
    a thread of its own; an error in one ends that session alone, with one line to ``hooks.log``. ``preprocessing``: the
    store that sessions take their correlations from. Raises ConfigError for a port in use, settings that contradict
    each other or missing weights, CorruptFile and StoreError for ``limits.aborts``, and what a callback raises.
    """
    refuse_moved("serve", moved)
    addresses = addresses_of(listen, spec, preprocessing is not None)
    if program.weights is None and program.weight_specs:
        raise ConfigError("the server needs the program's weights (weights.safetensors)")
    settings = settings_of(program, spec, preprocessing)
    refuse_idle_preparation(spec, preprocessing, limits)
    counts, largest = aborts_of(spec, limits.aborts), limits.capacity.query_limit
    service = Service(program, settings, preprocessing, counts, largest, addresses.dealer)
    check_addresses(spec, addresses.server, addresses.dealer)
    load_torch()
    with contextlib.ExitStack() as stack:
        listener = stack.enter_context(listening(addresses.server))
        monitor = None if hooks.monitor is None else stack.enter_context(Monitor(hooks.monitor))
        events = Events(text_lines(hooks.log), None if monitor is None else monitor.note, hooks.on_event)
        server = Server(service, listener, events, limits, hooks)
        if monitor is not None:
            monitor.observe(server, preprocessing)
        if hooks.on_listening is not None:
            hooks.on_listening(listener.port)
        text = f"listening on port {listener.port}, program {program.hash[:12]}"
        events.emit("listening", text=text, port=listener.port, program=program.hash)
        for line in program.notices(spec.backend.dealt):
            events.emit("note", text=line, note=line)
        return server.run(limits.queries)


def refuse_idle_preparation(spec: SessionSpec, preprocessing: StoreHalf | None, limits: Limits) -> None:
    """ConfigError for products that would be prepared ahead and are never made so."""
    if limits.prepare == 0:
        return
    if getattr(spec.engine, "linear", "ot") == "ot":
        raise ConfigError(
            f"prepare={limits.prepare} (preprocess.ahead) prepares products by lattice ciphertexts: it needs an engine "
            "with engine.linear=auto or lattice"
        )
    if preprocessing is not None:
        raise ConfigError(
            f"prepare={limits.prepare} (preprocess.ahead): sessions on a store prepare nothing themselves"
        )


def aborts_of(spec: SessionSpec, file: str | Path | None) -> Aborts:
    """The counts of failed sessions; an empty one in memory if clients have no names."""
    if spec.backend.actively_secure and spec.identity.tls is not None:
        return Aborts(default_aborts_file() if file is None else Path(file))
    if file is not None:
        raise ConfigError(
            f"aborts={file} counts failed sessions by certificates: it needs an actively secure engine and TLS"
        )
    return Aborts()


# Why this party ended a session between two queries.
GAVE_WAY = "it was idle and another session needed its place"
PAST_HALF = "too little of its time was left for another query"


@dataclass(slots=True, eq=False)
class ClientRequest:
    """A client whose hello fits; ``peer``: the name it has proved, "" without TLS; ``since``: when it connected;
    ``on_close``: what else ends with its connections."""

    link: Link
    handshake: Handshake
    token: bytes
    peer: str
    since: float
    on_close: Callable[[], None] = lambda: None

    @property
    def name(self) -> str:
        return session_name(self.token)

    @property
    def address(self) -> str:
        return self.link.channels[0].peer_address

    @property
    def gone(self) -> bool:
        return self.link.channels[0].peer_closed

    def close(self) -> None:
        self.on_close()  # first, so that a wait for further connections ends with its error
        self.link.close()


class Server(SessionServer[ClientRequest]):
    """Party 0; it counts answers.

    A session that is idle between two queries is ended if others wait for a thread, and when the server ends; so is, at
    that end, one that makes the correlations of its next query.
    """

    refused_text = "a connection ended without an answer"
    peers = (INPUT_OWNER,)

    def __init__(
        self, service: Service, listener: _core.TcpListener, events: Events, limits: Limits, hooks: Hooks
    ) -> None:
        super().__init__(service.settings, listener, events, limits.capacity, hooks)
        self._service, self._limits = service, limits
        self._join: Joiner | None = None
        if service.dealer is not None:  # further connections of sessions come from their clients otherwise
            link = connect_options(service.settings.spec, DEALER)
            self._join = dealer_opener(service.dealer, WEIGHTS_OWNER, self.patience, link)
        self._pending_lanes = PendingLanes()
        self._answers = 0
        self._lock = threading.Lock()  # guards what follows; the dispatcher is not called under it
        self._numbers = itertools.count(1)
        self._idle: dict[ClientRequest, None] = {}  # the longest idle first
        self._making: set[ClientRequest] = set()  # correlations of a next query, between two queries
        self._holding: dict[ClientRequest, int] = {}  # bytes of state
        self._leaving: set[ClientRequest] = set()  # their sessions were ended here and still run

    @property
    def count(self) -> int:
        return self._answers

    @property
    def spare(self) -> int:
        with self._lock:
            idle = len(self._idle) if self.closing or self._gives_way else 0
            return idle + len(self._leaving) + (len(self._making) if self.closing else 0)

    @property
    def _gives_way(self) -> bool:
        """Whether a session that is idle ends in favour of others: not one that holds its client's state."""
        return not self._service.program.state

    def receive(self, channel: _core.Channel) -> Callable[[], None]:
        magic = channel.read(len(MAGIC))
        if magic == LANE_MAGIC:
            return self._pending_lanes.receive(channel)
        if magic != MAGIC:
            raise ProtocolError("its first bytes are neither a hello nor those of a further connection")
        handshake = receive_hello(channel, self._service.settings.hello(0, "server"), magic_read=True)
        token = session_token(handshake.ours, handshake.theirs)
        forget = partial(self._pending_lanes.forget, token)
        client = ClientRequest(Link(channel), handshake, token, channel.peer_name, time.monotonic(), forget)
        return partial(self.enqueue, client, client.name)

    def refuse_busy(self, request: ClientRequest, seconds: float) -> None:
        # Its hello was read to the end, and it sends nothing until it is answered: nothing unread is lost by closing.
        with contextlib.suppress(PrivmlError):
            answer_busy(request.link.channels[0], seconds)
        request.close()

    def close_idle(self, name: str) -> None:
        with self._lock:
            self._end_idle([request for request in self._idle if self._gives_way and request.peer == name][:1])

    def poll(self) -> None:
        super().poll()
        with self._lock:
            wanted = max(self.waiting - len(self._leaving), 0) if self._gives_way else 0
            self._end_idle([*self._idle, *self._making] if self.closing else list(self._idle)[:wanted])

    def _end_idle(self, requests: list[ClientRequest]) -> None:
        """Ends their sessions; under the lock."""
        for request in requests:
            self._mark_busy(request)
            self._leaving.add(request)
            request.close()

    def _mark_busy(self, request: ClientRequest) -> None:
        """It is no longer idle; under the lock."""
        self._idle.pop(request, None)
        self._making.discard(request)

    # ---- sessions
    def run_session(self, request: ClientRequest) -> None:
        start, opened = time.monotonic(), []
        whose = {"peer": request.peer, "address": request.address}
        self.events.emit("started", request.name, **whose, waited=round(start - request.since, 6))
        spec = self._service.settings.spec
        further = spec.backend.connections(spec, 0) - 1
        if self._join is None and further > 0:
            self._pending_lanes.expect(request.token, further, request.link.channels[0])
        try:
            why = answer_queries(
                partial(self._open, request, opened),
                request.link,
                self._service,
                _SessionLimits(self, request),
                partial(self._answered, request),
                self.hooks.progress,
            )
            self._ended(request, start, opened, why)
        except Exception as error:  # whatever a client does, the next one is served
            self._failed(request, start, opened, error)
        finally:
            self._pending_lanes.forget(request.token)
            with self._lock:
                self._mark_busy(request)
                self._leaving.discard(request)
                self._holding.pop(request, None)

    def _open(self, request: ClientRequest, opened: list[Session], **options: Any) -> Session:
        deadline = self.settings.spec.deadline
        request.link.join = self._join or (lambda token, count: self._pending_lanes.collect(token, deadline))
        session = open_session(request.link, 0, self.settings, "server", handshake=request.handshake, **options)
        opened.append(session)
        return session

    def begin_query(self, request: ClientRequest, granted: int) -> Allowance:
        """What a session may do once ``granted`` queries, with the one that begins, are granted. Raises
        SessionClosing."""
        with self._lock:
            if request in self._leaving:
                raise SessionClosing(GAVE_WAY)
            if granted > 1 and self._gives_way and self.dispatcher.is_past_half(request):
                raise SessionClosing(PAST_HALF)
            self._mark_busy(request)
            more = self._limits.session_queries
            if self.closing:
                more = granted
            elif self.limit:
                more = min(more, granted + max(self.limit - self._answers - 1, 0))
            limits = self._limits
            return Allowance(max(more - granted, 0), limits.idle, limits.ahead, limits.prepare)

    def begin_ahead(self, request: ClientRequest) -> None:
        """A session has answered and makes the correlations of its next query."""
        self._flush(request)
        with self._lock:
            self._making.add(request)

    def begin_idle(self, request: ClientRequest) -> float:
        """A session waits for its client; returns for how many seconds it may."""
        self._flush(request)
        with self._lock:
            self._making.discard(request)
            if request not in self._leaving:
                self._idle[request] = None
        return self._limits.idle

    def hold(self, request: ClientRequest, bytes: int) -> None:
        """A session is about to keep so much state. InvalidInput if that is more than the sessions of its client may
        keep together."""
        most, name = self._limits.capacity.state_bytes, request.peer
        with self._lock:
            mine = [each for each in self._holding if name and each.peer == name and each is not request]
            total = bytes + sum(self._holding[each] for each in mine)
            if total > most:
                states = ", ".join(spec.name for spec in self._service.program.state)
                raise InvalidInput(
                    f"state {states}: {total} bytes in {len(mine) + 1} session(s), but this party keeps at most "
                    f"{most} for a client (its setting state_bytes)"
                )
            if bytes:
                self._holding[request] = bytes

    def is_leaving(self, request: ClientRequest) -> bool:
        with self._lock:
            return request in self._leaving

    @staticmethod
    def _flush(request: ClientRequest) -> None:
        for channel in request.link.channels:
            channel.flush()

    def _answered(self, request: ClientRequest, done: Answered) -> None:
        done = replace(done, number=next(self._numbers))
        self.events.emit(
            "answered",
            request.name,
            str(done),
            peer=request.peer,
            address=request.address,
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

    def _ended(self, request: ClientRequest, start: float, opened: list[Session], why: str) -> None:
        if self.is_leaving(request):
            why = GAVE_WAY
        elif self.dispatcher.is_late(request):
            why = self.too_long
        fields = _end_fields(request, start, opened)
        self.events.emit("ended", request.name, f"a session ended: {why}", result="answered", why=why, **fields)

    def _failed(self, request: ClientRequest, start: float, opened: list[Session], error: Exception) -> None:
        error, result = self.cause(request, error)
        text = f"{self.refused_text}: {one_line(error)}"
        fields = _end_fields(request, start, opened)
        self.events.emit("failed", request.name, text, result=result, **fields, **error_fields(error))


class _SessionLimits:
    """The limits of one session, as ``answer_queries`` uses them."""

    def __init__(self, server: Server, request: ClientRequest) -> None:
        self._server, self._request = server, request

    @property
    def idle(self) -> float:
        return self._server.begin_idle(self._request)

    @property
    def leaving(self) -> bool:
        return self._server.is_leaving(self._request)

    def begin_ahead(self) -> None:
        self._server.begin_ahead(self._request)

    def hold(self, bytes: int) -> None:
        self._server.hold(self._request, bytes)

    def allowance(self, granted: int) -> Allowance:
        return self._server.begin_query(self._request, granted)


def _end_fields(request: ClientRequest, start: float, opened: list[Session]) -> dict[str, Any]:
    """The fields of the event at a session's end."""
    cost = Snapshot.of(opened[0].engines.whole.counters()) if opened else Snapshot()
    seconds = round(time.monotonic() - start, 6)
    return {"peer": request.peer, "address": request.address, "seconds": seconds, "phases": phases_of(cost)}


def phases_of(cost: Snapshot) -> dict[str, dict[str, float]]:
    """Seconds and bytes of each phase, as plain numbers."""
    counts = {phase: getattr(cost, phase) for phase in PHASES}
    return {
        phase: {"seconds": round(count.seconds, 6), "sent": count.sent, "received": count.received}
        for phase, count in counts.items()
    }
