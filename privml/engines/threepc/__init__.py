# SPDX-License-Identifier: Apache-2.0
"""The three-party engine: how parties come to it, in one process and as a meter."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from privml import _core
from privml.engines.base import Engine
from privml.engines.joint import JointEngine, joined
from privml.engines.threepc import kernels_cpu, kernels_shapes
from privml.engines.threepc.device import kernels_for
from privml.engines.threepc.engine import ThreePartyEngine
from privml.engines.threepc.keys import PAIRS, agree_on_keys, derived, meter_keys
from privml.engines.threepc.links import DEALER, Links, Meter
from privml.engines.threepc.party import Party
from privml.engines.threepc.randomness import Silence, Stream

__all__ = ["DEALER", "PAIRS", "ThreePartyEngine", "create", "established", "meter"]


def established(
    channels: Mapping[int, Any],
    dealing: Any,
    rank: int,
    truncation: str = "auto",
    test_seed: int | None = None,
    kernels: Any = kernels_cpu,
) -> ThreePartyEngine:
    """An engine on connected channels (peer -> channel; ``dealing``: the one from party 2 to party 0): the pairwise
    keys are agreed first, and all channels proved to belong to their owners. ``kernels``: see ``device.kernels_for``;
    each party has its own. ``test_seed`` makes all keys deterministic (tests only)."""
    links = Links(rank, channels, dealing)
    keys = agree_on_keys(links, test_seed)
    streams = {peer: Stream(key, kernels) for peer, key in keys.items()}
    engine = ThreePartyEngine(Party(links, streams, kernels), truncation)
    engine.transcript_keys = {peer: derived(key, b"transcript") for peer, key in keys.items()}
    return engine


def meter(rank: int = 0, truncation: str = "auto", counts_only: bool = True) -> ThreePartyEngine:
    """An engine that books what each protocol would cost, exactly; its shares have shapes alone (``counts_only``), or
    are zeros, with which it computes as a party does."""
    links = Meter(rank)
    meter_keys(links)
    kernels = kernels_shapes if counts_only else kernels_cpu
    silence = {peer: Silence(counts_only) for peer in range(3) if peer != rank}
    return ThreePartyEngine(Party(links, silence, kernels), truncation)


def create(
    delay_ms: float = 0.0,
    bandwidth_mbps: float = 0.0,
    deadline: float = 60.0,
    truncation: str = "auto",
    test_seed: int | None = None,
    device: str | Sequence[Any] = "cpu",
) -> JointEngine:
    """The engine of ``privml.local(engine="threepc")``: all three parties over channels in memory.

    ``delay_ms`` (one way) and ``bandwidth_mbps`` (0: unlimited) shape them; ``deadline``: the longest a party waits
    for another, in seconds; ``truncation``: see ``ThreePartyEngine``; ``device``: "cpu", "cuda" or the kernels of each
    party; ``test_seed``: tests only.
    """
    kernels = [kernels_for(device) for _ in range(3)] if isinstance(device, str) else list(device)
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
        return established(mine, end, rank, truncation, test_seed, kernels[rank])

    return joined(3, party, close)
