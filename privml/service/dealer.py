# SPDX-License-Identifier: Apache-2.0
"""The dealer: party 2 helps a server and its clients; it knows the program without its weights, and learns nothing."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import privml._core as _core
from privml.context import Session
from privml.engines.correlations import Correlations
from privml.engines.interface import backend
from privml.errors import ConfigError, InvalidInput, PeerDisconnected, PrivmlError, ProtocolError
from privml.graph.state import State
from privml.program import INPUT_OWNER, WEIGHTS_OWNER, Program
from privml.service.events import Events, error_fields, one_line, text_lines
from privml.service.negotiation import Service, Shape, checked_shapes, settings_of
from privml.service.options import DEFAULT_HOOKS, DEFAULT_SPEC, STATE_BYTES, Capacity, Hooks, refuse_moved
from privml.service.server import phases_of
from privml.service.sessions import SessionServer
from privml.session.agreement import Fields, agree
from privml.session.connections import listening
from privml.session.dealer import AHEAD, PendingSessions, SessionConnections, open_dealer, set_patience
from privml.session.handshake import DEALER, DEALER_ROLE, answer_busy, receive_hello
from privml.session.identity import check_addresses
from privml.session.lanes import session_name
from privml.session.ledger import Ledger, between_queries
from privml.session.session import load_torch
from privml.sharing import reveal
from privml.spec import SessionSpec

# Sessions at a time; most of a session the dealer's thread waits for the others.
DEALER_CAPACITY = Capacity(workers=16)
# Requests that are answered "busy" at a time; further ones are closed without an answer.
_MOST_REPLIES = 16
# Seconds between two queries. The dealer does not learn the server's limit and waits longer than servers do.
LONGEST_IDLE = 3600.0
# Queries that are dealt ahead in one session.
MOST_AHEAD = 1 << 20


def deal(
    program: Program,
    listen: str,
    spec: SessionSpec = DEFAULT_SPEC,
    *,
    sessions: int = 0,
    capacity: Capacity = DEALER_CAPACITY,
    hooks: Hooks = DEFAULT_HOOKS,
    **moved: Any,
) -> int:
    """Deals on ``listen`` ("host:port") for a server and its clients until ``sessions`` have begun (0: for ever) or
    ``hooks.stop`` is asked; returns how many ended well.

    ``spec``: as the server's, of an engine with a dealer. Each session runs on a thread of its own; an error in one
    ends that session alone, with one line to ``hooks.log``.
    Raises ConfigError for a port in use and wrong settings, and what a callback raises.
    """
    refuse_moved("deal", moved)
    refuse_without_dealer(spec)
    for name in ("on_state", "progress", "monitor"):
        if getattr(hooks, name) is not None:
            raise ConfigError(f"hooks.{name} is for servers, not for dealers: leave it out")
    service = Service(program, settings_of(program, spec), limit=capacity.query_limit)
    check_addresses(spec, listen)
    load_torch()
    events = Events(text_lines(hooks.log), hooks.on_event)
    with listening(listen) as listener:
        dealer = Dealer(service, listener, events, capacity, hooks)
        if hooks.on_listening is not None:
            hooks.on_listening(listener.port)
        text = f"dealing on port {listener.port}, program {program.hash[:12]}"
        events.emit("listening", text=text, port=listener.port, program=program.hash)
        for line in program.notices(spec.backend.dealt):
            events.emit("note", text=line, note=line)
        dealer.run(sessions)
    return dealer.ended


def refuse_without_dealer(spec: SessionSpec) -> None:
    """ConfigError for an engine of two parties."""
    if not spec.backend.dealt:
        raise ConfigError(f"engine={spec.backend.name} has no dealer: choose an engine of three parties")


class Dealer(SessionServer[SessionConnections]):
    """Party 2. It counts sessions that have begun."""

    peers = (WEIGHTS_OWNER, INPUT_OWNER)

    def __init__(
        self, service: Service, listener: _core.TcpListener, events: Events, capacity: Capacity, hooks: Hooks
    ) -> None:
        super().__init__(service.settings, listener, events, capacity, hooks)
        self._service, self._most_state = service, capacity.state_bytes
        tls = service.settings.spec.identity.tls
        self._pending = PendingSessions(
            self.patience, lambda text: self.events.emit("refused", text=text, reason="gone"), tls
        )
        self._counting, self._begun, self.ended = threading.Lock(), 0, 0
        self._tokens: set[bytes] = set()  # of the sessions that wait or run
        self._replies = threading.BoundedSemaphore(_MOST_REPLIES)

    @property
    def count(self) -> int:
        return self._begun

    def receive(self, channel: _core.Channel) -> Callable[[], None]:
        return partial(self._add, channel, *self._pending.receive(channel))

    def _add(self, channel: _core.Channel, token: bytes, place: tuple[int, int]) -> None:
        connections = self._pending.add(channel, token, place)
        if connections is None:
            return
        with self._counting:
            twice = token in self._tokens
            self._tokens.add(token)
        if twice:
            connections.close()
            raise ProtocolError("a session of its name is running")
        self.enqueue(connections, session_name(token))

    def poll(self) -> None:
        super().poll()
        self._pending.expire()

    def run(self, limit: int = 0) -> int:
        try:
            return super().run(limit)
        finally:
            self._pending.close()

    def refuse_busy(self, request: SessionConnections, seconds: float) -> None:
        self._forget(request)
        if not self._replies.acquire(blocking=False):
            request.close()
            return
        threading.Thread(target=self._reply_busy, args=(request, seconds), name="busy", daemon=True).start()

    def _reply_busy(self, request: SessionConnections, seconds: float) -> None:
        """The parties send their hello once they have agreed with each other; only then can they get the answer."""
        end = threading.Timer(self.patience, request.close)
        end.start()
        try:
            for rank in range(DEALER):
                receive_hello(request.channels[rank, 0], self.settings.hello(DEALER, DEALER_ROLE), peer=rank)
                answer_busy(request.channels[rank, 0], seconds)
        except PrivmlError:
            pass  # a party that has disconnected
        finally:
            end.cancel()
            request.close()
            self._replies.release()

    def _forget(self, request: SessionConnections) -> None:
        with self._counting:
            self._tokens.discard(request.token)

    def run_session(self, request: SessionConnections) -> None:
        name, start = session_name(request.token), time.monotonic()
        with self._counting:
            self._begun += 1
        whose = {"peer": request.peer, "address": request.address}
        self.events.emit("started", name, **whose, waited=start - request.since)
        try:
            dealt = deal_session(request, self._service, most=self._most_state)
            if self.dispatcher.is_late(request):
                raise PeerDisconnected(self.too_long)
        except Exception as error:  # whatever the parties do, others are served
            error, result = self.cause(request, error)
            text = f"a session ended before its answer: {one_line(error)}"
            self.events.emit("failed", name, text, **whose, result=result, **error_fields(error))
            return
        finally:
            self._forget(request)
        phases = phases_of(dealt.ledger.snapshot())
        self.events.emit("ended", name, str(dealt), **whose, result="answered", phases=phases)
        self.events.call(self._finish, dealt)

    def _finish(self, dealt: Dealt) -> None:
        self.ended += 1
        if self.hooks.on_answer is not None:
            self.hooks.on_answer(dealt)


@dataclass(frozen=True, slots=True)
class Dealt:
    """One session that ended well: the shapes of its last query, and how many ``queries`` it had; ``ahead``: they are
    to come."""

    shapes: tuple[Shape, ...]
    seconds: float
    ledger: Ledger
    queries: int = 1
    ahead: bool = False

    def __str__(self) -> str:
        shapes, cost = ", ".join(str(list(shape)) for shape in self.shapes), self.ledger.snapshot()
        if self.ahead:
            size = f"{cost.preprocess.sent / 1e6:.2f} MB"
            return f"{self.queries} queries ahead for input {shapes}, {self.seconds:.2f} s; dealt {size}"
        count = "" if self.queries == 1 else f" of {self.queries} queries, the last one"
        return (
            f"a session{count} for input {shapes}, {self.seconds:.2f} s; dealt {cost.preprocess.bytes / 1e6:.2f} MB; "
            f"online {cost.online.bytes / 1e6:.2f} MB"
        )


def deal_session(
    connections: SessionConnections, service: Service, idle: float = LONGEST_IDLE, most: int = STATE_BYTES
) -> Dealt:
    """Runs a session on its connections to its end; see ``open_dealer`` for errors. Between two queries it
    may be ``idle`` for so many seconds, and keep ``most`` bytes of state."""
    start, queries, received = time.monotonic(), 0, []
    program, settings, limit = Program(service.program.body), service.settings, service.limit

    def check(fields: Fields, state: State | None = None) -> None:
        bytes = program.state_bytes(checked_shapes(fields, program, limit, state))
        if bytes > most:
            raise InvalidInput(
                f"a state of {bytes} bytes, but the dealer keeps at most {most} (its setting state_bytes)"
            )
        _check_ahead(program, settings.spec, fields)
        if state is None:
            received.append(fields)

    with open_dealer(connections, settings, check) as session:
        if AHEAD in received[-1]:
            shapes, queries = checked_shapes(received[-1], program, limit), received[-1][AHEAD]["queries"]
            _deal_ahead(session, program, shapes, received[-1][AHEAD])
            _next(connections, _refuse_further, idle, settings.spec.deadline)  # until the parties have it all
            return Dealt(shapes, time.monotonic() - start, session.ledger.frozen(), queries, ahead=True)
        while received:
            shapes = checked_shapes(received[-1], program, limit, program.held(session))[: len(program.inputs)]
            session.reserve(Correlations())  # as the others do: all parties take the same steps
            for output in program.results(session, *shapes):
                reveal(output, to=INPUT_OWNER)
            session.engine.finish()
            queries, seconds = queries + 1, time.monotonic() - start
            held = program.held(session)
            check_next = partial(check, state=held) if held else partial(checked_shapes, program=program, limit=limit)
            received = _next(connections, check_next, idle, settings.spec.deadline)
    return Dealt(shapes, seconds, session.ledger.frozen(), queries)


def _check_ahead(program: Program, spec: SessionSpec, fields: Fields) -> None:
    """InvalidInput for a request of queries that are dealt ahead which the dealer cannot or will not fulfil."""
    if AHEAD not in fields:
        return
    ahead = fields[AHEAD]
    fits = isinstance(ahead, dict) and type(ahead.get("weights")) is bool and type(ahead.get("queries")) is int
    if not fits or not 1 <= ahead["queries"] <= MOST_AHEAD:
        raise InvalidInput(f"a dealer deals 1 to {MOST_AHEAD} queries ahead")
    stores = spec.backend.stores
    if stores is None:
        raise InvalidInput("this dealer deals nothing ahead")
    try:
        stores.kinds(program, program.complete(fields["inputs"]), spec)
    except ConfigError as error:
        raise InvalidInput(str(error)) from None


def _deal_ahead(session: Session, program: Program, shapes: Sequence[Shape], ahead: Fields) -> None:
    """Each query is dealt as for a session of its own, since it is run in one."""
    engine, stores = session.engine, backend(session.engine.name).stores
    assert stores is not None
    for query in range(ahead["queries"]):
        alone = Session(engine, session.numerics)
        with stores.dealing(engine, query, ahead["weights"]):
            for output in program.results(alone, *shapes[: len(program.inputs)]):
                reveal(output, to=INPUT_OWNER)
        alone.close()


def _refuse_further(fields: Fields) -> None:
    raise InvalidInput("queries that were dealt ahead need no dealer")


def _next(
    connections: SessionConnections, check: Callable[[Fields], Any], idle: float, deadline: float
) -> list[Fields]:
    """What both parties send about their next query, which ``check`` may refuse; an empty list if they have none."""
    received: list[Fields] = []
    refused: list[InvalidInput] = []

    def receive(fields: Fields) -> tuple[None, Fields]:
        if refused:
            raise refused[0]
        check(fields)
        if received and received[0] != fields:
            raise ProtocolError("the parties 0 and 1 sent the dealer different fields")
        received.append(fields)
        return None, {}

    channels = [connections.channels[rank, 0] for rank in range(DEALER)]
    with between_queries(channels):
        channels[0].set_deadline(idle)
        try:
            agree(channels[0], {}, receive, "party 0 gives up")
        except PeerDisconnected:
            return []
        except InvalidInput as error:  # the other party gets it too
            refused.append(error)
        set_patience(connections, deadline)
        agree(channels[1], {}, receive, "party 1 gives up")
    return received
