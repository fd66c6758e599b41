# SPDX-License-Identifier: Apache-2.0
"""The client: party 1 asks one server for as many answers as it likes, over few sessions."""

from __future__ import annotations

import itertools
import random
import threading
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import torch

from privml.errors import ConfigError, IdentityError, InvalidInput, PeerDisconnected, ServiceBusy
from privml.program import INPUT_OWNER, WEIGHTS_OWNER, Program
from privml.service.aborts import LIMITS
from privml.service.asking import Answer, Conversation, SessionOver
from privml.service.inputs import checked_input
from privml.service.options import DEFAULT_SPEC, NO_RETRIES, Addresses, Retries, addresses_of, refuse_moved
from privml.service.progress import Progress
from privml.service.request import Service, settings_of
from privml.session.connections import Link, following, reach
from privml.session.dealer import dealer_opener
from privml.session.handshake import DEALER
from privml.session.identity import check_addresses, connect_options
from privml.session.lanes import lane_opener
from privml.session.preprocessing import StoreHalf
from privml.session.session import load_torch
from privml.spec import SessionSpec

# No pause between two attempts is longer.
LONGEST_PAUSE = 60.0


class Client:
    """``with Client(program, "127.0.0.1:9000") as client: answer = client.query(x)``, from any thread.

    ``program``: a Program, or the folder that ``Program.save`` has filled. ``server``: "host:port", or with a dealer
    ``Addresses``. ``spec``: how sessions run, as at the server; formats are the program's. The first query connects;
    later ones go over the same session, without set-up, for as long as the server keeps it. A client follows a server
    that redirects it, once. ``preprocessing``: the store that correlations are taken from. ``ahead``: while the client
    is idle, the correlations of the next query are made, for the same shapes, which leaves only its online phase.
    ``retries``: every attempt is a session of its own with fresh correlations; a busy server may ask for a longer pause
    than ``retries.backoff``; other errors are not retried.

    ``queries`` counts those that were answered. Raises ConfigError for settings that contradict each other.
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
        addresses = addresses_of(server, spec)
        self.program = program if isinstance(program, Program) else Program.load(Path(program) / "program")
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
        self._conversation: Conversation | None = None

    def query(self, inputs: Any | Sequence[Any], *, progress: Progress | None = None) -> Answer:
        """The outputs for ``inputs``: an array or tensor, or a tuple or list with one of them per input of the program.

        Raises InvalidInput, before anything is sent, for a wrong shape or dtype and for NaN, infinite or too large
        values, which leaves the session as it is; IdentityError when so many actively secure sessions of this client
        have failed that the server may have succeeded with one (``privml.service.aborts``); ServiceBusy and
        PeerDisconnected when all attempts have failed; and at once HandshakeMismatch, StoreError (too few correlations
        left), ProtocolError, SecurityAbort.
        """
        checked = checked_inputs(self.program, list(inputs) if isinstance(inputs, (tuple, list)) else [inputs])
        with self._one:
            for attempt in itertools.count():
                if self._closed.is_set():
                    raise ConfigError("this client is closed: make another one")
                try:
                    answer = self._ask(checked, progress)
                    self.queries += 1
                    return answer
                except (ServiceBusy, PeerDisconnected) as error:
                    if attempt >= self._retries.count or self._closed.is_set():
                        raise
                    pause = self._pause(attempt, error)
                self._closed.wait(pause)
        raise AssertionError  # the loop has no other end

    def ready(self, seconds: float) -> bool:
        """Waits until what the session makes ahead is there, or it has ended, or nothing is made; False when that takes
        longer than ``seconds``."""
        kept = self._conversation
        return kept is None or kept.idle.wait(seconds)

    def _ask(self, inputs: list[torch.Tensor], progress: Progress | None) -> Answer:
        """In the session that is open, or in a fresh one."""
        kept = self._conversation
        if kept is not None and kept.has_room:
            try:
                return kept.ask(inputs, progress)
            except SessionOver:
                if self._closed.is_set():
                    raise
            except BaseException:
                self._forget()
                raise
        attempt = partial(self._ask_afresh, inputs, progress)
        return following(self.server, self._away, attempt, self._admit)

    def _ask_afresh(
        self, inputs: list[torch.Tensor], progress: Progress | None, server: str, away: Mapping[str, Any]
    ) -> Answer:
        self._forget()
        self._require_trust(server)
        self._conversation = fresh = self._connect(server, away)
        try:
            if self._closed.is_set():  # just now
                raise PeerDisconnected("this client was closed")
            return fresh.ask(inputs, progress)
        except BaseException:
            self._forget()
            raise

    def _admit(self, *addresses: str | None) -> None:
        """ConfigError for addresses that this client does not talk to."""
        check_addresses(self._service.settings.spec, *addresses)

    def _connect(self, server: str, away: Mapping[str, Any]) -> Conversation:
        load_torch()
        deadline, dealer = self._service.settings.spec.deadline, self._service.dealer
        join = lane_opener(server, deadline, away)
        if dealer is not None:
            join = dealer_opener(dealer, INPUT_OWNER, deadline, self._dealer_away)
        link = Link(reach(server, deadline, self._retries.on_wait, away), join)
        return Conversation(link, self._service, self._ahead, self._retries.answer_seconds or None)

    def _forget(self) -> None:
        kept, self._conversation = self._conversation, None
        if kept is not None:
            kept.close()
            self._failures += kept.failed and self._service.settings.backend.actively_secure
            kept.tell()

    def _require_trust(self, server: str) -> None:
        """See ``privml.service.aborts``: each session is an attempt for a dishonest server as it is for a client."""
        ring = getattr(self._service.settings.spec.engine, "ring", None)
        if ring is not None and self._failures >= LIMITS[ring]:
            raise IdentityError(
                f"{server}: {self._failures} sessions with it failed a check or broke off, so this client opens none"
            )

    def _pause(self, attempt: int, error: Exception) -> float:
        """Seconds until the next attempt; no two clients that fail together come again together."""
        pause = self._retries.backoff * 2.0**attempt * random.uniform(0.5, 1.5)  # a time, no secret
        if isinstance(error, ServiceBusy):
            pause = max(pause, error.retry_after)
        return min(pause, LONGEST_PAUSE)

    def close(self) -> None:
        """Ends the session, with a query that another thread may have under way. Idempotent. Raises what went wrong
        while the client was idle (SecurityAbort), unless it is that the server has gone."""
        self._closed.set()
        kept = self._conversation
        if kept is not None:
            kept.close()
            kept.tell()

    def __enter__(self) -> Client:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()

    def __del__(self) -> None:
        if hasattr(self, "_conversation"):  # its constructor came to an end
            self.close()

    def __repr__(self) -> str:
        return f"Client({self.program!r}, server={self.server!r})"


def checked_inputs(program: Program, values: Sequence[Any]) -> list[torch.Tensor]:
    """The inputs as tensors that the program takes; InvalidInput naming the input and the index."""
    if len(values) != len(program.inputs):
        raise InvalidInput(f"the program takes {len(program.inputs)} input(s), got {len(values)}")
    return [
        checked_input(value, spec.shape, spec.format, spec.name)
        for spec, value in zip(program.inputs, values, strict=True)
    ]
