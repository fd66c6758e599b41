# SPDX-License-Identifier: Apache-2.0
import json
import random
import time
from dataclasses import asdict, replace

import pytest
from parties import run_both, succeed

from privml import _core
from privml.errors import HandshakeMismatch, PeerDisconnected, ProtocolError
from privml.session.handshake import LENGTH_LIMIT, MAGIC, Hello, shake_hands
from privml.session.lanes import public_seed, session_token

BASE = Hello(
    version="1.0",
    rank=0,
    engine="twopc",
    ot="softspoken",
    k=4,
    role="server",
    program="ab" * 32,
    formats="cd" * 32,
    numerics="64.16/64.16",
)
FACING = replace(BASE, rank=1, role="client", nonce="0" * 32)


def frame(body: bytes, magic: bytes = MAGIC, length: int | None = None) -> bytes:
    return magic + (len(body) if length is None else length).to_bytes(4, "little") + body


def test_agreement_returns_the_peers_hello_and_one_token():
    hellos = (BASE, FACING)
    theirs = succeed(run_both(lambda rank, channel: shake_hands(channel, hellos[rank])))
    assert theirs == [FACING, BASE]
    tokens = {session_token(BASE, theirs[0]), session_token(theirs[1], FACING)}
    assert len(tokens) == 1 and len({public_seed(token) for token in tokens}) == 1
    assert tokens != {session_token(BASE, replace(FACING, nonce="1" * 32))}


@pytest.mark.parametrize(
    "field, value",
    [
        ("version", "1.1"),
        ("protocol", 2),
        ("rank", 0),
        ("engine", "plain"),
        ("ot", "ideal"),
        ("k", 8),
        ("role", "server"),
        ("program", "ef" * 32),
        ("program", None),
        ("formats", "00" * 32),
        ("numerics", "32.12/12.8"),
    ],
)
def test_mismatch_names_the_field_and_both_values_at_both_sides(field, value):
    hellos = (BASE, replace(FACING, **{field: value}))
    errors = run_both(lambda rank, channel: shake_hands(channel, hellos[rank]))
    for rank, error in enumerate(errors):
        assert isinstance(error, HandshakeMismatch), error
        assert f"{field} is {getattr(hellos[rank], field)!r} here" in str(error)
        assert f"{getattr(hellos[1 - rank], field)!r} at the peer" in str(error)


@pytest.mark.parametrize(
    "sent",
    [
        b"GET / HTTP/1.1\r\nHost: x\r\n\r\n",
        frame(b"{}", magic=b"privml\x00\x02"),
        frame(b"", length=2**32 - 1),
        frame(b"", length=LENGTH_LIMIT + 1),
        frame(b"\xff" * 64),
        frame(b"[" * LENGTH_LIMIT),
        frame(b"9" * LENGTH_LIMIT),
        frame(b'"text"'),
        frame(b'{"version": [1]}'),
        frame(json.dumps({"version": "x" * 200}).encode()),
        frame(json.dumps(asdict(replace(FACING, nonce="zz" * 16))).encode()),
        frame(json.dumps({**asdict(FACING), "nonce": 7}).encode()),
    ],
)
def test_garbage_is_a_protocol_error(sent):
    def party(rank, channel):
        if rank == 0:
            return shake_hands(channel, BASE)
        channel.write(sent + bytes(64))
        channel.flush()

    assert isinstance(run_both(party)[0], ProtocolError)


def test_random_bytes_never_crash():
    source = random.Random(5)
    for _ in range(50):
        body = bytes(source.randrange(256) for _ in range(source.randrange(200)))

        def party(rank, channel, body=body):
            if rank == 0:
                return shake_hands(channel, BASE)
            channel.write(frame(body))
            channel.flush()

        assert isinstance(run_both(party)[0], (ProtocolError, HandshakeMismatch))


def test_missing_fields_are_a_mismatch():
    def party(rank, channel):
        if rank == 0:
            return shake_hands(channel, BASE)
        channel.write(frame(b"{}"))
        channel.flush()

    error = run_both(party)[0]
    assert isinstance(error, HandshakeMismatch) and "None at the peer" in str(error)


def test_text_of_the_peer_is_escaped_in_messages():
    hellos = (BASE, replace(FACING, version="\x1b[31m"))
    error = run_both(lambda rank, channel: shake_hands(channel, hellos[rank]))[0]
    assert "\x1b" not in str(error) and "\\x1b[31m" in str(error)


def test_silent_peer_ends_at_the_deadline():
    channel, other = _core.memory_pair()
    channel.set_deadline(0.2)
    start = time.monotonic()
    with pytest.raises(PeerDisconnected):
        shake_hands(channel, BASE)
    assert time.monotonic() - start < 5
    other.close()
