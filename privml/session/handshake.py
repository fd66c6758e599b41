# SPDX-License-Identifier: Apache-2.0
"""The first message of a connection: both parties send what they are about to run, and both compare.

Wire layout, the same in every version: 8 bytes magic, 4 bytes little-endian length (at most 4096), then that
many bytes of JSON, one flat object of strings, integers and nulls. A store's id is sent as a hash of it with the
sender's rank and nonce: a party that has a half of the store can compare it, and no other party learns the id. Who has
recorded a hello can send it again: so both then send 32 bytes that depend on the store's id and the session's key.

A server or dealer that accepts no session replies in the same frame with an object of one entry instead of its hello:
``{"busy": seconds}``, retry after so many seconds; or, a server alone, ``{"moved": "host:port"}``, connect there.
"""

from __future__ import annotations

import hashlib
import json
import secrets
from dataclasses import asdict, dataclass, field, fields, replace
from typing import Any, Protocol

import privml._core as _core
from privml.errors import ConfigError, HandshakeMismatch, PeerDisconnected, ProtocolError, ServiceBusy, ServiceMoved
from privml.session.identity import parse_address

MAGIC = b"privml\x00\x01"
LENGTH_LIMIT = 4096
TEXT_LIMIT = 128
PROTOCOL_VERSION = 3
# What a server may reply instead of its hello, and the longest time after which it may ask a client to retry.
BUSY, MOVED = "busy", "moved"
LONGEST_RETRY = 86_400.0
_ADDRESS_LIMIT = 300
_PROOF_BYTES = 32

_FACING_ROLE = {"party": "party", "server": "client", "client": "server", "preprocess": "preprocess"}
# A dealer is one of three parties and connects to both others, whatever their roles towards each other.
DEALER, DEALER_ROLE, DEALT_ROLE = 2, "dealer", "dealt"
_FACING_ROLE |= {DEALER_ROLE: DEALT_ROLE, DEALT_ROLE: DEALER_ROLE}
# Roles that the server may ask to retry, and to connect elsewhere.
_RETRYING, _MOVABLE = ("client", DEALT_ROLE), ("client",)
_HINTS = {
    "protocol": "install the same release of privml at both parties",
    "version": "install the same release of privml at both parties",
    "role": "one party serves, the other one queries",
    "rank": "the parties need different ranks: 0 and 1, and 2 for a dealer",
    "engine": "start both parties with the same engine",
    "ot": "start both parties with the same OT provider",
    "k": "start both parties with the same k of the OT extension",
    "security": "start both parties with the same security of the OT extension",
    "program": "give both parties the same program file",
    "formats": "give both parties the same program file",
    "numerics": "start both parties with the same numerics",
    "threads": "start both parties with the same number of threads",
    "refill": "start both parties with the same ot.refill",
    "store": "give both parties their halves of one store as preprocessing=FOLDER, or neither",
    "when_empty": "start both parties with the same when_empty",
    "truncation": "start all parties with the same engine.truncation",
    "comparison": "start all parties with the same engine.comparison",
    "ring": "start both parties with the same engine.ring",
    "linear": "start both parties with the same engine.linear",
    "noise": "start both parties with the same engine.noise",
    "link": "start both parties with the same link, or with an engine.linear that depends on none",
}


class ByteChannel(Protocol):
    """The part of a channel that the handshake uses."""

    def write(self, data: bytes) -> None: ...
    def read(self, count: int) -> bytes: ...
    def flush(self) -> None: ...


@dataclass(frozen=True, slots=True)
class Hello:
    """What one party is about to run. ``program`` and ``formats`` are hashes in hex, or None if no program is fixed
    beforehand; ``store`` is the id of the store of which both have a half; ``nonce`` is this party's half of the
    randomness that both may know, ``keys`` its (secret, public) keys of X25519, of which the public one is sent: in
    hex, as ``key``. ``link``: what both assume, unless it is named later."""

    version: str
    rank: int
    engine: str
    ot: str
    k: int
    security: str = "semi_honest"
    role: str = "party"
    program: str | None = None
    formats: str | None = None
    numerics: str | None = None
    threads: int = 1
    refill: str = "none"
    store: str | None = None
    when_empty: str | None = None
    truncation: str | None = None
    comparison: str | None = None
    ring: int | None = None
    linear: str | None = None
    noise: str | None = None
    link: str | None = None
    protocol: int = PROTOCOL_VERSION
    nonce: str = field(default_factory=lambda: secrets.token_hex(16))
    keys: tuple[bytes, bytes] = field(default_factory=_core.key_pair, repr=False, compare=False)


