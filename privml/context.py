# SPDX-License-Identifier: Apache-2.0
"""What an operator needs to know beyond its arguments: the session, the lane, and whether by-products are kept.

All are context variables, so threads that play different parties, or compute on different lanes, never see each
other's.
"""

from __future__ import annotations

import importlib
import os
import secrets
from collections.abc import Callable
from contextvars import ContextVar, Token
from typing import TYPE_CHECKING, Any

import torch

from privml.errors import ConfigError, PeerDisconnected, ProgramsDiffer, ProtocolError, SecurityAbort
from privml.formats import Numerics, Owned, Placement, current_node, format_text
from privml.transcript import GENERATORS, Transcript, within_step

if TYPE_CHECKING:
    from privml.engines.base import Engine
    from privml.engines.correlations import Correlations
    from privml.generators import CommonGenerators


_lane: ContextVar[int | None] = ContextVar("privml_lane", default=None)


class lane:
    """``with lane(index)``: what this thread computes in a session runs on one of its lanes (None: on all)."""

    __slots__ = ("_index", "_token")

    def __init__(self, index: int | None) -> None:
        self._index = index

    def __enter__(self) -> None:
        self._token = _lane.set(self._index)

    def __exit__(self, *exception: object) -> None:
        _lane.reset(self._token)


class LaneEngines:
    """An engine and those of its lanes, each made when it is first asked for. ``front``: what is computed with in their
    place for a while, if anything: an engine that passes on to ``whole``."""

    def __init__(self, engine: Engine) -> None:
        self.whole, self.front = engine, None
        self._lanes: dict[int, Engine] = {}

    def current(self) -> Engine:
        """The engine of the lane that this thread computes on, or of all lanes, or the one in front of it."""
        if self.front is not None:
            return self.front
        index = _lane.get()
        if index is None:
            return self.whole
        if index not in self._lanes:
            self._lanes[index] = self.whole.lane(index)
        return self._lanes[index]


