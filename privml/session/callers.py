# SPDX-License-Identifier: Apache-2.0
"""Which of the connections to a listening party is its peer's: the first one that says a hello.

Port scanners and others who send something else, half a TLS handshake or nothing keep nobody out: each connection is
heard on a thread of its own, those that say no hello are closed, and the party goes on listening.
"""

from __future__ import annotations

import threading
import time
import warnings
from collections.abc import Callable, Mapping
from queue import Empty, SimpleQueue
from typing import Any

import privml._core as _core
from privml.errors import HandshakeMismatch, PeerDisconnected, PrivmlError
from privml.session.cutoff import ending_within
from privml.session.handshake import Greeting, Hello, hear_hello
from privml.session.session import HELLO_PATIENCE, WaitCallback

# Waiting happens in slices, so that an interrupt is seen soon, and further callers come in while hellos are heard.
_SLICE_SECONDS, _SHORT_SECONDS = 0.5, 0.05
# Connections that are heard at a time; where one more comes, the oldest makes room.
_MOST_HEARD = 64

# A connection, and its hello or what ended it.
_Heard = tuple[_core.Channel, Greeting | PrivmlError]


def first_caller(
    listener: _core.TcpListener,
    hello: Callable[[], Hello],
    deadline: float,
    on_wait: WaitCallback | None = None,
    link: Mapping[str, Any] | None = None,
) -> tuple[_core.Channel, Greeting]:
    """The first connection, made with ``link`` (see ``link_to``), whose hello fits the one that ``hello()`` makes; that
    is still to be answered. ``on_wait`` is called with the seconds waited while nobody is there.

    Connections are accepted for ``deadline`` seconds; one that has come may take as long for each read of its hello. A
    warning tells of each that is refused. Raises HandshakeMismatch as soon as a party says other settings, and at the
    end what the last connection was refused for, or PeerDisconnected where nobody came.
    """
    start, refused, outcome = time.monotonic(), None, None
    heard: SimpleQueue[_Heard] = SimpleQueue()
    callers: list[_core.Channel] = []
    try:
        while callers or time.monotonic() - start < deadline:
            accepts = time.monotonic() - start < deadline  # or strays could keep it for ever
            channel = _next(listener, 0.0 if callers else min(_SLICE_SECONDS, deadline), link) if accepts else None
            if channel is not None:
                callers.append(channel)
                threading.Thread(
                    target=_hear, args=(channel, hello(), deadline, heard), name="hello", daemon=True
                ).start()
                if len(callers) > _MOST_HEARD:
                    callers[0].close()
            elif not callers and on_wait is not None:
                on_wait(time.monotonic() - start)
            outcome = _take(heard) if callers else None
            if outcome is None:
                continue
            callers.remove(outcome[0])
            if isinstance(outcome[1], Greeting):
                return outcome[0], outcome[1]
            refused = outcome[1]
            if isinstance(refused, HandshakeMismatch):
                raise refused
            warnings.warn(f"a connection to port {listener.port} was refused: {refused}", stacklevel=3)
        if refused is None:
            raise PeerDisconnected(f"nobody connected to port {listener.port} within {deadline:g} seconds")
        raise type(refused)(f"{refused}; nobody else connected to port {listener.port} within {deadline:g} seconds")
    finally:
        for channel in callers:
            channel.close()
        refused = outcome = None  # an error refers to this frame: nothing here may refer to it, or sockets stay open


def _next(listener: _core.TcpListener, seconds: float, link: Mapping[str, Any] | None) -> _core.Channel | None:
    try:
        return listener.accept(seconds, **(link or {}))
    except PeerDisconnected:
        return None


def _take(heard: SimpleQueue[_Heard]) -> _Heard | None:
    try:
        return heard.get(timeout=_SHORT_SECONDS)
    except Empty:
        return None


def _hear(channel: _core.Channel, ours: Hello, deadline: float, heard: SimpleQueue[_Heard]) -> None:
    outcome: Greeting | PrivmlError
    try:
        channel.set_deadline(deadline)
        with ending_within(HELLO_PATIENCE * deadline, channel, "the peer's hello"):
            outcome = hear_hello(channel, ours)
    except PrivmlError as error:
        channel.close()
        outcome = error
    heard.put((channel, outcome))
    del outcome, channel  # as above
