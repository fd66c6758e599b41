# SPDX-License-Identifier: Apache-2.0
"""The dealer's side of a session between three parties."""

from __future__ import annotations

import time
from collections.abc import Callable

import privml._core as _core
from privml.context import Session
from privml.errors import InvalidInput, PeerDisconnected, ProtocolError
from privml.session.agreement import Fields, agree
from privml.session.connections import accept
from privml.session.cutoff import ending_within
from privml.session.dealer import Gathering, Lobby
from privml.session.handshake import DEALER, DEALER_ROLE, shake_hands
from privml.session.identity import link_to
from privml.session.lanes import public_seed
from privml.session.session import HELLO_PATIENCE, Settings, WaitCallback, session_on
from privml.spec import SessionSpec

# Parties 0 and 1 may exchange much without the dealer, who waits for them as many times their deadline.
_PATIENCE = 5


def open_dealer(
    gathering: Gathering,
    settings: Settings,
    check: Callable[[Fields], None],
) -> Session:
    """Shakes hands with both other parties and sets up the engine; the session owns the channels from here on.

    ``check`` gets what the parties tell the dealer in clear, and raises a PrivmlError that they are told when it
    refuses. A read may wait for the specification's deadline until the engine is there, and 5 times as long afterwards.
    Raises HandshakeMismatch, ProtocolError (also when the two say different things), PeerDisconnected; all
    channels are closed then.
    """
    spec = settings.spec
    deadline = spec.deadline
    told: list[Fields] = []
    refused: list[InvalidInput] = []

    def hear(words: Fields) -> tuple[None, Fields]:
        if refused:
            raise refused[0]
        check(words)
        if told and told[0] != words:
            raise ProtocolError("the parties 0 and 1 told the dealer different things")
        told.append(words)
        return None, {}

    channels = gathering.channels
    try:
        for channel in channels.values():
            channel.set_deadline(deadline)
        for rank in range(DEALER):
            with ending_within(HELLO_PATIENCE * deadline, gathering, f"the hello of party {rank}"):
                shake_hands(channels[rank, 0], settings.hello(DEALER, DEALER_ROLE), peer=rank)
            try:
                agree(channels[rank, 0], {}, hear, f"party {rank} gives up")
            except InvalidInput as error:  # the other party is to hear of it too
                refused.append(error)
        if refused:
            raise refused[0]
        ends = [channels[rank, 0] for rank in range(DEALER)]
        engine = spec.backend.open([*ends, channels[0, 1]], DEALER, spec, spec.test_seed)
        set_patience(gathering, deadline)
    except BaseException:
        gathering.close()
        raise
    common = public_seed(gathering.token) if spec.test_seed is None else spec.test_seed
    return session_on(engine, spec.numerics, common, ends)


def set_patience(gathering: Gathering, deadline: float) -> None:
    """For a query's run: parties whose own ``deadline`` is so many seconds may keep the dealer waiting longer."""
    for channel in gathering.channels.values():
        channel.set_deadline(_PATIENCE * deadline)


def gather(listener: _core.TcpListener, spec: SessionSpec, on_wait: WaitCallback | None = None) -> Gathering:
    """The connections of the first session that is complete. Raises PeerDisconnected after the deadline."""
    end, refused = time.monotonic() + spec.deadline, []
    lobby, link = Lobby(spec.deadline, refused.append, spec.identity.tls), link_to(spec, 0, 1)
    try:
        while True:
            channel = accept(listener, max(end - time.monotonic(), 0.0), on_wait, link)
            complete = lobby.admit(channel)
            if complete is not None:
                return complete
    except PeerDisconnected as error:
        raise PeerDisconnected(f"{error}" + (f"; {refused[-1]}" if refused else "")) from None
    finally:
        lobby.close()


def nothing_told(words: Fields) -> None:
    """Where the parties have nothing to tell the dealer."""
    if words:
        raise ProtocolError("the parties want something else of the dealer than this program")


def as_dealer(listener: _core.TcpListener, settings: Settings, on_wait: WaitCallback | None = None) -> Session:
    """The session of the first two parties that come."""
    return open_dealer(gather(listener, settings.spec, on_wait), settings, nothing_told)