class Session:
    """One party's (or, in one process, all parties') means of computing: engine, numerics, ledger.

    ``privml.local`` and ``privml.connect`` make them. Anything with the same attributes serves as a session.
    ``ledger`` records costs per node and may be None. Used as a context manager it becomes the
    current session and is closed at the end; a block that ends well waits first until the others have all that this
    party owes them. ``kept``: what others keep with it until then, secrets of its own above all, under keys of
    theirs; what has a method ``wipe`` is wiped then. ``program``: what a call of the session runs; ``ended``:
    whether it was closed. ``transcript``: the hash of what is computed, which is equal at the parties of a real run;
    ``generators``: what seeds the global generators while the session is entered; ``on_failure``: what informs the
    others that the program of a session with generators ended with an error of this class. All are set by what
    connects the parties.

    What is computed in a session raises PeerDisconnected, ProtocolError or SecurityAbort where another party fails, and
    ProgramsDiffer where it computes something else.
    """

    def __init__(
        self,
        engine: Engine,
        numerics: Numerics | None = None,
        ledger: Any = None,
        on_close: Callable[[], None] | None = None,
    ) -> None:
        importlib.import_module("privml.ops.rules")  # the rules stand on this module; they fill the operator table
        self.engines = LaneEngines(engine)
        self.numerics = numerics or Numerics()
        self.working = self.numerics.working
        self.weight = self.numerics.weight
        self.real = self.numerics.real
        self.ledger = ledger
        self.common_seed: int | None = None  # randomness all parties know; set by what connects them
        self.transcript: Transcript | None = None
        self.generators: CommonGenerators | None = None
        self.on_failure: Callable[[type[BaseException]], None] | None = None
        self.kept: dict[Any, Any] = {}
        self.program: Callable[..., Any] | None = None
        self.ended = False
        self._on_close = on_close
        self._process = os.getpid()
        self._generator: torch.Generator | None = None
        self._owned: dict[tuple[int | None, int], Engine] = {}
        self._tokens: list[Token] = []

    @property
    def engine(self) -> Engine:
        """The engine of all lanes, or within ``lane(index)`` that of this lane."""
        self.check_process()
        return self.engines.current()

    def check_process(self) -> None:
        """ConfigError in a forked process: its copy of the session has neither threads nor connections of its own."""
        if os.getpid() != self._process:
            raise ConfigError(
                "this session belongs to the process that opened it, and this is a copy of that process (a "
                "worker of a DataLoader, multiprocessing): set num_workers=0, or open a session in each process"
            )

    @property
    def rank(self) -> int | None:
        """This party's number; None when all parties are in this process."""
        return self.engines.whole.rank

    @property
    def parties(self) -> int:
        """How many parties compute; their ranks begin at 0."""
        return self.engines.whole.parties

    def engine_for(self, placement: Placement) -> Engine:
        """The engine that computes on tensors of this placement: the owner's clear one, or the protocols."""
        if not isinstance(placement, Owned):
            return self.engine
        key = (_lane.get(), placement.party)
        engine = self._owned.get(key)
        if engine is None:
            engine = self._owned[key] = self.engine.owned(placement.party)
        return engine

    def public_generator(self) -> torch.Generator | None:
        """Source of randomness all parties share: from the common seed, else (None) torch's global one."""
        if self.common_seed is not None and self._generator is None:
            self._generator = torch.Generator().manual_seed(self.common_seed % 2**63)
        return self._generator

    def private_generator(self) -> torch.Generator:
        """A fresh source of randomness that this party alone knows, seeded by the operating system, for noise and
        private choices. Not for keys: who sees enough of what it draws can compute the rest; use ``secrets``."""
        return torch.Generator().manual_seed(secrets.randbits(63))

    def step(self, text: str, *public: Any, where: str | None = None, draws: bool = False) -> None:
        """Takes a step of the transcript: an operation, called ``text`` in errors, on ``public`` arguments and secret
        tensors. All parties take the same ones. ``where``: the line of the program, if it is not the caller's;
        ``draws``: that the global generators and the public one agree is part of it. Nothing happens within another
        step."""
        transcript = self.transcript
        if transcript is None or within_step():
            return
        if draws and self.generators is not None:
            self.engine.set_tags(transcript.step(GENERATORS, self._drawn(), where))
        self.engine.set_tags(transcript.step(text, transcript.describe(*public), where))

    def _drawn(self) -> bytes:
        """What the generators that all parties have in common have drawn so far."""
        public, common = self.public_generator(), b"" if self.generators is None else self.generators.digest()
        return common + (b"" if public is None else public.get_state().numpy().tobytes())

    def name(self, result: Any) -> None:
        """Tells the secret tensors in the result of a step from all others."""
        if self.transcript is not None and not within_step():
            self.transcript.chain.name(result)

    def reserve(self, correlations: Correlations | dict[str, Any]) -> None:
        """Makes the correlations of what is to come (``Program.correlations``) ahead of it, as preprocessing.

        All parties call it with the same numbers; what is in stock already counts."""
        self.step("reserve", repr(correlations))
        self.engine.reserve(correlations)

    def __call__(self, *inputs: Any) -> Any:
        """The outputs of the program that the session was opened for, as of a call of it; ConfigError if it was opened
        for none."""
        if self.program is None:
            raise ConfigError("this session was opened for no program: privml.local(program, engine=...)")
        token = _session.set(self)
        try:
            return self.program(*inputs)
        finally:
            _session.reset(token)

    def close(self) -> None:
        """Release channels, threads and keys, and what is kept; idempotent."""
        for value in self.kept.values():
            if hasattr(value, "wipe"):
                value.wipe()
        self.ended = True
        self.kept.clear()  # secrets refer to their session, and its sockets would stay open as long as it lives
        on_close, self._on_close = self._on_close, None
        if on_close is not None:
            on_close()

    def __enter__(self) -> Session:
        if self.generators is not None and not self._tokens:
            self.generators.enter()
        self._tokens.append(_session.set(self))
        return self

    def __exit__(self, *exception: object) -> None:
        _session.reset(self._tokens.pop())
        if self._tokens:
            return
        try:
            if exception[0] is None and self._on_close is not None:
                self.engines.whole.finish()
            elif exception[0] is not None:
                self._report(exception[0])
        finally:
            if self.generators is not None:
                self.generators.leave()
            self.close()

    def _report(self, error: Any) -> None:
        """Informs the others of an error that none of them has reported."""
        raised_by_peers = (PeerDisconnected, ProtocolError, SecurityAbort, ProgramsDiffer)
        if self.generators is not None and self.on_failure is not None and not issubclass(error, raised_by_peers):
            self.on_failure(error)

    def __deepcopy__(self, memo: dict) -> Session:
        return self  # a connection has no copies; tensors that are copied stay in their session

    def __repr__(self) -> str:
        rank = "all parties" if self.rank is None else f"party {self.rank} of {self.parties}"
        return f"Session(engine={self.engine.name}, {rank}; real numbers: {format_text(self.real)})"


_session: ContextVar[Session | None] = ContextVar("privml_session", default=None)


def current_session() -> Session:
    """The session entered last; ConfigError when there is none."""
    session = _session.get()
    if session is None:
        raise ConfigError(
            "no session is open: wrap the code in `with privml.local(engine=...)` or `with privml.connect(...)`"
        )
    return session


def keeps_byproducts(x: torch.Tensor) -> bool:
    """Whether an operator on ``x`` leaves what its backward operator needs."""
    return current_node().keeps or (torch.is_grad_enabled() and x.requires_grad)
