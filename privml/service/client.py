# SPDX-License-Identifier: Apache-2.0
"""The client: party 1 sends one server as many queries as it likes, over few sessions."""

from __future__ import annotations

import itertools
import logging
import random
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future, TimeoutError
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from queue import SimpleQueue
from typing import Any, TypeVar

import torch

import privml._core as _core
from privml.context import Session
from privml.errors import ConfigError, IdentityError, PeerDisconnected, ServiceBusy
from privml.program import INPUT_OWNER, WEIGHTS_OWNER, Program
from privml.service.aborts import HARMLESS, LIMITS
from privml.service.events import Progress, report_nodes
from privml.service.inputs import checked_inputs
from privml.service.negotiation import Allowance, NeedsNewSession, Service, Terms, request_query, settings_of
from privml.service.options import DEFAULT_SPEC, NO_RETRIES, Addresses, Retries, addresses_of, refuse_moved
from privml.service.session_worker import NEXT_QUERY
from privml.service.steps import Steps
from privml.session.connections import Link, following, reach
from privml.session.dealer import dealer_opener
from privml.session.handshake import DEALER
from privml.session.identity import check_addresses, connect_options
from privml.session.lanes import lane_opener
from privml.session.ledger import Ledger, Snapshot, begin_query, between_queries, make_ahead
from privml.session.preprocessing import StoreHalf
from privml.session.session import EngineOpener, load_torch, open_session
from privml.sharing import reveal
from privml.spec import SessionSpec
from privml.tables import Table

Result = TypeVar("Result")
_LOG = logging.getLogger("privml")
# How long the thread of an ended session may take to clean up.
_SECONDS_TO_END = 10.0
# No pause between two attempts is longer.
LONGEST_PAUSE = 60.0


@dataclass(frozen=True, slots=True)
class Answer:
    """The outputs of a query in clear, what it cost this party, and where its correlations came from. ``ahead``: what
    its session had spent on its correlations before the query, while it was idle; ``turn``: which query of its session
    it was, counted from 1."""

    outputs: tuple[torch.Tensor, ...]
    seconds: float
    ledger: Ledger
    source: str
    ahead: Snapshot = Snapshot()
    turn: int = 1

    def summary(self) -> Table:
        """What the query cost this party, by layer and phase; never its outputs."""
        return replace(self.ledger.summary(), notes=(f"{self.seconds:.2f} s; correlations: {self.source}",))

    def _repr_html_(self) -> str:
        return self.summary()._repr_html_()


class SessionOver(PeerDisconnected):
    """The session ended before it took the query, of which nothing was sent or run: a fresh one may take it."""


@dataclass(slots=True)
class _Query:
    inputs: Sequence[torch.Tensor]
    progress: Progress | None
    answer: Future[Answer] = field(default_factory=Future)

    @property
    def shapes(self) -> list[tuple[int, ...]]:
        return [tuple(value.shape) for value in self.inputs]


