# SPDX-License-Identifier: Apache-2.0
"""What happens in a service: events for its log, its metrics and the program that runs it; progress; and its end.

Nothing here depends on a secret: names of peers, shapes, durations, bytes, and messages of errors, which hold no
values.
"""

from __future__ import annotations

import contextlib
import signal
import threading
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from types import FrameType
from typing import Any, TextIO

from privml.context import Session
from privml.errors import (
    ConfigError,
    HandshakeMismatch,
    IdentityError,
    PeerDisconnected,
    ProtocolError,
    SecurityAbort,
    ServiceBusy,
)
from privml.program import Program

# Longer text that comes from a peer is cut.
LONGEST_TEXT = 500

# Why a connection was refused, by what ended it; the first that fits.
_REASONS: tuple[tuple[type[BaseException], str], ...] = (
    (ServiceBusy, "busy"),
    (HandshakeMismatch, "mismatch"),
    (IdentityError, "identity"),
    (ProtocolError, "protocol"),
    (PeerDisconnected, "gone"),
)
REASONS = (*(reason for _, reason in _REASONS), "other")


def printable(text: str) -> str:
    """``text`` on one line, with what could steer a terminal or forge a line of a log written as \\xNN or \\uNNNN."""
    escaped = "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in text[:LONGEST_TEXT])
    return escaped + ("..." if len(text) > LONGEST_TEXT else "")


def reason_of(error: BaseException) -> str:
    """Why a connection was refused, in one word of ``REASONS``."""
    return next((reason for kind, reason in _REASONS if isinstance(error, kind)), "other")


@dataclass(frozen=True, slots=True)
class Event:
    """``kind``: "listening"; "note", of the program; of a connection "refused"; of a session "queued", "started",
    "ended" or "failed"; of a query "answered"; "draining"; "stopped". ``session``: the name of the session it
    belongs to, which both parties know it by; "" if there is none yet.
    ``fields``: numbers, printable text, and lists and dictionaries of these; ``peer`` is the name that the peer has
    proved, ``address`` where it connects from."""

    kind: str
    session: str = ""
    fields: dict[str, Any] = field(default_factory=dict)
    # The same for people; empty where they need not know.
    text: str = ""

    @property
    def severity(self) -> str:
        """As logs name it."""
        if self.fields.get("error") == SecurityAbort.__name__:
            return "error"
        return "warning" if self.kind in ("refused", "failed") else "info"


Watch = Callable[[Event], None]


class Events:
    """Calls every watcher with each event, one at a time, whichever thread it happens in. What a watcher raises is kept
    in ``failure``, and ends the service."""

    def __init__(self, *watchers: Watch | None) -> None:
        self._watchers = [watch for watch in watchers if watch is not None]
        self._lock = threading.Lock()
        self.failure: BaseException | None = None

    def emit(self, kind: str, session: str = "", text: str = "", **fields: Any) -> None:
        event = Event(kind, session, _clean(fields), printable(text))
        for watch in self._watchers:
            self.call(watch, event)

    def call(self, callback: Callable[[Any], None], what: Any) -> None:
        """Hands ``what`` to a callback in the same way."""
        with self._lock:
            try:
                callback(what)
            except BaseException as error:
                self.failure = self.failure or error


def _clean(value: Any) -> Any:
    if isinstance(value, str):
        return printable(value)
    if isinstance(value, (list, tuple)):
        return [_clean(each) for each in value]
    if isinstance(value, dict):
        return {name: _clean(each) for name, each in value.items()}
    return value


def error_fields(error: BaseException) -> dict[str, str]:
    """An error's type and message, as fields."""
    return {"error": type(error).__name__, "message": " ".join(str(error).split())}


def one_line(error: BaseException) -> str:
    """Type and message, for a line of a log."""
    return printable(f"{type(error).__name__}: {' '.join(str(error).split())}")


def text_lines(log: Callable[[str], None]) -> Watch:
    """Hands ``log`` a line for every event that people should know of, which ends with the peer's name and address."""

    def watch(event: Event) -> None:
        if event.text:
            log(event.text + whose(event))

    return watch


def whose(event: Event) -> str:
    """Who an event is about: the name in the peer's certificate, and its address."""
    known = [str(event.fields[name]) for name in ("peer", "address") if event.fields.get(name)]
    return f" ({' at '.join(known)})" if known else ""


def json_lines(stream: TextIO) -> Watch:
    """Writes every event to ``stream``: ``timestamp`` (UTC), ``level``, ``event``, ``session`` where it belongs to one,
    and the event's fields. ConfigError where structlog is missing."""
    try:
        import structlog
    except ImportError:
        raise ConfigError("log=json needs structlog: pip install 'privml[service]'") from None
    logger = structlog.wrap_logger(
        structlog.PrintLogger(stream),
        processors=[
            structlog.processors.add_log_level,
            structlog.processors.TimeStamper(fmt="iso", utc=True),
            structlog.processors.JSONRenderer(ensure_ascii=True),
        ],
        wrapper_class=structlog.BoundLogger,
    )

    def watch(event: Event) -> None:
        named = {"session": event.session} if event.session else {}
        getattr(logger, event.severity)(event.kind, **named, **event.fields)

    return watch


# Called with (what is done, what there is in all, the node that begins or "done"): in predicted bytes of the nodes'
# messages where these were counted, else in nodes.
Progress = Callable[[int, int, str], None]


def report_nodes(session: Session, program: Program, shapes: Sequence[Any], progress: Progress | None) -> None:
    """Makes the session's ledger call ``progress`` at each node that starts, and at the end of a query on inputs of
    these shapes."""
    if progress is None or session.ledger is None:
        return
    session.ledger.on_node.append(program.follow(shapes, progress))


SIGNALS = (signal.SIGTERM, signal.SIGINT)


@dataclass(slots=True)
class Stop:
    """``draining``: no further session begins. ``ending``: those under way are cut off too. ``cut``: how many were.
    Plain values, which a signal handler may set at any moment; the service looks at them many times a second."""

    draining: bool = False
    ending: bool = False
    signal: int = 0
    cut: int = 0

    def ask(self, number: int = 0) -> None:
        """Ends the service once its sessions are finished; called once more, at once."""
        self.ending = self.draining
        self.draining = True
        self.signal = number

    @property
    def exit_code(self) -> int:
        """0 when every session under way was finished; as a shell has it where a second signal came; else 1."""
        if self.ending and self.signal:
            return 128 + self.signal
        return 1 if self.cut else 0


@contextlib.contextmanager
def on_signals(stop: Stop) -> Iterator[Stop]:
    """SIGTERM and Ctrl-C ask ``stop``; after the second one a third has its usual effect. For the main thread."""

    def handle(number: int, frame: FrameType | None) -> None:
        stop.ask(number)
        if stop.ending:
            for each in SIGNALS:
                signal.signal(each, signal.SIG_DFL)

    with kept_signals():
        for number in SIGNALS:
            signal.signal(number, handle)
        yield stop


@contextlib.contextmanager
def kept_signals() -> Iterator[None]:
    """For libraries that install signal handlers, some unnoticed by Python: afterwards the former handlers are back.
    For the main thread; another one cannot set them and changes nothing."""
    before = {number: signal.getsignal(number) for number in SIGNALS}
    try:
        yield
    finally:
        if threading.current_thread() is threading.main_thread():
            for number, handler in before.items():
                signal.signal(number, signal.SIG_DFL if handler is None else handler)
