# SPDX-License-Identifier: Apache-2.0
"""Connections over TCP: a listening party's, and those to a party that listens."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, TypeVar

import privml._core as _core
from privml.errors import ConfigError, PeerDisconnected, ProtocolError, ServiceMoved
from privml.session.address import parse_address
from privml.session.dealer import reach_dealer
from privml.session.lanes import Joiner, accept_lanes, open_lanes
from privml.session.session import WaitCallback

# Waiting happens in slices, so that an interrupt is seen soon.
_SLICE_SECONDS = 0.5
Result = TypeVar("Result")


def joining(
    listener: _core.TcpListener,
    first: _core.Channel,
    deadline: float,
    link: Mapping[str, Any] | None = None,
) -> Joiner:
    """How a listening party gets the further connections of a session, of which ``first`` is there."""
    connector = partial(accept, listener, link=link)
    return lambda token, count: accept_lanes(connector, first, token, count, deadline)


def reaching(address: str, deadline: float, link: Mapping[str, Any] | None = None) -> Joiner:
    """How a connecting party opens the further connections of a session."""
    connector = partial(reach, address, link=link)
    return lambda token, count: open_lanes(connector, token, count, deadline)


def reaching_dealer(address: str, rank: int, deadline: float, link: Mapping[str, Any] | None = None) -> Joiner:
    """How party 0 or 1 opens its connections to the dealer at ``address``."""
    connector = partial(reach, address, link=link)
    return lambda token, count: reach_dealer(connector, token, rank, deadline)


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
    link: Mapping[str, Any] | None = None,
) -> _core.Channel:
    """The next connection, made with ``link`` (see ``link_to``); ``deadline`` None waits for ever.
    Raises PeerDisconnected after the deadline."""
    return _in_slices(
        lambda seconds: listener.accept(seconds, **(link or {})),
        deadline,
        on_wait,
        f"nobody connected to port {listener.port}",
    )


def reach(
    address: str, deadline: float, on_wait: WaitCallback | None = None, link: Mapping[str, Any] | None = None
) -> _core.Channel:
    """A connection to a listening peer, tried until the deadline. Raises PeerDisconnected after it."""
    host, port = parse_address(address)
    return _in_slices(
        lambda seconds: _core.connect_tcp(host, port, seconds, **(link or {})),
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
    link: Mapping[str, Any],
    attempt: Callable[[str, Mapping[str, Any]], Result],
    admit: Callable[[str], None],
) -> Result:
    """``attempt(address, link)``, which asks the server there over connections made with ``link`` (see ``link_to``);
    and once more where that server sends its clients on, to one that proves the same name.

    ``admit`` raises for an address that this party does not connect to (see ``check_addresses``). Raises ProtocolError
    when the second server sends the client on again.
    """
    try:
        return attempt(address, link)
    except ServiceMoved as moved:
        further, name = moved.address, moved.name
    admit(further)
    if name:
        link = {**link, "identity": link["identity"].expecting([name])}
    try:
        return attempt(further, link)
    except ServiceMoved:
        raise ProtocolError(f"the server sends its clients on to {further}, which sends them on again") from None
