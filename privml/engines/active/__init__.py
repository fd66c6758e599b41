# SPDX-License-Identifier: Apache-2.0
"""The actively secure engine: how parties come to it, in one process and as a meter."""

from __future__ import annotations

import secrets
from typing import Any

from privml import _core
from privml.engines.active.engine import RINGS, TRUNCATIONS, ActiveEngine
from privml.engines.base import Engine
from privml.engines.correlations import OtChoice
from privml.engines.joint import JointEngine, joined
from privml.errors import ConfigError

__all__ = ["RINGS", "TRUNCATIONS", "ActiveEngine", "choice_of", "create", "established", "meter"]


def choice_of(ot: str = "softspoken", k: int = 4) -> OtChoice:
    """The transfers that an actively secure session makes its correlations of."""
    return OtChoice(ot, k, "malicious")


def checked_ring(ring: int | None) -> int:
    if ring not in RINGS:
        raise ConfigError(f"ring must be one of {', '.join(map(str, RINGS))} for engine=active, got {ring!r}")
    return ring


def established(
    channel: _core.Channel,
    rank: int,
    ot: OtChoice,
    ring: int = 64,
    truncation: str = "auto",
    test_seed: int | None = None,
) -> ActiveEngine:
    """An engine on a connected channel. ``test_seed`` makes all randomness deterministic (tests only)."""
    core = _core.ActiveSession(channel, rank, checked_ring(ring), ot.provider, ot.k, test_seed)
    return ActiveEngine(core, truncation)


def meter(rank: int, ot: OtChoice, ring: int = 64, truncation: str = "auto", counts_only: bool = True) -> ActiveEngine:
    """An engine that books what each protocol would cost, exactly; ``counts_only`` as for two parties."""
    core = _core.ActiveSession.meter(rank, checked_ring(ring), ot.provider, ot.k)
    return ActiveEngine(core, truncation, counts_only)


def create(
    ring: int = 64,
    ot: str = "softspoken",
    k: int = 4,
    truncation: str = "auto",
    delay_ms: float = 0.0,
    bandwidth_mbps: float = 0.0,
    deadline: float = 60.0,
    test_seed: int | None = None,
) -> JointEngine:
    """The engine of ``privml.local(engine="active")``: both parties over a channel in memory.

    ``ring``: bits of the values' ring, 64 or 32; ``ot`` and ``k``: see ``OtChoice``; ``truncation``: see
    ``ActiveEngine``; ``delay_ms`` (one way) and ``bandwidth_mbps`` shape the channel; ``deadline``: the longest a party
    waits for the other, in seconds; ``test_seed``: tests only.
    """
    choice = choice_of(ot, k)
    if ot == "ideal" and test_seed is None:
        test_seed = secrets.randbits(64)
    pair: tuple[Any, Any] = _core.memory_pair(delay_ms, bandwidth_mbps)

    def close() -> None:
        for channel in pair:
            channel.close()

    def party(rank: int) -> Engine:
        pair[rank].set_deadline(deadline)
        return established(pair[rank], rank, choice, ring, truncation, test_seed)

    return joined(2, party, close)
