# SPDX-License-Identifier: Apache-2.0
"""The first message of a connection: both of its ends say what they are about to run, and both compare.

Wire layout, the same in every version: 8 bytes magic, 4 bytes little-endian length (at most 4096), then that
many bytes of JSON, one flat object of strings, integers and nulls.
"""

from __future__ import annotations

import json
import secrets
from dataclasses import asdict, dataclass, field, fields
from typing import Any, Protocol

from privml.errors import HandshakeMismatch, ProtocolError

MAGIC = b"privml\x00\x01"
LENGTH_LIMIT = 4096
TEXT_LIMIT = 128
PROTOCOL_VERSION = 1

_FACING_ROLE = {"party": "party", "server": "client", "client": "server", "preprocess": "preprocess"}
# A dealer is one of three parties and talks to both others, whatever these are to each other.
DEALER, DEALER_ROLE, DEALT_ROLE = 2, "dealer", "dealt"
_FACING_ROLE |= {DEALER_ROLE: DEALT_ROLE, DEALT_ROLE: DEALER_ROLE}
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
    "ring": "start both parties with the same engine.ring",
}


class ByteChannel(Protocol):
    """The part of a channel that the handshake uses."""

    def write(self, data: bytes) -> None: ...
    def read(self, count: int) -> bytes: ...
    def flush(self) -> None: ...


@dataclass(frozen=True, slots=True)
class Hello:
    """What one party says about itself. ``program`` and ``formats`` are hashes in hex, or None where no
    program is fixed beforehand; ``nonce`` is this party's half of the randomness both may know."""

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
    ring: int | None = None
    protocol: int = PROTOCOL_VERSION
    nonce: str = field(default_factory=lambda: secrets.token_hex(16))


def shake_hands(channel: ByteChannel, ours: Hello, greeted: bool = False, peer: int | None = None) -> Hello:
    """Sends ``ours``, receives and returns the peer's. ``greeted``: the peer's magic has been read already; ``peer``:
    the rank it must have, which between two parties goes without saying.

    Raises HandshakeMismatch (at both parties) naming the first field that disagrees and both values,
    ProtocolError for bytes that are no hello, and PeerDisconnected.
    """
    body = json.dumps(asdict(ours), separators=(",", ":")).encode()
    if len(body) > LENGTH_LIMIT:
        raise ValueError(f"hello of {len(body)} bytes, at most {LENGTH_LIMIT} fit")
    channel.write(MAGIC + len(body).to_bytes(4, "little") + body)
    channel.flush()
    theirs = _read_hello(channel, greeted)
    _compare(asdict(ours), theirs, 1 - ours.rank if peer is None else peer)
    return Hello(**{f.name: theirs[f.name] for f in fields(Hello)})


def _read_hello(channel: ByteChannel, greeted: bool) -> dict[str, Any]:
    if not greeted and channel.read(len(MAGIC)) != MAGIC:
        raise ProtocolError("the other side does not speak privml: its first bytes are not a hello")
    length = int.from_bytes(channel.read(4), "little")
    if length > LENGTH_LIMIT:
        raise ProtocolError(f"the peer announces a hello of {length} bytes, at most {LENGTH_LIMIT} are allowed")
    try:
        hello = json.loads(channel.read(length).decode())
    except (ValueError, RecursionError) as error:
        raise ProtocolError("the peer's hello is not JSON") from error
    if not isinstance(hello, dict) or not all(_plain(value) for value in hello.values()):
        raise ProtocolError("the peer's hello is not a flat object of short strings and integers")
    return hello


def _plain(value: object) -> bool:
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
        else:
            agree = type(peers) is type(mine) and peers == mine
        if not agree:
            # repr: the peer's text must not reach a terminal unescaped.
            raise HandshakeMismatch(
                f"the parties do not fit together: {name} is {mine!r} here and {peers!r} at the peer; {hint}"
            )
    nonce = theirs.get("nonce")
    if not isinstance(nonce, str) or len(nonce) != 32 or any(c not in "0123456789abcdef" for c in nonce):
        raise ProtocolError("the peer's hello has no valid nonce")
