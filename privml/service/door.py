# SPDX-License-Identifier: Apache-2.0
"""Where connections come in: the first words of each are heard on a thread of its own, for a bounded time.

A connection whose TLS handshake and first words are not complete is half open. So many may be at a time; where one
more comes, the oldest makes room, so that callers who say nothing keep out nobody who speaks at once. The time runs
from the connection's beginning to the last byte of its first words, however they are cut into pieces.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Mapping
from typing import Any

import privml._core as _core
from privml.errors import PeerDisconnected
from privml.service.options import Capacity

# After the system had no descriptor or memory for one more connection.
_PAUSE_SECONDS = 0.2

# What a caller wants is heard first; the call returned, which takes the channel over, runs when it was in time.
Hear = Callable[[_core.Channel], Callable[[], None]]


class _Caller:
    """A half-open connection."""

    __slots__ = ("channel", "since")

    def __init__(self, channel: _core.Channel) -> None:
        self.channel, self.since = channel, time.monotonic()


class Door:
    """Callers at ``listener``, over connections made with ``link`` (see ``link_to``). ``refused`` gets what ends a
    connection before it was taken over, with the name that its peer has proved; any thread may call it."""

    def __init__(
        self,
        listener: _core.TcpListener,
        link: Mapping[str, Any],
        hear: Hear,
        refused: Callable[[Exception, str], None],
        capacity: Capacity,
    ) -> None:
        self._listener, self._link, self._hear, self._refused = listener, link, hear, refused
        self._seconds, self._half_open = capacity.hello_seconds, capacity.half_open
        self._lock = threading.Lock()
        self._callers: dict[_Caller, threading.Thread] = {}  # in the order in which they came

    def watch(self, seconds: float) -> None:
        """Lets in one caller, when one comes within so many seconds, and sends away those who took too long."""
        try:
            channel = self._listener.accept(seconds, **self._link)
        except PeerDisconnected:
            channel = None
        except RuntimeError as error:  # the system has no room
            self._refused(error, "")
            self._make_room(self.half_open - 1)
            time.sleep(_PAUSE_SECONDS)
            channel = None
        self._send_away(lambda caller: time.monotonic() - caller.since > self._seconds)
        if channel is not None:
            self._let_in(channel)

    @property
    def half_open(self) -> int:
        """Connections that have not said yet what they want."""
        with self._lock:
            return len(self._callers)

    def close(self) -> None:
        """Ends all half-open connections."""
        with self._lock:
            threads = list(self._callers.values())
        self._send_away(lambda caller: True)
        for thread in threads:
            thread.join(self._seconds)

    def _let_in(self, channel: _core.Channel) -> None:
        channel.set_deadline(self._seconds)
        caller = _Caller(channel)
        thread = threading.Thread(target=self._attend, args=(caller,), name="door", daemon=True)
        self._make_room(self._half_open - 1)
        with self._lock:
            self._callers[caller] = thread
        try:
            thread.start()
        except RuntimeError as error:  # the system has no thread for it
            self._leave(caller)
            channel.close()
            self._refused(error, "")

    def _make_room(self, most: int) -> None:
        with self._lock:
            oldest = list(self._callers)[: max(len(self._callers) - most, 0)]
        self._send_away(oldest.__contains__)

    def _send_away(self, chosen: Callable[[_Caller], bool]) -> None:
        with self._lock:
            gone = [caller for caller in self._callers if chosen(caller)]
            for caller in gone:
                del self._callers[caller]
        for caller in gone:
            caller.channel.close()  # which ends its thread's read

    def _attend(self, caller: _Caller) -> None:
        channel, in_time = caller.channel, False
        try:
            try:
                take_over = self._hear(channel)
            finally:
                in_time = self._leave(caller)
            if not in_time:
                raise _too_late()
            take_over()
        except Exception as error:  # whatever a caller does, the next one is heard
            channel.close()
            self._refused(error if in_time else _too_late(), channel.peer_name)

    def _leave(self, caller: _Caller) -> bool:
        """Takes a caller off the list of half-open ones; False when it was sent away before."""
        with self._lock:
            return self._callers.pop(caller, None) is not None


def _too_late() -> PeerDisconnected:
    return PeerDisconnected("its first words took too long, or too many others came")
