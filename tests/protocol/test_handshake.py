# SPDX-License-Identifier: Apache-2.0
import contextlib
import json
import random
import threading
from dataclasses import asdict, replace

import pytest
from parties import run_both, succeed

from privml import _core
from privml.engines.correlations import OtChoice
from privml.errors import HandshakeMismatch, PeerDisconnected, ProtocolError, ServiceBusy, ServiceMoved
from privml.session import dealer
from privml.session.connections import Link, following
from privml.session.dealer import DEALER_MAGIC, PendingSessions
from privml.session.handshake import (
    LENGTH_LIMIT,
    LONGEST_RETRY,
    MAGIC,
    Hello,
    answer_busy,
    answer_moved,
    prove_store,
    receive_hello,
    shake_hands,
    store_mark,
)
from privml.session.lanes import public_seed, session_token
from privml.session.session import Settings, open_session
from privml.spec import SessionSpec

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


def words(hello: Hello) -> dict:
    """What is sent of a hello of a party without a store."""
    return {**{name: value for name, value in asdict(hello).items() if name != "keys"}, "key": hello.keys[1].hex()}


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
        ("protocol", 1),
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
        frame(json.dumps({**words(FACING), "nonce": "zz" * 16}).encode()),
        frame(json.dumps({**words(FACING), "nonce": 7}).encode()),
        frame(json.dumps({**words(FACING), "key": "00"}).encode()),
        frame(json.dumps({**words(FACING), "key": None}).encode()),
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
    with pytest.raises(PeerDisconnected):
        shake_hands(channel, BASE)
    other.close()


# ---- stores
STORE, OTHER = "12" * 16, "34" * 16


def test_halves_of_one_store_know_each_other():
    hellos = (replace(BASE, store=STORE), replace(FACING, store=STORE))
    theirs = succeed(run_both(lambda rank, channel: shake_hands(channel, hellos[rank])))
    assert theirs == list(hellos[::-1])


@pytest.mark.parametrize("named", [None, OTHER])
def test_who_has_another_store_learns_nothing_of_this_one(named):
    def party(rank, channel):
        if rank == 0:
            return receive_hello(channel, replace(BASE, store=STORE))
        body = json.dumps({**words(FACING), "store": store_mark(named, 1, FACING.nonce)}).encode()
        channel.write(frame(body))
        channel.flush()
        head = channel.read(len(MAGIC) + 4)
        return channel.read(int.from_bytes(head[-4:], "little"))

    error, answer = run_both(party)
    assert isinstance(error, HandshakeMismatch) and f"store is '{STORE[:8]}' here" in str(error)
    assert STORE.encode() not in answer and json.loads(answer)["rank"] == 0


@pytest.mark.parametrize("ours, theirs, shown", [
    (STORE, None, f"store is '{STORE[:8]}' here and None at the peer"),
    (STORE, OTHER, f"store is '{STORE[:8]}' here and 'another one' at the peer"),
    (None, STORE, "store is None here and 'another one' at the peer"),
])  # fmt: skip
def test_stores_that_do_not_fit(ours, theirs, shown):
    hellos = (replace(BASE, store=ours), replace(FACING, store=theirs))
    error = run_both(lambda rank, channel: shake_hands(channel, hellos[rank]))[0]
    assert isinstance(error, HandshakeMismatch) and shown in str(error)


@pytest.mark.parametrize("mark", [
    STORE, store_mark(STORE, 0, FACING.nonce), store_mark(STORE, 1, BASE.nonce), "", "\u00e9", True, 7,
], ids=["the id", "the other rank's", "another nonce's", "nothing", "no ASCII", "true", "7"])  # fmt: skip
def test_a_mark_is_its_senders_own(mark):
    def party(rank, channel):
        if rank == 0:
            return receive_hello(channel, replace(BASE, store=STORE))
        channel.write(frame(json.dumps({**words(FACING), "store": mark}).encode()))
        channel.flush()

    assert isinstance(run_both(party)[0], HandshakeMismatch)


@pytest.mark.parametrize("rank, store, key", [
    (0, STORE, b"s" * 32), (0, OTHER, b"k" * 32), (1, STORE, b"k" * 32),
], ids=["another session's key", "another store", "its own, sent back"])  # fmt: skip
def test_a_store_is_proved_for_one_session(rank, store, key):
    """Party 0 sends what it would have sent elsewhere, or what party 1 sends."""
    said = {0: (replace(BASE, store=store, rank=rank), key), 1: (replace(FACING, store=STORE), b"k" * 32)}
    _, error = run_both(lambda rank, channel: prove_store(channel, *said[rank]))
    assert isinstance(error, HandshakeMismatch) and "nothing was used" in str(error)


def test_who_knows_store_and_session_proves_it():
    hellos = (replace(BASE, store=STORE), replace(FACING, store=STORE))
    succeed(run_both(lambda rank, channel: prove_store(channel, hellos[rank], b"k" * 32)))


# ---- words that come byte by byte
def trickled(data, hear):
    """What ``hear(channel)`` ends with whose peer sends each byte in a frame of its own, well before any deadline."""
    ended = threading.Event()

    def party(rank, channel):
        if rank == 0:
            try:
                return hear(channel)
            finally:
                ended.set()
                channel.close()
        with contextlib.suppress(PeerDisconnected):
            for byte in data:
                channel.write(bytes([byte]))
                channel.flush()
                if ended.wait(0.05):
                    return

    return run_both(party)[0]


