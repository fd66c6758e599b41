# SPDX-License-Identifier: Apache-2.0
"""A peer of an earlier version of the protocol is refused by name, at whichever side it stands."""

from __future__ import annotations

import json
import socket
import struct
from concurrent.futures import ThreadPoolExecutor

import pytest
from ports import reserved

import privml
from privml.errors import HandshakeMismatch
from privml.session.handshake import MAGIC, PROTOCOL_VERSION
from privml.version import VERSION


def exactly(sock: socket.socket, count: int) -> bytes:
    data = b""
    while len(data) < count:
        part = sock.recv(count - len(data))
        assert part, "the other side closed the connection"
        data += part
    return data


def old_party(sock: socket.socket, rank: int) -> dict:
    """Speaks version 1: frames with a clock in their header, a hello without a key. Returns the answer."""
    hello = {
        "version": VERSION, "rank": rank, "engine": "twopc", "ot": "softspoken", "k": 4, "security": "semi_honest",
        "role": "party", "program": None, "formats": None, "numerics": "64.16/64.16, exp=auto", "threads": 1,
        "refill": "none", "store": None, "when_empty": None, "truncation": None, "ring": None, "protocol": 1,
        "nonce": "0" * 32,
    }  # fmt: skip
    body = json.dumps(hello).encode()
    message = MAGIC + struct.pack("<I", len(body)) + body
    clock = 123456789
    sock.sendall(struct.pack("<IIQ", len(message), 0, clock) + message)
    length, _, _ = struct.unpack("<IIQ", exactly(sock, 16))
    answer = exactly(sock, length)
    assert answer[:8] == MAGIC
    return json.loads(answer[12:])


@pytest.mark.parametrize("rank", [0, 1])
def test_an_old_peer(rank):
    """``rank``: of the party of this version; the old one reads a hello that names its protocol."""
    with reserved(1) as (address,), ThreadPoolExecutor(1) as executor:
        host, port = address.rsplit(":", 1)
        if rank == 0:
            ours = executor.submit(privml.connect, 0, listen=address)
            while True:
                try:
                    sock = socket.create_connection((host, int(port)))
                    break
                except ConnectionRefusedError:
                    assert not ours.done()
            with sock:
                answer = old_party(sock, 1)
        else:
            with socket.create_server((host, int(port)), reuse_port=False) as listener:
                ours = executor.submit(privml.connect, 1, connect=address)
                with listener.accept()[0] as sock:
                    answer = old_party(sock, 0)
        assert answer["protocol"] == PROTOCOL_VERSION, "the old party names both numbers"
        with pytest.raises(HandshakeMismatch, match=f"protocol is {PROTOCOL_VERSION} here and 1 at the peer"):
            ours.result()
