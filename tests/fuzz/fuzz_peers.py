# SPDX-License-Identifier: Apache-2.0
"""What a peer says in clear before the protocols begin, and what a party of three computes with its messages."""

from __future__ import annotations

import functools
import json
import random
import threading
from dataclasses import asdict, replace
from typing import Any

import numpy as np
import torch
from fuzz_targets import Target, workplace
from mutation import dump, mutate_bytes, mutate_json

from privml import _core
from privml.conversion import convert
from privml.engines.base import Operand
from privml.engines.correlations import OtChoice
from privml.engines.threepc import backend as threepc
from privml.engines.threepc.engine import ThreePartyEngine
from privml.engines.threepc.links import DEALER, Links
from privml.engines.threepc.party import Party
from privml.engines.threepc.randomness import Stream
from privml.engines.twopc.stores import transfers
from privml.errors import PeerDisconnected
from privml.program import Program
from privml.service.negotiation import Service, grant_query, request_query, settings_of
from privml.session.dealer import DEALER_MAGIC, PendingSessions
from privml.session.handshake import MAGIC, Hello, message_of, shake_hands
from privml.session.lanes import LANE_MAGIC, accept_lanes, open_lanes
from privml.session.preprocessing import StoreHalf
from privml.spec import SessionSpec
from privml.store.layout import Header
from privml.store.writer import StoreWriter

TOKEN = bytes(range(32))


class Script:
    """A channel from which a peer's bytes come as they were written beforehand."""

    peer_name, peer_closed, names = "", False, ([], [])

    def __init__(self, data: bytes) -> None:
        self._data, self._at = data, 0

    def read(self, count: int) -> bytes:
        part = self._data[self._at : self._at + count]
        if len(part) < count:
            raise PeerDisconnected("the script has ended")
        self._at += count
        return part

    def read_array(self, count: int) -> np.ndarray:
        return np.frombuffer(self.read(count), np.uint8).copy()

    def write(self, data: bytes) -> None: ...
    def write_array(self, data: Any) -> None: ...
    def flush(self) -> None: ...
    def close(self) -> None: ...
    def set_deadline(self, seconds: float) -> None: ...
    def set_depth(self, depth: int) -> None: ...
    def depth(self) -> int:
        return 0

    def traffic(self) -> dict[str, int]:
        return {"sent": 0, "received": self._at, "depth": 0}


# ---- lengths and JSON
def framed(*messages: Any) -> bytes:
    bodies = [dump(message) for message in messages]
    return b"".join(len(body).to_bytes(4, "little") + body for body in bodies)


def mutate_framed(source: random.Random, data: bytes, start: int) -> bytes:
    """Changes in the JSON of messages with a length each that begin at ``start``."""
    head, rest, messages = data[:start], data[start:], []
    try:
        while rest:
            length = int.from_bytes(rest[:4], "little")
            messages.append(json.loads(rest[4 : 4 + length]))
            rest = rest[4 + length :]
        if messages:
            chosen = source.randrange(len(messages))
            messages[chosen] = mutate_json(source, messages[chosen])
            return head + framed(*messages)
    except (ValueError, RecursionError):
        pass
    return mutate_bytes(source, data)


# ---- handshake: which hello is ours (1), then magic, length, JSON
OURS = (
    Hello("1.0", 0, "twopc", "softspoken", 4, role="server", program="ab" * 32, formats="cd" * 32, numerics="64.16"),
    Hello("1.0", 1, "active", "softspoken", 4, "malicious", role="client", truncation="auto", ring=64),
    Hello("1.0", 2, "threepc", "none", 0, role="dealer", truncation="auto"),
)
PEER_KEYS = (b"", bytes(range(32)))
FACING = ({"rank": 1, "role": "client"}, {"rank": 0, "role": "server"}, {"rank": 1, "role": "dealt"})


def handshake(data: bytes) -> None:
    which = data[0] % len(OURS) if data else 0
    theirs = shake_hands(Script(data[1:]), OURS[which], peer=FACING[which]["rank"])
    words = {name: value for name, value in asdict(theirs).items() if name != "keys"}
    assert all(type(value) in (str, int, type(None)) for value in words.values()) and len(theirs.keys[1]) == 32


