# SPDX-License-Identifier: Apache-2.0
"""Both halves of a store are written while both disks have room: a party whose disk is full tells the other one, and
neither goes on making what nobody can use."""

from __future__ import annotations

from privml.errors import StoreError
from privml.session.handshake import ByteChannel
from privml.store.writer import StoreWriter

_ROOM, _FULL = b"\x01", b"\x00"


class JointWriter:
    """``writer``, but that the last chunk of each query waits for the peer's, which does the same over ``channel``: one
    byte each way. What could not be written is told then, and nothing is written in between.

    Raises StoreError, at both parties after the same query, when one of their disks is full.
    """

    def __init__(self, writer: StoreWriter, channel: ByteChannel) -> None:
        self.header, self.seal = writer.header, writer.seal
        self._writer, self._channel = writer, channel
        self._of_a_query = sum(writer.header.query_start(1))
        self._put = 0
        self._failure: StoreError | None = None

    def put(self, kind: int, sealed: bytes) -> None:
        """See ``StoreWriter``."""
        if self._failure is None:
            try:
                self._writer.put(kind, sealed)
            except StoreError as error:
                self._failure = error
        if self._failure is not None:
            self._writer.skip(kind)
        self._put += 1
        if self._put % self._of_a_query == 0:
            self._meet()

    def _meet(self) -> None:
        self._channel.write(_ROOM if self._failure is None else _FULL)
        self._channel.flush()
        theirs = self._channel.read(1)
        if self._failure is not None:
            raise self._failure
        if theirs != _ROOM:
            raise StoreError("the peer could not write its half of the store: its disk is full")

    @property
    def offset_context(self) -> bytes:
        return self._writer.offset_context

    def next_context(self, kind: int) -> bytes:
        return self._writer.next_context(kind)

    def next_size(self, kind: int) -> int:
        return self._writer.next_size(kind)
