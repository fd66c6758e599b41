# SPDX-License-Identifier: Apache-2.0
"""The front of a cluster: it hears every client, and sends it on to the worker with the fewest sessions.

Workers are servers in processes of their own, each with a port; all have the party's certificate, so that clients find
the same name wherever they are sent. A worker that dies takes its own sessions with it; clients are sent to the others
until it is back.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from functools import partial
from typing import Any

import privml._core as _core
from privml.errors import ConfigError, PrivmlError, ProtocolError, ServiceBusy
from privml.program import INPUT_OWNER
from privml.service.cluster import Cluster, Start
from privml.service.events import Events, text_lines
from privml.service.host import Host
from privml.service.monitor import Monitor
from privml.service.options import DEFAULT_CAPACITY, DEFAULT_HOOKS, Capacity, Hooks
from privml.service.server import Client
from privml.session.connections import Link, listening
from privml.session.handshake import MAGIC, answer_busy, answer_moved, receive_hello
from privml.session.identity import check_addresses, parse_address
from privml.session.lanes import session_token
from privml.session.session import Settings

# When clients come again who found no worker.
_BUSY_SECONDS = 2.0


def front(
    settings: Settings,
    listen: str,
    start: Start,
    *,
    capacity: Capacity = DEFAULT_CAPACITY,
    hooks: Hooks = DEFAULT_HOOKS,
) -> None:
    """Listens on ``listen`` ("host:port") and sends clients on to ``capacity.workers`` workers that ``start`` makes,
    until ``hooks.stop`` is asked. ``settings``: those of the workers' sessions; the others as in ``serve``. Events of
    the workers are told too, each with the number of its worker. Raises ConfigError."""
    workers = capacity.workers
    check_addresses(settings.spec, listen)
    with contextlib.ExitStack() as stack:
        listener = stack.enter_context(listening(listen))
        watch = None if hooks.monitor is None else stack.enter_context(Monitor(hooks.monitor))
        events = Events(text_lines(hooks.log), None if watch is None else watch.note, hooks.on_event)
        made = Front(Cluster(workers, start, events), settings, listener, events, capacity, hooks)
        if watch is not None:
            watch.observe(made)
        if hooks.on_listening is not None:
            hooks.on_listening(listener.port)
        text = f"listening on port {listener.port}, {workers} workers, program {settings.program[:12]}"
        events.tell("listening", text=text, port=listener.port, program=settings.program)
        made.run()


def public_host(listen: str, advertise: str | None) -> str:
    """The host under which clients find the workers. ConfigError where ``listen`` names none."""
    host = advertise or parse_address(listen)[0]
    if host in ("0.0.0.0", "::"):
        raise ConfigError(f"listen={listen} names no host to send clients to: add advertise=HOST")
    return host


class Front(Host[Client]):
    """Answers every hello that fits with the address of a worker; it counts clients sent on."""

    callers = (INPUT_OWNER,)

    def __init__(self, cluster: Cluster, *service: Any) -> None:
        super().__init__(*service)
        self._cluster, self._moved, self._drained = cluster, 0, False

    @property
    def count(self) -> int:
        return self._moved

    @property
    def ready(self) -> bool:
        return not self.closing and any(state.ready for state in self._cluster.states)

    @property
    def idle(self) -> bool:
        return self._cluster.idle

    @property
    def waiting(self) -> int:
        return sum(state.waiting for state in self._cluster.states)

    @property
    def running(self) -> int:
        return sum(state.running for state in self._cluster.states)

    def end(self) -> int:
        super().end()
        return self._cluster.end()

    def tidy(self) -> None:
        super().tidy()
        if self.closing and not self._drained:
            self._drained = True
            self._cluster.drain()

    def hear(self, channel: _core.Channel) -> Callable[[], None]:
        if channel.read(len(MAGIC)) != MAGIC:
            raise ProtocolError("its first bytes are no hello")
        greeting = receive_hello(channel, self.settings.hello(0, "server"), greeted=True)
        token = session_token(greeting.ours, greeting.theirs)
        return partial(self._send_on, Client(Link(channel), greeting, token, channel.peer_name, 0.0))

    def _send_on(self, client: Client) -> None:
        address = None if self.closing else self._cluster.choose()
        with contextlib.suppress(PrivmlError):
            if address is None:
                answer_busy(client.link.channels[0], _BUSY_SECONDS)
            else:
                answer_moved(client.link.channels[0], address)
        client.close()
        if address is None:
            self.refuse(ServiceBusy("no worker has room", _BUSY_SECONDS), client.peer)
        else:
            self._moved += 1
            self.events.tell("moved", client.name, peer=client.peer, to=address)

    def attend(self, guest: Client) -> None:
        raise AssertionError("a front has no sessions")

    def turn_away(self, guest: Client, seconds: float) -> None:
        raise AssertionError("nobody waits at a front")
