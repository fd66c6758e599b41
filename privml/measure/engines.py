# SPDX-License-Identifier: Apache-2.0
"""What each engine offers, to whom, and how it is metered: an engine joins ``privml advise`` by one entry here (and one
in ``measuring.ENGINES``, to be timed)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

from privml.engines.active import backend as active
from privml.engines.correlations import OtChoice
from privml.engines.threepc import backend as threepc
from privml.engines.twopc import backend as twopc
from privml.errors import ConfigError
from privml.measure.clocked import Clocked
from privml.spec import SessionSpec

SEMI_HONEST, MALICIOUS = "semi_honest", "malicious"
THREATS = (SEMI_HONEST, MALICIOUS)


@dataclass(frozen=True, slots=True)
class Setting:
    """How an engine is run; ``ot`` is None for engines that make no correlations."""

    engine: str
    parties: int
    ot: OtChoice | None = None
    threads: int = 1
    truncation: str = "auto"
    ring: int | None = None  # of engines that have a choice

    @property
    def prefix(self) -> str:
        """A name for what all its calls have in common."""
        if self.ring is not None:
            return f"{self.engine}/{self.ring}/{self.truncation}"
        return f"{self.engine}/{self.threads}/{self.truncation}" if self.ot is None else f"{self.engine}/{self.threads}"


@dataclass(frozen=True, slots=True)
class Offer:
    """``threat``: the strongest adversary it withstands; ``floats``: whether it computes with them; ``transfers``:
    whether it makes correlations by a provider that is chosen, of security ``security``; ``lanes``: whether it has
    several. ``demand``: (program, shapes, setting) to what a query
    reserves. ``rings``: those it has a choice of. ``meter``: (setting, rank, counts_only) to an engine that
    counts (see ``twopc.meter``). ``assumes``: of
    the parties and of mathematics, in words. ``by_kind``: whether it makes correlations of many kinds, each with a time
    of its own; ``greeting_hops``: one-way messages in sequence before a query's set-up."""

    engine: str
    parties: int
    threat: str
    floats: bool
    transfers: bool
    lanes: bool
    meter: Callable[[Setting, int, bool], Any]
    assumes: str
    demand: Callable[[Any, Any, Setting], Any] | None = None
    security: str | None = None
    rings: tuple[int, ...] = ()
    by_kind: bool = False
    greeting_hops: int = 0

    def setting(self, ot: OtChoice, threads: int = 1, truncation: str = "auto", ring: int | None = None) -> Setting:
        """What of these settings concerns the engine; ``ring`` None: the first of its own."""
        choice = ot if self.security is None else replace(ot, security=self.security)
        if self.lanes:
            return Setting(self.engine, self.parties, choice, threads)
        own = (ring or self.rings[0]) if self.rings else None
        return Setting(self.engine, self.parties, choice if self.transfers else None, 1, truncation, own)


OFFERS: dict[str, Offer] = {
    offer.engine: offer
    for offer in (
        Offer(
            engine="twopc",
            parties=2,
            threat=SEMI_HONEST,
            floats=True,
            transfers=True,
            lanes=True,
            greeting_hops=4,  # hello, then what the query is about, asked and answered
            meter=lambda setting, rank, counts_only: twopc.meter(rank, setting.ot, setting.threads, counts_only),
            demand=lambda program, shapes, setting: program.demand(
                shapes, SessionSpec(ot=setting.ot, threads=setting.threads)
            ),
            assumes="both parties follow the protocol (semi-honest); AES-128 is a correlation-robust hash, "
            "Diffie-Hellman on ristretto255; ot=silent: learning parity with noise is hard, too",
        ),
        Offer(
            engine="threepc",
            parties=3,
            threat=SEMI_HONEST,
            floats=False,
            transfers=False,
            lanes=False,
            greeting_hops=9,  # the same, then with the dealer
            meter=lambda setting, rank, counts_only: threepc.meter(rank, setting.truncation, counts_only),
            assumes="all three follow the protocol (semi-honest) and no two of them work together: the dealer with "
            "neither server nor client; ChaCha20, X25519",
        ),
        Offer(
            engine="active",
            parties=2,
            threat=MALICIOUS,
            floats=False,
            transfers=True,
            lanes=False,
            security="malicious",
            rings=active.RINGS,
            meter=lambda setting, rank, counts_only: Clocked(
                active.meter(rank, setting.ot, setting.ring, setting.truncation, counts_only)
            ),
            demand=lambda program, shapes, setting: program.demand(
                shapes, SessionSpec(active.Config(setting.ring, setting.truncation), setting.ot)
            ),
            assumes="nothing of the other party, which may deviate: it is caught before a result is shown, and can end "
            "the session; AES-128 is a correlation-robust hash, Diffie-Hellman on ristretto255",
            by_kind=True,
            greeting_hops=4,
        ),
    )
}


def offer_of(engine: str) -> Offer:
    if engine not in OFFERS:
        raise ConfigError(f"engine={engine} has no metered communication; choose one of {', '.join(OFFERS)}")
    return OFFERS[engine]
