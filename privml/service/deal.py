# SPDX-License-Identifier: Apache-2.0
"""The dealer: party 2 helps a server and its clients; it knows the program without its weights, and learns nothing."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from functools import partial
from typing import Any

import privml._core as _core
from privml.errors import ConfigError, PrivmlError, ProtocolError
from privml.program import INPUT_OWNER, WEIGHTS_OWNER, Program
from privml.service.dealing import Dealt, deal_session
from privml.service.events import Events, error_fields, one_line, text_lines
from privml.service.host import Host
from privml.service.options import DEFAULT_HOOKS, DEFAULT_SPEC, Capacity, Hooks, refuse_moved
from privml.service.request import Service, settings_of
from privml.service.server import phases_of
from privml.session.connections import listening
from privml.session.dealer import PendingSessions, SessionConnections
from privml.session.handshake import DEALER, DEALER_ROLE, answer_busy, receive_hello
from privml.session.identity import check_addresses
from privml.session.lanes import session_name
from privml.session.session import load_torch
from privml.spec import SessionSpec

# Sessions at a time; most of a session the dealer's thread waits for the others.
DEALER_CAPACITY = Capacity(workers=16)
# Sessions that are being told that there is no room; further ones are closed without a word.
_MOST_TOLD = 16


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
        events.tell("listening", text=text, port=listener.port, program=program.hash)
        dealer.run(sessions)
    return dealer.ended


def refuse_without_dealer(spec: SessionSpec) -> None:
    """ConfigError for an engine of two parties."""
    if not spec.backend.dealt:
        raise ConfigError(f"engine={spec.backend.name} has no dealer: choose an engine of three parties")


class Dealer(Host[SessionConnections]):
    """Party 2. It counts sessions that have begun."""

    callers = (WEIGHTS_OWNER, INPUT_OWNER)

    def __init__(
        self, service: Service, listener: _core.TcpListener, events: Events, capacity: Capacity, hooks: Hooks
    ) -> None:
        super().__init__(service.settings, listener, events, capacity, hooks)
        self._service = service
        tls = service.settings.spec.identity.tls
        self._lobby = PendingSessions(
            self.patience, lambda text: self.events.tell("refused", text=text, reason="gone"), tls
        )
        self._counting, self._begun, self.ended = threading.Lock(), 0, 0
        self._tokens: set[bytes] = set()  # of the sessions that wait or run
        self._telling = threading.BoundedSemaphore(_MOST_TOLD)

    @property
    def count(self) -> int:
        return self._begun

    def hear(self, channel: _core.Channel) -> Callable[[], None]:
        return partial(self._add, channel, *self._lobby.receive(channel))

    def _add(self, channel: _core.Channel, token: bytes, place: tuple[int, int]) -> None:
        gathering = self._lobby.add(channel, token, place)
        if gathering is None:
            return
        with self._counting:
            twice = token in self._tokens
            self._tokens.add(token)
        if twice:
            gathering.close()
            raise ProtocolError("a session of its name is under way")
        self.offer(gathering, session_name(token))

    def tidy(self) -> None:
        super().tidy()
        self._lobby.expire()

    def run(self, limit: int = 0) -> int:
        try:
            return super().run(limit)
        finally:
            self._lobby.close()

    def turn_away(self, guest: SessionConnections, seconds: float) -> None:
        self._forget(guest)
        if not self._telling.acquire(blocking=False):
            guest.close()
            return
        threading.Thread(target=self._tell_busy, args=(guest, seconds), name="busy", daemon=True).start()

    def _tell_busy(self, guest: SessionConnections, seconds: float) -> None:
        """The parties say hello when they have agreed with each other; only then can they hear that there is no
        session."""
        end = threading.Timer(self.patience, guest.close)
        end.start()
        try:
            for rank in range(DEALER):
                receive_hello(guest.channels[rank, 0], self.settings.hello(DEALER, DEALER_ROLE), peer=rank)
                answer_busy(guest.channels[rank, 0], seconds)
        except PrivmlError:
            pass  # a party that does not want to know
        finally:
            end.cancel()
            guest.close()
            self._telling.release()

    def _forget(self, guest: SessionConnections) -> None:
        with self._counting:
            self._tokens.discard(guest.token)

    def attend(self, guest: SessionConnections) -> None:
        name, start = session_name(guest.token), time.monotonic()
        with self._counting:
            self._begun += 1
        self.events.tell("started", name, peer=guest.peer, waited=start - guest.since)
        try:
            dealt = deal_session(guest, self._service)
        except Exception as error:  # whatever the others do, the next ones are served
            error, result = self.cause(guest, error)
            text = f"a session ended before its answer: {one_line(error)}"
            self.events.tell("failed", name, text, peer=guest.peer, result=result, **error_fields(error))
            return
        finally:
            self._forget(guest)
        phases = phases_of(dealt.ledger.snapshot())
        self.events.tell("ended", name, str(dealt), peer=guest.peer, result="answered", phases=phases)
        self.events.call(self._finish, dealt)

    def _finish(self, dealt: Dealt) -> None:
        self.ended += 1
        if self.hooks.on_answer is not None:
            self.hooks.on_answer(dealt)
