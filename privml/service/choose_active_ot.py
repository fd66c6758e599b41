# SPDX-License-Identifier: Apache-2.0
"""``ot=auto`` of the actively secure engine: the transfers with which making what a query draws, and the query, are
predicted to take the least time on a given link.

Predicted time = depth and bytes of all phases on the link, from the exact cost with each choice (silent transfers bring
silent vector OLE where that saves bytes); plus what the choices differ in of the computing.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from typing import Any

from privml.engines.active.backend import meter
from privml.engines.correlations import OtChoice
from privml.program import INPUT_OWNER, Program
from privml.service.choose_ot import DEGREES, SETUP_SECONDS, SOFTSPOKEN_NANOSECONDS, Forecast, Shapes, choice_among
from privml.session.ledger import Snapshot
from privml.spec import LinkProfile

MALICIOUS = "malicious"
# Nanoseconds per transfer, as in choose_ot.
_DEGREES = zip(DEGREES, SOFTSPOKEN_NANOSECONDS[MALICIOUS], strict=True)
TRANSFER_NANOSECONDS = {OtChoice("softspoken", k, MALICIOUS): nanoseconds for k, nanoseconds in _DEGREES}
TRANSFER_NANOSECONDS[OtChoice("silent", 0, MALICIOUS)] = 13.3


def active_candidates() -> tuple[OtChoice, ...]:
    """Everything that can be chosen."""
    return tuple(TRANSFER_NANOSECONDS)


def active_forecast(
    program: Program, shapes: Shapes, ot: OtChoice, ring: int, truncation: str, link: LinkProfile, queries: int = 1
) -> Forecast:
    """For ``queries`` queries on inputs of these shapes, what each draws made in a session of its own."""
    demand = program.demand(*shapes, ring=ring, truncation=truncation)
    online = program.active_cost(*shapes, ring=ring, truncation=truncation, stored=True).snapshot().online
    ahead, transfers = made_ahead(demand, ot, ring)
    seconds = queries * (link.seconds(ahead.setup) + link.seconds(ahead.preprocess) + link.seconds(online))
    compute = queries * (SETUP_SECONDS[ot.provider] + transfers * TRANSFER_NANOSECONDS[ot] * 1e-9)
    return Forecast(ot, seconds, compute)


def made_ahead(demand: Mapping[str, Any], ot: OtChoice, ring: int) -> tuple[Snapshot, int]:
    """Set-up and preprocessing of ``demand`` in a session of its own, and the transfers that it takes, both ways."""
    engine = meter(INPUT_OWNER, ot, ring)
    engine.reserve(dict(demand))
    cost = Snapshot.of(engine.counters())
    return cost, cost.cots_as_sender + cost.cots_as_receiver


@lru_cache(maxsize=64)
def active_forecasts(
    program: Program, shapes: Shapes, ring: int, truncation: str, link: LinkProfile, queries: int = 1
) -> tuple[Forecast, ...]:
    """One per candidate, the best one first."""
    made = [active_forecast(program, shapes, ot, ring, truncation, link, queries) for ot in active_candidates()]
    return tuple(sorted(made, key=lambda each: each.seconds))


def named_active_choice(words: dict[str, Any]) -> tuple[OtChoice, str]:
    """What the peer chose and why; ProtocolError for anything that is no candidate here."""
    return choice_among(active_candidates(), words)
