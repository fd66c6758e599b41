# SPDX-License-Identifier: Apache-2.0
"""What a client does in a session: asks, runs, learns the outputs; and asks again on the same connections."""

from __future__ import annotations

import threading
import time
from collections.abc import Sequence
from concurrent.futures import Future, TimeoutError
from dataclasses import dataclass, field
from queue import SimpleQueue

import torch

import privml._core as _core
from privml.context import Session
from privml.errors import PeerDisconnected
from privml.program import INPUT_OWNER
from privml.service.aborts import HARMLESS
from privml.service.answering import AGAIN
from privml.service.progress import Progress, report_nodes
from privml.service.request import AnyTerms, Elsewhere, Room, Service, ask
from privml.session.connections import Link
from privml.session.ledger import Ledger, Snapshot, begin_query, between_queries, make_ahead
from privml.session.session import EngineOpener, open_session
from privml.sharing import reveal

# How long the thread of an ended session may take to clean up.
_SECONDS_TO_END = 10.0


@dataclass(frozen=True, slots=True)
class Answer:
    """The outputs of a query in clear, what it cost this party, and where its correlations came from. ``ahead``: what
    had been spent on its correlations, before it was asked, by its session while that was idle; ``turn``: which query
    of its session it was, counted from 1."""

    outputs: tuple[torch.Tensor, ...]
    seconds: float
    ledger: Ledger
    source: str
    ahead: Snapshot = Snapshot()
    turn: int = 1


class SessionOver(PeerDisconnected):
    """The session ended before it took the query, of which nothing was sent or run: a fresh one may take it."""


@dataclass(slots=True)
class _Request:
    inputs: Sequence[torch.Tensor]
    progress: Progress | None
    answer: Future[Answer] = field(default_factory=Future)

    @property
    def shapes(self) -> list[tuple[int, ...]]:
        return [tuple(value.shape) for value in self.inputs]


class Conversation:
    """A session of party 1 on a thread of its own, which opens it with the first query. ``ahead``: whether the server
    is asked to make correlations of a next query of the same shapes in between, where it does not ask at once.
    ``longest``: seconds that an answer may take as a whole, None: as long as it takes."""

    def __init__(self, link: Link, service: Service, ahead: bool = False, longest: float | None = None) -> None:
        self._link, self._service, self._ahead = link, service, ahead
        self._longest = longest
        self._requests: SimpleQueue[_Request | None] = SimpleQueue()
        self._changing = threading.Lock()
        self._over: BaseException | None = None
        self._untold: BaseException | None = None  # what ended it while nothing was asked
        self._current: _Request | None = None
        self.idle = threading.Event()  # nothing is asked, made or run
        self.failed = False  # it ended while something was, and not before anything was computed
        self._room = Room(1)
        self._idle_since = float("inf")
        self._thread = threading.Thread(target=self._run, name="session", daemon=True)
        self._thread.start()

    @property
    def has_room(self) -> bool:
        """Whether another query may be asked here."""
        with self._changing:
            waited = time.monotonic() - self._idle_since
            return self._room.queries > 0 and waited < self._room.idle

    def ask(self, inputs: Sequence[torch.Tensor], progress: Progress | None = None) -> Answer:
        """One query at a time. Whatever it raises, the session is closed then; SessionOver when that had happened
        before, PeerDisconnected where the answer took too long."""
        request = _Request(inputs, progress)
        try:
            with self._changing:
                if self._over is not None:
                    self._untold = None
                    raise _before_asking(self._over)
                self.idle.clear()
                self._requests.put(request)
            return request.answer.result(self._longest)
        except TimeoutError:
            late = not request.answer.done()
            self.close()
            if not late:
                raise
            raise PeerDisconnected(f"no answer came within answer_seconds={self._longest:g}") from None
        except BaseException:
            self.close()
            raise

    def close(self) -> None:
        """Ends the session at once, with a query that is under way."""
        self._requests.put(None)
        self._link.close()
        if self._thread is not threading.current_thread():
            self._thread.join(_SECONDS_TO_END)

    def tell(self) -> None:
        """Once it is closed: raises what ended it while nothing was asked, unless ``ask`` has or the server has merely
        gone. A server that was caught deviating is not to be forgotten."""
        with self._changing:
            error, self._untold = self._untold, None
        if error is not None:
            raise error

    # ---- on the thread
    def _run(self) -> None:
        request = self._requests.get()
        try:
            if request is not None:
                self._converse(request)
            self._end(SessionOver("this session was closed"))
        except BaseException as error:
            self._end(error)
        finally:
            self._link.close()

    def _end(self, error: BaseException) -> None:
        with self._changing:
            self._over = error
            self.failed = not self.idle.is_set() and not isinstance(error, (SessionOver, *HARMLESS))
            self.idle.set()
            waiting = [self._current] if self._current is not None else []
            while not self._requests.empty():
                waiting.append(self._requests.get())
            asked = any(each is not None and not each.answer.done() for each in waiting)
            self._untold = None if asked or isinstance(error, PeerDisconnected) else error
        for request in waiting:
            if request is not None and not request.answer.done():
                request.answer.set_exception(error)

    def _converse(self, request: _Request) -> None:
        start, settled = time.monotonic(), []
        self._current = request

        def agree(channel: _core.Channel) -> EngineOpener:
            settled.append(ask(channel, self._service, request.shapes, self._ahead))
            return settled[0].open

        with open_session(self._link, 1, self._service.settings, "client", agree=agree) as session:
            terms, ahead, turn = settled[0], Snapshot(), 1
            while True:
                outputs = self._outputs(session, terms, request)
                seconds = time.monotonic() - start
                answer = Answer(outputs, seconds, session.ledger.frozen(), terms.source, ahead, turn)
                with self._changing:
                    self._room, self._idle_since = terms.room, time.monotonic()
                request.answer.set_result(answer)
                request = self._current = outputs = answer = None  # an idle session keeps no secret
                ahead = make_ahead(session, terms.next_stock) if terms.room.ahead else Snapshot()
                self.idle.set()
                request = self._requests.get()
                if request is None:
                    return
                self.idle.clear()
                self._current, start, turn = request, time.monotonic(), turn + 1
                terms = self._ask_again(session, settled[0], request)

    def _outputs(self, session: Session, terms: AnyTerms, request: _Request) -> tuple[torch.Tensor, ...]:
        program = self._service.program
        report_nodes(session, program, request.progress)
        session.reserve(terms.stock)
        return tuple(reveal(output, to=INPUT_OWNER) for output in program.results(session, *request.inputs))

    def _ask_again(self, session: Session, held: AnyTerms, request: _Request) -> AnyTerms:
        channels = self._link.channels
        with between_queries(channels[:2] if self._service.settings.backend.dealt else channels[:1]):
            try:
                channels[0].write(AGAIN)
                terms = ask(channels[0], self._service, request.shapes, self._ahead, held)
                terms.go_on(session, channels)
            except (PeerDisconnected, Elsewhere) as error:
                raise SessionOver(f"the session ended before it took the query: {error}") from None
        begin_query(session)
        return terms


def _before_asking(error: BaseException) -> BaseException:
    """What ended an idle session, for who wants to ask: that the peer has gone asks for another session, all else is
    to be told."""
    if isinstance(error, PeerDisconnected):
        return SessionOver(f"the session ended while nothing was asked: {error}")
    return error
