# SPDX-License-Identifier: Apache-2.0
"""The connections of one of three parties, and what crossed them, by phase.

All parties announce every message, also those between the two others; that is what lets a meter follow the
depth of all three. What party 2 deals to party 0 ahead of time has a connection of its own, whose reader alone waits;
it is encrypted there, so that no other party can read it, whichever machine has the connection.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Mapping, Sequence
from contextvars import ContextVar
from typing import Any, NamedTuple, TypeVar

import numpy as np

import privml._core as _core
from privml.errors import PeerDisconnected, PrivmlError, ProgramsDiffer

PHASES = ("setup", "preprocess", "online")
DEALER = 2
# How long a peer may take to read why this party ends.
_SECONDS_TO_REPORT = 10.0
Result = TypeVar("Result")


# Peer -> tag of what is computed; the dealer's second thread computes what was begun under another one than the first.
_tags: ContextVar[Mapping[int, int] | None] = ContextVar("privml_threepc_tags", default=None)


def set_tags(tags: Sequence[tuple[int, int]]) -> None:
    """(peer, tag) of what this thread computes from here on."""
    _tags.set(dict(tags))


class Message(NamedTuple):
    """``size`` bytes from one party to another."""

    source: int
    target: int
    size: int


class Counts:
    """Bytes, depth and seconds of waiting per phase."""

    def __init__(self) -> None:
        self.phases = {name: {"seconds": 0.0, "sent": 0, "received": 0, "depth": 0} for name in PHASES}

    def as_dict(self) -> dict[str, Any]:
        """As ``privml.session.ledger.Snapshot.of`` takes it."""
        return {
            **{name: dict(phase) for name, phase in self.phases.items()},
            "cots_as_sender": 0,
            "cots_as_receiver": 0,
        }


class Links:
    """``channels``: peer -> open channel; ``dealing``: the channel from party 2 to party 0, None at party 1."""

    def __init__(self, rank: int, channels: Mapping[int, Any], dealing: Any) -> None:
        self.rank = rank
        self.counts = Counts()
        self._channels, self._dealing = dict(channels), dealing
        self._dealt: Any = None  # see seal_dealing
        self._clock, self._tagged = 0, False
        for channel in (*self._channels.values(), dealing):
            if channel is not None:
                channel.set_depth(0)  # what was said before does not count

    def set_accounts(self, accounts: Mapping[int, Any]) -> None:
        """Messages carry tags from here on, and each peer gets its account if they differ."""
        self._tagged = True
        for peer, channel in self._channels.items():
            channel.set_account(accounts[peer])
        if self._dealing is not None:
            self._dealing.set_account(accounts[0 if self.rank == DEALER else DEALER], peer_reads=False)

    def round(
        self, messages: Sequence[Message], payloads: Mapping[int, np.ndarray], phase: str = "online"
    ) -> dict[int, np.ndarray]:
        """Sends ``payloads`` (target -> uint8 array), then returns what the others sent here (source -> array).
        Raises PeerDisconnected when one of them is gone, ProgramsDiffer when it computes something else; all
        connections are closed then, and the third learns it."""
        return self._guarded(self._round, messages, payloads, phase, self._channels)

    def round_dealing(
        self, messages: Sequence[Message], payloads: Mapping[int, np.ndarray], phase: str
    ) -> dict[int, np.ndarray]:
        """``round`` on the connection for dealing, before anything is dealt; ``messages``: between parties 0 and 2."""
        ends = {} if self._dealing is None else {DEALER - self.rank: self._dealing}
        received = self._guarded(self._round, messages, payloads, phase, ends)
        for channel in ends.values():
            channel.set_depth(0)  # dealing does not wait for what was said here
        return received

    def seal_dealing(self, key: bytes) -> None:
        """What is dealt from here on is encrypted and authenticated (AES-256-GCM) under ``key``, 32 bytes that parties
        0 and 2 alone know and use for nothing else. The tags of 16 bytes, one for each 65,520 bytes, are counted as
        frames' headers and TLS's records are: not at all."""
        self._dealt = _core.SealedMessages(self._dealing, key)

    def _guarded(self, step: Callable[..., Result], *arguments: Any) -> Result:
        try:
            return step(*arguments)
        except (ProgramsDiffer, PeerDisconnected) as error:
            cause = self._cause(error) if step == self._deal else error
            try:
                if isinstance(cause, ProgramsDiffer):
                    self._report(cause)
                self.close()
                if cause is error:
                    raise
                raise cause from None
            finally:
                del cause  # an error refers to this frame: if the frame refers to it, too, sockets stay open
        except BaseException:
            self.close()
            raise

    def _round(
        self, messages: Sequence[Message], payloads: Mapping[int, np.ndarray], phase: str, channels: Mapping[int, Any]
    ) -> dict[int, np.ndarray]:
        book, start, clock = self.counts.phases[phase], time.perf_counter(), self._clock
        if self._tagged:
            self._tag(messages)
        for message in messages:
            if message.source == self.rank and message.size:
                payload, channel = payloads[message.target], channels[message.target]
                if payload.nbytes != message.size:
                    raise ValueError(f"a message of {message.size} bytes was announced, but {payload.nbytes} are sent")
                channel.set_depth(clock)
                channel.write_array(payload)
                channel.flush()
                book["sent"] += message.size
        received = {}
        for message in messages:
            if message.target == self.rank:
                if message.size == 0:
                    received[message.source] = np.empty(0, np.uint8)
                    continue
                channel = channels[message.source]
                received[message.source] = channel.read_array(message.size)
                book["received"] += message.size
                self._clock = max(self._clock, channel.depth())
        book["depth"] += self._clock - clock
        book["seconds"] += time.perf_counter() - start
        return received

    def _tag(self, messages: Sequence[Message]) -> None:
        tags = _tags.get() or {}
        for message in messages:
            if message.size and self.rank in message[:2]:
                peer = message.target if message.source == self.rank else message.source
                self._channels[peer].set_tag(tags.get(peer, 0))

    def _report(self, error: ProgramsDiffer) -> None:
        """Says to the others what this party has found out; who knows it already has closed."""
        for channel in self._channels.values():
            with contextlib.suppress(PrivmlError):
                channel.report(str(error), _SECONDS_TO_REPORT)

    def advance(self, clock: int) -> None:
        """What comes next depends on a chain of ``clock`` messages; parties that say so alike count from there."""
        self._clock = max(self._clock, clock)

    def deal(self, payload: np.ndarray | None, size: int) -> np.ndarray | None:
        """``size`` bytes from party 2 to party 0; None elsewhere. Raises as ``round``, and SecurityAbort for bytes that
        the dealer has not sent."""
        return self._guarded(self._deal, payload, size)

    def _deal(self, payload: np.ndarray | None, size: int) -> np.ndarray | None:
        if size == 0:
            return np.empty(0, np.uint8) if self.rank == 0 else None
        book, start = self.counts.phases["preprocess"], time.perf_counter()
        result = None
        if self._tagged and self._dealing is not None:
            self._dealing.set_tag((_tags.get() or {}).get(0 if self.rank == DEALER else DEALER, 0))
        if self.rank == DEALER:
            assert payload is not None and payload.nbytes == size
            self._dealt.send(payload)
            book["sent"] += size
        elif self.rank == 0:
            result = self._dealt.receive(size)
            book["received"] += size
            book["depth"] = self._dealing.depth()
        book["seconds"] += time.perf_counter() - start
        return result

    def send_ahead(self, payload: np.ndarray) -> None:
        """Party 2: to party 0, all of a query that is to come."""
        book, start = self.counts.phases["preprocess"], time.perf_counter()
        self._dealt.send(payload)
        book["sent"] += payload.nbytes
        book["seconds"] += time.perf_counter() - start

    def receive_ahead(self, size: int) -> np.ndarray:
        """Party 0: what ``send_ahead`` has sent. PeerDisconnected leaves the connection to party 1 as it is."""
        book, start = self.counts.phases["preprocess"], time.perf_counter()
        payload = self._dealt.receive(size)
        book["received"] += size
        book["depth"] = 1
        book["seconds"] += time.perf_counter() - start
        return payload

    def _cause(self, error: PrivmlError) -> PrivmlError:
        """``error``, or what the dealer has reported; the dealer receives nothing on the channels that it deals on."""
        if self.rank == DEALER or not self._tagged:
            return error
        channel = self._channels[DEALER]
        try:
            channel.differ() if isinstance(error, ProgramsDiffer) else channel.stalled()
        except (ProgramsDiffer, PeerDisconnected) as cause:
            return cause
        return error

    def close(self) -> None:
        for channel in (*self._channels.values(), self._dealing):
            if channel is not None:
                channel.close()


class Meter:
    """Links that lead nowhere: what would be received is zeros, and all is booked as in a real session.

    ``times``: how far each party is, in seconds, once ``set_link`` was called; the dealing is known at party 0."""

    def __init__(self, rank: int) -> None:
        self.rank = rank
        self.counts = Counts()
        self.times = [0.0, 0.0, 0.0]
        self._clocks = [0, 0, 0]
        self._delay = self._seconds_per_byte = 0.0
        self._dealer = 0.0  # its program, which runs ahead of what it answers
        self._free: dict[tuple[int, int] | str, float] = {}  # when a direction has carried everything

    def set_link(self, delay: float, seconds_per_byte: float) -> None:
        """Messages take time from here on: one way, and of each direction's bytes."""
        self._delay, self._seconds_per_byte = delay, seconds_per_byte

    def compute(self, seconds: float) -> None:
        """All parties compute for so long."""
        self.times = [time + seconds for time in self.times]
        self._dealer += seconds

    def _arrival(self, link: tuple[int, int] | str, size: int, sent_at: float) -> float:
        self._free[link] = max(self._free.get(link, 0.0), sent_at) + size * self._seconds_per_byte
        return self._free[link] + self._delay

    def round(
        self, messages: Sequence[Message], payloads: Mapping[int, np.ndarray], phase: str = "online"
    ) -> dict[int, np.ndarray]:
        book, before, received, sent_at = self.counts.phases[phase], list(self._clocks), {}, self.times
        self.times = list(sent_at)
        for message in messages:
            if message.size:
                source, target = message.source, message.target
                self._clocks[target] = max(self._clocks[target], before[source] + 1)
                there = self._arrival((source, target), message.size, sent_at[source])
                self.times[target] = max(self.times[target], there)
            if message.source == self.rank:
                book["sent"] += message.size
            elif message.target == self.rank:
                book["received"] += message.size
                received[message.source] = np.zeros(message.size, np.uint8)
        book["depth"] += self._clocks[self.rank] - before[self.rank]
        return received

    round_dealing = round

    def deal(self, payload: np.ndarray | None, size: int) -> np.ndarray | None:
        book = self.counts.phases["preprocess"]
        if self.rank == 0 and size:
            book["received"] += size
            book["depth"] = 1
            self.times[0] = max(self.times[0], self._arrival("dealing", size, self._dealer))
        elif self.rank == DEALER:
            book["sent"] += size
        return np.zeros(size, np.uint8) if self.rank == 0 else None

    def close(self) -> None:
        return None