def hellos() -> list[bytes]:
    messages = [
        message_of(replace(ours, **facing, nonce="0" * 32, keys=PEER_KEYS))
        for ours, facing in zip(OURS, FACING, strict=True)
    ]
    return [bytes([i]) + MAGIC + framed(hello) for i, hello in enumerate(messages)]


# ---- what a query agrees on
@functools.cache
def program() -> Program:
    torch.manual_seed(1)
    return convert(torch.nn.Sequential(torch.nn.Linear(4, 3), torch.nn.ReLU()).eval(), calibration=torch.randn(16, 4))


@functools.cache
def store(user: str) -> StoreHalf:
    """A store for one target, which may use it up."""
    place = workplace("store-" + user)
    header = Header(
        "ab" * 16, "0" * 32, "0", 0, "softspoken", 4, "semi_honest", program().hash, 1, 3, transfers(200, 100), "twopc"
    )  # fmt: skip
    with StoreWriter(place / "store", header, place / "key") as writer:
        for direction in (0, 1):
            for _ in range(writer.header.chunks(direction)):
                plain = bytes(16 * writer.next_size(direction))
                writer.put(direction, writer.seal.seal(plain, writer.next_context(direction)))
        writer.commit(writer.seal.seal(b"o" * 16, writer.offset_context))
    return StoreHalf(place / "store", 0, program().hash, place / "key", when_empty="make")


@functools.cache
def services() -> tuple[Service, ...]:
    made = program()
    return (
        Service(made, settings_of(made)),
        Service(made, settings_of(made, SessionSpec(ot=OtChoice("auto")))),
        Service(made, settings_of(made, preprocessing=store("agreement")), store("agreement")),
        Service(made, settings_of(made, SessionSpec("active"))),
    )


