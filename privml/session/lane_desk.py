# SPDX-License-Identifier: Apache-2.0
"""Where a server with many sessions at a time hands further connections to the session whose token they bear."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial

import privml._core as _core
from privml.errors import PeerDisconnected, ProtocolError
from privml.session.lanes import (
    JOINED,
    LOOK_SECONDS,
    REFUSALS,
    WRONG_LANE,
    WRONG_TOKEN,
    answer_lane,
    close_all,
    closed_early,
    missing_lanes,
    read_request,
)


@dataclass(slots=True)
class _Expected:
    """A session's further connections: how many, its first one, and those that have come (None: being answered)."""

    count: int
    first: _core.Channel
    came: dict[int, _core.Channel | None] = field(default_factory=dict)
    refused: list[str] = field(default_factory=list)
    forgotten: bool = False

    @property
    def joined(self) -> int:
        return sum(channel is not None for channel in self.came.values())


class LaneDesk:
    """Sessions and their further connections, in whatever order these come; any thread may call."""

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._expected: dict[bytes, _Expected] = {}

    def expect(self, token: bytes, count: int, first: _core.Channel) -> None:
        """From here on connections with ``token`` are taken, of a peer that proves the same name as on ``first``, the
        session's connection of lane 0. Must come before the peer can know the token."""
        with self._changed:
            self._expected[token] = _Expected(count, first)

    def hear(self, channel: _core.Channel) -> Callable[[], None]:
        """Reads the request of a connection whose magic was read; the call returned answers it. That call raises
        ProtocolError where the connection belongs to no session; closing it is the caller's."""
        return partial(self._admit, channel, *read_request(channel))

    def _admit(self, channel: _core.Channel, token: bytes, lane: int) -> None:
        with self._changed:
            expected = self._expected.get(token)
            status = self._status(expected, channel, lane)
            if status == JOINED:
                expected.came[lane] = None
            elif status == WRONG_LANE:
                expected.refused.append(f"lane {lane}: {REFUSALS[status]}")
        try:
            answer_lane(channel, status)
            if status != JOINED:
                raise ProtocolError(f"a further connection was refused: {REFUSALS[status]}")
        except BaseException:
            with self._changed:
                if status == JOINED:
                    del expected.came[lane]
            raise
        with self._changed:
            if self._expected.get(token) is not expected:  # given up meanwhile
                raise ProtocolError("a further connection came too late for its session")
            expected.came[lane] = channel
            self._changed.notify_all()

    @staticmethod
    def _status(expected: _Expected | None, channel: _core.Channel, lane: int) -> int:
        if expected is None or channel.peer_name != expected.first.peer_name:
            return WRONG_TOKEN
        free = 1 <= lane <= expected.count and lane not in expected.came
        return JOINED if free else WRONG_LANE

    def collect(self, token: bytes, deadline: float) -> list[_core.Channel]:
        """The channels of lanes 1 to the session's count, in order, which are the caller's from here on.
        Raises PeerDisconnected, saying what came instead, when one is missing after ``deadline`` seconds; and at once
        where the session is forgotten, or its first connection is closed."""
        end = time.monotonic() + deadline
        with self._changed:
            expected = self._expected.get(token)
            while expected is not None and not expected.forgotten and expected.joined < expected.count:
                left = end - time.monotonic()
                if left <= 0:
                    raise missing_lanes(expected.joined, expected.count, deadline, expected.refused)
                if expected.first.peer_closed:
                    raise closed_early(expected.joined, expected.count, expected.refused)
                self._changed.wait(min(left, LOOK_SECONDS))
            if expected is None or expected.forgotten:
                raise PeerDisconnected("the session was closed while it waited for its further connections")
            del self._expected[token]
            return [expected.came[lane] for lane in range(1, expected.count + 1)]

    def forget(self, token: bytes) -> None:
        """Ends what was expected and not collected, and whoever waits for it."""
        with self._changed:
            expected = self._expected.pop(token, None)
            if expected is not None:
                expected.forgotten = True
                self._changed.notify_all()
        if expected is not None:
            close_all(channel for channel in expected.came.values() if channel is not None)