def test_a_hello_has_an_end_as_a_whole():
    settings = Settings(SessionSpec("twopc", OtChoice("ideal"), deadline=1.0))
    error = trickled(frame(b" " * 4000), lambda channel: open_session(Link(channel), 0, settings))
    assert isinstance(error, PeerDisconnected), error


def test_a_request_of_a_dealer_has_an_end_as_a_whole(monkeypatch):
    monkeypatch.setattr(dealer, "_REQUEST_SECONDS", 0.5)
    lines = []
    lobby = PendingSessions(60.0, lines.append)
    assert trickled(DEALER_MAGIC + bytes(34), lobby.admit) is None
    assert len(lines) == 1 and lines[0].startswith("a connection was refused")


# ---- answers instead of a hello
def answered(answer, ours=FACING):
    """What a party that says ``ours`` ends with when the other one sends ``answer``, bytes or a call."""

    def party(rank, channel):
        if rank == 1:
            return shake_hands(channel, ours)
        if callable(answer):
            return answer(channel)
        channel.write(answer)
        channel.flush()

    return run_both(party)[1]


@pytest.mark.parametrize("seconds, told", [(2.5, 2.5), (0, 0.0), (-3.0, 0.0), (1e9, LONGEST_RETRY)])
def test_a_busy_server_says_when_to_come_again(seconds, told):
    error = answered(lambda channel: answer_busy(channel, seconds))
    assert isinstance(error, ServiceBusy) and error.retry_after == told
    assert f"{told:g} seconds" in str(error)


@pytest.mark.parametrize("address", ["127.0.0.1:9001", "[::1]:9001", "worker-2.hospital.example:65535"])
def test_a_server_sends_its_clients_on(address):
    error = answered(lambda channel: answer_moved(channel, address))
    assert isinstance(error, ServiceMoved) and error.address == address and error.name == ""


@pytest.mark.parametrize(
    "body",
    [
        b'{"busy": NaN}',
        b'{"busy": Infinity}',
        b'{"busy": -1}',
        b'{"busy": 1e400}',
        b'{"busy": %s}' % (b"9" * 400),
        b'{"busy": "soon"}',
        b'{"busy": true}',
        b'{"busy": null}',
        b'{"moved": 7}',
        b'{"moved": "nowhere"}',
        b'{"moved": "host:0"}',
        b'{"moved": "host:70000"}',
        b'{"moved": "\\u001b[31m:80"}',
        b'{"moved": "a\\nb:80"}',
        b'{"moved": "two words:80"}',
        b'{"moved": "%s:80"}' % (b"x" * 400),
    ],
    ids=lambda body: body[:24].decode(),
)
def test_impossible_answers_are_protocol_errors(body):
    assert isinstance(answered(frame(body)), ProtocolError)


@pytest.mark.parametrize("role", ["server", "party", "dealer", "dealt"])
@pytest.mark.parametrize("body", [b'{"busy": 1}', b'{"moved": "127.0.0.1:80"}'], ids=["busy", "moved"])
def test_only_those_who_ask_are_sent_away(role, body):
    error = answered(frame(body), replace(BASE, role=role))
    asks_a_dealer = role == "dealt" and b"busy" in body
    assert isinstance(error, ServiceBusy if asks_a_dealer else HandshakeMismatch), error


def moving(steps, told, asked):
    """Attempts that are sent on along ``steps`` in turn, and what was asked with which link."""
    steps = iter(steps)

    def attempt(address, link):
        asked.append((address, link))
        step = next(steps)
        if isinstance(step, Exception):
            raise step
        return step

    return following("first:1", {"identity": Named("any")}, attempt, told.append)


class Named:
    def __init__(self, *names):
        self.names = names

    def expecting(self, names):
        return Named(*names)


def test_a_client_follows_once_and_expects_the_same_name():
    told, asked = [], []
    assert moving([ServiceMoved("", "second:2", "hospital-a"), "answer"], told, asked) == "answer"
    assert told == ["second:2"] and [address for address, _ in asked] == ["first:1", "second:2"]
    assert [link["identity"].names for _, link in asked] == [("any",), ("hospital-a",)]
    with pytest.raises(ProtocolError, match="redirects them again"):
        moving([ServiceMoved("", "second:2"), ServiceMoved("", "third:3")], [], [])
    with pytest.raises(ServiceBusy):
        moving([ServiceMoved("", "second:2"), ServiceBusy("")], [], [])


def test_a_client_is_not_sent_where_it_does_not_go():
    asked = []

    def attempt(address, link):
        asked.append(address)
        raise ServiceMoved("", "10.0.0.1:9000")

    def admit(address):
        raise ValueError(address)

    with pytest.raises(ValueError, match=r"10\.0\.0\.1"):
        following("127.0.0.1:1", {}, attempt, admit)
    assert asked == ["127.0.0.1:1"]


@pytest.mark.parametrize("left_out", ["store", "ring", "nonce", "truncation"])
def test_a_hello_that_leaves_out_what_may_be_null(left_out):
    said = {name: value for name, value in words(FACING).items() if name != left_out}

    def party(rank, channel):
        if rank == 0:
            return shake_hands(channel, BASE)
        channel.write(frame(json.dumps(said).encode()))
        channel.flush()

    assert isinstance(run_both(party)[0], ProtocolError)