def settle(data: bytes) -> None:
    which, channel = data[0] if data else 0, Script(data[1:])
    service = services()[which // 2 % len(services())]
    terms = grant_query(channel, service) if which % 2 else request_query(channel, service, [(2, 4)])
    for shape in terms.shapes:
        assert len(shape) == 2 and shape[1] == 4 and 0 < shape[0] * shape[1] <= 1 << 26


def settlements() -> list[bytes]:
    wishes = [{"inputs": [[2, 4]], "ahead": False}, {"inputs": [[2, 4]], "ahead": True, "position": [0, 0]}]
    room = {"accepted": True, "queries": 3, "idle": 60.0, "ahead": False, "start": None}
    verdicts = [room, {**room, "ot": ["softspoken", 4], "why": "so"}, {**room, "start": [0, 0]}, {"accepted": False}]
    pairs = [framed(wish, verdict) for wish in wishes for verdict in verdicts]
    return [bytes([which]) + pair for which in range(8) for pair in pairs]


# ---- further connections: which side (1), then messages of up to 255 bytes, each from a connection of its own
def connections(data: bytes) -> Any:
    waiting = []
    while data:
        waiting.append(Script(data[1 : 1 + data[0]]))
        data = data[1 + data[0] :]

    def connect(seconds: float) -> Script:
        if not waiting:
            raise PeerDisconnected("nobody comes")
        return waiting.pop(0)

    return connect


def gather(data: bytes) -> None:
    which, connect = data[0] % 3 if data else 0, connections(data[1:])
    if which == 0:
        assert len(accept_lanes(connect, Script(b""), TOKEN, 2, 60.0)) == 2
    elif which == 1:
        assert len(open_lanes(connect, TOKEN, 2, 60.0)) == 2
    else:
        lobby = PendingSessions(60.0, lambda text: None)
        while (complete := lobby.admit(connect(1.0))) is None:
            pass
        assert complete.complete


def gatherings() -> list[bytes]:
    def messages(which: int, *each: bytes) -> bytes:
        return bytes([which]) + b"".join(bytes([len(one)]) + one for one in each)

    lanes = [LANE_MAGIC + TOKEN + lane.to_bytes(4, "little") for lane in (1, 2)]
    places = [DEALER_MAGIC + TOKEN + bytes(place) for place in ((0, 0), (0, 1), (1, 0))]
    return [messages(0, *lanes), messages(1, *[LANE_MAGIC + b"\0"] * 2), messages(2, *places)]


# ---- a party of three: rank (1), then eight bytes for each change of what it heard in an honest run
def work(engine: Any, value: torch.Tensor | None) -> None:
    x = engine.input(value, (6,), 1, 64)
    product = engine.multiply(Operand(x, 64), Operand(x, 64), 64)
    engine.truncate(product, 64, 13)
    engine.relu(x, 40)
    engine.lookup(torch.arange(16), engine.extend(x, 32, 64), 4, 20)
    engine.reveal(x, 64)
    engine.party.drain()


class Listening:
    """A channel that keeps what is read from it."""

    def __init__(self, channel: Any, heard: bytearray) -> None:
        self._channel, self._heard = channel, heard

    def read_array(self, count: int) -> np.ndarray:
        data = self._channel.read_array(count)
        self._heard += data.tobytes()
        return data

    def __getattr__(self, name: str) -> Any:
        return getattr(self._channel, name)


class Unsealed:
    """What is dealt, without encryption: peers that know the keys may seal what they like."""

    def __init__(self, channel: Any) -> None:
        self._channel = channel

    def send(self, payload: np.ndarray) -> None:
        self._channel.write_array(payload)
        self._channel.flush()

    def receive(self, size: int) -> np.ndarray:
        return self._channel.read_array(size)


def party_of_three(rank: int, channels: dict[int, Any], dealing: Any) -> None:
    """Behind the set-up, whose keys are the same each time."""
    links = Links(rank, channels, dealing)
    links._dealt = Unsealed(dealing)
    streams = {peer: Stream(bytes([rank + peer]) * 32) for peer in channels}
    engine = ThreePartyEngine(Party(links, streams), "exact")
    work(engine, torch.arange(6) - 2 if rank == 1 else None)


def set_up(rank: int, said: bytes) -> None:
    """The keys and their proofs, with peers that both say ``said``."""
    mine = {peer: Script(said) for peer in range(3) if peer != rank}
    threepc.established(mine, None if rank == 1 else Script(said[32:]), rank, threepc.Config("exact"))


@functools.cache
def heard() -> list[dict[Any, bytes]]:
    """What each party hears in an honest run, by peer ("deal" for what is dealt)."""
    pairs = {pair: _core.memory_pair() for pair in threepc.PAIRS}
    dealing = _core.memory_pair()
    kept: list[dict[Any, bytearray]] = [{}, {}, {}]
    errors: list[BaseException] = []

    def run(rank: int) -> None:
        try:
            mine = {}
            for pair, ends in pairs.items():
                if rank in pair:
                    side = pair.index(rank)
                    mine[pair[1 - side]] = Listening(ends[side], kept[rank].setdefault(pair[1 - side], bytearray()))
            end = {0: Listening(dealing[0], kept[0].setdefault("deal", bytearray())), DEALER: dealing[1]}.get(rank)
            party_of_three(rank, mine, end)
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=run, args=(rank,)) for rank in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert not errors, errors
    return [{peer: bytes(data) for peer, data in each.items()} for each in kept]


def one_of_three(data: bytes) -> None:
    rank = data[0] % 3 if data else 0
    if data and data[0] >= 128:
        set_up(rank, data[1:])
        return
    scripts = {peer: bytearray(said) for peer, said in heard()[rank].items()}
    names = list(scripts)
    for at in range(1, len(data) - 7, 8):
        change = data[at : at + 8]
        script = scripts[names[change[0] % len(names)]]
        place = int.from_bytes(change[2:5], "little") % max(len(script), 1)
        size = change[1] + 1
        kind = change[0] >> 4 & 3
        if kind == 0:
            script[place : place + 3] = bytes(
                a ^ b for a, b in zip(script[place : place + 3], change[5:], strict=False)
            )
        elif kind == 1:
            script[place : place + size] = bytes([change[5]]) * len(script[place : place + size])
        elif kind == 2:
            del script[place:]
        else:
            script[place:place] = bytes([change[5]]) * size
    mine = {peer: Script(bytes(said)) for peer, said in scripts.items()}
    dealing = mine.pop("deal", Script(b"") if rank == DEALER else None)
    party_of_three(rank, mine, dealing)


TARGETS = (
    Target("handshake", hellos, handshake, functools.partial(mutate_framed, start=9)),
    Target("agreement", settlements, settle, functools.partial(mutate_framed, start=1)),
    Target("connections", gatherings, gather),
    Target("threepc", lambda: [*(bytes([rank]) for rank in range(3)), bytes([128, 9] + [0] * 95)], one_of_three),
)
