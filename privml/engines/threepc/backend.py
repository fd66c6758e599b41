# SPDX-License-Identifier: Apache-2.0
"""The three-party engine: how parties come to it, in one process and as a meter."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

import privml._core as _core
from privml.engines.base import Engine
from privml.engines.interface import Backend
from privml.engines.joint import JointEngine, joined
from privml.engines.stores import KEPT_WEIGHTS
from privml.engines.threepc import kernels_cpu, kernels_shapes
from privml.engines.threepc.device import kernels_for
from privml.engines.threepc.engine import TRUNCATIONS, ThreePartyEngine
from privml.engines.threepc.keys import PAIRS, agree_on_keys, derived, meter_keys
from privml.engines.threepc.links import DEALER, Links, Meter
from privml.engines.threepc.party import COMPARISONS, Party
from privml.engines.threepc.randomness import Silence, Stream
from privml.engines.threepc.stored import KeptWeights, StoredMeter, meter_proofs
from privml.engines.threepc.stores import ThreePartyStores
from privml.errors import ConfigError

if TYPE_CHECKING:
    from privml.spec import SessionSpec


def established(
    channels: Mapping[int, Any],
    dealing: Any,
    rank: int,
    config: Config | None = None,
    test_seed: int | None = None,
    kernels: Any = kernels_cpu,
) -> ThreePartyEngine:
    """An engine on connected channels (peer -> channel; ``dealing``: the one from party 2 to party 0): the pairwise
    keys are agreed first, and all channels proved to belong to their owners. ``config``: None for the default one;
    ``kernels``: see ``device.kernels_for``; each party has its own. ``test_seed`` makes all keys deterministic (tests
    only)."""
    links = Links(rank, channels, dealing)
    keys, common = agree_on_keys(links, test_seed)
    streams = {peer: Stream(key, kernels) for peer, key in {**keys, rank: common}.items()}
    config = config or Config()
    engine = ThreePartyEngine(Party(links, streams, kernels, config.comparison), config.truncation)
    engine.party.keys = {**keys, rank: common}
    engine.transcript_keys = {peer: derived(key, b"transcript") for peer, key in keys.items()}
    return engine


def meter(
    rank: int = 0, config: Config | None = None, counts_only: bool = True, stored: bool = False, kept: bool = False
) -> ThreePartyEngine:
    """An engine that books what each protocol would cost, exactly; its shares have shapes alone (``counts_only``), or
    are zeros, with which it computes as a party does. ``config``: None for the default one; ``stored``: what a dealer
    deals comes from a store, and the weights too if they are ``kept`` there."""
    links, config = StoredMeter(rank) if stored else Meter(rank), config or Config()
    if isinstance(links, StoredMeter):
        meter_proofs(links)
    else:
        meter_keys(links)
    kernels = kernels_shapes if counts_only else kernels_cpu
    silence = {peer: Silence(counts_only) for peer in range(3)}
    party = Party(links, silence, kernels, config.comparison)
    party.weights = KeptWeights(None) if kept else None
    return ThreePartyEngine(party, config.truncation)


def create(
    config: Config | None = None,
    delay_ms: float = 0.0,
    bandwidth_mbps: float = 0.0,
    deadline: float = 60.0,
    test_seed: int | None = None,
    kernels: Sequence[Any] | None = None,
) -> JointEngine:
    """The engine of ``privml.local(engine="threepc")``: all three parties over channels in memory.

    ``config``: None for the default one; ``delay_ms`` (one way) and ``bandwidth_mbps`` (0: unlimited) shape the
    channels; ``deadline``: the longest a party waits for another, in seconds; ``kernels``: those of each party instead
    of those for the config's device; ``test_seed``: tests only.
    """
    config = config or Config()
    kernels = [kernels_for(config.device) for _ in range(3)] if kernels is None else kernels
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
        return established(mine, end, rank, config, test_seed, kernels[rank])

    return joined(3, party, close)


@dataclass(frozen=True, slots=True)
class Config:
    """``truncation``: see ``ThreePartyEngine``; ``comparison``: "few_bytes", or "few_rounds", which takes two messages
    in a row where the former may take three; both the same at all parties. ``device``: where this party computes,
    "cpu" or "cuda"."""

    engine: ClassVar[str] = "threepc"
    truncation: str = "auto"
    device: str = "cpu"
    comparison: str = COMPARISONS[0]

    def __post_init__(self) -> None:
        if self.truncation not in TRUNCATIONS:
            raise ConfigError(f"truncation={self.truncation} must be one of {', '.join(TRUNCATIONS)}")
        if self.comparison not in COMPARISONS:
            raise ConfigError(f"comparison={self.comparison} must be one of {', '.join(COMPARISONS)}")
        kernels_for(self.device)  # says what is missing before a party waits


class ThreeParty(Backend):
    name = "threepc"
    Config = Config
    parties = 3
    assumes = (
        "all three follow the protocol (semi-honest) and no two of them work together: the dealer with neither server "
        "nor client; ChaCha20, X25519"
    )
    handshake_hops = 9  # those of two parties, then with the dealer
    stores = ThreePartyStores()

    def check(self, spec: SessionSpec) -> None:
        if spec.threads > 1:
            raise ConfigError(f"engine=threepc has one lane: leave out threads={spec.threads}")
        if spec.ot.refill != "none":
            raise ConfigError(f"engine=threepc makes no transfers: leave out refill={spec.ot.refill}")
        if spec.ot.security == "malicious":
            raise ConfigError(
                "engine=threepc is semi-honest and makes no transfers: leave out ot.security=malicious, or choose "
                "engine=active, which is secure against a party that deviates"
            )

    def local(self, spec: SessionSpec) -> JointEngine:
        return create(spec.engine, **spec.shape, deadline=spec.deadline, test_seed=spec.test_seed)

    def connections(self, spec: SessionSpec, rank: int) -> int:
        if spec.stored:
            return 1
        return 2 if rank == 1 else 3  # party 0 gets from the dealer what is dealt ahead of time on one of its own

    def open(self, channels: Sequence[_core.Channel], rank: int, spec: SessionSpec) -> ThreePartyEngine:
        others = [peer for peer in range(self.parties) if peer != rank]
        dealing = channels[2] if len(channels) > 2 else None
        own = spec.engine
        ends = dict(zip(others, channels, strict=False))
        return established(ends, dealing, rank, own, spec.test_seed, kernels_for(own.device))

    def meter(self, spec: SessionSpec, rank: int = 0, counts_only: bool = True) -> ThreePartyEngine:
        return meter(rank, spec.engine, counts_only, spec.stored, KEPT_WEIGHTS in spec.prepared)

    def terms(self, spec: SessionSpec) -> dict[str, Any]:
        return {"ot": "none", "k": 0, "truncation": spec.engine.truncation, "comparison": spec.engine.comparison}


BACKEND = ThreeParty()