class ClientSession:
    """A session of party 1 on a thread of its own, which opens it with the first query. ``ahead``: whether it requests
    that the correlations of a next query of the same shapes are made between two queries. ``longest``: seconds that an
    answer may take as a whole (None: no limit)."""

    def __init__(self, link: Link, service: Service, ahead: bool = False, longest: float | None = None) -> None:
        self._link, self._service, self._ahead = link, service, ahead
        self._longest = longest
        self._queries: SimpleQueue[_Query | None] = SimpleQueue()
        self._changing = threading.Lock()
        self._ended_by: BaseException | None = None
        self._unreported: BaseException | None = None  # what ended it between two queries
        self._current: _Query | None = None
        self.idle = threading.Event()  # no query runs, and nothing is made
        self.failed = False  # it ended while it was not idle, after something was computed
        self._allowance = Allowance(1)
        self._idle_since = float("inf")
        self._thread = threading.Thread(target=self._run, name="session", daemon=True)
        self._thread.start()

    @property
    def obstacle(self) -> str:
        """Why the server takes no further query in this session; empty if it does."""
        with self._changing:
            if self._allowance.queries <= 0:
                return "the server allows no further query in this session"
            waited, idle = time.monotonic() - self._idle_since, self._allowance.idle
            return "" if waited < idle else f"the server waits {idle:g} seconds for the next query"

    @property
    def may_continue(self) -> bool:
        """Whether the server takes another query in this session."""
        return not self.obstacle

    def query(self, inputs: Sequence[torch.Tensor], progress: Progress | None = None) -> Answer:
        """One query at a time. An error closes the session. SessionOver if it had ended before, PeerDisconnected if the
        answer took too long."""
        query = _Query(inputs, progress)
        try:
            with self._changing:
                if self._ended_by is not None:
                    self._unreported = None
                    raise _before_query(self._ended_by)
                self.idle.clear()
                self._queries.put(query)
            return query.answer.result(self._longest)
        except TimeoutError:
            late = not query.answer.done()
            self.close()
            if not late:
                raise
            raise PeerDisconnected(f"no answer came within answer_seconds={self._longest:g}") from None
        except BaseException:
            self.close()
            raise

    def close(self) -> None:
        """Ends the session at once, with a query that is under way."""
        self._queries.put(None)
        self._link.close()
        if self._thread is not threading.current_thread():
            self._thread.join(_SECONDS_TO_END)

    def raise_unreported(self) -> None:
        """Once it is closed: raises what ended it between two queries, unless ``query`` has raised it or the server has
        only disconnected: that a server was caught deviating must be reported."""
        with self._changing:
            error, self._unreported = self._unreported, None
        if error is not None:
            raise error

    # ---- on the thread
    def _run(self) -> None:
        query = self._queries.get()
        try:
            if query is not None:
                self._run_queries(query)
            self._end(SessionOver("this session was closed"))
        except BaseException as error:
            self._end(error)
        finally:
            self._link.close()

    def _end(self, error: BaseException) -> None:
        with self._changing:
            self._ended_by = error
            self.failed = not self.idle.is_set() and not isinstance(error, (SessionOver, *HARMLESS))
            self.idle.set()
            pending: list[_Query | None] = [self._current] if self._current is not None else []
            while not self._queries.empty():
                pending.append(self._queries.get())
            unanswered = any(each is not None and not each.answer.done() for each in pending)
            self._unreported = None if unanswered or isinstance(error, PeerDisconnected) else error
        for query in pending:
            if query is not None and not query.answer.done():
                query.answer.set_exception(error)

    def _run_queries(self, query: Any) -> None:
        outputs: Any
        answer: Any
        start, agreed = time.monotonic(), []
        self._current = query

        def agree(channel: _core.Channel) -> EngineOpener:
            agreed.append(request_query(channel, self._service, query.shapes, self._ahead))
            return agreed[0].open

        with open_session(self._link, 1, self._service.settings, "client", agree=agree) as session:
            terms, ahead, turn = agreed[0], Snapshot(), 1
            while True:
                outputs = self._outputs(session, terms, query)
                seconds = time.monotonic() - start
                answer = Answer(outputs, seconds, session.ledger.frozen(), terms.source, ahead, turn)
                with self._changing:
                    self._allowance, self._idle_since = terms.allowance, time.monotonic()
                query.answer.set_result(answer)
                query = self._current = outputs = answer = None  # an idle session keeps no secret
                ahead = Snapshot()
                if terms.allowance.ahead:
                    ahead = terms.prepare(session) + make_ahead(session, terms.next_stock)
                self.idle.set()
                query = self._queries.get()
                if query is None:
                    return
                self.idle.clear()
                self._current, start, turn = query, time.monotonic(), turn + 1
                terms = self._request_next(session, agreed[0], query)

    def _outputs(self, session: Session, terms: Terms, query: _Query) -> tuple[torch.Tensor, ...]:
        program = self._service.program
        report_nodes(session, program, query.shapes, query.progress)
        session.reserve(terms.stock)
        results = program.results(session, *query.inputs)
        terms.settle(session)
        revealed = (reveal(output, to=INPUT_OWNER) for output in results)
        return tuple(value for value in revealed if value is not None)

    def _request_next(self, session: Session, held: Terms, query: _Query) -> Terms:
        channels = self._link.channels
        with between_queries(channels[:2] if self._service.settings.spec.dealt else channels[:1]):
            try:
                channels[0].write(NEXT_QUERY)
                state = self._service.program.held(session)
                terms = request_query(channels[0], self._service, query.shapes, self._ahead, held, state)
                terms.go_on(session, channels)
            except (PeerDisconnected, NeedsNewSession) as error:
                raise SessionOver(f"the session ended before it took the query: {error}") from None
        begin_query(session)
        return terms


def _before_query(error: BaseException) -> BaseException:
    """What a query raises on a session that ended while it was idle: SessionOver if the peer has disconnected, which
    calls for a new session, otherwise the error."""
    if isinstance(error, PeerDisconnected):
        return SessionOver(f"the session ended between two queries: {error}")
    return error


