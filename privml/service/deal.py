# SPDX-License-Identifier: Apache-2.0
"""The dealer: party 2 helps a server and its clients; it knows the program without its weights, and learns nothing."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

import privml._core as _core
from privml.engines.correlations import DEFAULT_OT
from privml.errors import PrivmlError, ProtocolError
from privml.program import Program
from privml.service.dealing import Dealt, deal_session
from privml.service.dispatcher import Capacity
from privml.service.events import Events, Watch, error_fields, one_line, text_lines
from privml.service.host import Host
from privml.service.serve import settings_of, with_ends
from privml.service.server import phases_of
from privml.service.stopping import Stop
from privml.session.connections import listening
from privml.session.dealer import Gathering, Lobby
from privml.session.handshake import DEALER, DEALER_ROLE, answer_busy, hear_hello
from privml.session.identity import Tls, check_addresses, link_to
from privml.session.lanes import session_name
from privml.session.session import Settings, load_torch
from privml.spec import Identity

# Sessions at a time; most of a session the dealer's thread waits for the others.
DEALER_CAPACITY = Capacity(workers=16)
# Sessions that are being told that there is no room; further ones are closed without a word.
_MOST_TOLD = 16


def deal(
    program: Program,
    listen: str,
    *,
    truncation: str = "auto",
    device: str = "cpu",
    deadline: float = 60.0,
    sessions: int = 0,
    network: Mapping[str, float] | None = None,
    tls: Tls | None = None,
    insecure: bool = False,
    log: Callable[[str], None] = print,
    on_listening: Callable[[int], None] | None = None,
    on_end: Callable[[Dealt], None] | None = None,
    on_event: Watch | None = None,
    capacity: Capacity = DEALER_CAPACITY,
    stop: Stop | None = None,
) -> int:
    """Deals on ``listen`` ("host:port") for a server and its clients until ``sessions`` have begun (0: for ever) or
    ``stop`` is asked; returns how many ended well.

    Each session runs on a thread of its own; whatever goes wrong in one ends it with one line to ``log``. ``deadline``:
    seconds that a read may wait for another party; the other settings as in ``serve``.
    Raises ConfigError for a port in use and wrong settings, and what a callback raises.
    """
    settings = settings_of(program, DEFAULT_OT, dealer=listen, truncation=truncation, device=device)
    settings = with_ends(settings, deadline, network, Identity(tls, insecure))
    check_addresses(settings.spec, listen)
    load_torch()
    events = Events(text_lines(log), on_event)
    with listening(listen) as listener:
        dealer = Dealer(
            program,
            settings,
            tls,
            on_end,
            listener,
            link_to(settings.spec, 0, 1),
            events,
            capacity=capacity,
            stop=stop or Stop(),
            deadline=deadline,
            limit=sessions,
        )
        if on_listening is not None:
            on_listening(listener.port)
        text = f"dealing on port {listener.port}, program {program.hash[:12]}"
        events.tell("listening", text=text, port=listener.port, program=program.hash)
        dealer.run()
    return dealer.ended


class Dealer(Host[Gathering]):
    """Party 2. It counts sessions that have begun."""

    def __init__(
        self,
        program: Program,
        settings: Settings,
        tls: Tls | None,
        on_end: Callable[[Dealt], None] | None,
        *places: Any,
        **options: Any,
    ) -> None:
        super().__init__(*places, **options)
        self._program, self._settings, self._on_end = program, settings, on_end
        self._limit = options["capacity"].query_limit
        self._patience = min(options["capacity"].hello_seconds, self.deadline)
        self._lobby = Lobby(self._patience, lambda text: self.events.tell("refused", text=text, reason="gone"), tls)
        self._counting, self._begun, self.ended = threading.Lock(), 0, 0
        self._tokens: set[bytes] = set()  # of the sessions that wait or run
        self._telling = threading.BoundedSemaphore(_MOST_TOLD)

    @property
    def count(self) -> int:
        return self._begun

    def hear(self, channel: _core.Channel) -> Callable[[], None]:
        return partial(self._add, channel, *self._lobby.hear(channel))

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

    def run(self) -> int:
        try:
            return super().run()
        finally:
            self._lobby.close()

    def turn_away(self, guest: Gathering, seconds: float) -> None:
        self._forget(guest)
        if not self._telling.acquire(blocking=False):
            guest.close()
            return
        threading.Thread(target=self._tell_busy, args=(guest, seconds), name="busy", daemon=True).start()

    def _tell_busy(self, guest: Gathering, seconds: float) -> None:
        """The parties say hello when they have agreed with each other; only then can they hear that there is no
        session."""
        end = threading.Timer(self._patience, guest.close)
        end.start()
        try:
            for rank in range(DEALER):
                hear_hello(guest.channels[rank, 0], self._settings.hello(DEALER, DEALER_ROLE), peer=rank)
                answer_busy(guest.channels[rank, 0], seconds)
        except PrivmlError:
            pass  # a party that does not want to know
        finally:
            end.cancel()
            guest.close()
            self._telling.release()

    def _forget(self, guest: Gathering) -> None:
        with self._counting:
            self._tokens.discard(guest.token)

    def attend(self, guest: Gathering) -> None:
        name, start = session_name(guest.token), time.monotonic()
        with self._counting:
            self._begun += 1
        self.events.tell("started", name, peer=guest.peer, waited=start - guest.since)
        try:
            dealt = deal_session(guest, Program(self._program.body), self._settings, limit=self._limit)
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
        if self._on_end is not None:
            self._on_end(dealt)
