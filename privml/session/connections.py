# SPDX-License-Identifier: Apache-2.0
"""Connections over TCP: addresses, listening, connecting, and time limits."""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, Protocol, TypeVar

import privml._core as _core
from privml.errors import ConfigError, PeerDisconnected, ProtocolError, ServiceMoved
from privml.session.identity import parse_address
from privml.spec import WaitCallback

# Waiting is divided into slices, so that an interrupt is seen soon.
_SLICE_SECONDS = 0.5
Result = TypeVar("Result")
# Opens or accepts one connection within so many seconds.
Connector = Callable[[float], _core.Channel]
# All further connections of a session, from its token and their number.
Joiner = Callable[[bytes, int], Sequence[_core.Channel]]
# Called while waiting for the peer, with the seconds waited so far.


# ---- addresses
# ---- connecting
class listening:
    """``with listening("host:port") as listener``; ConfigError when the port cannot be had."""

    def __init__(self, address: str) -> None:
        try:
            self.listener = _core.TcpListener(*parse_address(address))
        except ConfigError:
            raise
        except ValueError as error:
            raise ConfigError(f"{error}; choose another listen=host:port") from None

    def __enter__(self) -> _core.TcpListener:
        return self.listener

    def __exit__(self, *exception: object) -> None:
        self.listener.close()


def accept(
    listener: _core.TcpListener,
    deadline: float | None,
    on_wait: WaitCallback | None = None,
    options: Mapping[str, Any] | None = None,
) -> _core.Channel:
    """The next connection, with ``options`` (see ``accept_options``); ``deadline`` in seconds, None waits for ever.
    Raises PeerDisconnected after the deadline."""
    return _in_slices(
        lambda seconds: listener.accept(seconds, **(options or {})),
        deadline,
        on_wait,
        f"nobody connected to port {listener.port}",
    )


def reach(
    address: str, deadline: float, on_wait: WaitCallback | None = None, options: Mapping[str, Any] | None = None
) -> _core.Channel:
    """A connection to a listening peer, with ``options`` (see ``connect_options``), tried until the deadline (seconds).
    Raises PeerDisconnected after it."""
    host, port = parse_address(address)
    return _in_slices(
        lambda seconds: _core.connect_tcp(host, port, seconds, **(options or {})),
        deadline,
        on_wait,
        f"nobody listens on {address}",
    )


def _in_slices(
    attempt: Callable[[float], _core.Channel], deadline: float | None, on_wait: WaitCallback | None, nobody: str
) -> _core.Channel:
    start = time.monotonic()
    while True:
        waited = time.monotonic() - start
        left = _SLICE_SECONDS if deadline is None else min(_SLICE_SECONDS, deadline - waited)
        try:
            return attempt(max(left, 0.0))
        except PeerDisconnected:
            waited = time.monotonic() - start
            if deadline is not None and waited >= deadline:
                raise PeerDisconnected(f"{nobody} within {deadline:g} seconds") from None
            if on_wait is not None:
                on_wait(waited)


def following(
    address: str,
    options: Mapping[str, Any],
    attempt: Callable[[str, Mapping[str, Any]], Result],
    admit: Callable[[str], None],
) -> Result:
    """``attempt(address, options)``, a request to the server there, with the ``options`` of its connections (see
    ``connect_options``); repeated once if that server redirects its clients, at one that proves the same name.

    ``admit`` raises for an address that this party does not connect to (see ``check_addresses``). Raises ProtocolError
    if the second server redirects the client again.
    """
    try:
        return attempt(address, options)
    except ServiceMoved as moved:
        further, name = moved.address, moved.name
    admit(further)
    if name:
        options = {**options, "identity": options["identity"].expecting([name])}
    try:
        return attempt(further, options)
    except ServiceMoved:
        raise ProtocolError(f"the server redirects its clients to {further}, which redirects them again") from None


# ---- channels
def close_all(channels: Iterable[_core.Channel]) -> None:
    for channel in channels:
        channel.close()


class Link:
    """All channels of a session, which any thread may close at once. ``join`` brings the further ones."""

    def __init__(self, channel: _core.Channel, join: Joiner | None = None) -> None:
        self.channels, self.join = [channel], join
        self._lock, self._closed = threading.Lock(), False

    def add(self, channels: Sequence[_core.Channel]) -> None:
        """Adds further channels, which are closed at once if the session was closed."""
        with self._lock:
            self.channels.extend(channels)
            closed = self._closed
        if closed:
            close_all(channels)

    def close(self) -> None:
        with self._lock:
            self._closed, channels = True, list(self.channels)
        close_all(channels)


class Closable(Protocol):
    """A channel, or several of them."""

    def close(self) -> None:
        """Ends its reads in other threads."""


@contextlib.contextmanager
def time_limit(seconds: float, channel: Closable, what: str) -> Iterator[None]:
    """Closes ``channel`` if the block is not done after so many seconds, and raises PeerDisconnected, which says that
    ``what`` took longer. A channel's own deadline begins anew with every frame, so it does not limit a whole message.
    """
    late = threading.Event()

    def end() -> None:
        late.set()
        channel.close()

    timer = threading.Timer(min(seconds, threading.TIMEOUT_MAX), end)
    timer.daemon = True
    timer.start()
    try:
        yield
    except PeerDisconnected:
        if not late.is_set():
            raise
    finally:
        timer.cancel()
        timer.join()  # nothing of it outlives the block
    if late.is_set():
        raise PeerDisconnected(f"{what} took longer than {seconds:g} seconds")