@dataclass(frozen=True, slots=True)
class Handshake:
    """A hello that was received before there was a session for it, and the one that will answer it."""

    ours: Hello
    theirs: Hello


def shake_hands(channel: ByteChannel, ours: Hello, peer: int | None = None) -> Hello:
    """Sends ``ours``, receives and returns the peer's. ``peer``: the rank that it must have (None: the other of two).

    Raises HandshakeMismatch (at both parties) naming the first field that disagrees and both values, ServiceBusy and
    ServiceMoved if a client or a dealt party gets these replies, ProtocolError for bytes that are not a hello, and
    PeerDisconnected.
    """
    _write(channel, message_of(ours))
    try:
        theirs = _read(channel)
    except PeerDisconnected as error:
        if getattr(channel, "peer_closed", False) and not any(getattr(channel, "names", ())):
            hint = "without a hello; if it demands certificates, give this party one"
            raise PeerDisconnected(f"{error}, {hint}") from None
        raise
    if len(theirs) == 1 and ours.role in _RETRYING:
        _raise_if_busy(theirs)
    if len(theirs) == 1 and ours.role in _MOVABLE:
        _raise_if_moved(theirs, getattr(channel, "peer_name", ""))
    return _checked(ours, theirs, peer)


def receive_hello(channel: ByteChannel, ours: Hello, magic_read: bool = False, peer: int | None = None) -> Handshake:
    """The first half of ``shake_hands`` for a listening party: receives the peer's hello and compares it with ``ours``,
    which is sent if they do not match. ``magic_read``: the peer's magic has been read already. Errors as there."""
    theirs = _read(channel, magic_read)
    try:
        return Handshake(ours, _checked(ours, theirs, peer))
    except HandshakeMismatch:
        _write(channel, message_of(ours))
        raise


def answer_hello(channel: ByteChannel, handshake: Handshake) -> None:
    """The other half: the session is accepted."""
    _write(channel, message_of(handshake.ours))


def answer_busy(channel: ByteChannel, seconds: float) -> None:
    """Instead of a hello: no session now, retry after so many seconds."""
    _write(channel, {BUSY: min(max(seconds, 0.0), LONGEST_RETRY)})


def answer_moved(channel: ByteChannel, address: str) -> None:
    """Instead of a hello: sessions are accepted at ``address`` ("host:port")."""
    _write(channel, {MOVED: address})


def _raise_if_busy(answer: dict[str, Any]) -> None:
    if BUSY not in answer:
        return
    seconds = answer[BUSY]
    if type(seconds) not in (int, float) or not 0 <= seconds <= LONGEST_RETRY:
        raise ProtocolError("the peer is busy for an invalid time")
    raise ServiceBusy(f"the peer accepts no session now; retry in {seconds:g} seconds", float(seconds))


def _raise_if_moved(answer: dict[str, Any], name: str) -> None:
    if MOVED not in answer:
        return
    address = answer[MOVED]
    if not isinstance(address, str) or len(address) > _ADDRESS_LIMIT or not _is_address(address):
        raise ProtocolError("the peer redirects this party to something that is not an address")
    raise ServiceMoved(f"the server redirects its clients to {address}", address, name)


def _is_address(text: str) -> bool:
    """Whether a peer's text is an address that can be printed and connected to."""
    if not text.isascii() or not text.isprintable() or " " in text:
        return False
    try:
        return parse_address(text)[1] > 0
    except ConfigError:
        return False


def message_of(hello: Hello) -> dict[str, Any]:
    """What is sent of a hello."""
    message = {**asdict(hello), "store": store_mark(hello.store, hello.rank, hello.nonce), "key": hello.keys[1].hex()}
    del message["keys"]
    return message


def store_mark(store: str | None, rank: object, nonce: object) -> str | None:
    """What the party ``rank``, whose hello has this nonce, sends in place of the id of its store."""
    if store is None:
        return None
    return hashlib.sha256(f"privml store {store} {rank} {nonce}".encode(errors="replace")).hexdigest()[:32]


