# SPDX-License-Identifier: Apache-2.0
"""A peer that deviates from the protocol: a relay between two honest programs that alters what one of them sends.

To the other party that is a dishonest peer. The relay knows frames (16 bytes of header: payload length, depth, tag)
and may change any payload; what it forwards are well-formed frames, so that it is the protocols that must notice.
"""

from __future__ import annotations

import contextlib
import itertools
import secrets
import socket
import struct
import threading
import time
from collections.abc import Callable, Iterable

HEADER = struct.Struct("<IIQ")
# What becomes of frame `number` of the dishonest party: the payloads to send in its place; None: the connection ends.
Attack = Callable[[int, bytes], "Iterable[bytes] | None"]


class Raw(bytes):
    """Goes out as it is, not as a frame."""


class Relay:
    """``with Relay(port_of_party_0, dishonest, attack) as relay``: party 1 connects to ``relay.address``."""

    def __init__(self, port: int, dishonest: int, attack: Attack) -> None:
        self._target, self._dishonest, self._attack = port, dishonest, attack
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.address = f"127.0.0.1:{self._listener.getsockname()[1]}"
        self.sizes: list[int] = []  # of the dishonest party's frames
        self.altered = False  # whether anything was sent in place of what the party had said
        self._sockets: list[socket.socket] = []
        self._threads = [threading.Thread(target=self._accept, daemon=True)]

    def __enter__(self) -> Relay:
        self._threads[0].start()
        return self

    def __exit__(self, *exception: object) -> None:
        self._end()
        self._listener.close()
        for thread in self._threads:
            thread.join(20)
            assert not thread.is_alive()
        for each in self._sockets:
            each.close()

    def _accept(self) -> None:
        try:
            client, _ = self._listener.accept()
            server = self._reach()
        except OSError:
            return
        self._sockets += [client, server]
        for source, target, rank in ((server, client, 0), (client, server, 1)):
            source.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            body = self._alter if rank == self._dishonest else self._copy
            self._threads.append(threading.Thread(target=body, args=(source, target), daemon=True))
            self._threads[-1].start()

    def _reach(self) -> socket.socket:
        """A connection to party 0, who may be about to listen still."""
        while True:
            try:
                return socket.create_connection(("127.0.0.1", self._target))
            except ConnectionRefusedError:
                if self._listener.fileno() < 0:
                    raise
                time.sleep(0.005)

    def _copy(self, source: socket.socket, target: socket.socket) -> None:
        try:
            while data := source.recv(1 << 16):
                target.sendall(data)
        except OSError:
            pass
        self._end()

    def _alter(self, source: socket.socket, target: socket.socket) -> None:
        try:
            while True:
                length, depth, tag = HEADER.unpack(_exactly(source, HEADER.size))
                payload = _exactly(source, length)
                number = len(self.sizes)
                self.sizes.append(length)
                payloads = self._attack(number, payload)
                self.altered |= payloads != [payload]
                if payloads is None:
                    break
                for each in payloads:
                    target.sendall(each if isinstance(each, Raw) else HEADER.pack(len(each), depth, tag) + each)
        except (OSError, EOFError):
            pass
        self._end()

    def _end(self) -> None:
        for each in self._sockets:
            with contextlib.suppress(OSError):
                each.shutdown(socket.SHUT_RDWR)


def _exactly(source: socket.socket, count: int) -> bytes:
    data = b""
    while len(data) < count:
        part = source.recv(count - len(data))
        if not part:
            raise EOFError
        data += part
    return data


# ---- attacks on frame `target`
def nothing(number: int, payload: bytes) -> list[bytes]:
    return [payload]


def flip(target: int, bit: int) -> Attack:
    """One bit (counted from the frame's first; from its last where negative) is the other way round."""

    def attack(number: int, payload: bytes) -> list[bytes]:
        if number != target:
            return [payload]
        place = bit % (8 * len(payload))
        changed = bytearray(payload)
        changed[place // 8] ^= 1 << place % 8
        return [bytes(changed)]

    return attack


def replace_by_random(target: int) -> Attack:
    def attack(number: int, payload: bytes) -> list[bytes]:
        return [payload if number != target else _other(secrets.token_bytes(len(payload)), payload)]

    return attack


def replay(target: int) -> Attack:
    """In place of frame ``target``, the last earlier one of the same length, else zeros."""
    seen: dict[int, bytes] = {}

    def attack(number: int, payload: bytes) -> list[bytes]:
        sent = payload if number != target else _other(seen.get(len(payload), bytes(len(payload))), payload)
        seen[len(payload)] = payload
        return [sent]

    return attack


def _other(payload: bytes, original: bytes) -> bytes:
    """``payload``, or ``original`` with its first bit flipped if they are equal, as short ones are by chance."""
    return payload if payload != original or not original else bytes([original[0] ^ 1]) + original[1:]


def repeat(target: int) -> Attack:
    return lambda number, payload: [payload, payload] if number == target else [payload]


def reorder(target: int) -> Attack:
    """Frame ``target`` leaves after the next one; if there is none while it is awaited, never."""
    kept: list[bytes] = []

    def attack(number: int, payload: bytes) -> list[bytes]:
        if number == target:
            kept.append(payload)
            return []
        return [payload, *kept.copy()] if number == target + 1 else [payload]

    return attack


def swap_halves(target: int) -> Attack:
    def attack(number: int, payload: bytes) -> list[bytes]:
        half = len(payload) // 2
        return [payload if number != target else payload[half:] + payload[:half]]

    return attack


def truncate(target: int) -> Attack:
    """The end of the frame is missing, and what comes after it stands in its place."""
    return lambda number, payload: [payload[: max(len(payload) - 3, 1)] if number == target else payload]


def huge(target: int, length: int = 2**32 - 1) -> Attack:
    """A frame that says it is as long as that."""
    header = Raw(HEADER.pack(length, 0, 0))
    return lambda number, payload: [header, Raw(payload)] if number == target else [payload]


def garbage_behind(target: int) -> Attack:
    """The frame as it should be, then bytes that are none."""
    return lambda number, payload: [payload, Raw(secrets.token_bytes(4000))] if number == target else [payload]


def endless(target: int) -> Attack:
    """Frames of random bytes in place of this one, until nobody takes them."""
    full = secrets.token_bytes(1 << 16)

    def attack(number: int, payload: bytes) -> Iterable[bytes]:
        return itertools.repeat(full) if number == target else [payload]

    return attack


def silence(target: int) -> Attack:
    """Nothing more is sent."""
    return lambda number, payload: [] if number >= target else [payload]


def hang_up(target: int) -> Attack:
    return lambda number, payload: None if number >= target else [payload]
