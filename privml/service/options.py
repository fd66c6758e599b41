# SPDX-License-Identifier: Apache-2.0
"""Settings of services and clients beside those of sessions: addresses, limits, retries, callbacks."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from privml.errors import ConfigError, InvalidInput
from privml.session.supply import MOST_QUERIES
from privml.spec import SessionSpec, checked_spec

if TYPE_CHECKING:
    from privml.program import TensorSpec
    from privml.service.events import Progress, Stop, Watch
    from privml.service.sessions import State

DEFAULT_SPEC = SessionSpec()

# The largest query that a party accepts: the client chooses the shapes, and with them how much the server computes.
ROWS, ELEMENTS = 256, 1 << 22
# The most state that is kept for one client.
STATE_BYTES = 1 << 30
# Queries of a session whose products are prepared together: the client holds its halves in memory, too.
MOST_PREPARED = MOST_QUERIES
# No setting allows more.
MOST_ROWS = MOST_ELEMENTS = 1 << 24


@dataclass(frozen=True, slots=True)
class QueryLimit:
    """The most ``rows`` of a query, which is every size that the program leaves open, and the most ``elements`` of all
    its inputs together; the smallest query that a program takes always fits. Raises ConfigError."""

    rows: int = ROWS
    elements: int = ELEMENTS

    def __post_init__(self) -> None:
        for name, most in (("rows", MOST_ROWS), ("elements", MOST_ELEMENTS)):
            value = getattr(self, name)
            if type(value) is not int or not 1 <= value <= most:
                raise ConfigError(f"query_{name}={value} must be a whole number from 1 to {most}")

    def check(self, specs: Sequence[TensorSpec], shapes: Sequence[Sequence[int]]) -> None:
        """InvalidInput, which names the setting, for ``shapes`` of the inputs ``specs`` that are too large."""
        for spec, shape in zip(specs, shapes, strict=True):
            rows = max((size for size, fixed in zip(shape, spec.shape, strict=True) if fixed is None), default=1)
            if rows > self.rows:
                raise InvalidInput(
                    f"input {spec.name!r}: shape {list(shape)}, but this party takes at most {self.rows} rows a query "
                    "(its setting query_rows): ask for fewer at a time"
                )
        elements = sum(math.prod(shape) for shape in shapes)
        smallest = sum(math.prod(size or 1 for size in spec.shape) for spec in specs)
        if elements > max(self.elements, smallest):
            raise InvalidInput(
                f"inputs of {elements} elements, but this party takes at most {self.elements} a query "
                "(its setting query_elements): ask for fewer at a time"
            )


LARGEST_QUERY = QueryLimit(MOST_ROWS, MOST_ELEMENTS)


@dataclass(frozen=True, slots=True)
class Addresses:
    """Where the parties of a service listen, as ``host:port``: the ``server``, and the ``dealer`` of an engine that has
    one."""

    server: str
    dealer: str | None = None


def addresses_of(given: str | Addresses, spec: SessionSpec, stored: bool = False) -> Addresses:
    """``given`` as ``Addresses``; ConfigError for a dealer whose engine has none, and for an engine without its
    dealer. ``stored``: queries take what a dealer deals from a store, so that there must be no dealer."""
    checked_spec(spec)
    addresses = Addresses(given) if isinstance(given, str) else given
    engine = spec.backend
    if engine.dealt and stored:
        if addresses.dealer is not None:
            raise ConfigError(
                f"the store has what the dealer dealt, and no dealer takes part: leave out the address "
                f"{addresses.dealer}, or the store",
                command_line=f"preprocessing=... stands in place of dealer={addresses.dealer}: leave out one of them",
            )
        return addresses
    if engine.dealt and addresses.dealer is None:
        why = f"engine={engine.name} has a dealer: give its address, "
        raise ConfigError(f"{why}Addresses(server, dealer)", command_line=f"{why}dealer=host:port")
    if addresses.dealer is not None and not engine.dealt:
        raise ConfigError(
            f"engine={engine.name} has no dealer: leave out the address {addresses.dealer}, or choose an engine of "
            "three parties"
        )
    return addresses


@dataclass(frozen=True, slots=True)
class Capacity:
    """The most that a service handles at a time: ``workers`` sessions, each for at most ``session_seconds`` (0: no
    limit); ``queue`` more that wait, each for at most ``queue_seconds``; and, of all these, ``sessions_per_name`` with
    peers that have proved one name (0: no limit). ``half_open`` connections may not have sent their first message, and
    each has ``hello_seconds`` for it. A query has at most ``query_rows`` rows and ``query_elements`` elements
    (``QueryLimit``). The state that the sessions with one name keep takes at most ``state_bytes`` (32 for each number;
    of peers without a name each session's own). When the service ends, sessions under way have ``drain_seconds``.
    Raises ConfigError."""

    workers: int = 4
    queue: int = 16
    queue_seconds: float = 30.0
    half_open: int = 64
    hello_seconds: float = 10.0
    drain_seconds: float = 30.0
    session_seconds: float = 3600.0
    sessions_per_name: int = 0
    query_rows: int = ROWS
    query_elements: int = ELEMENTS
    state_bytes: int = STATE_BYTES

    def __post_init__(self) -> None:
        whole = {"workers": 1, "queue": 0, "half_open": 1, "sessions_per_name": 0, "state_bytes": 0}
        for name, least in whole.items():
            if type(getattr(self, name)) is not int or getattr(self, name) < least:
                raise ConfigError(f"{name}={getattr(self, name)} must be a whole number, at least {least}")
        for name in ("queue_seconds", "hello_seconds", "drain_seconds", "session_seconds"):
            if not 0 <= getattr(self, name) < math.inf:
                raise ConfigError(f"{name}={getattr(self, name)} must be a number of seconds")
        QueryLimit(self.query_rows, self.query_elements)

    @property
    def query_limit(self) -> QueryLimit:
        return QueryLimit(self.query_rows, self.query_elements)


DEFAULT_CAPACITY = Capacity()


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """Limits of a server. It ends after ``queries`` answers (0: never). A session has at most ``session_queries``
    queries and may be idle for ``idle`` seconds between two of them; meanwhile the correlations of the next query are
    made ``ahead`` for clients that ask for it, and the products with weights of ``prepare`` queries are prepared
    together whenever none is left (0: never). ``capacity``: what it handles at a time. ``aborts``: the file that
    counts each client's failed sessions of an actively secure engine (None: ``default_aborts_file``). Raises
    ConfigError."""

    queries: int = 0
    session_queries: int = 1000
    idle: float = 60.0
    ahead: bool = True
    prepare: int = 0
    capacity: Capacity = DEFAULT_CAPACITY
    aborts: str | Path | None = None

    def __post_init__(self) -> None:
        if type(self.queries) is not int or self.queries < 0:
            raise ConfigError(f"queries={self.queries} must be a whole number, at least 0")
        if type(self.session_queries) is not int or self.session_queries < 1:
            raise ConfigError(f"session_queries={self.session_queries} must be a whole number, at least 1")
        if not 0 < self.idle < math.inf:
            raise ConfigError(f"idle={self.idle} must be a positive number of seconds")
        if type(self.prepare) is not int or not 0 <= self.prepare <= MOST_PREPARED:
            raise ConfigError(f"prepare={self.prepare} must be a whole number of queries, at most {MOST_PREPARED}")
        if self.prepare and not self.ahead:
            raise ConfigError(f"prepare={self.prepare} prepares products ahead of queries, which ahead=False rules out")


DEFAULT_LIMITS = Limits()


@dataclass(frozen=True, slots=True)
class Retries:
    """How long a client tries: a query is repeated up to ``count`` times if the server is busy, gone or silent, or if
    the answer takes longer than ``answer_seconds`` (0: no limit); first after ``backoff`` seconds, then after twice as
    many each time, varied at random by half. Raises ConfigError."""

    count: int = 0
    backoff: float = 1.0
    answer_seconds: float = 0.0

    def __post_init__(self) -> None:
        if type(self.count) is not int or self.count < 0 or not 0 < self.backoff < math.inf:
            raise ConfigError(
                f"retries={self.count} must be a whole number and backoff={self.backoff} positive seconds"
            )
        if not 0 <= self.answer_seconds < math.inf:
            raise ConfigError(f"answer_seconds={self.answer_seconds} must be a number of seconds")


NO_RETRIES = Retries()


@dataclass(frozen=True, slots=True)
class Hooks:
    """How a service reports to the program that runs it, and is stopped by it.

    ``log`` gets lines of text; ``on_listening`` the port; ``on_answer`` each answer (``Answered``; from a dealer each
    session that has ended well, ``Dealt``); ``on_event`` everything that happens (``privml.service.events``);
    ``on_state`` the service's ``State`` whenever it changes; ``progress`` (done, in all, name of the node; see
    ``events.Progress``) of each session, on that session's thread. The others are called from any thread, one call at a
    time; what they raise ends the service. ``monitor``: address on this machine that answers with health and metrics.
    ``stop``: asks the service to end.
    """

    log: Callable[[str], None] = print
    on_listening: Callable[[int], None] | None = None
    on_answer: Callable[[Any], None] | None = None
    on_event: Watch | None = None
    on_state: Callable[[State], None] | None = None
    progress: Progress | None = None
    monitor: str | None = None
    stop: Stop | None = None


DEFAULT_HOOKS = Hooks()

# Where settings that were parameters of their own are now.
_MOVED = {
    **dict.fromkeys(("ot", "threads", "deadline", "on_wait"), "spec=SessionSpec({}=...)"),
    **dict.fromkeys(("truncation", "device", "ring"), "spec=SessionSpec(engine=privml.engine(NAME, {}=...))"),
    **dict.fromkeys(("tls", "insecure"), "spec=SessionSpec(identity=Identity({}=...))"),
    "network": "spec=SessionSpec(simulated=LinkProfile(...))",
    "link_profile": "spec=SessionSpec(link=LinkProfile(...))",
    "dealer": "the second of Addresses(server, dealer)",
    **dict.fromkeys(("queries", "capacity", "aborts"), "limits=Limits({}=...)"),
    **dict.fromkeys(
        ("log", "on_listening", "on_answer", "on_event", "on_state", "progress", "monitor", "stop"),
        "hooks=Hooks({}=...)",
    ),
    "on_end": "hooks=Hooks(on_answer=...)",
    **dict.fromkeys(("backoff", "answer_seconds"), "retries=Retries({}=...)"),
}


def refuse_moved(function: str, given: Mapping[str, Any], within: str = "") -> None:
    """For keywords that ``function`` does not take: ConfigError with the new place of a setting that has moved, which
    is ``within`` another value, TypeError for all others."""
    for name in given:
        if name not in _MOVED:
            raise TypeError(f"{function}() got an unexpected keyword argument {name!r}")
        raise ConfigError(f"{function}() has no parameter {name}: pass {within}{_MOVED[name].format(name)}")