class Client:
    """``with Client(program, "127.0.0.1:9000") as client: answer = client.query(x)``, from any thread.

    ``program``: a Program, or the folder that ``Program.save`` has filled. ``server``: "host:port", or with a dealer
    ``Addresses``. ``spec``: how sessions run, as at the server; formats are the program's. The first query connects;
    later ones go over the same session, without set-up, for as long as the server keeps it. A client follows a server
    that redirects it, once. ``preprocessing``: the store that correlations are taken from. ``ahead``: while the client
    is idle, the correlations of the next query are made, for the same shapes, which leaves only its online phase.
    ``retries``: every attempt is a session of its own with fresh correlations; a busy server may ask for a longer pause
    than ``retries.backoff``; other errors are not retried.

    The program's notices (``Program.notices``: inputs that are not secret) are warnings of the logger
    ``privml``, before anything is sent. ``queries`` counts those that were answered. Raises ConfigError for
    settings that contradict each other.
    """

    def __init__(
        self,
        program: Program | str | Path,
        server: str | Addresses,
        spec: SessionSpec = DEFAULT_SPEC,
        *,
        preprocessing: StoreHalf | None = None,
        ahead: bool = False,
        retries: Retries = NO_RETRIES,
        **moved: Any,
    ) -> None:
        refuse_moved("Client", moved)
        if not isinstance(retries, Retries):
            raise ConfigError(f"retries={retries}: pass retries=Retries(count={retries})")
        addresses = addresses_of(server, spec, preprocessing is not None)
        program = program if isinstance(program, Program) else Program.load(Path(program) / "program")
        for line in program.notices(spec.backend.dealt):
            _LOG.warning("%s", line)
        self.program = program
        self.server, self.queries = addresses.server, 0
        settings = settings_of(self.program, spec, preprocessing)
        self._service = Service(self.program, settings, preprocessing, dealer=addresses.dealer)
        self._retries, self._ahead = retries, ahead
        self._away = connect_options(spec, WEIGHTS_OWNER)
        self._admit(addresses.server, addresses.dealer)
        self._dealer_away = {} if addresses.dealer is None else connect_options(spec, DEALER)
        self._one = threading.Lock()  # a session takes one query at a time
        self._failures = 0  # actively secure sessions that failed
        self._closed = threading.Event()
        self._session: ClientSession | None = None
        self._open: set[ClientSession] = set()

    def query(self, inputs: Any | Sequence[Any], *, progress: Progress | None = None) -> Answer:
        """The outputs for ``inputs``: an array or tensor, or a tuple or list with one of them per input of the program.

        Raises InvalidInput, before anything is sent, for a wrong shape or dtype and for NaN, infinite or too large
        values, which leaves the session as it is; IdentityError when so many actively secure sessions of this client
        have failed that the server may have succeeded with one (``privml.service.aborts``); ServiceBusy and
        PeerDisconnected when all attempts have failed; and at once HandshakeMismatch, StoreError (too few correlations
        left), ProtocolError, SecurityAbort.
        """
        if self.program.state:
            raise ConfigError(
                "this program keeps state between its calls: call it in a session, `with client.session() as s: s(x)`"
            )
        checked = checked_inputs(self.program, self.program.ordered(inputs))
        with self._one:
            for attempt in itertools.count():
                if self._closed.is_set():
                    raise ConfigError("this client is closed: make another one")
                try:
                    answer = self._query(checked, progress)
                    self.queries += 1
                    return answer
                except (ServiceBusy, PeerDisconnected) as error:
                    if not self.wait(attempt, error):
                        raise
        raise AssertionError  # the loop has no other end

    def session(self) -> Steps:
        """A session of its own, for calls one after another: see ``Steps``. Programs that keep state need one."""
        return Steps(self)

    def ready(self, seconds: float) -> bool:
        """Waits until the session has made its next correlations, or has ended, or makes none; False if that takes
        longer than ``seconds``."""
        kept = self._session
        return kept is None or kept.idle.wait(seconds)

    def _query(self, inputs: list[torch.Tensor], progress: Progress | None) -> Answer:
        """In the session that is open, or in a fresh one."""
        kept = self._session
        if kept is not None and kept.may_continue:
            try:
                return kept.query(inputs, progress)
            except SessionOver:
                if self._closed.is_set():
                    raise
            except BaseException:
                self._forget()
                raise
        self._forget()
        self._session, answer = self.follow(partial(self.begin, inputs, progress))
        return answer

    # ---- sessions, for ``Steps`` too
    def follow(self, attempt: Callable[[str, Mapping[str, Any]], Result]) -> Result:
        """``attempt(server, away)``, at the address to which the server sends this client if it does."""
        return following(self.server, self._away, attempt, self._admit)

    def begin(
        self, inputs: list[torch.Tensor], progress: Progress | None, server: str, away: Mapping[str, Any]
    ) -> tuple[ClientSession, Answer]:
        """A session with ``server`` and the answer to its first query."""
        self._require_trust(server)
        fresh = self._connect(server, away)
        self._open.add(fresh)
        try:
            if self._closed.is_set():  # just now
                raise PeerDisconnected("this client was closed")
            return fresh, fresh.query(inputs, progress)
        except BaseException:
            self.end(fresh)
            raise

    def end(self, session: ClientSession) -> None:
        """Closes a session; raises what went wrong while it was idle, unless it is that the server has disconnected."""
        session.close()
        self._open.discard(session)
        self._failures += session.failed and self._service.settings.backend.actively_secure
        session.raise_unreported()

    def wait(self, attempt: int, error: Exception) -> bool:
        """Pauses before another attempt; False if there is to be none."""
        if attempt >= self._retries.count or self._closed.is_set():
            return False
        self._closed.wait(self._pause(attempt, error))
        return True

    def _admit(self, *addresses: str | None) -> None:
        """ConfigError for addresses that this client does not connect to."""
        check_addresses(self._service.settings.spec, *addresses)

    def _connect(self, server: str, away: Mapping[str, Any]) -> ClientSession:
        load_torch()
        deadline, dealer = self._service.settings.spec.deadline, self._service.dealer
        join = lane_opener(server, deadline, away)
        if dealer is not None:
            join = dealer_opener(dealer, INPUT_OWNER, deadline, self._dealer_away)
        link = Link(reach(server, deadline, self._service.settings.spec.on_wait, away), join)
        return ClientSession(link, self._service, self._ahead, self._retries.answer_seconds or None)

    def _forget(self) -> None:
        kept, self._session = self._session, None
        if kept is not None:
            self.end(kept)

    def _require_trust(self, server: str) -> None:
        """See ``privml.service.aborts``: each session is an attempt for a dishonest server as it is for a client."""
        ring = getattr(self._service.settings.spec.engine, "ring", None)
        if ring is not None and self._failures >= LIMITS[ring]:
            raise IdentityError(
                f"{server}: {self._failures} sessions with it failed a check or broke off; this client opens no more"
            )

    def _pause(self, attempt: int, error: Exception) -> float:
        """Seconds until the next attempt, at random, so that clients that fail together do not retry together."""
        pause = self._retries.backoff * 2.0**attempt * random.uniform(0.5, 1.5)  # a time, no secret
        if isinstance(error, ServiceBusy):
            pause = max(pause, error.retry_after)
        return min(pause, LONGEST_PAUSE)

    def close(self) -> None:
        """Ends the session, with a query that another thread may have under way. Idempotent. Raises what went wrong
        while the client was idle (SecurityAbort), unless it is that the server has disconnected."""
        self._closed.set()
        sessions = list(self._open)
        for session in sessions:
            session.close()
        for session in sessions:
            session.raise_unreported()

    def __enter__(self) -> Client:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()

    def __del__(self) -> None:
        if hasattr(self, "_session"):  # its constructor came to an end
            self.close()

    def __repr__(self) -> str:
        return f"Client({self.program!r}, server={self.server!r})"


def query(
    program: Program,
    server: str | Addresses,
    inputs: Any | Sequence[Any],
    spec: SessionSpec = DEFAULT_SPEC,
    *,
    progress: Progress | None = None,
    **settings: Any,
) -> Answer:
    """Asks the server at ``server`` ("host:port", or with a dealer ``Addresses``) for the outputs of ``inputs``: an
    array or tensor, or a tuple or list with one of them per input of the program, or a mapping from their names.
    ``spec``, ``settings``: see
    ``Client``.

    Raises InvalidInput, before anything is sent, for a wrong shape or dtype and for NaN, infinite or too large values;
    then HandshakeMismatch, StoreError (too few correlations left), PeerDisconnected (also when the server is not there
    within ``spec.deadline``), ServiceBusy (with the seconds to wait), ProtocolError. Of a program with state it is the
    first step of a session that ends with it.
    """
    with Client(program, server, spec, **settings) as client:
        return (
            client.session().step(inputs, progress=progress)
            if program.state
            else client.query(inputs, progress=progress)
        )
