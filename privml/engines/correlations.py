# SPDX-License-Identifier: Apache-2.0
"""Which correlated oblivious transfers the two-party engine runs on."""

from __future__ import annotations

from dataclasses import dataclass

from privml.errors import ConfigError

PROVIDERS = ("softspoken", "silent", "ideal")
# Stands for one of them, which the server of a query names (``privml.service.choose_ot``).
AUTO = "auto"
SOFTSPOKEN_DEGREES = range(1, 11)
SECURITIES = ("semi_honest", "malicious")
REFILLS = ("none", "background")


@dataclass(frozen=True, slots=True)
class OtChoice:
    """``provider``: "softspoken", "silent", or "ideal" (tests only). ``k``: SoftSpoken's field degree (1 to 10),
    0 for other providers. ``security``: "semi_honest", or "malicious": a peer that deviates while
    transfers are made ends in SecurityAbort. ``refill``: "none", or "background" where each lane's correlations are
    made by a thread and on a connection of their own. Raises ConfigError for what does not exist."""

    provider: str = "softspoken"
    k: int = 4
    security: str = "semi_honest"
    refill: str = "none"

    def __post_init__(self) -> None:
        if self.provider not in (*PROVIDERS, AUTO):
            raise ConfigError(f"provider={self.provider} must be one of {', '.join((*PROVIDERS, AUTO))}")
        if self.security not in SECURITIES:
            raise ConfigError(f"security={self.security} must be one of {', '.join(SECURITIES)}")
        if self.refill not in REFILLS:
            raise ConfigError(f"refill={self.refill} must be one of {', '.join(REFILLS)}")
        if self.provider != "softspoken":
            object.__setattr__(self, "k", 0)
        elif self.k not in SOFTSPOKEN_DEGREES:
            raise ConfigError(f"k={self.k} must be a whole number from 1 to 10")

    @property
    def in_background(self) -> bool:
        return self.refill == "background"

    @property
    def decided(self) -> bool:
        """False for "auto", with which nothing can be made yet."""
        return self.provider != AUTO

    @property
    def terms(self) -> dict[str, str | int]:
        """What the parties must agree on, by the names of a ``Hello``'s fields."""
        return {"ot": self.provider, "k": self.k, "security": self.security, "refill": self.refill}

    @property
    def tag(self) -> str:
        """A short name for files and records, such as ``softspoken-k4``."""
        parts = [self.provider, f"k{self.k}" if self.k else "", self.security if self.security == "malicious" else ""]
        parts.append("refill" if self.in_background else "")
        return "-".join(part for part in parts if part)

    def __str__(self) -> str:
        degree = f" k={self.k}" if self.k else ""
        security = "" if self.security == "semi_honest" else f" ({self.security})"
        return f"{self.provider}{degree}{security}" + (", refilled in the background" if self.in_background else "")


DEFAULT_OT = OtChoice()

# Nanoseconds of one core per correlation that a party makes and draws, either role, both directions under way: a
# thread's own time, 8.9 million correlations each way between two threads in one run on a two-core x86-64 server
# (AVX-512, VAES). Only their ratios to the link matter: a machine that is slower by a factor meets the same choices at
# a bandwidth lower by that factor. k = 1 is slower than k = 3 and needs more bytes; beyond k = 8 the work doubles for a
# tenth of the bytes.
DEGREES = (2, 3, 4, 5, 6, 7, 8)
SOFTSPOKEN_NANOSECONDS = {
    "semi_honest": (5.9, 5.8, 6.0, 7.1, 9.2, 12.6, 19.2),
    "malicious": (7.4, 7.0, 7.3, 8.2, 10.2, 13.5, 20.0),
}
SILENT_NANOSECONDS = {"semi_honest": 12.1}
ACTIVE_SILENT_NANOSECONDS = 13.3


def making_seconds(ot: OtChoice) -> float:
    """Seconds of one core per correlation; of degrees that were not measured those of the nearest one."""
    if ot.provider == "silent":
        return SILENT_NANOSECONDS.get(ot.security, ACTIVE_SILENT_NANOSECONDS) * 1e-9
    if ot.provider != "softspoken":
        return 0.0
    nearest = min(max(ot.k, DEGREES[0]), DEGREES[-1])
    return SOFTSPOKEN_NANOSECONDS[ot.security][DEGREES.index(nearest)] * 1e-9


# Correlations that one direction of a session makes ahead of a run: 256 MiB of memory.
LARGEST_STOCK = 1 << 24


@dataclass(frozen=True, slots=True)
class Correlations:
    """How many correlated transfers, by the rank of the party that sends with them; ``further`` are those of lanes
    beyond the first."""

    from0: int = 0
    from1: int = 0
    further: tuple[Correlations, ...] = ()

    @property
    def lanes(self) -> tuple[Correlations, ...]:
        """Those of each lane."""
        return (Correlations(self.from0, self.from1), *self.further)

    def roles(self, rank: int) -> tuple[int, int]:
        """(as sender, as receiver) of party ``rank`` on the first lane."""
        return (self.from0, self.from1) if rank == 0 else (self.from1, self.from0)

    @property
    def directions(self) -> tuple[int, int]:
        """Those of all lanes, by the sender's rank."""
        return sum(lane.from0 for lane in self.lanes), sum(lane.from1 for lane in self.lanes)

    @property
    def total(self) -> int:
        return sum(lane.from0 + lane.from1 for lane in self.lanes)

    @property
    def stock(self) -> Correlations:
        """What a session makes before a run that draws ``self``: all of it, or as much as is kept in memory."""
        limit = LARGEST_STOCK // len(self.lanes)
        first, *further = (Correlations(min(lane.from0, limit), min(lane.from1, limit)) for lane in self.lanes)
        return Correlations(first.from0, first.from1, tuple(further))
