# SPDX-License-Identifier: Apache-2.0
"""The actively secure engine: how parties come to it, in one process and as a meter."""

from __future__ import annotations

import secrets
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

import privml._core as _core
from privml.engines.active.engine import RINGS, TRUNCATIONS, ActiveEngine
from privml.engines.active.stores import ActiveStores
from privml.engines.base import Engine
from privml.engines.correlations import OtChoice
from privml.engines.demands import difference
from privml.engines.interface import MALICIOUS, Backend
from privml.engines.joint import JointEngine, joined
from privml.errors import ConfigError
from privml.formats import Numerics

if TYPE_CHECKING:
    from privml.spec import SessionSpec


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


@dataclass(frozen=True, slots=True)
class Config:
    """``ring``: bits of the values' ring, 64 or 32, and as many have the keys of its checks; ``truncation``: see
    ``ActiveEngine``."""

    engine: ClassVar[str] = "active"
    ring: int = 64
    truncation: str = "auto"

    def __post_init__(self) -> None:
        checked_ring(self.ring)
        if self.truncation not in TRUNCATIONS:
            raise ConfigError(f"truncation={self.truncation} must be one of {', '.join(TRUNCATIONS)}")


class Active(Backend):
    name = "active"
    Config = Config
    threat = security = MALICIOUS
    assumes = (
        "nothing about the other party, which may deviate: a deviation is detected before a result is revealed, and "
        "can end the session; AES-128 is a correlation-robust hash, Diffie-Hellman on ristretto255"
    )
    transfers = by_kind = True
    stores = ActiveStores()

    def numerics(self, config: Config) -> Numerics:
        return Numerics(bits=32, scale=8) if config.ring == 32 else Numerics()

    def check(self, spec: SessionSpec) -> None:
        if spec.ot.provider != "ideal" and spec.ot.security != MALICIOUS:
            raise ConfigError("engine=active needs ot.security=malicious")
        if spec.threads > 1 or spec.ot.in_background:
            raise ConfigError("engine=active has one lane: leave out threads and ot.refill")
        if spec.numerics.bits > spec.engine.ring:
            raise ConfigError(f"numerics of {spec.numerics.bits} bits do not fit engine.ring={spec.engine.ring}")

    def local(self, spec: SessionSpec) -> JointEngine:
        own, ot = spec.engine, spec.ot
        return create(
            own.ring, ot.provider, ot.k, own.truncation, **spec.shape, deadline=spec.deadline, test_seed=spec.test_seed
        )

    def open(self, channels: Sequence[_core.Channel], rank: int, spec: SessionSpec) -> ActiveEngine:
        own = spec.engine
        return established(channels[0], rank, spec.ot, own.ring, own.truncation, spec.test_seed)

    def meter(self, spec: SessionSpec, rank: int = 0, counts_only: bool = True) -> ActiveEngine:
        own = spec.engine
        return meter(rank, spec.ot, own.ring, own.truncation, counts_only)

    def demand(self, program: Any, shapes: Any, spec: SessionSpec, further: bool = False) -> dict[str, Any]:
        engine = meter(1, OtChoice("ideal"), spec.engine.ring, spec.engine.truncation)
        session = program.session_meter(engine)
        session.query(shapes)
        first = engine.drawn()
        if not further:
            return first
        session.query(shapes)
        return difference(engine.drawn(), first)

    def terms(self, spec: SessionSpec) -> dict[str, Any]:
        own = spec.engine
        return {**spec.ot.terms, "threads": spec.threads, "truncation": own.truncation, "ring": own.ring}


BACKEND = Active()
