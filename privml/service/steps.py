# SPDX-License-Identifier: Apache-2.0
"""Step by step in one session with a server, which keeps a program's state between the steps."""

from __future__ import annotations

import itertools
import threading
from functools import partial
from typing import TYPE_CHECKING, Any

import torch

from privml.errors import ConfigError, PeerDisconnected, ServiceBusy, StateLost
from privml.graph.state import State
from privml.service.inputs import checked_inputs

if TYPE_CHECKING:
    from privml.service.client import Answer, Client, ClientSession
    from privml.service.events import Progress


class Steps:
    """``with client.session() as s: y = s(x)``: steps of one session, one after another.

    The session begins with the first step. It is never begun again: once it has ended, however it did, or a step has
    failed, the state is gone and every further step raises StateLost. An input that is refused before anything is sent
    (InvalidInput) leaves it as it is. ``steps`` counts those that were answered.
    """

    def __init__(self, client: Client) -> None:
        self._client, self._one = client, threading.Lock()
        self._session: ClientSession | None = None
        self._passed = State(client.program.state, None)  # what the parties hold, without its values
        self._over = ""

    @property
    def steps(self) -> int:
        return self._passed.steps

    def __call__(self, *inputs: Any) -> torch.Tensor | tuple[torch.Tensor, ...]:
        """The outputs of the next step, for one tensor or array per input of the program: a tensor, or a tuple of
        several; errors of ``step``."""
        outputs = self.step(inputs[0] if len(inputs) == 1 else inputs).outputs
        return outputs[0] if len(outputs) == 1 else outputs

    def step(self, inputs: Any, *, progress: Progress | None = None) -> Answer:
        """The next step, for inputs as ``Client.query`` takes them.

        Raises InvalidInput, before anything is sent; ConfigError while another thread's step is under way; StateLost
        for a session that is over; for the first step what opening a session raises, and ServiceBusy once
        ``retries`` are used up; SecurityAbort and ProtocolError as they are, which end the session too.
        """
        if not self._one.acquire(blocking=False):
            raise ConfigError("a step of this session is running: send its steps one after another")
        try:
            program = self._client.program
            checked = checked_inputs(program, program.ordered(inputs))
            size = program.open_size([tuple(value.shape) for value in checked])
            self._require_session()
            self._passed.check(size)
            answer = self._answered(checked, progress)
            self._passed.passed(size)
            self._client.queries += 1
            return answer
        finally:
            self._one.release()

    def close(self) -> None:
        """Ends the session and its state, at all parties. Idempotent. Raises what went wrong while it was idle, as
        ``Client.close`` does."""
        session, self._session = self._session, None
        self._over = self._over or "the session was closed"
        if session is not None:
            self._client.end(session)

    def __enter__(self) -> Steps:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()

    def _require_session(self) -> None:
        if self._over:
            raise StateLost(f"the state is gone after {self.steps} step(s): {self._over}")
        why = "" if self._session is None else self._session.obstacle
        if why:
            self._lose(StateLost(why))

    def _answered(self, checked: list[torch.Tensor], progress: Progress | None) -> Answer:
        try:
            if self._session is None:
                return self._begin(checked, progress)
            return self._session.query(checked, progress)
        except BaseException as error:
            self._lose(error)

    def _begin(self, checked: list[torch.Tensor], progress: Progress | None) -> Answer:
        """The first step, in a session that is opened for it; only a busy server is asked again."""
        for attempt in itertools.count():
            try:
                begin = partial(self._client.begin, checked, progress)
                session, answer = self._client.follow(begin)
                if self._over:  # closed while it was begun
                    self._client.end(session)
                    raise StateLost(self._over)
                self._session = session
                return answer
            except ServiceBusy as error:
                if not self._client.wait(attempt, error):
                    raise
        raise AssertionError  # the loop has no other end

    def _lose(self, error: BaseException) -> Any:
        """The session is over: raises ``error``, or StateLost if the peer has only gone."""
        self._over = f"{type(error).__name__}: {error}" if not isinstance(error, StateLost) else str(error)
        session, self._session = self._session, None
        if session is not None:
            self._client.end(session)
        if self.steps and isinstance(error, (PeerDisconnected, StateLost)):
            raise StateLost(f"the state is gone after {self.steps} step(s): {error}") from error
        if self.steps and isinstance(error, Exception):
            error.add_note(f"the state is gone after {self.steps} step(s)")
        raise error