def _write(channel: ByteChannel, message: dict[str, Any]) -> None:
    body = json.dumps(message, separators=(",", ":")).encode()
    if len(body) > LENGTH_LIMIT:
        raise ValueError(f"hello of {len(body)} bytes, at most {LENGTH_LIMIT} fit")
    channel.write(MAGIC + len(body).to_bytes(4, "little") + body)
    channel.flush()


def _read(channel: ByteChannel, magic_read: bool = False) -> dict[str, Any]:
    if not magic_read and channel.read(len(MAGIC)) != MAGIC:
        raise ProtocolError("the first bytes from the other side are not a hello of privml")
    length = int.from_bytes(channel.read(4), "little")
    if length > LENGTH_LIMIT:
        raise ProtocolError(f"the peer announces a hello of {length} bytes, at most {LENGTH_LIMIT} are allowed")
    try:
        hello = json.loads(channel.read(length).decode())
    except (ValueError, RecursionError) as error:
        raise ProtocolError("the peer's hello is not JSON") from error
    if not isinstance(hello, dict):
        raise ProtocolError("the peer's hello is not an object")
    return hello


def prove_store(channel: ByteChannel, ours: Hello, key: bytes) -> None:
    """After hellos that name a store: both show that they know its id and the ``key`` that this session's hellos
    agree on, which who repeats an earlier hello does not. Raises HandshakeMismatch; nothing of the store was used."""
    if ours.store is None:
        return
    channel.write(_store_proof(ours.store, ours.rank, key))
    channel.flush()
    if not secrets.compare_digest(channel.read(_PROOF_BYTES), _store_proof(ours.store, 1 - ours.rank, key)):
        raise HandshakeMismatch(
            "the peer does not prove that it holds the other half of the store: its hello may be a copy of an earlier "
            "one; nothing was used"
        )


def _store_proof(store: str, rank: int, key: bytes) -> bytes:
    return hashlib.blake2b(f"privml store {store} {rank}".encode(), key=key, digest_size=_PROOF_BYTES).digest()


def _checked(ours: Hello, theirs: dict[str, Any], peer: int | None) -> Hello:
    if not all(_is_plain(value) for value in theirs.values()):
        raise ProtocolError("the peer's hello is not a flat object of short strings and integers")
    _compare(asdict(ours), theirs, 1 - ours.rank if peer is None else peer)
    return replace(_as_hello(theirs), store=ours.store)


def _as_hello(message: dict[str, Any]) -> Hello:
    names = [f.name for f in fields(Hello) if f.name != "keys"]
    missing = [name for name in names if name not in message]
    if missing:
        raise ProtocolError(f"the peer's hello has no {missing[0]}")
    return Hello(**{name: message[name] for name in names}, keys=(b"", bytes.fromhex(message["key"])))


def _is_plain(value: object) -> bool:
    if value is None or isinstance(value, str):
        return value is None or len(value) <= TEXT_LIMIT
    return isinstance(value, int) and abs(value) < 2**63


def _compare(ours: dict[str, Any], theirs: dict[str, Any], peer: int) -> None:
    for name, hint in _HINTS.items():
        mine, peers = ours[name], theirs.get(name)
        if name == "role":
            agree = peers == _FACING_ROLE[mine]
        elif name == "rank":
            agree = type(peers) is int and peers == peer
        elif name == "store":
            agree = _same_store(mine, theirs)
            mine, peers = mine and mine[:8], None if peers is None else "another one"
        else:
            agree = type(peers) is type(mine) and peers == mine
        if not agree:
            # repr: the peer's text must not reach a terminal unescaped.
            raise HandshakeMismatch(
                f"the parties do not fit together: {name} is {mine!r} here and {peers!r} at the peer; {hint}"
            )
    for name, digits in (("nonce", 32), ("key", 64)):
        value = theirs.get(name)
        if not isinstance(value, str) or len(value) != digits or any(c not in "0123456789abcdef" for c in value):
            raise ProtocolError(f"the peer's hello has no valid {name}")


def _same_store(mine: str | None, theirs: dict[str, Any]) -> bool:
    expected, mark = store_mark(mine, theirs.get("rank"), theirs.get("nonce")), theirs.get("store")
    if expected is None or not isinstance(mark, str) or not mark.isascii():
        return expected is None and mark is None
    return secrets.compare_digest(expected, mark)
