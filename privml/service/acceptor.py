# SPDX-License-Identifier: Apache-2.0
"""Accepts connections: the first message of each is read on a thread of its own, within a bounded time.

A connection is half open until its TLS handshake and its first message are complete. Their number is bounded; if one
more comes, the oldest is closed, so that silent connections do not keep out others. The time runs from the connection's
beginning to the last byte of its first message, in however many pieces that arrives.
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

# Reads the first message; the function that it returns, which takes the channel over, is called if that was in time.
Receive = Callable[[_core.Channel], Callable[[], None]]


class _HalfOpen:
    """A connection whose first message is not complete."""

    __slots__ = ("channel", "since")

    def __init__(self, channel: _core.Channel) -> None:
        self.channel, self.since = channel, time.monotonic()


class Acceptor:
    """Accepts connections at ``listener``, made with ``link`` (see ``link_to``). ``refused`` gets the error that ends a
    connection before it was taken over, the name that its peer has proved and its address; it is called on any
    thread."""

    def __init__(
        self,
        listener: _core.TcpListener,
        link: Mapping[str, Any],
        receive: Receive,
        refused: Callable[[Exception, str, str], None],
        capacity: Capacity,
    ) -> None:
        self._listener, self._link, self._receive, self._refused = listener, link, receive, refused
        self._seconds, self._half_open = capacity.hello_seconds, capacity.half_open
        self._lock = threading.Lock()
        self._connections: dict[_HalfOpen, threading.Thread] = {}  # the oldest first

    def accept(self, seconds: float) -> None:
        """Accepts one connection, if one comes within so many seconds, and closes those that took too long."""
        try:
            channel = self._listener.accept(seconds, **self._link)
        except PeerDisconnected:
            channel = None
        except RuntimeError as error:  # the system has no descriptor or memory
            self._refused(error, "", "")
            self._close_oldest(self.half_open - 1)
            time.sleep(_PAUSE_SECONDS)
            channel = None
        self._close(lambda each: time.monotonic() - each.since > self._seconds)
        if channel is not None:
            self._begin(channel)

    @property
    def half_open(self) -> int:
        """Connections whose first message is not complete."""
        with self._lock:
            return len(self._connections)

    def close(self) -> None:
        """Ends all half-open connections."""
        with self._lock:
            threads = list(self._connections.values())
        self._close(lambda each: True)
        for thread in threads:
            thread.join(self._seconds)

    def _begin(self, channel: _core.Channel) -> None:
        channel.set_deadline(self._seconds)
        connection = _HalfOpen(channel)
        thread = threading.Thread(target=self._read, args=(connection,), name="acceptor", daemon=True)
        self._close_oldest(self._half_open - 1)
        with self._lock:
            self._connections[connection] = thread
        try:
            thread.start()
        except RuntimeError as error:  # the system has no thread for it
            self._remove(connection)
            channel.close()
            self._refused(error, "", channel.peer_address)

    def _close_oldest(self, most: int) -> None:
        with self._lock:
            oldest = list(self._connections)[: max(len(self._connections) - most, 0)]
        self._close(oldest.__contains__)

    def _close(self, chosen: Callable[[_HalfOpen], bool]) -> None:
        with self._lock:
            gone = [each for each in self._connections if chosen(each)]
            for each in gone:
                del self._connections[each]
        for each in gone:
            each.channel.close()  # which ends its thread's read

    def _read(self, connection: _HalfOpen) -> None:
        channel, in_time = connection.channel, False
        try:
            try:
                take_over = self._receive(channel)
            finally:
                in_time = self._remove(connection)
            if not in_time:
                raise _too_late()
            take_over()
        except Exception as error:  # whatever one peer does, others are served
            channel.close()
            self._refused(error if in_time else _too_late(), channel.peer_name, channel.peer_address)

    def _remove(self, connection: _HalfOpen) -> bool:
        """Takes a connection off the list of half-open ones; False if it was closed before."""
        with self._lock:
            return self._connections.pop(connection, None) is not None


def _too_late() -> PeerDisconnected:
    return PeerDisconnected("its first message took too long, or there were too many other connections")
