# SPDX-License-Identifier: Apache-2.0
"""The three-party engine: how parties come to it, in one process and as a meter."""

from __future__ import annotations

import hashlib
import secrets
from collections.abc import Mapping
from functools import partial
from typing import Any

import numpy as np

from privml.engines.base import Engine
from privml.engines.joint import JointEngine, PartyThreads
from privml.engines.threepc.engine import ThreePartyEngine
from privml.engines.threepc.links import DEALER, Links, Message, Meter
from privml.engines.threepc.party import Party
from privml.engines.threepc.randomness import KEY_BYTES, Silence, Stream

__all__ = ["DEALER", "PAIRS", "ThreePartyEngine", "create", "established", "meter"]

# Who draws what together with whom; the first of a pair chooses the key.
PAIRS = ((0, 1), (0, 2), (1, 2))


def established(
    channels: Mapping[int, Any], dealing: Any, rank: int, truncation: str = "auto", test_seed: int | None = None
) -> ThreePartyEngine:
    """An engine on connected channels (peer -> channel; ``dealing``: the one from party 2 to party 0): the pairwise
    keys are agreed first. ``test_seed`` makes all of them deterministic (tests only)."""
    links = Links(rank, channels, dealing)
    streams = {peer: Stream(key) for peer, key in _agree_on_keys(links, test_seed).items()}
    return ThreePartyEngine(Party(links, streams), truncation)


def _agree_on_keys(links: Links, test_seed: int | None) -> dict[int, bytes]:
    messages = [Message(first, second, KEY_BYTES) for first, second in PAIRS]
    mine = {second: _key(test_seed, first, second) for first, second in PAIRS if first == links.rank}
    payloads = {peer: np.frombuffer(key, np.uint8) for peer, key in mine.items()}
    received = links.round(messages, payloads, "setup")
    return mine | {peer: data.tobytes() for peer, data in received.items()}


def _key(test_seed: int | None, first: int, second: int) -> bytes:
    if test_seed is None:
        return secrets.token_bytes(KEY_BYTES)
    return hashlib.blake2b(f"{test_seed} {first} {second}".encode(), digest_size=KEY_BYTES).digest()


def meter(rank: int = 0, truncation: str = "auto") -> ThreePartyEngine:
    """An engine that computes on zeros and books what each protocol would cost, exactly."""
    links = Meter(rank)
    links.round([Message(first, second, KEY_BYTES) for first, second in PAIRS], {}, "setup")
    silence = {peer: Silence() for peer in range(3) if peer != rank}
    return ThreePartyEngine(Party(links, silence), truncation)


def create(
    delay_ms: float = 0.0,
    bandwidth_mbps: float = 0.0,
    deadline: float = 60.0,
    truncation: str = "auto",
    test_seed: int | None = None,
) -> JointEngine:
    """The engine of ``privml.local(engine="threepc")``: all three parties over channels in memory.

    ``delay_ms`` (one way) and ``bandwidth_mbps`` (0: unlimited) shape them; ``deadline``: the longest a party waits
    for another, in seconds; ``truncation``: see ``ThreePartyEngine``; ``test_seed``: tests only.
    """
    from privml import _core

    pairs = {pair: _core.memory_pair(delay_ms, bandwidth_mbps) for pair in PAIRS}
    dealing = _core.memory_pair(delay_ms, bandwidth_mbps)
    everything = [channel for pair in (*pairs.values(), dealing) for channel in pair]
    for channel in everything:
        channel.set_deadline(deadline)

    def close() -> None:
        for channel in everything:
            channel.close()

    def party(rank: int) -> Engine:
        mine = {}
        for pair, ends in pairs.items():
            if rank in pair:
                side = pair.index(rank)
                mine[pair[1 - side]] = ends[side]
        end = {0: dealing[0], DEALER: dealing[1]}.get(rank)
        return established(mine, end, rank, truncation, test_seed)

    workers = PartyThreads(3, close)
    try:
        engines = workers.run([partial(party, rank) for rank in range(3)])
    except BaseException:
        workers.close()
        raise
    return JointEngine(engines, workers)
