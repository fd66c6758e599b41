# SPDX-License-Identifier: Apache-2.0
"""What happens in a service, for its log, its metrics and whoever runs it. Nothing here depends on a secret: names of
peers, shapes, durations, bytes, and messages of errors, which hold no values."""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from privml.errors import (
    HandshakeMismatch,
    IdentityError,
    PeerDisconnected,
    ProtocolError,
    SecurityAbort,
    ServiceBusy,
)

# Longer text of a peer, or with its words in it, is cut.
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
    """``kind``: "listening"; of a connection "refused"; of a session "queued", "started", "ended" or "failed"; of a
    query "answered"; "draining"; "stopped". ``session``: the name of the session it belongs to, which both parties know
    it by; "" where there is none yet.
    ``fields``: numbers, printable text, and lists and dictionaries of these."""

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
    """Tells every watcher what happens, one at a time, whichever thread it happens in. What a watcher raises is kept in
    ``failure``, and ends the service."""

    def __init__(self, *watchers: Watch | None) -> None:
        self._watchers = [watch for watch in watchers if watch is not None]
        self._lock = threading.Lock()
        self.failure: BaseException | None = None

    def tell(self, kind: str, session: str = "", text: str = "", **fields: Any) -> None:
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
    """Hands ``log`` a line for every event that people should know of."""

    def watch(event: Event) -> None:
        if event.text:
            log(event.text)

    return watch
